"""Waiting for a device, and what its status says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium import _state
from podium._active import driver_config
from podium._status import status_error
from podium._stream import device_for, stream_handle

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["synchronize"]


def synchronize(device: int | None = None, stream: Any = None, *, driver: Driver | str | None = None) -> None:
    """Wait for a stream, or for all work of the active driver's current device.

    A podium stream tells its device. Raises `LaunchError` if work failed; it may belong to any launch since the last
    call, and the message lists the last ones. Raises `CaptureError` where that would destroy a capture.
    """
    driver = driver_config._given(driver, "synchronize")
    device, handle = device_for("synchronize", driver, device, stream), stream_handle(stream, driver)
    if _state.attended() & _state.CAPTURES:
        from podium._capture import forbid_waiting

        forbid_waiting(driver, device, handle)
    status = driver.synchronize(device, handle)
    if status:
        raise status_error(driver, status, "synchronize", device, (0, 0, 0), (0, 0, 0), handle or 0)
