"""ROCTX ranges around launches: what rocprof and other profilers show on the host's time line."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

from podium.backend import environment_flag
from podium.errors import SettingError
from podium.parts import LaunchRanges

__all__ = ["NAMES", "VARIABLE", "roctx_ranges", "start_from_environment"]

VARIABLE = "PODIUM_AMD_ROCTX"
"""The variable that puts ranges around all launches of the process."""

NAMES = ("librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so.0", "libroctx64.so.4", "libroctx64.so.1")
"""The versioned names of the library: that of rocprofv3, which comes first, and that of older profilers."""


def roctx_ranges() -> LaunchRanges:
    """Put a ROCTX range around each launch inside ``with podium_amd.roctx_ranges():``.

    A range has the kernel's name and its grid and block. Where no profiler listens, it costs two calls a launch.
    PODIUM_AMD_ROCTX=1 does so for the whole process. `start` raises OSError if ROCm's library roctx is not there.
    """
    return LaunchRanges(_open, _push, lambda library: library.roctxRangePop())


@lru_cache(maxsize=1)
def start_from_environment() -> None:
    """Begin the ranges that PODIUM_AMD_ROCTX asks for. Raises `SettingError` if that cannot be."""
    if environment_flag(VARIABLE):
        try:
            roctx_ranges().start()
        except OSError as error:
            raise SettingError(VARIABLE, "1", f"ROCm's library roctx, which this needs ({error})") from None


def _push(library: Any, event: Any) -> None:
    library.roctxRangePushA(f"{event.kernel} grid {event.grid} block {event.block}".encode())


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
