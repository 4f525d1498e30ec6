"""What podium finds first: the plug-in API that this backend speaks, and its driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.backend import hookimpl

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["PODIUM_API", "podium_register_driver"]

PODIUM_API = 1


@hookimpl
def podium_register_driver() -> type[Driver]:
    """Return the driver class of the OpenCL backend."""
    from podium_opencl.driver import OpenclDriver

    return OpenclDriver
