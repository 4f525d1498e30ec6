"""Hooks: functions called when a launch begins and ends, when a kernel has been compiled, and when it has been loaded.

They are looked at on every launch and in both launcher levels; with none there, that costs one comparison in C.
An empty grid launches nothing, so no hook sees it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from podium import _state
from podium._fork import ForkSafeLock
from podium._launch_config import Dim3
from podium._record import field, record

__all__ = ["ArgumentInfo", "CompileEvent", "Hooks", "LaunchEvent", "LoadEvent", "hooks"]


@record(frozen=True)
class ArgumentInfo:
    """What a hook may know of one argument: never its data. `value` is given for scalars, `address` for pointers."""

    name: str
    type: str
    value: object = None
    address: int | None = None


@record
class LaunchEvent:
    """A launch, as its hooks see it; the same object at enter and at exit.

    `seconds` is the host time that the launch took, `error` what it raised; both are known at exit only. `data` is free
    for the hooks to keep things in between.
    """

    kernel: str
    backend: str
    device: int
    stream: int
    grid: Dim3
    block: Dim3
    shared: int
    arguments: tuple[ArgumentInfo, ...]
    seconds: float | None = None
    error: BaseException | None = None
    data: dict[object, object] = field(default_factory=dict)


@record(frozen=True)
class CompileEvent:
    """A kernel was compiled, or found in the cache."""

    kernel: str
    target: str
    cached: bool
    seconds: float
    start: float  # time.perf_counter() when it began


@record(frozen=True)
class LoadEvent:
    """A kernel was loaded on a device."""

    kernel: str
    backend: str
    device: int
    seconds: float
    start: float  # time.perf_counter() when it began


_Event = TypeVar("_Event")


class Chain(Generic[_Event]):
    """An ordered list of functions that are called with an event."""

    def __init__(self, lock: ForkSafeLock, on_change: Callable[[], None] = lambda: None) -> None:
        self._functions: tuple[Callable[[_Event], object], ...] = ()
        self._lock = lock
        self._on_change = on_change

    def add(self, function: Callable[[_Event], object]) -> None:
        """Add a function at the end. It may be there more than once."""
        if not callable(function):
            raise TypeError(f"A hook is a function of one argument, not {function!r}")
        with self._lock:
            self._functions += (function,)
            self._on_change()

    def remove(self, function: Callable[[_Event], object]) -> None:
        """Remove the function that was added last, by identity (by equality for bound methods).

        Raises ValueError if it is not there.
        """
        with self._lock:
            for index in reversed(range(len(self._functions))):
                if self._functions[index] is function or (
                    hasattr(function, "__self__") and self._functions[index] == function
                ):
                    self._functions = self._functions[:index] + self._functions[index + 1 :]
                    self._on_change()
                    return
        raise ValueError(f"{function!r} is not among the hooks")

    def clear(self) -> None:
        """Remove all functions."""
        with self._lock:
            self._functions = ()
            self._on_change()

    def any(self) -> bool:
        """Tell whether there are any functions."""
        return bool(self._functions)

    def functions(self) -> tuple[Callable[[_Event], object], ...]:
        """Return the functions in order; a later change does not change this tuple."""
        return self._functions


class Hooks:
    """The four chains. `enter` is called in order, `exit` in reverse order; both with the same `LaunchEvent`.

    An exception in an enter hook stops the launch; the exit hooks all run in any case. An exception in one of
    them has the one before it, if there was one, as its context.
    """

    def __init__(self) -> None:
        lock = ForkSafeLock()  # one for all, since whether any launch is watched depends on two of them
        self.enter: Chain[LaunchEvent] = Chain(lock, self._changed)
        self.exit: Chain[LaunchEvent] = Chain(lock, self._changed)
        self.compile: Chain[CompileEvent] = Chain(lock)
        self.load: Chain[LoadEvent] = Chain(lock)

    def around(self, event: LaunchEvent, launch: Callable[[], None]) -> None:
        """Launch between the enter and the exit hooks."""
        start = time.perf_counter()
        try:
            for function in self.enter.functions():
                function(event)
            launch()
        except BaseException as error:
            event.error = error
            raise
        finally:
            event.seconds = time.perf_counter() - start
            self._leave(event, list(self.exit.functions()))

    def _leave(self, event: LaunchEvent, functions: list[Callable[[LaunchEvent], object]]) -> None:
        """Call the exit hooks from the last to the first, each even if those before it raised."""
        while functions:
            try:
                functions.pop()(event)
            except BaseException as error:
                event.error = event.error or error
                self._leave(event, functions)
                raise

    def _changed(self) -> None:
        _state.attend(_state.HOOKS, self.enter.any() or self.exit.any())


hooks = Hooks()
