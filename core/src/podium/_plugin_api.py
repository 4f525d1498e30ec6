"""The versions of the plug-in API that this podium speaks, and what makes a plug-in of an older one work with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from podium._record import record

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["ADAPTATIONS", "API_VERSION", "Adaptation", "adapted", "farewell", "spoken"]

API_VERSION = 1
"""The plug-in API that this podium speaks. A plug-in states its own as ``PODIUM_API`` in the module of its entry point.

It rises when a backend written for the version before would no longer work as it is. That version then gets an entry in
`ADAPTATIONS`, so that it goes on working, and ``include/podium_launch.h`` the same number.
"""


@record(frozen=True)
class Adaptation:
    """How podium goes on with plug-ins of a version of the API, after the next one has come.

    `adapt` returns a driver class of the next version for one of this version: the same, or a subclass of it. `until`
    is the version of podium that no longer does so.
    """

    adapt: Callable[[type[Driver]], type[Driver]]
    until: str


ADAPTATIONS: dict[int, Adaptation] = {}
"""The older versions that podium still speaks: `API_VERSION` rises with an entry for the one before."""


def spoken() -> range:
    """Return the versions that podium speaks: its own, and those before it that lead to it without a gap."""
    oldest = API_VERSION
    while oldest - 1 in ADAPTATIONS:
        oldest -= 1
    return range(oldest, API_VERSION + 1)


def adapted(driver_class: type[Driver], version: int) -> type[Driver]:
    """Return a driver class as podium's own version of the API has them, for one of an older version."""
    for each in range(version, API_VERSION):
        driver_class = ADAPTATIONS[each].adapt(driver_class)
    return driver_class


def farewell(version: int | None) -> str | None:
    """Say which podium will no longer speak a version; None if nothing is known of that."""
    if version is None or version not in spoken() or version == API_VERSION:
        return None
    return f"it speaks plug-in API {version}, which podium {ADAPTATIONS[version].until} will no longer speak"
