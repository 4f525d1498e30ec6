"""The launchers of the AMD backend, and what their generated C asks for when it is loaded."""

from __future__ import annotations

from pathlib import Path

from podium.backend import Launcher

__all__ = ["AmdLauncher", "PerThreadLauncher", "entry_points", "mark_captured"]

_FUNCTIONS = (
    "hipModuleLaunchKernel",
    "hipModuleLaunchCooperativeKernel",
    "hipDrvLaunchKernelEx",
    "hipStreamIsCapturing",
    "hipGetDevice",
    "hipSetDevice",
    "hipPointerGetAttributes",
    "hipGetLastError",
)


class AmdLauncher(Launcher):
    """Launches kernels on AMD GPUs; launches that name no stream go to the default stream."""

    backend = "amd"
    template = Path(__file__).parent / "launch.c.in"


class PerThreadLauncher(AmdLauncher):
    """The same, but launches that name no stream go to the stream of their thread."""

    template = Path(__file__).parent / "launch_per_thread.c.in"


def entry_points() -> tuple[int, ...]:
    """Return the addresses of the functions in struct podium_amd_runtime, 0 for one that the runtime lacks.

    The last number is the major version of HIP, as `podium_amd.library.abi` tells it. Initialises the runtime.
    """
    from podium_amd import library
    from podium_amd.api import address, hip

    hip()
    return (*map(address, _FUNCTIONS), library.abi())


def mark_captured(function: int) -> None:
    """Keep the code of a kernel that was launched into a graph."""
    from podium_amd.function import mark_captured as mark

    mark(function)
