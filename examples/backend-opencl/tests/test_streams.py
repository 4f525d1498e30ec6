"""Queues, events, memory and devices, as far as they are OpenCL's own matter."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable

import numpy as np
import pytest

import podium
from podium.backend import Driver
from podium.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ArrayDeviceError,
    LaunchConfigError,
    LaunchError,
    OutOfResourcesError,
)

import podium_opencl

SOURCE = """
__kernel void work(__global int *x, int turns) {
    uint value = x[0];
    for (int i = 0; i < turns; ++i) value = value * 3 + 1;
    x[0] = value;
}
__kernel void add(__global int *x, int a) { x[get_global_id(0)] += a; }
"""
TURNS = 20_000_000


def kernel(name: str) -> podium.Kernel:
    """Declare a kernel of the source above."""
    second = {"work": "turns", "add": "a"}[name]
    return podium.kernel(SOURCE, name, signature=f"x: *i32, {second}: i32", language="opencl")


@pytest.fixture
def two_devices(opencl: Driver) -> Driver:
    """The driver, on a machine with two devices; PoCL can show its own twice."""
    if len(opencl.devices()) < 2:
        pytest.skip("OpenCL has one device here")
    return opencl


def test_an_event_is_waited_for_on_another_device(two_devices: Driver) -> None:
    """A stream of one device goes on when the work of another one has ended, though they share no context."""
    x, y = podium.asarray([1], device=0), podium.asarray([1], device=1)
    first, second = podium.Stream(0), podium.Stream(1)
    kernel("work")[1, 1](x, TURNS, stream=first)
    there = first.record()
    second.wait(there)
    behind = second.record()
    kernel("add")[1, 1](y, 5, stream=second)
    behind.synchronize()
    assert there.done
    second.synchronize()
    assert y.tolist() == [6]


def test_memory_of_another_device_is_refused(two_devices: Driver, level: str) -> None:
    """Shared virtual memory belongs to a context, and each device has its own."""
    x, y = podium.asarray([1], device=0), podium.asarray([1], device=1)
    both = podium.kernel(
        "__kernel void both(__global int *x, __global int *y) { x[0] = y[0]; }",
        "both",
        signature="x: *i32, y: *i32",
        language="opencl",
    )
    for _ in range(2):
        with pytest.raises(ArrayDeviceError) as caught:
            both[1, 1](x, y)
        assert caught.value.kind == "peer"


def test_the_device_of_an_address_is_known(two_devices: Driver) -> None:
    """Every address inside of an allocation is of its device, and one of memory that was freed is of none."""
    for device in (0, 1):
        x = podium.empty(100, "u8", device=device)
        assert [two_devices.pointer_device(x.ptr + each) for each in (0, 99)] == [(4, device)] * 2
        address = x.ptr
        del x
        gc.collect()
        assert two_devices.pointer_device(address) is None


def test_memory_that_is_used_goes_when_the_work_has_ended(opencl: Driver) -> None:
    """An array can be dropped while a kernel works on it: freeing it waits for the work."""
    kernel("work")[1, 1](podium.asarray([1]), TURNS)
    gc.collect()
    x = podium.asarray([1])
    kernel("add")[1, 1](x, 1)
    assert x.tolist() == [2]


def test_memory_larger_than_the_device_has_is_refused(opencl: Driver) -> None:
    """The error has what was asked for and the largest piece that there can be."""
    with pytest.raises(OutOfResourcesError) as caught:
        opencl.allocate(1 << 50, 256, 0, None)
    assert caught.value.required == 1 << 50 and 0 < caught.value.limit < 1 << 50


def test_what_pyopencl_allocates_can_be_given_to_a_kernel(opencl: Driver, level: str) -> None:
    """Memory of podium's context, a queue that both use, and a queue of pyopencl's own as the stream of a launch."""
    import pyopencl
    from pyopencl.array import Array
    from pyopencl.tools import SVMAllocator

    context, queue = podium_opencl.context(), podium_opencl.queue()
    array = Array(queue, 8, np.int32, allocator=SVMAllocator(context, alignment=0, queue=queue))
    array.set(np.arange(8, dtype=np.int32))
    kernel("add")[1, 8](array.data.svm_ptr, 10)
    assert (array.get() == np.arange(8) + 10).all()
    own = pyopencl.CommandQueue(context)
    for _ in range(2):
        kernel("add")[1, 8](array.data.svm_ptr, 1, stream=podium_opencl.as_stream(own))
    own.finish()
    assert (array.get() == np.arange(8) + 12).all()
    stream = podium.Stream()
    assert podium_opencl.queue(0, stream).int_ptr == stream.handle
    podium_opencl.as_stream(podium_opencl.queue(0, stream))  # is the stream that there is, and leaves it as it is
    assert podium_opencl.queue(0, stream).int_ptr == stream.handle


def test_a_handle_that_is_no_stream_is_refused(two_devices: Driver, level: str) -> None:
    """OpenCL reads where a handle points to; so podium takes only those of streams that are alive, on their device.

    The error has the handle and says what to pass, for launches, copies, events, and queues that are asked for.
    """
    import pyopencl

    x = podium.asarray([1])
    add, gone, other = kernel("add"), podium.Stream(), podium.Stream(1)
    add[1, 1](x, 0, stream=gone)
    shared = podium_opencl.as_stream(pyopencl.CommandQueue(podium_opencl.context()))
    add[1, 1](x, 0, stream=shared)
    handles = [12345, gone.handle, shared.handle, other.handle]
    del gone, shared
    calls: list[Callable[[int], object]] = [
        lambda handle: add[1, 1](x, 1, stream=handle),
        lambda handle: podium.Event(0).record(handle),
        lambda handle: podium.synchronize(0, handle),
        lambda handle: two_devices.copy(x.ptr, x.ptr, 4, 0, handle),
        lambda handle: two_devices.allocate(4, 4, 0, handle),
        lambda handle: podium_opencl.queue(0, handle),
    ]
    for handle, call in itertools.product(handles, calls):
        with pytest.raises(LaunchError, match=rf"{handle:#x}") as caught:
            call(handle)
        assert caught.value.status_name == "CL_INVALID_COMMAND_QUEUE"
        assert "podium_opencl.as_stream" in str(caught.value)
    assert x.tolist() == [1]


def test_only_queues_that_podium_can_use_are_streams(opencl: Driver) -> None:
    """A queue of another context, one that does not keep its order, and what is no queue are told apart."""
    import pyopencl

    other = pyopencl.CommandQueue(pyopencl.Context(podium_opencl.context().devices))
    with pytest.raises(ArgumentValueError, match="not podium's"):
        podium_opencl.as_stream(other)
    with pytest.raises(ArgumentTypeError, match="CommandQueue, not 5"):
        podium_opencl.as_stream(5)
    with pytest.raises(ArgumentTypeError, match="not 'text'"):
        podium_opencl.queue(0, "text")
    with pytest.raises(LaunchConfigError, match="no OpenCL device 99"):
        podium_opencl.context(99)
    unordered = pyopencl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    queue = pyopencl.CommandQueue(podium_opencl.context(), properties=unordered)
    with pytest.raises(ArgumentValueError, match="order"):
        podium_opencl.as_stream(queue)
