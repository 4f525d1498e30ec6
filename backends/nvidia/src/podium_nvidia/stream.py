"""Streams: making and waiting for them, and whether one is being captured into a graph."""

from __future__ import annotations

import ctypes
from contextlib import suppress

from podium.errors import PodiumError

from podium_nvidia import context
from podium_nvidia.api import driver
from podium_nvidia.status import CAPTURE_IMPLICIT, STICKY, launch_error

__all__ = [
    "capturing",
    "create_stream",
    "destroy_stream",
    "dlpack_stream",
    "stream_device",
    "synchronize",
]

_LEGACY_OF_DLPACK = 1
_DEFAULT_STREAMS = (0, 1, 2)
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: it does not wait for the legacy stream


def dlpack_stream(stream: int) -> int:
    """Return a stream in DLPack's numbering: 1 is the legacy one there, and 0 is not allowed for CUDA."""
    return stream or _LEGACY_OF_DLPACK


def stream_device(stream: int) -> int | None:
    """Return the device of the context that a stream belongs to; None for default streams, which every context has."""
    place = ctypes.c_void_p()
    with suppress(PodiumError):
        if stream not in _DEFAULT_STREAMS:
            with context.some():
                if driver().cuStreamGetCtx(stream, ctypes.byref(place)) == 0:
                    return context.device_of(place.value or 0)
    return None


def capturing(device: int, stream: int) -> bool:
    """Tell whether a stream is captured, or cannot be used since another one is. Raises `LaunchError`."""
    state = ctypes.c_int()
    with context.current(device):
        status = driver().cuStreamIsCapturing(stream, ctypes.byref(state))
    if status == CAPTURE_IMPLICIT:  # the legacy stream, while a stream that waits for it is captured
        return True
    if status in STICKY:  # an earlier launch has failed: whoever waits for it next is told, and names it
        return False
    if status:
        raise launch_error(status, f"asking for the state of stream {stream:#x}", device)
    return state.value != 0


def synchronize(device: int, stream: int | None = None) -> int:
    """Wait for a stream, or for the device; return the status.

    To wait for the device ends the capture of any stream in the context; to wait for another stream does not.
    """
    functions = driver()
    with context.current(device), context.relaxed():
        status: int = functions.cuCtxSynchronize() if stream is None else functions.cuStreamSynchronize(stream)
    return status


def create_stream(device: int, priority: int) -> int:
    """Make a stream that does not wait for the legacy one. The driver clamps the priority to what the device has."""
    place = ctypes.c_void_p()
    with context.current(device):
        status = driver().cuStreamCreateWithPriority(ctypes.byref(place), _NON_BLOCKING, priority)
    if status:
        raise launch_error(status, "making a stream", device)
    return place.value or 0


def destroy_stream(stream: int, device: int) -> None:
    """Give a stream back; the driver lets its work end."""
    with suppress(PodiumError), context.current(device):
        driver().cuStreamDestroy(stream)
