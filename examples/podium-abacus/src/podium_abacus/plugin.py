"""What podium imports of this backend wherever it is installed: nothing of the vendor's, and neither the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.backend import hookimpl

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["PODIUM_API", "PODIUM_PRIORITY", "podium_inactive_reason", "podium_register_driver"]

PODIUM_API = 1
PODIUM_PRIORITY = 50  # the highest active backend is chosen: the CPU has 0, a GPU 100


@hookimpl
def podium_inactive_reason() -> str | None:
    """Say why the backend cannot run here; None if it can."""
    from podium_abacus.detection import inactive_reason

    return inactive_reason()


@hookimpl
def podium_register_driver() -> type[Driver]:
    """Return the driver class."""
    from podium_abacus.driver import AbacusDriver

    return AbacusDriver
