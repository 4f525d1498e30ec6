"""Captures and graphs: on every backend, whether the driver has graphs or podium makes the launches again."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import podium
from podium.backend import Driver
from podium.errors import ArgumentError, CaptureError, LaunchConfigError
from podium.testing._conformance.child import add_kernel
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Graphs"]

_SOURCE = """
extern "C" __global__ void advance(int* x, int a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = x[i] * 3 + a;
}
extern "C" __global__ void join(int* x, const int* y, const int* z) { x[0] = y[0] * 10 + z[0]; }
"""


@contract("Graphs")
class Graphs(Subject):
    """`podium.capture` and `podium.Graph`; what only a driver's own graphs have needs the feature "graphs"."""

    @pytest.mark.needs("observes")
    def test_a_replay_does_what_was_captured(self, driver: Driver, level: Level) -> None:
        """Nothing runs in a capture; each replay makes all launches with the bytes of then, also with changed ones.

        Rows SCR-09.
        """
        kernel, x = add_kernel(), podium.asarray([0] * 8)
        kernel[2, 4](x, 0)
        kernel[2, 4](x, 0)
        podium.synchronize()
        with podium.capture() as graph:
            for amount in (1, 10, 100):
                kernel[2, 4](x, amount)
        assert self._contents(x) == [0] * 8
        for replays in range(1, 4):
            graph.replay()
            assert self._contents(x) == [111 * replays] * 8
            self._last_was(driver, 100)
        graph.launches[2].update(a=400)
        graph.launches[0].update(x, 0, grid=1)
        graph.replay()
        self._last_was(driver, 400)
        assert self._contents(x) == [743] * 8
        graph.launches[2].update(grid=0)
        graph.launches[1].update(a=7, block=2)
        graph.replay()
        self._last_was(driver, 7)
        assert self._contents(x) == [750] * 4 + [743] * 4
        level.check(kernel)

    @pytest.mark.needs("observes", "streams")
    def test_replays_keep_the_order_of_their_stream(self, driver: Driver) -> None:
        """Launches of a graph run in their order, and so do replays in one stream."""
        kernel, x, stream = _graph_kernel("advance"), podium.asarray([0] * 8), podium.Stream()
        kernel.load()
        with podium.capture(stream=stream) as graph:
            for amount in range(4):
                kernel[1, 8](x, amount)
        expected = 0
        for _ in range(5):
            graph.replay()
            for amount in range(4):
                expected = (expected * 3 + amount) & 0xFFFFFFFF
        stream.synchronize()
        assert self._contents(x) == [expected - (1 << 32) * (expected >> 31)] * 8

    @pytest.mark.needs("observes", "streams", "events")
    def test_streams_are_forked_and_joined(self, driver: Driver) -> None:
        """A stream takes part from when it waits for an event of the capture; what comes after both sees both."""
        advance, join = _graph_kernel("advance"), _graph_kernel("join")
        advance.load(), join.load()
        x, y, z = (podium.asarray([1] * 8) for _ in range(3))
        side = podium.Stream()
        with podium.capture() as graph:
            with pytest.raises(CaptureError):
                advance[1, 8](z, 0, stream=side)
            advance[1, 8](y, 1)
            side.wait(graph.stream.record(timed=False))
            advance[1, 8](y, 1)
            advance[1, 8](z, 2, stream=side)
            graph.stream.wait(side.record(timed=False))
            join[1, 1](x, y, z)
        assert len(graph.launches) == 4
        for _ in range(3):
            graph.replay()
        if self.capabilities.executes:
            two, one = 1, 1
            for _ in range(3):
                two, one = (two * 3 + 1) * 3 + 1, one * 3 + 2
            assert x.tolist()[0] == two * 10 + one

    @pytest.mark.needs("streams", "events")
    def test_work_that_is_not_joined_is_an_error(self, driver: Driver) -> None:
        """A capture fails whose stream does not wait for all that takes part; nothing of it is left."""
        kernel, x, side = add_kernel(), podium.asarray([0]), podium.Stream()
        kernel.load()

        def fork(graph: podium.Graph) -> None:
            side.wait(graph.stream.record(timed=False))
            kernel[1, 1](x, 1, stream=side)

        with pytest.raises(CaptureError):
            _captured(fork)
        _captured(lambda graph: kernel[1, 1](x, 5)).replay()
        assert self._contents(x) == [5]

    def test_what_is_wrong_in_a_capture(self, driver: Driver) -> None:
        """Waiting, captures in captures, and arguments that do not fit are errors; the capture goes on, or has ended.

        Rows SCR-07.
        """
        kernel, x = add_kernel(), podium.asarray([0])
        kernel.load()
        with podium.capture() as graph:
            kernel[1, 1](x, 1)
            for wrong in (podium.synchronize, graph.replay, lambda: podium.capture().__enter__()):
                with pytest.raises(CaptureError):
                    wrong()
            with pytest.raises(ArgumentError):
                kernel[1, 1](x, "1")
            kernel[1, 1](x, 2)
        graph.replay()
        assert self._contents(x) == [3]
        for change in ({"a": 1.5}, {"b": 1}):
            with pytest.raises(ArgumentError):
                graph.launches[0].update(**change)
        with pytest.raises(LaunchConfigError):
            graph.launches[0].update(grid=-1)
        with pytest.raises(ZeroDivisionError):
            _captured(lambda graph: 1 // 0)
        kernel[1, 1](x, 4)
        graph.replay()
        assert self._contents(x) == [10]

    @pytest.mark.needs("streams")
    def test_memory_is_freed_in_a_capture(self, driver: Driver) -> None:
        """Arrays, streams and events that go meanwhile do not break it, since finalizers run at any time."""
        kernel, x = add_kernel(), podium.asarray([0])
        kernel.load()

        def drop(graph: podium.Graph) -> None:
            kernel[1, 1](x, 1)
            podium.asarray([1] * 1000)
            podium.Stream()
            if "events" in driver.features:
                podium.Event()
            gc.collect()
            kernel[1, 1](x, 2)

        _captured(drop).replay()
        assert self._contents(x) == [3]

    def test_a_graph_keeps_arrays_and_code(self, driver: Driver) -> None:
        """What a graph launches is there, though it was dropped and unloaded.

        Rows LIF-04.
        """
        kernel, x = add_kernel(), podium.asarray([0])
        kernel.load()
        with podium.capture() as graph:
            kernel[1, 1](podium.asarray([0] * 4), 1)
            kernel[1, 1](x, 2)
        kernel.unload()
        del kernel
        gc.collect()
        others = [podium.asarray([9] * 4) for _ in range(8)]
        graph.replay()
        assert self._contents(x) == [2]
        assert all(self._contents(other) == [9] * 4 for other in others)
        graph.launches[1].update(a=20)
        graph.replay()
        assert self._contents(x) == [22]
        del graph
        gc.collect()
        podium.synchronize()

    @pytest.mark.needs("graphs", "streams")
    def test_a_driver_tells_what_is_captured(self, driver: Driver) -> None:
        """`capture_state` has the capture and the node of a stream, and zeros for others; `capturing` agrees."""
        device, stream, other = driver.current_device(), podium.Stream(), podium.Stream()
        kernel, x = add_kernel(), podium.asarray([0])
        kernel.load()
        assert driver.capture_state(device, stream.handle) == (0, 0)
        with podium.capture(stream=stream) as graph:
            number, _ = driver.capture_state(device, stream.handle)
            assert number != 0 and driver.capturing(device, stream.handle)
            assert driver.capture_state(device, other.handle) == (0, 0) and not driver.capturing(device, other.handle)
            nodes = []
            for _ in range(3):
                kernel[1, 1](x, 1)
                same, node = driver.capture_state(device, stream.handle)
                nodes.append(node)
                assert same == number
        assert len({*nodes, 0}) == 4 and [launch.node for launch in graph.launches] == nodes
        assert driver.capture_state(device, stream.handle) == (0, 0) and not driver.capturing(device, stream.handle)

    def _contents(self, array: Any) -> Any:
        """What is in an array; where nothing runs, whatever is expected."""
        return array.tolist() if self.capabilities.executes else _Anything()

    def _last_was(self, driver: Driver, amount: int) -> None:
        if self.capabilities.records:
            assert self.last(driver).parameters[1] == amount.to_bytes(4, "little")


def _graph_kernel(name: str) -> podium.Kernel:
    signature = {"advance": "x: *i32, a: i32", "join": "x: *i32, y: *ki32, z: *ki32"}[name]
    return podium.kernel(_SOURCE, name, signature=signature)


def _captured(work: Callable[[podium.Graph], object]) -> podium.Graph:
    with podium.capture() as graph:
        work(graph)
    return graph


class _Anything:
    """It equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]
