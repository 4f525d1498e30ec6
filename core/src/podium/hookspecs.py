"""The hooks that a plug-in implements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["PROJECT", "hookimpl", "hookspec", "podium_inactive_reason", "podium_register_driver"]

PROJECT = "podium"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def podium_register_driver() -> type[Driver]:  # type: ignore[empty-body]
    """Return the driver class of this backend.

    Called once, when the backend is chosen, named or reported on; and when any backend is chosen, if the plug-in does
    not say by itself what choosing asks (`podium_inactive_reason`). The driver's module is imported here and no
    earlier, and it imports the vendor's library no earlier than in the methods of the driver.
    """


@hookspec
def podium_inactive_reason() -> str | None:
    """Say why the backend cannot run here, and what to do; None if it can: what `Driver.inactive_reason` says, too.

    A plug-in that has this hook, and states the driver's priority as ``PODIUM_PRIORITY`` in the module of its entry
    point, is asked before its driver is: of a backend that is not chosen nothing else is imported. So this imports a
    module that is about detection, or none, and not the driver's. Without either, the driver class is asked.

    Called as `Driver.inactive_reason` is, whose rules hold here.
    """
