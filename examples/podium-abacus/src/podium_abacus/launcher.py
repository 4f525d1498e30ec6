"""The launcher of this backend: a name and a C template."""

from __future__ import annotations

from pathlib import Path

from podium.backend import Launcher

__all__ = ["AbacusLauncher"]


class AbacusLauncher(Launcher):
    """Launches kernels on abacus devices."""

    backend = "abacus"
    template = Path(__file__).parent / "launch.c.in"
