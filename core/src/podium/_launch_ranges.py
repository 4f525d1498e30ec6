"""Ranges around launches, as profilers show them on the host's time line."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from podium._hooks import LaunchEvent, hooks

__all__ = ["LaunchRanges"]


class LaunchRanges:
    """Puts a range around each launch from `start` to `stop`, or inside a ``with`` block, by a profiler's library.

    `begin` returns what the ranges are made with, or None where no profiler listens: then nothing is added to a launch.
    `push` opens a range with it for a launch, and `pop` closes the innermost. What `begin` raises, `start` raises.
    """

    def __init__(
        self, begin: Callable[[], Any], push: Callable[[Any, LaunchEvent], object], pop: Callable[[Any], object]
    ) -> None:
        self._begin, self._open, self._close = begin, push, pop
        self._profiler: Any = None

    def start(self) -> LaunchRanges:
        """Begin; does nothing if it has begun."""
        if self._profiler is None:
            self._profiler = self._begin()
            if self._profiler is not None:
                hooks.enter.add(self._push)
                hooks.exit.add(self._pop)
        return self

    def stop(self) -> None:
        """End; nothing happens the second time."""
        if self._profiler is not None:
            hooks.enter.remove(self._push)
            hooks.exit.remove(self._pop)
            self._profiler = None

    def __enter__(self) -> LaunchRanges:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _push(self, event: LaunchEvent) -> None:
        profiler = self._profiler
        if profiler is not None:
            self._open(profiler, event)
            event.data[self] = profiler

    def _pop(self, event: LaunchEvent) -> None:
        # An enter hook before this one may have raised, and the chains may change during a launch.
        profiler = event.data.pop(self, None)
        if profiler is not None:
            self._close(profiler)
