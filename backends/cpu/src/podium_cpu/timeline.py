"""Streams that are made, and events, as the driver hands them out: numbers.

Queues need no making: every number but 0 is one. An event is a place in a queue of each runtime that there is when it
is recorded; where there is none nothing has been launched, so it has passed.
"""

from __future__ import annotations

import itertools
import time

from podium.errors import OutOfResourcesError

from podium_cpu.runtime import NOT_READY, SLICE, Runtime, runtimes

__all__ = [
    "create_event",
    "destroy_event",
    "elapsed",
    "event_done",
    "new_stream",
    "record",
    "wait_for_event",
    "wait_in",
]

_streams = itertools.count(1 << 32)  # beyond what anybody would choose for a queue
_handles = itertools.count(1)


class _Event:
    """An event: its places by runtime, and when it was recorded."""

    def __init__(self) -> None:
        self.places: dict[Runtime, int] = {}
        self.recorded = 0  # nanoseconds

    def place(self, runtime: Runtime) -> int:
        if runtime not in self.places:
            address = runtime.call("create_event")
            if not address:
                raise OutOfResourcesError("create_event", "events", len(_events), len(_events) - 1)
            self.places[runtime] = address
        return self.places[runtime]

    def time(self) -> int:
        times: list[int] = [runtime.call("event_time", place) for runtime, place in self.places.items()]
        return max(self.recorded, *times, 0)


_events: dict[int, _Event] = {}


def new_stream() -> int:
    """Return a number that no other stream has."""
    return next(_streams)


def create_event() -> int:
    """Make an event and return its number."""
    handle = next(_handles)
    _events[handle] = _Event()
    return handle


def destroy_event(handle: int) -> None:
    """Forget an event; streams that have it keep what they need."""
    for runtime, place in _events.pop(handle).places.items():
        runtime.call("destroy_event", place)


def record(handle: int, stream: int) -> int:
    """Put an event behind what is in a stream; return the status."""
    event = _events[handle]
    event.recorded = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    statuses = [runtime.call("place_event", event.place(runtime), stream, False) for runtime in runtimes()]
    return next(filter(None, statuses), 0)


def wait_in(stream: int, handle: int) -> int:
    """Let what comes into a stream wait for an event; return the status. Stream 0 is the caller's own order."""
    if stream == 0:
        wait_for_event(handle)
        return 0
    places = _events[handle].places
    statuses = [runtime.call("place_event", place, stream, True) for runtime, place in places.items()]
    return next(filter(None, statuses), 0)


def event_done(handle: int) -> bool:
    """Tell whether an event has passed."""
    places = _events[handle].places
    return all(runtime.call("wait_for_event", place, 0) != NOT_READY for runtime, place in places.items())


def wait_for_event(handle: int) -> int:
    """Wait for an event; return what had gone wrong in its stream by then."""
    result = 0
    for runtime, place in list(_events[handle].places.items()):
        status = NOT_READY
        while status == NOT_READY:
            status = runtime.call("wait_for_event", place, SLICE)
        result = result or status
    return result


def elapsed(start: int, end: int) -> float:
    """Return the seconds between two events that have passed."""
    return (_events[end].time() - _events[start].time()) / 1e9
