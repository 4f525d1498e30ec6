"""Streams and events: work that goes on beside other work, in an order that is said, and the time that it takes."""

from __future__ import annotations

import gc
import sys
import time
from typing import Any

import pytest

import podium
from podium.backend import Driver
from podium.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from podium.testing._conformance.child import add_kernel
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Timeline"]

_SOURCE = """
extern "C" __global__ void work(int* x, int turns) {
    unsigned value = x[0];
    for (int i = 0; i < turns; ++i) value = value * 3 + 1;
    x[0] = value;
}
extern "C" __global__ void move(int* to, const int* from) { to[0] = from[0]; }
"""
_TURNS = 30_000_000
_LAUNCHES = 6  # of so many turns: enough for the program to be ahead of the device, also on a busy machine


@contract("Streams and devices")
class Timeline(Subject):
    """`podium.Stream` and `podium.Event`, for the features "streams" and "events"."""

    def test_what_a_backend_does_not_have_is_refused(self, driver: Driver) -> None:
        """Without the features, streams, events, pinned memory and occupancy are errors that name the backend."""
        kernel = add_kernel()
        asked: dict[str, Any] = {
            "streams": podium.Stream,
            "events": podium.Event,
            "pinned": lambda: podium.empty(4, pinned=True),
            "occupancy": lambda: kernel.occupancy(1, 1),
        }
        for feature, ask in asked.items():
            if feature in driver.features:
                continue
            with pytest.raises(UnsupportedError) as caught:
                ask()
            assert (caught.value.backend, caught.value.feature) == (driver.name, feature)

    @pytest.mark.needs("streams")
    def test_streams_are_made_and_given_back(self, driver: Driver) -> None:
        """Each stream has a handle of its own, which no other stream has, and dropping it raises nothing."""
        device = driver.current_device()
        streams = [podium.Stream(), podium.Stream(device), podium.Stream(priority=-1)]
        handles = [stream.handle for stream in streams]
        assert len({*handles, driver.current_stream(device)}) == 4 and all(0 < each < 1 << 64 for each in handles)
        assert all(stream.device == device and stream.driver is driver for stream in streams)
        assert [stream.__cuda_stream__() for stream in streams] == [(0, handle) for handle in handles]
        assert {driver.stream_device(handle) for handle in handles} <= {None, device}
        assert driver.stream_device(driver.current_stream(device)) in (None, device)
        for stream in streams:
            stream.synchronize()
        del stream, streams
        gc.collect()
        podium.Stream().synchronize()

    @pytest.mark.needs("streams", "observes")
    def test_a_launch_takes_a_stream(self, driver: Driver, level: Level) -> None:
        """`stream=` takes a podium stream, and waiting for the stream waits for the launch."""
        kernel, x, stream = add_kernel(), podium.asarray([1]), podium.Stream()
        for _ in range(2):
            kernel[1, 1](x, 1, stream=stream)
            if self.capabilities.records:
                assert self.last(driver).stream == stream.handle
        stream.synchronize()
        if self.capabilities.executes:
            assert x.tolist() == [3]
        level.check(kernel)

    @pytest.mark.needs("streams", "executes")
    def test_the_work_of_a_dropped_stream_goes_on(self, driver: Driver) -> None:
        """A stream can be dropped while it works; the work is done all the same."""
        kernel, x = self._kernel("work"), podium.asarray([1])
        expected = self._worked(1)
        kernel[1, 1](x, _TURNS, stream=podium.Stream())
        gc.collect()
        podium.synchronize()
        assert x.tolist() == [expected]

    @pytest.mark.needs("streams", "executes")
    def test_a_copy_comes_after_the_work_of_its_stream(self, driver: Driver) -> None:
        """`tobytes(stream=...)`, right after a launch in that stream, has what the launch writes."""
        kernel, x, stream = self._kernel("work"), podium.asarray([1]), podium.Stream()
        kernel.load()
        kernel[1, 1](x, _TURNS, stream=stream)
        assert int.from_bytes(x.tobytes(stream=stream), sys.byteorder, signed=True) == self._worked(1)

    @pytest.mark.needs("executes")
    def test_memory_is_freed_after_the_work_before_it(self, driver: Driver) -> None:
        """An array that is dropped right after a launch is given to nobody else before the launch has ended."""
        kernel = self._kernel("work")
        kernel.load()
        stream = {"stream": podium.Stream()} if "streams" in driver.features else {}
        for _ in range(2):
            slow = podium.asarray([1])
            for _ in range(_LAUNCHES):
                kernel[1, 1](slow, _TURNS, **stream)
            kernel[1, 1](podium.asarray([1] * 64), 1, **stream)
            others = [podium.asarray([7] * 64) for _ in range(4)]
            podium.synchronize()
            assert [other.tolist() for other in others] == [[7] * 64] * 4

    @pytest.mark.needs("host_memory", "streams", "executes")
    def test_host_arrays_are_kept_until_the_stream_has_passed(self, driver: Driver) -> None:
        """A host array that the program drops right after a launch is there until its stream has passed the launch."""
        import numpy

        work, move, stream = self._kernel("work"), self._kernel("move"), podium.Stream()
        work.load(), move.load()  # so that nothing is waited for between the launches
        slow, out = podium.asarray([1]), podium.asarray([0])
        for _ in range(_LAUNCHES):
            work[1, 1](slow, _TURNS, stream=stream)
        move[1, 1](out, numpy.full(64, 42, numpy.int32), stream=stream)
        others = [numpy.full(64, 9, numpy.int32) for _ in range(8)]
        stream.synchronize()
        assert out.tolist() == [42] and all(other[0] == 9 for other in others)

    @pytest.mark.needs("events")
    def test_events_are_recorded_again_and_again(self, driver: Driver) -> None:
        """An event is done before it is recorded and after it was waited for, and can be recorded anew."""
        event = podium.Event()
        assert event.done
        for _ in range(3):
            event.record()
            event.synchronize()
            assert event.done
        assert event.device == driver.current_device() and event.driver is driver
        del event
        gc.collect()

    @pytest.mark.needs("events", "observes")
    def test_an_event_comes_after_the_work_before_it(self, driver: Driver) -> None:
        """Waiting for an event waits for what was in the stream when it was recorded."""
        kernel, x = self._kernel("work"), podium.asarray([1])
        if "streams" in driver.features:
            stream: Any = podium.Stream()
            kernel[1, 1](x, _TURNS, stream=stream)
            stream.record().synchronize()
        else:
            stream = driver.current_stream(driver.current_device())
            kernel[1, 1](x, _TURNS)
            event = podium.Event()
            event.record(stream)
            event.synchronize()
        if self.capabilities.executes:
            # read in another stream, if there is one, so that nothing else waits for the work
            seen = x.numpy(stream=podium.Stream()) if "streams" in driver.features else x.numpy()
            assert seen.tolist() == [self._worked(1)]

    @pytest.mark.needs("events", "streams", "observes")
    def test_a_stream_waits_for_an_event_of_another(self, driver: Driver) -> None:
        """What comes into a stream after `wait` runs after the work that the event stands for."""
        work, move = self._kernel("work"), self._kernel("move")
        first, second = podium.Stream(), podium.Stream()
        expected = self._worked(1)
        for _ in range(3):
            x, y = podium.asarray([1]), podium.asarray([0])
            work[1, 1](x, _TURNS, stream=first)
            second.wait(first.record(timed=False))
            move[1, 1](y, x, stream=second)
            second.synchronize()
            if self.capabilities.executes:
                assert y.tolist() == [expected]

    @pytest.mark.needs("events", "streams")
    def test_waiting_for_an_event_that_was_not_recorded(self, driver: Driver) -> None:
        """A stream does not wait for an event that was never recorded, nor for what is no event of its driver."""
        stream = podium.Stream()
        stream.wait(podium.Event())
        stream.synchronize()
        for wrong in (None, 5, object()):
            with pytest.raises(ArgumentTypeError):
                stream.wait(wrong)  # type: ignore[arg-type]

    @pytest.mark.needs("events", "observes")
    def test_elapsed_is_in_seconds(self, driver: Driver) -> None:
        """`elapsed` gives the seconds between two events: not below zero, additive, and within the host's own time."""
        kernel, x = self._kernel("work"), podium.asarray([1])
        kernel[1, 1](x, 1)
        podium.synchronize()
        begin = time.perf_counter()
        events = [podium.Event() for _ in range(3)]
        for event in events:
            event.record()
            kernel[1, 1](x, _TURNS)
        first, second = events[0].elapsed(events[1]), events[1].elapsed(events[2])
        whole = events[0].elapsed(events[2])
        host = time.perf_counter() - begin
        assert first >= 0 and second >= 0 and whole == pytest.approx(first + second, rel=0.01, abs=1e-5)
        assert whole <= host * 1.05 + 1e-3, f"{whole} seconds between events, {host} by the host's clock"
        if self.capabilities.executes:
            assert whole > 0

    @pytest.mark.needs("events")
    def test_what_takes_no_time_is_refused(self, driver: Driver) -> None:
        """`elapsed` of an event that is not timed, or was not recorded, is an error that says which."""
        good, untimed, unrecorded = podium.Event(), podium.Event(timed=False), podium.Event()
        good.record()
        untimed.record()
        for start, end in ((good, untimed), (untimed, good), (good, unrecorded), (unrecorded, good)):
            with pytest.raises(ArgumentValueError):
                start.elapsed(end)
        with pytest.raises(ArgumentTypeError):
            good.elapsed(1.0)  # type: ignore[arg-type]
        assert good.elapsed(good) == 0

    def _kernel(self, name: str) -> podium.Kernel:
        signature = {"work": "x: *i32, turns: i32", "move": "to: *i32, from: *ki32"}[name]
        return podium.kernel(_SOURCE, name, signature=signature)

    def _worked(self, value: int) -> int:
        if not self.capabilities.executes:
            return 0
        power = pow(3, _TURNS, 1 << 33)
        value = (power * value + (power - 1) // 2) & 0xFFFFFFFF
        return value - (1 << 32) if value >> 31 else value
