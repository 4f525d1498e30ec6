"""Contexts: the primary one of each device, retained once, and made current for a call where none of the device is.

Whoever has a context of the device current keeps it: a kernel is launched there, memory belongs there. Nothing is left
on a thread's stack of contexts.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from podium.backend import ForkSafeLock

from podium_nvidia.api import check, driver, uninitialised
from podium_nvidia.status import NO_CONTEXT, NOT_INITIALIZED, launch_error

__all__ = ["current", "current_device", "current_primary", "device_of", "primary", "relaxed", "some"]

_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED

_lock = ForkSafeLock()
_primary: dict[int, int] = {}


def primary(device: int) -> int:
    """Return the primary context of a device, retaining it on the first call. Raises `BackendError`."""
    context = _primary.get(device)
    if context is None:
        with _lock:
            context = _primary.get(device)
            if context is None:
                handle = ctypes.c_void_p()
                check(driver().cuDevicePrimaryCtxRetain(ctypes.byref(handle), device), f"device {device}")
                context = _primary[device] = handle.value or 0
    return context


def current_device() -> int | None:
    """Return the device of the context that is current in this thread; None if there is none. Makes none."""
    device = ctypes.c_int()
    status = uninitialised().cuCtxGetDevice(ctypes.byref(device))
    if status in (*NO_CONTEXT, NOT_INITIALIZED):
        return None
    if status:
        raise launch_error(status, "cuCtxGetDevice", 0)
    return device.value


def device_of(context: int) -> int | None:
    """Return the device of a context; None if the driver refuses to say."""
    functions, device = driver(), ctypes.c_int()
    if functions.cuCtxPushCurrent(context):
        return None
    status = functions.cuCtxGetDevice(ctypes.byref(device))
    functions.cuCtxPopCurrent(ctypes.byref(ctypes.c_void_p()))
    return None if status else device.value


@contextmanager
def current(device: int) -> Iterator[None]:
    """Have a context of the device current: the one that is, or else the primary one until the block ends."""
    driver()
    if current_device() == device:
        yield
        return
    with current_primary(device):
        yield


@contextmanager
def current_primary(device: int) -> Iterator[None]:
    """Have the primary context of a device current until the block ends."""
    functions = driver()
    check(functions.cuCtxPushCurrent(primary(device)), f"device {device}")
    try:
        yield
    finally:
        check(functions.cuCtxPopCurrent(ctypes.byref(ctypes.c_void_p())), f"device {device}")


@contextmanager
def some() -> Iterator[None]:
    """Have any context current, for calls that are the same in each: one that there is, or that of device 0."""
    if current_device() is None:
        with current(next(iter(_primary), 0)):
            yield
    else:
        yield


@contextmanager
def relaxed() -> Iterator[None]:
    """Let this thread make calls that would break the capture of a stream, by itself or by another thread.

    Allocating and loading put nothing into a stream, so they do no harm to a capture.
    """
    functions = driver()
    mode = ctypes.c_int(_RELAXED)
    check(functions.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)), "cuThreadExchangeStreamCaptureMode")
    try:
        yield
    finally:
        check(functions.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)), "cuThreadExchangeStreamCaptureMode")
