"""NVTX ranges around launches: what Nsight Systems and other profilers show on the host's time line."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from podium.backend import environment_flag
from podium.errors import SettingError
from podium.parts import LaunchRanges

__all__ = ["VARIABLE", "nvtx_ranges", "start_from_environment"]

VARIABLE = "PODIUM_NVIDIA_NVTX"
"""The variable that puts ranges around all launches of the process."""

DOMAIN = "podium"

_INSTALL = "pip install 'podium-nvidia[nvtx]'"


def nvtx_ranges() -> LaunchRanges:
    """Put an NVTX range around each launch inside ``with podium_nvidia.nvtx_ranges():``.

    A range has the kernel's name, the backend as its category and the number of blocks as its payload, in the domain
    "podium". Where no profiler listens, nothing is added to a launch. PODIUM_NVIDIA_NVTX=1 does so for the whole
    process. `start` raises ImportError if the Python package nvtx is not installed: podium-nvidia[nvtx].
    """
    return LaunchRanges(_domain, _push, lambda domain: domain.pop_range())


@lru_cache(maxsize=1)
def start_from_environment() -> None:
    """Begin the ranges that PODIUM_NVIDIA_NVTX asks for. Raises `SettingError` if that cannot be."""
    if environment_flag(VARIABLE):
        try:
            nvtx_ranges().start()
        except ImportError as error:
            raise SettingError(VARIABLE, "1", f"the package nvtx, which this needs ({error})") from None


def _domain() -> Any:
    try:
        import nvtx
    except ImportError as error:
        raise ImportError(f"NVTX ranges need the Python package nvtx: {error}. Run: {_INSTALL}") from None
    domain = nvtx.get_domain(DOMAIN)
    # Without a profiler it is a stand-in, and stays one: profilers are attached when a process starts.
    return domain if isinstance(domain, nvtx.Domain) else None


def _push(domain: Any, event: Any) -> None:
    blocks = math.prod(event.grid)
    domain.push_range(domain.get_event_attributes(event.kernel, category=event.backend, payload=blocks))
