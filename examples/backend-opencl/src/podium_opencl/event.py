"""Events: places in queues that can be waited for, and the time between two of them."""

from __future__ import annotations

import itertools
import threading
from typing import Any

from podium.errors import LaunchError

from podium_opencl.device import open_device
from podium_opencl.opencl import opencl
from podium_opencl.status import SUCCESS, launch_error, status_of
from podium_opencl.stream import find_queue, marker

__all__ = ["create_event", "destroy_event", "elapsed", "event_done", "record_event", "synchronize_event", "wait_event"]

_NANOSECOND = 1e-9

_numbers = itertools.count(1)
_events: dict[int, tuple[Any, int]] = {}  # by handle: the marker that was recorded last, or None, and its device


def create_event(device: int, timed: bool) -> int:
    """Make an event. Every one takes the time."""
    handle = next(_numbers)
    _events[handle] = None, device
    return handle


def destroy_event(event: int, device: int) -> None:
    """Give an event back; what waits for it goes on waiting. It does not raise."""
    _events.pop(event, None)


def record_event(event: int, device: int, stream: int) -> int:
    """Put an event behind the work that is in a stream now; return the status."""
    try:
        _events[event] = marker(find_queue(device, stream)), device
    except (opencl().Error, LaunchError) as error:
        return status_of(error)
    return SUCCESS


def wait_event(device: int, stream: int, event: int) -> int:
    """Let the later work of a stream wait for an event, also of another device; return the status."""
    recorded, owner = _events[event]
    if recorded is None:
        return SUCCESS
    try:
        queue = find_queue(device, stream)
        if owner != device:
            recorded = _carried_over(recorded, device)
        opencl().enqueue_barrier(queue, wait_for=[recorded])
        queue.flush()
    except (opencl().Error, LaunchError) as error:
        return status_of(error)
    return SUCCESS


def _carried_over(before: Any, device: int) -> Any:
    """Return an event of a device's context that comes to pass after one of another context."""
    cl = opencl()
    after = cl.UserEvent(open_device(device).context)

    def wait() -> None:
        try:
            before.wait()
        except cl.Error as error:
            after.set_status(status_of(error))
        else:
            after.set_status(cl.command_execution_status.COMPLETE)

    threading.Thread(target=wait, name="podium-opencl event", daemon=True).start()
    return after


def event_done(event: int, device: int) -> bool:
    """Tell whether the work before an event has ended. Raises `LaunchError` if it failed."""
    cl = opencl()
    recorded, _ = _events[event]
    if recorded is None:
        return True
    status = int(recorded.command_execution_status)
    if status < 0:
        raise launch_error(status, "asking for an event", device)
    return bool(status == cl.command_execution_status.COMPLETE)


def synchronize_event(event: int, device: int) -> int:
    """Wait for the work before an event; return the status of that."""
    recorded, _ = _events[event]
    try:
        if recorded is not None:
            recorded.wait()
    except opencl().Error as error:
        return status_of(error)
    return SUCCESS


def elapsed(start: int, end: int, device: int) -> float:
    """Return the seconds between two events that have come to pass. Raises `LaunchError`."""
    try:
        first, last = (int(_events[each][0].profile.end) for each in (start, end))
    except opencl().Error as error:
        raise launch_error(status_of(error), "the time between two events", device) from None
    return (last - first) * _NANOSECOND
