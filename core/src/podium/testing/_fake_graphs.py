"""What the fake driver records: launches, the order of events, and graphs, which are launches for later."""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import dataclass, field, replace
from typing import Any

from podium.backend import Driver, LaunchConfig, Parameters
from podium.errors import CaptureError

__all__ = ["FakeGraphs", "RecordedLaunch"]


@dataclass(frozen=True)
class RecordedLaunch:
    """One launch that reached the fake driver.

    `device` is where the kernel was loaded, `launched_on` the device that the driver was told. `parameters` has the
    bytes of each parameter, `attributes` the keys and the values, of 32 bits without sign.
    """

    kernel: str
    device: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared: int
    flags: int
    stream: int
    parameters: tuple[bytes, ...]
    attributes: tuple[tuple[int, tuple[int, ...]], ...] = ()
    launched_on: int | None = None


_UNSUPPORTED, _UNJOINED = 900, 904
_Player = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_uint64)


@dataclass(eq=False)
class _Capture:
    """What goes into a graph: the launches by their nodes."""

    number: int
    stream: int
    nodes: dict[int, RecordedLaunch | None] = field(default_factory=dict)
    unjoined: set[int] = field(default_factory=set)  # streams with work that no other waits for

    def put(self, launch: RecordedLaunch) -> None:
        self.nodes[len(self.nodes) + 1] = launch
        self.unjoined.add(launch.stream)


class FakeGraphs(Driver):
    """The part of `FakeDriver` that knows events and graphs."""

    def __init__(self) -> None:
        self.launches: list[RecordedLaunch] = []
        self.next_status = 0
        self.events: dict[int, int | None] = {}  # their time
        self.order: list[tuple[str, int, int]] = []
        self.graphs: dict[int, dict[int, RecordedLaunch | None]] = {}  # None for what is left out
        self._handles = itertools.count(0x5000, 0x10)
        self._recorders: dict[int, Any] = {}
        self._captures: dict[int, _Capture] = {}  # by stream
        self._captured_events: dict[int, tuple[_Capture, int]] = {}

    def record_event(self, event: int, device: int, stream: int) -> int:
        if stream in self._captures:
            self._captured_events[event] = self._captures[stream], stream
        else:
            self._captured_events.pop(event, None)
            self.events[event] = len(self.launches)
        self.order.append(("record", event, stream))
        return self._status()

    def wait_event(self, device: int, stream: int, event: int) -> int:
        if event in self._captured_events:
            capture, other = self._captured_events[event]
            self._captures[stream] = capture
            if stream != other:
                capture.unjoined.discard(other)
        self.order.append(("wait", event, stream))
        return self._status()

    def begin_capture(self, device: int, stream: int) -> None:
        if stream == self.current_stream(device):
            raise CaptureError("The default stream cannot be captured", backend=self.name)
        self._captures[stream] = _Capture(next(self._handles), stream)

    def capture_state(self, device: int, stream: int) -> tuple[int, int]:
        capture = self._captures.get(stream)
        return (capture.number, len(capture.nodes)) if capture is not None else (0, 0)

    def end_capture(self, device: int, stream: int) -> int:
        capture = self._captures[stream]
        self._captures = {other: each for other, each in self._captures.items() if each is not capture}
        self._captured_events = {event: each for event, each in self._captured_events.items() if each[0] is not capture}
        status = self._status() or (_UNJOINED if capture.unjoined - {stream} else 0)
        if status:
            name, text = self.describe_status(status)
            raise CaptureError(f"The capture failed: {text}", backend=self.name, status=status, status_name=name)

        def replay(stream: int) -> int:
            status = _UNSUPPORTED if self.capturing(device, stream) else self._status()
            if not status:
                launches = [replace(launch, stream=stream) for launch in capture.nodes.values() if launch is not None]
                self.launches += launches
            return status

        player = _Player(replay)
        handle = ctypes.cast(player, ctypes.c_void_p).value or 0
        self._recorders[handle], self.graphs[handle] = player, capture.nodes
        return handle

    def launch_graph(self, graph: int, device: int, stream: int) -> int:
        return int(self._recorders[graph](stream))

    def update_node(
        self, graph: int, node: int, function: int, config: LaunchConfig, device: int, parameters: Parameters
    ) -> int:
        nodes = self.graphs[graph]
        launches, captures, self._captures = self.launches, self._captures, {}
        self.launches = []
        try:
            status = self.launch(function, config, device, 0, parameters) if config.blocks else 0
            if not status:
                nodes[node] = self.launches[0] if config.blocks else None
        finally:
            self.launches, self._captures = launches, captures
        return status

    def destroy_graph(self, graph: int, device: int) -> None:
        del self.graphs[graph], self._recorders[graph]

    def _status(self) -> int:
        status, self.next_status = self.next_status, 0
        return status
