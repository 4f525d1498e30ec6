"""ROCTX ranges around launches: what rocprof and other profilers show on the host's time line."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from types import TracebackType
from typing import Any

import podium
from podium.backend import environment_flag
from podium.errors import SettingError

__all__ = ["NAMES", "VARIABLE", "RoctxRanges", "roctx_ranges", "start_from_environment"]

VARIABLE = "PODIUM_AMD_ROCTX"
"""The variable that puts ranges around all launches of the process."""

NAMES = ("librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so.0", "libroctx64.so.4", "libroctx64.so.1")
"""The versioned names of the library: that of rocprofv3, which comes first, and that of older profilers."""


class RoctxRanges:
    """Puts a range around each launch from `start` to `stop`, or inside a ``with`` block.

    A range has the kernel's name and its grid and block. Where no profiler listens, it costs two calls a launch.
    """

    def __init__(self) -> None:
        self._library: Any = None

    def start(self) -> RoctxRanges:
        """Begin; does nothing if it has begun. Raises OSError if the library roctx is not there."""
        if self._library is None:
            self._library = _open()
            podium.hooks.enter.add(self._push)
            podium.hooks.exit.add(self._pop)
        return self

    def stop(self) -> None:
        """End; nothing happens the second time."""
        if self._library is not None:
            podium.hooks.enter.remove(self._push)
            podium.hooks.exit.remove(self._pop)
            self._library = None

    def __enter__(self) -> RoctxRanges:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _push(self, event: Any) -> None:
        library = self._library
        if library is not None:
            library.roctxRangePushA(f"{event.kernel} grid {event.grid} block {event.block}".encode())
            event.data[self] = library

    def _pop(self, event: Any) -> None:
        # An enter hook before this one may have raised, and the chains may change during a launch.
        library = event.data.pop(self, None)
        if library is not None:
            library.roctxRangePop()


def roctx_ranges() -> RoctxRanges:
    """Put a ROCTX range around each launch inside ``with podium_amd.roctx_ranges():``.

    PODIUM_AMD_ROCTX=1 does so for the whole process. Needs ROCm's library roctx.
    """
    return RoctxRanges()


@lru_cache(maxsize=1)
def start_from_environment() -> None:
    """Begin the ranges that PODIUM_AMD_ROCTX asks for. Raises `SettingError` if that cannot be."""
    if environment_flag(VARIABLE):
        try:
            RoctxRanges().start()
        except OSError as error:
            raise SettingError(VARIABLE, "1", f"ROCm's library roctx, which this needs ({error})") from None


def _open() -> ctypes.CDLL:
    problems = []
    for name in NAMES:
        try:
            library = ctypes.CDLL(name)
            library.roctxRangePushA.argtypes = [ctypes.c_char_p]
        except (OSError, AttributeError) as error:
            problems.append(str(error))
        else:
            return library
    raise OSError(
        f"ROCTX ranges need ROCm's library roctx, of the package rocprofiler-sdk-roctx or roctracer: {problems[0]}"
    )
