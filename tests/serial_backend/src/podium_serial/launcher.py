"""The launcher of this backend: only a name and a C template."""

from __future__ import annotations

from pathlib import Path

from podium.backend import Launcher

__all__ = ["SerialLauncher"]


class SerialLauncher(Launcher):
    """Launches kernels of the serial backend."""

    backend = "serial"
    template = Path(__file__).parent / "launch.c.in"
