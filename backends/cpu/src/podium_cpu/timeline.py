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
    "create_stream",
    "destroy_event",
    "elapsed",
    "event_done",
    "record_event",
    "synchronize_event",
    "wait_event",
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


def create_stream(device: int, priority: int) -> int:
    """Return the number of a new queue, which no other stream has; queues have no priorities."""
    return next(_streams)


def create_event(device: int, timed: bool) -> int:
    """Make an event and return its number; it takes the time in any case."""
    handle = next(_handles)
    _events[handle] = _Event()
    return handle


def destroy_event(event: int, device: int) -> None:
    """Forget an event; streams that have it keep what they need."""
    for runtime, place in _events.pop(event).places.items():
        runtime.call("destroy_event", place)


def record_event(event: int, device: int, stream: int) -> int:
    """Put an event behind what is in a stream; return the status. On stream 0 it has passed when the call returns."""
    recorded = _events[event]
    recorded.recorded = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    statuses = [runtime.call("place_event", recorded.place(runtime), stream, False) for runtime in runtimes()]
    return next(filter(None, statuses), 0)


def wait_event(device: int, stream: int, event: int) -> int:
    """Let what comes into a stream wait for an event; return the status. Stream 0 is the caller's own order."""
    if stream == 0:
        synchronize_event(event, device)
        return 0
    places = _events[event].places
    statuses = [runtime.call("place_event", place, stream, True) for runtime, place in places.items()]
    return next(filter(None, statuses), 0)


def event_done(event: int, device: int) -> bool:
    """Tell whether an event has passed."""
    places = _events[event].places
    return all(runtime.call("wait_for_event", place, 0) != NOT_READY for runtime, place in places.items())


def synchronize_event(event: int, device: int) -> int:
    """Wait for an event; return what had gone wrong in its stream by then."""
    result = 0
    for runtime, place in list(_events[event].places.items()):
        status = NOT_READY
        while status == NOT_READY:
            status = runtime.call("wait_for_event", place, SLICE)
        result = result or status
    return result


def elapsed(start: int, end: int, device: int) -> float:
    """Return the seconds between two events that have passed."""
    return (_events[end].time() - _events[start].time()) / 1e9
