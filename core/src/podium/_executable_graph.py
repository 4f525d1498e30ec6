"""Graphs that can be replayed: those of a driver, and those whose launches podium makes one by one."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from podium import _capture, _debug, _state
from podium._arrays import HOST_TYPES
from podium._captured_launch import Captured
from podium._exchange import Answer, ExchangeTable, exchange_table
from podium._status import status_error
from podium._stream import stream_handle
from podium.errors import CaptureError, ForkedProcessError

if TYPE_CHECKING:
    from podium._launch_config import LaunchConfig
    from podium._packing import Packed
    from podium.backend import Driver

    Scratch = list[tuple[int, int, object]]

__all__ = ["DriverGraph", "ExecutableGraph", "NotedGraph"]

_NO_SIZES = bytes(24)
_SHOWN = 4  # kernels in the name
_id_of = lru_cache(maxsize=256)(_state.new_id)  # graphs that are captured anew all the time have one


class ExecutableGraph:
    """The launches of a graph, and the stream for replays that name none."""

    def __init__(self, driver: Driver, device: int, launches: Sequence[Captured], stream: int | None) -> None:
        self.driver, self.device, self.launches, self.stream = driver, device, tuple(launches), stream
        kernels = [launch.launcher.name for launch in self.launches]
        shown = ", ".join(kernels[:_SHOWN]) + ", ..." * (len(kernels) > _SHOWN)
        self.name = (
            f"graph of {len(kernels)} launch{'es' * (len(kernels) != 1)} ({shown})" if kernels else "empty graph"
        )
        self.library = None if stream is not None else _library_of(self.launches, device)

    def replay(self, stream: Any = None) -> None:
        """Launch everything again, in a stream."""
        self.check("replay")
        driver, handle = self.driver, stream_handle(stream, self.driver)
        if handle is None:
            handle = self.stream
        if handle is None and self.library is not None:
            table, device_type, index = self.library
            handle = table.stream(device_type, index, Answer())
        if handle is None:
            handle = driver.current_stream(self.device)
        self._replay(handle)
        if _debug.enabled() and not driver.capturing(self.device, handle):  # waiting would destroy the capture
            self._check_status(driver.synchronize(self.device, handle), handle)

    def check(self, what: str) -> None:
        """Raise for a process or a place where a graph cannot be used."""
        if parent := _state.forked_from(self.driver.name):
            raise ForkedProcessError(self.driver.name, parent)
        if _capture.current(self.driver) is not None:
            raise CaptureError(
                f"{what}: inside a capture no graph can be replayed or changed; do it when that has ended, or capture "
                f"the same launches in both",
                backend=self.driver.name,
            )

    def update(self, launch: Captured, config: LaunchConfig, packed: Packed, scratch: Scratch) -> None:
        """Change a launch; what podium itself replays is read from the launch anyway."""

    def quick(self) -> Any:
        """Return what replays in C, if it is there: called without arguments, or with a stream by name."""
        return None

    def _replay(self, stream: int) -> None:
        raise NotImplementedError

    def _check_status(self, status: int, stream: int) -> None:
        if status:
            raise status_error(self.driver, status, self.name, self.device, (0, 0, 0), (0, 0, 0), stream)


class DriverGraph(ExecutableGraph):
    """A graph of the driver's."""

    def __init__(
        self, driver: Driver, device: int, launches: Sequence[Captured], stream: int | None, handle: int
    ) -> None:
        super().__init__(driver, device, launches, stream)
        self.handle = handle
        # Not at exit: the driver may be gone by then, and the process gives everything back anyway.
        weakref.finalize(self, _destroy, driver, handle, device).atexit = False
        # what the C of replays reads
        self._id, self._state_address = _id_of(self.name, driver.name), _state.address()
        table = self.library[0] if self.library is not None else None
        self._current_stream = table.stream_function if table is not None else 0
        self._library_device = self.library[1:] if self.library is not None else (0, 0)

    def update(self, launch: Captured, config: LaunchConfig, packed: Packed, scratch: Scratch) -> None:
        driver, parameters = self.driver, launch.with_scratch(packed, scratch)
        status = driver.update_node(self.handle, launch.node, launch.function, config, launch.device, parameters)
        if status:
            launch.launcher._raise_status(status, *config.grid, *config.block, launch.device, launch.stream)
        launch.launcher.layout.give_back(parameters)

    def quick(self) -> Any:
        launcher = self.launches[0].launcher if self.launches else None
        if launcher is None or not launcher.promote():
            return None
        make = getattr(launcher.module, "Replay", None)  # a backend may leave it to Python
        return None if make is None else make(self)

    def _replay(self, stream: int) -> None:
        _state.record(self._id, _NO_SIZES, self.device, stream)
        status = self.driver.launch_graph(self.handle, self.device, stream)
        if status and self.driver.capturing(self.device, stream):
            raise CaptureError(
                f"replay: stream {stream:#x} is being captured by somebody else, and a graph cannot be a part of "
                f"another one. Capture its launches there",
                backend=self.driver.name,
                status=status,
                status_name=self.driver.describe_status(status)[0],
            )
        self._check_status(status, stream)


class NotedGraph(ExecutableGraph):
    """Launches that are made again, one after the other, as they were captured or updated.

    In C where nobody watches, and where an address alone tells the device: there is one.
    """

    def __init__(self, driver: Driver, device: int, launches: Sequence[Captured], stream: int | None) -> None:
        super().__init__(driver, device, launches, stream)
        self._has_one_device = len(driver.devices()) == 1
        self._calls: list[tuple[Callable[..., None], list[Any]]] = []  # of all launches, once they are all in C
        self._kept: list[object] = []  # what has the memory at the addresses in them

    def update(self, launch: Captured, config: LaunchConfig, packed: Packed, scratch: Scratch) -> None:
        self._calls = []

    def _replay(self, stream: int) -> None:
        is_quick = self._has_one_device and not _state.attended()
        if is_quick and not self._calls:
            generated = [launch.generated() for launch in self.launches]
            self._calls = [(call, each.packed.values) for call, each in zip(generated, self.launches) if call]
            self._kept = [each for launch in self.launches for each in (*launch.arguments, *launch.packed.owners)]
            if len(self._calls) < len(self.launches):
                self._calls, is_quick = [], False
        if is_quick:
            calls, kept = self._calls, self._kept
            for call, values in calls:
                call(*values, stream=stream)
            if stream and self.driver.host_memory:  # C was given addresses, and an update makes the graph forget whose
                self.driver.keep_alive((self, *kept), self.device, stream)
            return
        for launch in self.launches:
            function = launch.shape.prepare(self.device, stream)
            if function is not None:
                config = launch.shape.config
                launch.launcher.fire(config, self.device, stream, function, launch.packed, launch.arguments)


def _destroy(driver: Driver, handle: int, device: int) -> None:
    if _state.forked_from(driver.name) is None:
        driver.destroy_graph(handle, device)


def _library_of(launches: Sequence[Captured], device: int) -> tuple[ExchangeTable, int, int] | None:
    """Return the exchange table of the first array whose library has a current stream, with its device."""
    for launch in launches:
        for value in launch.arguments:
            table = exchange_table(type(value))
            place = table.tensor(value) if table is not None and table.knows_stream else None
            if table is None or place is None:
                continue
            device_type, index = place.device.type, place.device.index
            if device_type not in HOST_TYPES and index == device:
                return table, device_type, index
    return None
