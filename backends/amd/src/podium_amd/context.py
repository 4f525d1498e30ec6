"""The device that is current in a thread: HIP's calls are for that one, so it is set for a call and set back."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from podium_amd.api import check, hip
from podium_amd.status import launch_error

__all__ = ["current", "current_device", "relaxed"]

_RELAXED = 2  # hipStreamCaptureModeRelaxed


def current_device() -> int:
    """Return the device that is current in this thread, which is 0 until somebody makes another one so."""
    device = ctypes.c_int()
    status = hip().hipGetDevice(ctypes.byref(device))
    if status:
        raise launch_error(status, "hipGetDevice", 0)
    return device.value


@contextmanager
def current(device: int) -> Iterator[None]:
    """Have a device current until the block ends. Raises `BackendError`."""
    functions = hip()
    before = current_device()
    if before == device:
        yield
        return
    check(functions.hipSetDevice(device), f"hipSetDevice for device {device}")
    try:
        yield
    finally:
        check(functions.hipSetDevice(before), f"hipSetDevice back to device {before}")


@contextmanager
def relaxed() -> Iterator[None]:
    """Let this thread make calls that would break the capture of a stream, by itself or by another thread.

    Allocating and loading put nothing into a stream, so they do no harm to a capture.
    """
    functions = hip()
    mode = ctypes.c_int(_RELAXED)
    check(functions.hipThreadExchangeStreamCaptureMode(ctypes.byref(mode)), "hipThreadExchangeStreamCaptureMode")
    try:
        yield
    finally:
        check(functions.hipThreadExchangeStreamCaptureMode(ctypes.byref(mode)), "hipThreadExchangeStreamCaptureMode")
