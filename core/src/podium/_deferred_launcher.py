"""Launcher classes that are given by name, so that choosing a driver need not import what only launches need."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from podium._launcher import Launcher

__all__ = ["DeferredLauncher", "deferred_launcher"]


class DeferredLauncher:
    """Stands for a launcher class in a driver class, and puts that in its own place when it is first asked for."""

    def __init__(self, place: str) -> None:
        self._module, _, self._name = place.partition(":")
        self._owner: type | None = None
        self._attribute = ""

    def __set_name__(self, owner: type, attribute: str) -> None:
        self._owner, self._attribute = owner, attribute

    def __get__(self, instance: object, owner: type) -> type[Launcher]:
        from podium._launcher import Launcher

        found: object = getattr(import_module(self._module), self._name)
        if not isinstance(found, type) or not issubclass(found, Launcher):
            raise TypeError(f"{owner.__name__}, whose launcher_cls {found!r} is no subclass of Launcher")
        if self._owner is not None:
            setattr(self._owner, self._attribute, found)
        return found


def deferred_launcher(place: str) -> type[Launcher]:
    """Give `Driver.launcher_cls` by name, "mybackend.launcher:MyLauncher": it is imported when it is first needed.

    Choosing a driver is then quicker by what launches need; it pays where initialising the vendor's driver leaves time
    for that (`import_early`). Whatever importing it raises reaches the first launch.
    """
    return cast("type[Launcher]", DeferredLauncher(place))
