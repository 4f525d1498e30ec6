"""The launchers of the NVIDIA backend, and what their generated C asks for when it is loaded."""

from __future__ import annotations

from pathlib import Path

from podium.backend import Launcher

__all__ = ["NvidiaLauncher", "PerThreadLauncher", "entry_points", "mark_captured", "primary_context"]

_FUNCTIONS = (
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cuLaunchCooperativeKernel",
    "cuStreamIsCapturing",
    "cuCtxGetDevice",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxPushCurrent",
    "cuCtxPopCurrent",
    "cuPointerGetAttributes",
    "cuGraphLaunch",
)


class NvidiaLauncher(Launcher):
    """Launches kernels on NVIDIA GPUs; launches that name no stream go to the legacy default stream."""

    backend = "nvidia"
    template = Path(__file__).parent / "launch.c.in"


class PerThreadLauncher(NvidiaLauncher):
    """The same, but launches that name no stream go to the default stream of their thread."""

    template = Path(__file__).parent / "launch_per_thread.c.in"


def entry_points() -> tuple[int, ...]:
    """Return the addresses of the functions in struct podium_nvidia_driver, 0 for one that the driver lacks.

    The last numbers tell whether kernels belong to no context, and how many devices there are. Initialises the driver.
    """
    from podium_nvidia.api import address, driver
    from podium_nvidia.device import count
    from podium_nvidia.function import uses_libraries

    driver()
    return (*map(address, _FUNCTIONS), int(uses_libraries()), count())


def primary_context(device: int) -> int:
    """Return the primary context of a device."""
    from podium_nvidia.context import primary

    return primary(device)


def mark_captured(function: int) -> None:
    """Keep the code of a kernel that was launched into a graph."""
    from podium_nvidia.function import mark_captured as mark

    mark(function)
