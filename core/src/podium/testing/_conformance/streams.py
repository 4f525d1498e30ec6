"""Streams: the one that was named, else the driver's own."""

from __future__ import annotations

import pytest

import podium
from podium.backend import Driver
from podium.errors import ArgumentTypeError, ArgumentValueError
from podium.testing._conformance.child import add_kernel
from podium.testing._conformance.contract import contract
from podium.testing._conformance.foreign_array import DataPtrArray
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Streams"]


_STEP = """
extern "C" __global__ void advance(int* x, int a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = x[i] * 3 + a;
}
"""


class _Stream:
    """A stream of another library, which speaks ``__cuda_stream__``."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


@contract("Streams and devices")
class Streams(Subject):
    """Where a launch goes."""

    @pytest.mark.needs("observes")
    def test_the_drivers_stream_is_the_default(self, driver: Driver, level: Level) -> None:
        """Without a stream of the caller's or of the arrays, a launch goes to the driver's current stream.

        Rows CTX-08.
        """
        kernel, x = add_kernel(), podium.asarray([1])
        for _ in range(2):
            kernel[1, 1](DataPtrArray(x, x.ptr), 1)
            if self.capabilities.records:
                launch = self.last(driver)
                assert launch.stream == driver.current_stream(launch.device)
        if self.capabilities.executes:
            assert x.tolist() == [3]

    @pytest.mark.needs("observes", "streams")
    def test_a_stream_can_be_named(self, driver: Driver, level: Level) -> None:
        """`stream=` takes an integer or an object with ``__cuda_stream__``, for this launch only.

        Rows CTX-08.
        """
        kernel, x, own = add_kernel(), podium.asarray([1]), podium.Stream()
        stream = own.handle
        assert stream != driver.current_stream(driver.current_device())
        for given in (stream, _Stream(stream)):
            kernel[1, 1](x, 1, stream=given)
            if self.capabilities.records:
                assert self.last(driver).stream == stream
            podium.synchronize(stream=given)
        kernel[1, 1](x, 1)
        if self.capabilities.records:
            assert self.last(driver).stream == driver.current_stream(driver.current_device())
        podium.synchronize()
        if self.capabilities.executes:
            assert x.tolist() == [4]
        level.check(kernel)

    @pytest.mark.needs("executes", "streams")
    def test_a_stream_keeps_its_order(self, driver: Driver, level: Level) -> None:
        """Launches on one stream run in their order, and waiting for it waits for all of them."""
        import numpy

        kernel, stream = podium.kernel(_STEP, "advance", signature="x: *i32, a: i32"), podium.Stream()
        threads = self.threads(driver, 64)
        x = podium.asarray(numpy.zeros(64 * threads, numpy.int32))
        podium.synchronize()
        expected = 0
        for step in range(12):
            kernel[64, threads](x, step, stream=stream)
            expected = expected * 3 + step
        assert driver.synchronize(driver.current_device(), stream.handle) == 0
        assert (x.numpy() == expected).all()

    def test_what_is_no_stream_is_refused(self, driver: Driver, level: Level) -> None:
        """Strings, floats, negative numbers and handles over 64 bits are errors.

        Rows CTX-09.
        """
        kernel, x = add_kernel(), podium.asarray([1])
        kernel[1, 1](x, 1)
        before = self.count(driver)
        for wrong in ("0", 1.5, object(), True):
            with pytest.raises(ArgumentTypeError):
                kernel[1, 1](x, 1, stream=wrong)
        for number in (-1, 1 << 64):
            with pytest.raises(ArgumentValueError):
                kernel[1, 1](x, 1, stream=number)
        assert self.count(driver) == before

    @pytest.mark.needs("observes")
    def test_every_device_can_be_used(self, driver: Driver, level: Level) -> None:
        """A kernel is compiled once per target and loaded once per device, and runs where its arrays are.

        Rows CTX-04.
        """
        loads: list[int] = []
        podium.hooks.load.add(lambda event: loads.append(event.device))
        kernel = add_kernel()
        indices = [device.index for device in driver.devices()][:4]
        for _ in range(2):
            for index in indices:
                x = podium.asarray([1] * 4, device=index)
                kernel[1, 4](x, index + 1)
                podium.synchronize(index)
                if self.capabilities.executes:
                    assert x.tolist() == [index + 2] * 4
                if self.capabilities.records:
                    launch = self.last(driver)
                    assert launch.device == index and launch.launched_on in (None, index)
        assert loads == indices
