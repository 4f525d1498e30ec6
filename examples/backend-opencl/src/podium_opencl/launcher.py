"""The launcher of the OpenCL backend."""

from __future__ import annotations

from pathlib import Path

from podium.backend import Launcher

__all__ = ["OpenclLauncher"]


class OpenclLauncher(Launcher):
    """Launches kernels on OpenCL devices. The generated C makes the calls that `podium_opencl.launch` makes."""

    backend = "opencl"
    template = Path(__file__).parent / "launch.c.in"
