"""The hooks that a plug-in implements, and the version of the plug-in API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["API_VERSION", "PROJECT", "hookimpl", "hookspec", "podium_register_driver"]

PROJECT = "podium"

API_VERSION = 1
"""The plug-in API that this podium speaks. A plug-in states its own as ``PODIUM_API`` in the module of its entry point.

It rises when a backend written for the version before would no longer work.
"""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def podium_register_driver() -> type[Driver]:  # type: ignore[empty-body]
    """Return the driver class of this backend.

    Called once for each plug-in, at the first need of any backend. Import the vendor's library no earlier than in the
    methods of the driver: this hook runs for every installed backend, also for those that are not used.
    """
