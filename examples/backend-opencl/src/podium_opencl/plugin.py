"""What podium finds first: the plug-in API that this backend speaks, whether it can run here, and its driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.backend import hookimpl

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["PODIUM_API", "PODIUM_PRIORITY", "podium_inactive_reason", "podium_register_driver"]

PODIUM_API = 1
PODIUM_PRIORITY = 50


@hookimpl
def podium_inactive_reason() -> str | None:
    """Say why there is no OpenCL device to use, and what to do."""
    from podium_opencl.detection import inactive_reason

    return inactive_reason()


@hookimpl
def podium_register_driver() -> type[Driver]:
    """Return the driver class of the OpenCL backend."""
    from podium_opencl.driver import OpenclDriver

    return OpenclDriver
