"""Events: places in streams that can be waited for, and the time between two of them."""

from __future__ import annotations

import ctypes
from contextlib import suppress

from podium.errors import PodiumError

from podium_amd import context
from podium_amd.api import hip
from podium_amd.status import NOT_READY, launch_error, take_last_error
from podium_amd.stream import without_alias

__all__ = ["create_event", "destroy_event", "elapsed", "event_done", "record_event", "synchronize_event", "wait_event"]

_DEFAULT, _DISABLE_TIMING = 0, 2  # hipEventDefault, hipEventDisableTiming


def create_event(device: int, timed: bool) -> int:
    """Make an event."""
    place = ctypes.c_void_p()
    with context.current(device), context.relaxed():
        status = hip().hipEventCreateWithFlags(ctypes.byref(place), _DEFAULT if timed else _DISABLE_TIMING)
    if status:
        raise launch_error(status, "making an event", device)
    return place.value or 0


def destroy_event(event: int, device: int) -> None:
    """Give an event back; what waits for it goes on waiting."""
    with suppress(PodiumError), context.current(device), context.relaxed():
        if hip().hipEventDestroy(event):
            take_last_error()


def record_event(event: int, device: int, stream: int) -> int:
    """Put an event behind the work that is in a stream now; return the status."""
    with context.current(device):
        status: int = hip().hipEventRecord(event, without_alias(stream))
    return status


def wait_event(device: int, stream: int, event: int) -> int:
    """Let the later work of a stream wait for an event; return the status."""
    with context.current(device):
        status: int = hip().hipStreamWaitEvent(without_alias(stream), event, 0)
    return status


def event_done(event: int, device: int) -> bool:
    """Tell whether the work before an event has ended. Raises `LaunchError` if it failed."""
    with context.current(device), context.relaxed():
        status = hip().hipEventQuery(event)
    if status not in (0, NOT_READY):
        raise launch_error(status, "asking for an event", device)
    if status:
        take_last_error()  # older versions of HIP note that it is not ready as an error
    return bool(status == 0)


def synchronize_event(event: int, device: int) -> int:
    """Wait for the work before an event; return the status."""
    with context.current(device), context.relaxed():
        status: int = hip().hipEventSynchronize(event)
    return status


def elapsed(start: int, end: int, device: int) -> float:
    """Return the seconds between two events. Raises `LaunchError`, also if one has not come to pass."""
    milliseconds = ctypes.c_float()
    with context.current(device):
        status = hip().hipEventElapsedTime(ctypes.byref(milliseconds), start, end)
    if status:
        raise launch_error(status, "the time between two events", device)
    return milliseconds.value / 1000
