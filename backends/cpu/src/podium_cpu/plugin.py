"""What podium finds first: the plug-in API that this backend speaks, whether it can run here, and its driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.backend import hookimpl

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["PODIUM_API", "PODIUM_PRIORITY", "podium_inactive_reason", "podium_register_driver"]

PODIUM_API = 1
PODIUM_PRIORITY = 0


@hookimpl
def podium_inactive_reason() -> str | None:
    """Say None: there is always a CPU."""
    return None


@hookimpl
def podium_register_driver() -> type[Driver]:
    """Return the driver class of the CPU backend."""
    from podium_cpu.driver import CpuDriver

    return CpuDriver
