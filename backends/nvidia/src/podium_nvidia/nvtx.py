"""NVTX ranges around launches: what Nsight Systems and other profilers show on the host's time line."""

from __future__ import annotations

import math
from functools import lru_cache
from types import TracebackType
from typing import Any

import podium
from podium.backend import environment_flag
from podium.errors import SettingError

__all__ = ["VARIABLE", "NvtxRanges", "nvtx_ranges", "start_from_environment"]

VARIABLE = "PODIUM_NVIDIA_NVTX"
"""The variable that puts ranges around all launches of the process."""

DOMAIN = "podium"

_INSTALL = "pip install 'podium-nvidia[nvtx]'"


class NvtxRanges:
    """Puts a range around each launch from `start` to `stop`, or inside a ``with`` block.

    A range has the kernel's name, the backend as its category and the number of blocks as its payload, in the domain
    "podium". Where no profiler listens, nothing is added to a launch.
    """

    def __init__(self) -> None:
        self._domain: Any = None

    def start(self) -> NvtxRanges:
        """Begin; does nothing if it has begun. Raises ImportError if the Python package nvtx is not installed."""
        if self._domain is None:
            nvtx = _package()
            domain = nvtx.get_domain(DOMAIN)
            # Without a profiler it is a stand-in, and stays one: profilers are attached when a process starts.
            if isinstance(domain, nvtx.Domain):
                self._domain = domain
                podium.hooks.enter.add(self._push)
                podium.hooks.exit.add(self._pop)
        return self

    def stop(self) -> None:
        """End; nothing happens the second time."""
        if self._domain is not None:
            podium.hooks.enter.remove(self._push)
            podium.hooks.exit.remove(self._pop)
            self._domain = None

    def __enter__(self) -> NvtxRanges:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _push(self, event: Any) -> None:
        domain = self._domain
        if domain is not None:
            blocks = math.prod(event.grid)
            domain.push_range(domain.get_event_attributes(event.kernel, category=event.backend, payload=blocks))
            event.data[self] = domain

    def _pop(self, event: Any) -> None:
        # An enter hook before this one may have raised, and the chains may change during a launch.
        domain = event.data.pop(self, None)
        if domain is not None:
            domain.pop_range()


def nvtx_ranges() -> NvtxRanges:
    """Put an NVTX range around each launch inside ``with podium_nvidia.nvtx_ranges():``.

    PODIUM_NVIDIA_NVTX=1 does so for the whole process. Needs the Python package nvtx: podium-nvidia[nvtx].
    """
    return NvtxRanges()


@lru_cache(maxsize=1)
def start_from_environment() -> None:
    """Begin the ranges that PODIUM_NVIDIA_NVTX asks for. Raises `SettingError` if that cannot be."""
    if environment_flag(VARIABLE):
        try:
            NvtxRanges().start()
        except ImportError as error:
            raise SettingError(VARIABLE, "1", f"the package nvtx, which this needs ({error})") from None


def _package() -> Any:
    try:
        import nvtx
    except ImportError as error:
        raise ImportError(f"NVTX ranges need the Python package nvtx: {error}. Run: {_INSTALL}") from None
    return nvtx
