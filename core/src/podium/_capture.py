"""Captures: launches of one context that go into a graph, instead of to the device.

A driver that has graphs captures by itself, in its streams, and what other libraries put there is captured with it.
For others the launches are noted here, with the rules of a driver's captures, and a replay makes them one by one.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from podium import _state
from podium._captured_launch import Captured, Shape
from podium._fork import ForkSafeLock
from podium._hooks import hooks
from podium.errors import CaptureError

if TYPE_CHECKING:
    from podium._launcher import Launcher
    from podium._packing import Packed
    from podium.backend import Driver

__all__ = ["Capture", "DriverCapture", "NotedCapture", "begin", "current", "end", "forbid_waiting"]

_current: ContextVar[Capture | None] = ContextVar("podium_capture", default=None)
_open: set[Capture] = set()
_lock = ForkSafeLock()
_numbers = itertools.count(1)


class Capture(ABC):
    """What goes on inside a ``with podium.capture()`` block."""

    def __init__(self, driver: Driver, device: int, stream: int) -> None:
        self.driver, self.device, self.stream = driver, device, stream
        self.number = next(_numbers)
        self.launches: list[Captured] = []

    def take(
        self, launcher: Launcher, shape: Shape, device: int, packed: Packed, args: tuple[Any, ...], stream: int | None
    ) -> None:
        """Capture a launch: in the stream that was named, or that of the arrays' library if it takes part, or ours."""
        stream = self._place(launcher.name, device, stream, packed.stream)
        function = shape.prepare(device, stream)
        if function is None:
            return
        launch = Captured(launcher, shape, device, function, packed, args)
        launch.stream = stream
        self._put(launch)
        self.launches.append(launch)

    @abstractmethod
    def begin(self) -> None:
        """Begin. Raises `CaptureError`."""

    @abstractmethod
    def has(self, device: int, stream: int) -> bool:
        """Tell whether a stream takes part."""

    @abstractmethod
    def record_event(self, event: int, device: int, stream: int) -> int:
        """Put an event behind what was captured in a stream; return the status."""

    @abstractmethod
    def wait_event(self, device: int, stream: int, event: int) -> int:
        """Let what is captured in a stream from now on come after an event; the stream takes part from now on."""

    @abstractmethod
    def end(self) -> int:
        """End, and return the driver's graph, or 0 where podium itself replays. Raises `CaptureError`."""

    @abstractmethod
    def _put(self, launch: Captured) -> None: ...

    def _place(self, kernel: str, device: int, explicit: int | None, suggested: int | None) -> int:
        if explicit is not None:
            if explicit != self.stream and not self.has(device, explicit):
                raise CaptureError(
                    f"{kernel}: the launch is inside a capture, and its stream {explicit:#x} takes no part in that. "
                    f"Name no stream, or let it wait for an event of the capture first: stream.wait(event)",
                    backend=self.driver.name,
                )
            return explicit
        if suggested is not None and suggested != self.stream and self.has(device, suggested):
            return suggested
        if device != self.device:
            raise CaptureError(
                f"{kernel}: the launch is on device {device}, where its arrays are, inside a capture of device "
                f"{self.device}. Name a stream of device {device} that waits for an event of the capture",
                backend=self.driver.name,
            )
        return self.stream


class DriverCapture(Capture):
    """A capture of the driver's own: the feature "graphs"."""

    def begin(self) -> None:
        self.driver.begin_capture(self.device, self.stream)
        self._id, _ = self.driver.capture_state(self.device, self.stream)

    def has(self, device: int, stream: int) -> bool:
        return self.driver.capture_state(device, stream)[0] == self._id

    def record_event(self, event: int, device: int, stream: int) -> int:
        return self.driver.record_event(event, device, stream)

    def wait_event(self, device: int, stream: int, event: int) -> int:
        return self.driver.wait_event(device, stream, event)

    def end(self) -> int:
        return self.driver.end_capture(self.device, self.stream)

    def _put(self, launch: Captured) -> None:
        launcher = launch.launcher
        launcher.build()  # what replays are made by is in the same module
        if not _state.attended() & _state.HOOKS:
            self._launch(launch)
            return
        about = launch.shape.config, launch.device, launch.stream, launch.packed, launch.arguments
        hooks.around(launcher.event(*about), lambda: self._launch(launch))

    def _launch(self, launch: Captured) -> None:
        driver, config, parameters = self.driver, launch.shape.config, launch.parameters()
        _state.record(launch.launcher._id, config.sizes, launch.device, launch.stream)
        status = driver.launch(launch.function, config, launch.device, launch.stream, parameters)
        if status:
            launch.launcher._raise_status(status, *config.grid, *config.block, launch.device, launch.stream)
        launch.launcher.layout.give_back(parameters)
        _, launch.node = driver.capture_state(launch.device, launch.stream)


class NotedCapture(Capture):
    """A capture of a driver without graphs. What it launches in a replay comes in the order in which it was noted.

    That order is one of those that the events allow. Streams are followed to refuse what a driver would refuse.
    """

    def begin(self) -> None:
        # for each stream, how much of the work of each it comes after; its own work counts as well
        self._clocks: dict[int, dict[int, int]] = {self.stream: {self.stream: 0}}
        self._events: dict[int, dict[int, int]] = {}

    def has(self, device: int, stream: int) -> bool:
        return stream in self._clocks

    def record_event(self, event: int, device: int, stream: int) -> int:
        self._events[event] = dict(self._clocks[stream])
        return 0

    def wait_event(self, device: int, stream: int, event: int) -> int:
        clock = self._clocks.setdefault(stream, {stream: 0})
        for other, work in self._events[event].items():
            clock[other] = max(work, clock.get(other, 0))
        return 0

    def end(self) -> int:
        joined = self._clocks[self.stream]
        for stream, clock in self._clocks.items():
            if clock[stream] > joined.get(stream, 0):
                raise CaptureError(
                    f"The capture of stream {self.stream:#x} ended before it waits for the work in stream {stream:#x}: "
                    f"graph.stream.wait(stream.record())",
                    backend=self.driver.name,
                )
        return 0

    def _put(self, launch: Captured) -> None:
        if launch.device != self.device:
            raise CaptureError(
                f"{launch.launcher.name}: the launch is on device {launch.device}, and the capture of device "
                f"{self.device}: backend {self.driver.name!r} has no graphs of its own, and one that podium replays "
                f"has one device",
                backend=self.driver.name,
            )
        self._clocks[launch.stream][launch.stream] += 1


def current(driver: Driver) -> Capture | None:
    """Return the capture that the calling context makes on a driver."""
    if not _state.attended() & _state.CAPTURES:
        return None
    capture = _current.get()
    # A task that was started in the block goes on with its variables when the block has ended.
    return capture if capture in _open and capture.driver is driver else None


def begin(capture: Capture) -> None:
    """Begin a capture in the calling context. Raises `CaptureError`."""
    outer = _current.get()
    if outer in _open:
        raise CaptureError(
            f"A capture of stream {outer.stream:#x} on {outer.driver.name} goes on here already; end that first, or "
            f"capture both parts at once",
            backend=capture.driver.name,
        )
    with _lock:  # first, so that no other thread waits for the device from when the driver captures
        _open.add(capture)
        _state.attend(_state.CAPTURES, True)
    try:
        capture.begin()
    except BaseException:
        _close(capture)
        raise
    _current.set(capture)


def end(capture: Capture) -> int:
    """End it, and return the driver's graph. Raises `CaptureError`, and then there is none; the capture has ended."""
    if _current.get() is capture:  # a generator may be closed where another capture goes on
        _current.set(None)
    try:
        return capture.end()
    finally:
        _close(capture)


def _close(capture: Capture) -> None:
    with _lock:
        _open.discard(capture)
        _state.attend(_state.CAPTURES, bool(_open))


def forbid_waiting(driver: Driver, device: int, stream: int | None) -> None:
    """Raise `CaptureError` where waiting for a stream, or the whole device, would destroy a capture or never end."""
    for capture in list(_open):
        if capture.driver is not driver or capture.device != device:
            continue
        own = capture is _current.get()
        if stream is None and (own or isinstance(capture, DriverCapture)):
            raise CaptureError(
                f"Stream {capture.stream:#x} of device {device} is being captured{' elsewhere' * (not own)}, and to "
                f"wait for the whole device would destroy that capture. Wait when it has ended, or for a stream",
                backend=driver.name,
            )
        if own and stream is not None and capture.has(device, stream):
            raise CaptureError(
                f"Stream {stream:#x} takes part in a capture: none of its launches has run, and there is nothing to "
                f"wait for. Replay the graph when the capture has ended",
                backend=driver.name,
            )
