"""Streams and events: the order of work on a device, and the time that it takes.

Both are thin: a handle of the driver's, which is given back with the object. A stream is taken wherever a stream is,
also by other libraries, if they know ``__cuda_stream__`` and the backend's streams are CUDA's.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from podium import _capture, _state
from podium._active import driver_config
from podium._arguments import describe
from podium._limits import usable_device
from podium._status import status_error
from podium._stream import handle_on
from podium._synchronize import synchronize
from podium.errors import ArgumentTypeError, ArgumentValueError, CaptureError

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["Event", "Stream"]


class Stream:
    """A stream of a driver: work in it runs in order, and beside the work of other streams.

    Launches take it by ``stream=``. A lower `priority` goes before a higher one, where the device has priorities. It is
    on the active driver's current device, unless another is given.

    Raises `UnsupportedError` if the backend has no streams of its own.
    """

    _podium_stream = True  # for those that take streams: one of another driver will not do

    def __init__(self, device: int | None = None, priority: int = 0, *, driver: Driver | str | None = None) -> None:
        self.driver = driver_config._given(driver, "Stream")
        self.device = usable_device("Stream", self.driver, device).index
        self.priority = _priority(priority)
        self.handle = self.driver.create_stream(self.device, self.priority)
        _give_back(self, self.driver, self.driver.destroy_stream, self.handle, self.device)

    def __cuda_stream__(self) -> tuple[int, int]:
        """Give the version of the protocol and the handle."""
        return 0, self.handle

    def synchronize(self) -> None:
        """Wait for the work in the stream. Raises `LaunchError` if it failed."""
        synchronize(stream=self, driver=self.driver)

    def record(self, *, timed: bool = True) -> Event:
        """Return a new event behind the work that is in the stream now."""
        event = Event(self.device, timed=timed, driver=self.driver)
        event.record(self)
        return event

    def wait(self, event: Event) -> None:
        """Let the work that comes into the stream from now on wait for an event. The call itself does not wait."""
        if not isinstance(event, Event):
            raise ArgumentTypeError(
                f"A stream waits for an event, not for {describe(event)}", argument="event", value=describe(event)
            )
        if event.driver is not self.driver:
            raise ArgumentTypeError(
                f"{self!r} waits for events of its own driver, and {event!r} is of another one, or of one with other "
                f"options; make it by stream.record(), or with driver=stream.driver",
                argument="event",
                value=repr(event),
            )
        usable_device("Stream.wait", self.driver, self.device)
        capture = _capture.current(self.driver) if _state.attended() & _state.CAPTURES else None
        if capture is not None and capture.number == event._capture:
            status = capture.wait_event(self.device, self.handle, event.handle)
        elif event._capture or (capture is not None and capture.has(self.device, self.handle)):
            what = "a place in a capture" if event._capture else "no place in the capture"
            raise CaptureError(
                f"{self!r} cannot wait for {event!r}, which is {what}: in a capture streams wait for events that were "
                f"recorded in it, and other work waits for the stream of a replay",
                backend=self.driver.name,
            )
        else:
            status = self.driver.wait_event(self.device, self.handle, event.handle)
        _check(self.driver, status, "Stream.wait", self)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be copied or pickled: its handle is one object's and one process's")

    def __repr__(self) -> str:
        return f"<podium stream {self.handle:#x} on {self.driver.name} device {self.device}>"


class Event:
    """A place in a stream: whether the work before it has ended, and when.

    `record` puts it there, again and again if need be; in a capture it is a place in the graph. One that is not `timed`
    costs less, and `elapsed` refuses it.

    Raises `UnsupportedError` if the backend has no events.
    """

    def __init__(self, device: int | None = None, *, timed: bool = True, driver: Driver | str | None = None) -> None:
        self.driver = driver_config._given(driver, "Event")
        self.device = usable_device("Event", self.driver, device).index
        self.timed = timed
        self.handle = self.driver.create_event(self.device, timed)
        self._stream: int | None = None  # that it was recorded in
        self._capture = 0  # the number of the capture that it was recorded in
        _give_back(self, self.driver, self.driver.destroy_event, self.handle, self.device)

    def record(self, stream: Any = None) -> None:
        """Put the event behind the work that is in a stream now, by default the driver's current one.

        In a capture it is by default that of the capture. The stream is one of the event's device: a `Stream`, an
        integer, or an object with ``__cuda_stream__``.
        """
        usable_device("Event.record", self.driver, self.device)
        handle = handle_on("Event.record", self.driver, self.device, stream)
        capture = _capture.current(self.driver) if _state.attended() & _state.CAPTURES else None
        if handle is None:
            handle = self.driver.current_stream(self.device) if capture is None else capture.stream
        if capture is not None and capture.has(self.device, handle):
            status = capture.record_event(self.handle, self.device, handle)
        else:
            capture, status = None, self.driver.record_event(self.handle, self.device, handle)
        _check(self.driver, status, "Event.record", self, handle)
        self._stream, self._capture = handle, capture.number if capture is not None else 0

    @property
    def done(self) -> bool:
        """Whether the work before the event has ended; also true of an event that was not recorded."""
        self._check_time("Event.done")
        return self._stream is None or self.driver.event_done(self.handle, self.device)

    def synchronize(self) -> None:
        """Wait for the work before the event. Raises `LaunchError` if it failed."""
        self._check_time("Event.synchronize")
        if self._stream is not None:
            status = self.driver.synchronize_event(self.handle, self.device)
            _check(self.driver, status, "Event.synchronize", self, self._stream)

    def elapsed(self, end: Event) -> float:
        """Return the seconds from this event to a later one, after waiting for both.

        Raises `ArgumentValueError` if one of them was not recorded, or is not timed, or is of another device.
        """
        if not isinstance(end, Event):
            raise ArgumentTypeError(
                f"elapsed takes the event at the end, not {describe(end)}", argument="end", value=describe(end)
            )
        problem = None
        if end.driver is not self.driver or end.device != self.device:
            problem = f"{self!r} and {end!r} are of different devices, whose clocks differ"
        for event in (end, self):
            if not event.timed:
                problem = f"{event!r} takes no time: it was made with timed=False"
            elif event._stream is None:
                problem = f"{event!r} was not recorded"
        if problem is not None:
            raise ArgumentValueError(f"elapsed: {problem}", argument="end")
        self.synchronize()
        end.synchronize()
        return self.driver.elapsed(self.handle, end.handle, self.device)

    def _check_time(self, what: str) -> None:
        usable_device(what, self.driver, self.device)
        if self._capture:
            raise CaptureError(
                f"{what}: {self!r} was recorded in a capture. It is a place in a graph, and never comes to pass "
                f"itself; record one in the stream of the replay",
                backend=self.driver.name,
            )

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be copied or pickled: its handle is one object's and one process's")

    def __repr__(self) -> str:
        return f"<podium event {self.handle:#x} on {self.driver.name} device {self.device}>"


def _priority(value: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentTypeError(
            f"Stream: priority is an integer, not {describe(value)}", argument="priority", value=describe(value)
        ) from None
    if not -(1 << 31) <= number < 1 << 31:
        raise ArgumentValueError(
            f"Stream: priority is {describe(number)}, which has more than 32 bits",
            argument="priority",
            value=describe(number),
        )
    return number


def _check(driver: Driver, status: int, what: str, of: Stream | Event, stream: int | None = None) -> None:
    if status:
        handle = of.handle if stream is None else stream
        raise status_error(driver, status, what, of.device, (0, 0, 0), (0, 0, 0), handle)


def _give_back(owner: object, driver: Driver, destroy: Callable[[int, int], None], handle: int, device: int) -> None:
    # Not at exit: the driver may be gone by then, and the process gives everything back anyway.
    weakref.finalize(owner, _destroy, driver, destroy, handle, device).atexit = False


def _destroy(driver: Driver, destroy: Callable[[int, int], None], handle: int, device: int) -> None:
    if _state.forked_from(driver.name) is None:
        destroy(handle, device)
