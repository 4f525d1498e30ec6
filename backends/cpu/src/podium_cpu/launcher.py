"""The launcher of the CPU backend."""

from __future__ import annotations

from pathlib import Path

from podium.backend import Launcher

__all__ = ["CpuLauncher"]


class CpuLauncher(Launcher):
    """Launches kernels on the CPU. The launch has ended when the call returns."""

    backend = "cpu"
    template = Path(__file__).parent / "launch.c.in"
