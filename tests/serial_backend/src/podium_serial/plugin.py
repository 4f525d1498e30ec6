"""What podium imports to learn of this backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.backend import hookimpl

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["PODIUM_API", "PODIUM_PRIORITY", "podium_inactive_reason", "podium_register_driver"]

PODIUM_API = 1
PODIUM_PRIORITY = -10


@hookimpl
def podium_inactive_reason() -> str | None:
    """Return None: there is always a host."""
    return None


@hookimpl
def podium_register_driver() -> type[Driver]:
    """Return the driver class."""
    from podium_serial.driver import SerialDriver

    return SerialDriver
