"""Streams: making and waiting for them, whether one is being captured into a graph, and their numbering elsewhere."""

from __future__ import annotations

import ctypes
from contextlib import suppress

from podium.errors import PodiumError

from podium_amd import context
from podium_amd.api import has, hip
from podium_amd.status import CAPTURE_IMPLICIT, STICKY, launch_error, take_last_error

__all__ = [
    "capturing",
    "create_stream",
    "destroy_stream",
    "dlpack_stream",
    "stream_device",
    "synchronize",
    "without_alias",
]

_LEGACY, _LEGACY_ALIAS, _PER_THREAD = 0, 1, 2
_NON_BLOCKING = 1  # hipStreamNonBlocking: it does not wait for the default stream


def dlpack_stream(stream: int) -> int:
    """Return a stream in DLPack's numbering for ROCm: 0 is the default stream there, 1 and 2 are not allowed.

    A thread's own stream waits for what is in the default one, so that stands for it.
    """
    return _LEGACY if stream in (_LEGACY_ALIAS, _PER_THREAD) else stream


def without_alias(stream: int) -> int:
    """Return a stream as every version of HIP knows it: 1, the default stream by CUDA's numbering, is 0.

    Older ones take any handle that they do not know for an address.
    """
    return _LEGACY if stream == _LEGACY_ALIAS else stream


def stream_device(stream: int) -> int | None:
    """Return the device of a stream; None for default streams, which every device has, and before HIP 6."""
    device = ctypes.c_int()
    with suppress(PodiumError):
        if stream not in (_LEGACY, _LEGACY_ALIAS, _PER_THREAD) and has("hipStreamGetDevice"):
            if hip().hipStreamGetDevice(stream, ctypes.byref(device)) == 0:
                return device.value
            take_last_error()
    return None


def capturing(device: int, stream: int) -> bool:
    """Tell whether a stream is captured, or cannot be used since another one is. Raises `LaunchError`."""
    state = ctypes.c_int()
    with context.current(device):
        status = hip().hipStreamIsCapturing(without_alias(stream), ctypes.byref(state))
    if status == CAPTURE_IMPLICIT:  # the default stream, while a stream that waits for it is captured
        take_last_error()
        return True
    if status in STICKY:  # an earlier launch has failed: whoever waits for it next is told, and names it
        return False
    if status:
        raise launch_error(status, f"asking for the state of stream {stream:#x}", device)
    return state.value != 0


def synchronize(device: int, stream: int | None = None) -> int:
    """Wait for a stream, or for the device; return the status."""
    functions = hip()
    with context.current(device), context.relaxed():
        if stream is None:
            status: int = functions.hipDeviceSynchronize()
        else:
            status = functions.hipStreamSynchronize(without_alias(stream))
    return status


def create_stream(device: int, priority: int) -> int:
    """Make a stream that does not wait for the default one. The runtime clamps the priority to what the device has."""
    place = ctypes.c_void_p()
    with context.current(device):
        status = hip().hipStreamCreateWithPriority(ctypes.byref(place), _NON_BLOCKING, priority)
    if status:
        raise launch_error(status, "making a stream", device)
    return place.value or 0


def destroy_stream(stream: int, device: int) -> None:
    """Give a stream back; the runtime lets its work end."""
    with suppress(PodiumError), context.current(device):
        if hip().hipStreamDestroy(stream):
            take_last_error()
