"""Events: places in streams that can be waited for, and the time between two of them."""

from __future__ import annotations

import ctypes
from contextlib import suppress

from podium.errors import PodiumError

from podium_nvidia import context
from podium_nvidia.api import driver
from podium_nvidia.status import NOT_READY, launch_error

__all__ = ["create_event", "destroy_event", "elapsed", "event_done", "record_event", "synchronize_event", "wait_event"]

_DEFAULT, _DISABLE_TIMING = 0, 2  # CUevent_flags


def create_event(device: int, timed: bool) -> int:
    """Make an event."""
    place = ctypes.c_void_p()
    with context.current(device), context.relaxed():
        status = driver().cuEventCreate(ctypes.byref(place), _DEFAULT if timed else _DISABLE_TIMING)
    if status:
        raise launch_error(status, "making an event", device)
    return place.value or 0


def destroy_event(event: int, device: int) -> None:
    """Give an event back; what waits for it goes on waiting."""
    with suppress(PodiumError), context.current(device), context.relaxed():
        driver().cuEventDestroy(event)


def record_event(event: int, device: int, stream: int) -> int:
    """Put an event behind the work that is in a stream now; return the status."""
    with context.current(device):
        status: int = driver().cuEventRecord(event, stream)
    return status


def wait_event(device: int, stream: int, event: int) -> int:
    """Let the later work of a stream wait for an event; return the status."""
    with context.current(device):
        status: int = driver().cuStreamWaitEvent(stream, event, 0)
    return status


def event_done(event: int, device: int) -> bool:
    """Tell whether the work before an event has ended. Raises `LaunchError` if it failed."""
    with context.current(device), context.relaxed():
        status = driver().cuEventQuery(event)
    if status not in (0, NOT_READY):
        raise launch_error(status, "asking for an event", device)
    return bool(status == 0)


def synchronize_event(event: int, device: int) -> int:
    """Wait for the work before an event; return the status."""
    with context.current(device), context.relaxed():
        status: int = driver().cuEventSynchronize(event)
    return status


def elapsed(start: int, end: int, device: int) -> float:
    """Return the seconds between two events. Raises `LaunchError`, also if one has not come to pass."""
    milliseconds = ctypes.c_float()
    with context.current(device):
        status = driver().cuEventElapsedTime(ctypes.byref(milliseconds), start, end)
    if status:
        raise launch_error(status, "the time between two events", device)
    return milliseconds.value / 1000
