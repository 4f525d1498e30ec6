"""What reaches the CUDA driver: both levels tell it the same, and every byte is the one that the caller meant."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nvidia_recorded import at_level, kernels, shape, told
from recording.cuda.library import Recording

import podium
from podium._packing import Packer
from podium.errors import ArgumentTypeError, ArgumentValueError, ArrayDeviceError, LaunchConfigError
from podium.testing._conformance.foreign_array import DlpackArray

CLUSTER, COOPERATIVE, DEPENDENT, PRIORITY = 4, 2, 6, 8


class Pair(ctypes.Structure):
    """struct pair."""

    _fields_ = (("a", ctypes.c_double), ("b", ctypes.c_int * 3))


def test_every_byte_of_every_scalar(recording: Recording, level: str) -> None:
    """Each scalar arrives in its own size and place, signed and unsigned, at its bounds."""
    values = (-128, 255, -32768, 65535, -(2**31), 2**32 - 1, -(2**63), 2**64 - 1, 1.5, -2.5e300, True)
    kernels()["scalars"][1, 1](*values)
    launch = recording.last()
    assert launch.parameters == tuple(struct.pack(f"={code}", value) for code, value in zip("bBhHiIqQfd?", values))
    assert launch.offsets == (0, 1, 2, 4, 8, 12, 16, 24, 32, 40, 48)
    assert launch.packed == struct.pack("=bBhH2xiIqQf4xd?", *values)


def test_grid_block_shared_and_stream(recording: Recording, level: str) -> None:
    """All six sizes, the bytes of shared memory and the stream's handle arrive; a stream is its number."""
    kernel = kernels()["saxpy"]
    stream = podium.Stream()
    x = podium.empty(64, "fp32")
    kernel[(2, 3, 4), (8, 4, 2)](x, x, 2.0, 64, stream=stream, shared=1024)
    launch = recording.last()
    assert (launch.grid, launch.block, launch.shared) == ((2, 3, 4), (8, 4, 2), 1024)
    assert launch.stream == stream.handle and launch.name == "saxpy" and launch.entry == "cuLaunchKernel"
    assert launch.parameters[0] == launch.parameters[1] == x.ptr.to_bytes(8, "little")
    for handle in (0, 1, 2):
        kernel[1, 1](x, x, 2.0, 64, stream=handle)
        assert recording.last().stream == handle
    assert recording.last().stale == 0


def test_a_thousand_threads_and_the_largest_grid(recording: Recording, level: str) -> None:
    """The largest sizes that a device takes pass; one more on any axis is refused before the driver is asked."""
    kernel = kernels()["nothing"]
    kernel[(2147483647, 65535, 65535), (1024, 1, 1)]()
    assert recording.last().grid == (2147483647, 65535, 65535)
    count = recording.launch_count()
    for grid, block in [(2147483648, 1), ((1, 65536), 1), ((1, 1, 65536), 1), (1, 1025), (1, (1, 1, 65))]:
        with pytest.raises(LaunchConfigError):
            kernel[grid, block]()
    assert recording.launch_count() == count


def test_structs_lie_where_the_kernel_finds_them(recording: Recording, level: str) -> None:
    """A struct between two chars is passed by value at its alignment; whole, from ctypes and from bytes."""
    value = Pair(1.5, (1, 2, 3))
    kernel = kernels()["structs"]
    for given_value in (value, bytes(value)):
        kernel[1, 1](65, given_value, 66, None)
        launch = recording.last()
        assert launch.parameters == (b"A", bytes(value), b"B", bytes(8))
        assert launch.offsets == (0, 8, 32, 40)


def _attributes(recording: Recording) -> dict[int, tuple[int, ...]]:
    return {number: struct.unpack("=3i", value[:12]) for number, value in recording.last().attributes}


def test_launch_attributes(recording: Recording, level: str) -> None:
    """Clusters, cooperative grids, dependent launches and a priority become attributes of cuLaunchKernelEx."""
    kernel = kernels()["nothing"]
    kernel[podium.LaunchConfig((8, 2), 32, cluster=(2, 2))]()
    assert recording.last().entry == "cuLaunchKernelEx" and recording.last().cluster == (2, 2, 1)
    assert _attributes(recording) == {CLUSTER: (2, 2, 1)}
    kernel[podium.LaunchConfig(4, 32, cooperative=True)]()
    assert _attributes(recording) == {COOPERATIVE: (1, 0, 0)}
    kernel[podium.LaunchConfig(4, 32, dependent=True, attributes={"priority": -3})]()
    assert _attributes(recording) == {DEPENDENT: (1, 0, 0), PRIORITY: (-3, 0, 0)}
    kernel[podium.LaunchConfig(4, 32)]()
    assert recording.last().entry == "cuLaunchKernel" and recording.last().attributes == ()


def test_shared_memory_above_48_kilobytes(recording: Recording, level: str) -> None:
    """Up to what a block can have at all, which the driver was asked for at load; one byte more is refused."""
    x = podium.empty(64, "fp32")
    kernel = kernels()["shared"]
    kernel[1, 32](x, 1, shared=232448)
    assert recording.last().shared == 232448
    with pytest.raises(LaunchConfigError, match="232449"):
        kernel[1, 32](x, 1, shared=232449)


def test_freed_memory_is_noticed(recording: Recording, level: str) -> None:
    """The recording library tells whether a launch has the address of memory that is no more."""
    x = podium.empty(64, "fp32")
    address = x.ptr
    kernel = kernels()["bounded"]
    kernel[1, 1](address)
    assert recording.last().stale == 0
    del x
    kernel[1, 1](address)
    assert recording.last().stale == 1


def test_two_devices(recording: Recording, level: str) -> None:
    """A launch goes to the device of its first array, in that device's primary context; the caller's stays current."""
    from cuda.bindings import driver

    kernel = kernels()["bounded"]
    kernel[1, 1](podium.empty(64, "i32", device=1))
    assert recording.last().device == 1
    kernel[1, 1](podium.empty(64, "i32", device=0))
    assert recording.last().device == 0
    contexts = {int(driver.cuDevicePrimaryCtxRetain(device)[1]) for device in (0, 1)}
    assert {launch.context for launch in recording.launches()} == contexts
    _, current = driver.cuCtxGetCurrent()
    kernel[1, 1](podium.empty(64, "i32", device=1))
    assert driver.cuCtxGetCurrent()[1] == current


def test_a_stream_tells_the_device_of_a_launch(recording: Recording, level: str) -> None:
    """The driver launches on the stream's device: arrays on another one are refused, and without arrays it is that."""
    kernel, here = kernels()["bounded"], podium.empty(64, "i32")
    stream = podium.Stream(device=1)
    for _ in range(2):
        kernel[1, 1](None, stream=stream)
        assert recording.last().device == podium.recent_launches()[-1].device == 1
        count = recording.launch_count()
        with pytest.raises(
            ArgumentValueError, match=r"is of device 1, and the launch is on device 0.*podium\.Stream\(0\)"
        ):
            kernel[1, 1](here, stream=stream)
        assert recording.launch_count() == count
        kernel[1, 1](here)


class Interfaced:
    """An array of a library that has ``__cuda_array_interface__`` and nothing else."""

    def __init__(self, address: int, readonly: bool = False, **fields: Any) -> None:
        self.fields = {"version": 3, "shape": (64,), "typestr": "<i4", "data": (address, readonly), **fields}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.fields


def test_arrays_with_the_cuda_array_interface(
    recording: Recording, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver knows the device of an address, the interface the stream; generated launches ask Python for neither."""
    asked: list[object] = []
    locate = Packer.locate

    def counted(self: Packer, index: int, value: object, given: int | None = None) -> Any:
        asked.append(value)
        return locate(self, index, value, given)

    monkeypatch.setattr(Packer, "locate", counted)
    kernel = kernels()["bounded"]
    here, there = podium.empty(64, "i32"), podium.empty(64, "i32", device=1)
    pinned, stream = podium.empty(64, "i32", pinned=True), podium.Stream()
    for fields in ({}, {"strides": None, "stream": None, "mask": None}, {"typestr": "|u1"}, {"descr": [("", "<i4")]}):
        for array in (here, there, pinned):
            kernel[1, 1](Interfaced(array.ptr, **fields))
            launch = recording.last()
            assert launch.parameters[0] == array.ptr.to_bytes(8, "little")
            assert (launch.device, launch.stream) == (array.device, 0)
    kernel[1, 1](Interfaced(here.ptr, stream=stream.handle))
    assert recording.last().stream == stream.handle
    kernel[1, 1](Interfaced(here.ptr, stream=1), stream=stream)
    assert recording.last().stream == stream.handle
    kernel[1, 1](Interfaced(0, shape=(0,)))
    assert recording.last().parameters[0] == bytes(8)
    assert len(asked) == (1 if level == "generated" else 15)  # one of two streams: to let the one wait for the other
    # What is not plain is for Python to take, and to refuse.
    kernel[1, 1](Interfaced(here.ptr, strides=(4,)))
    kernel[1, 1](Interfaced(here.ptr, shape=[64], stream=numpy.int64(stream.handle)))
    assert recording.last().stream == stream.handle
    count, host = recording.launch_count(), ctypes.create_string_buffer(256)
    for kind, array in (
        (ArrayDeviceError, Interfaced(ctypes.addressof(host))),
        (ArgumentValueError, Interfaced(here.ptr, readonly=True)),
        (ArgumentValueError, Interfaced(here.ptr, strides=(8,))),
        (ArgumentValueError, Interfaced(here.ptr, typestr=">i4")),
        (ArgumentTypeError, Interfaced(here.ptr, mask=object())),
        (ArgumentTypeError, Interfaced(here.ptr, typestr="i")),
        (ArgumentTypeError, Interfaced(here.ptr, data=(-1, False))),
        (ArgumentTypeError, Interfaced(here.ptr, stream=-1)),
    ):
        with pytest.raises(kind):
            kernel[1, 1](array)
    assert recording.launch_count() == count


def test_in_a_context_of_the_callers_own(recording: Recording, level: str) -> None:
    """A context that the caller made on the same device is used as it is, and stays current."""
    from cuda.bindings import driver

    driver.cuInit(0)
    kernel = kernels()["bounded"]
    kernel[1, 1](None)
    _, context = driver.cuCtxCreate(None, 0, 0)
    kernel[1, 1](None)
    assert recording.last().context == int(context) == int(driver.cuCtxGetCurrent()[1])
    depth = recording.context_depth()
    driver.cuCtxPopCurrent()
    assert recording.context_depth() == depth - 1


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_capture_and_replay(recording: Recording, level: str, mode: int) -> None:
    """A warm launch is captured in every mode without breaking the capture, and replayed with the same bytes."""
    from cuda.bindings import driver

    kernel, stream = kernels()["saxpy"], podium.Stream()
    x = podium.empty(64, "fp32")
    launch = kernel[2, 32]
    launch(x, x, 2.0, 64, stream=stream)
    before = recording.launch_count()
    assert driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode(mode))[0] == 0
    launch(x, x, 3.0, 64, stream=stream)
    status, graph = driver.cuStreamEndCapture(stream.handle)
    assert status == 0
    status, run = driver.cuGraphInstantiate(graph, 0)
    assert status == 0 and driver.cuGraphLaunch(run, stream.handle)[0] == 0
    captured, replayed = recording.launches(before)
    assert captured.captured and replayed.replayed and captured.parameters == replayed.parameters
    assert captured.parameters[2] == struct.pack("=f", 3.0)


def test_owners_let_the_stream_of_the_launch_wait(recording: Recording, level: str) -> None:
    """CTX-10: an array's owner orders its work before the stream that the launch names; one that is captured cannot wait."""
    kernel, stream, x = kernels()["saxpy"], podium.Stream(), podium.empty(64, "fp32")
    array = DlpackArray(x, x.ptr, (64,), "fp32", (2, 0))
    for _ in range(2):
        kernel[1, 1](array, array, 2.0, 64)
    assert set(array.streams) == {1}
    del array.streams[:]
    kernel[1, 1](array, array, 2.0, 64, stream=stream)
    kernel.run(1, 1, 1, stream.handle, kernel.function, array, array, 2.0, 64)
    assert set(array.streams) == {stream.handle} and recording.last().stream == stream.handle
    assert "cuStreamWaitEvent" not in recording.calls()
    with podium.capture(stream=stream):
        kernel[1, 1](array, array, 2.0, 64, stream=stream)
    assert array.streams[-1] == 1


class Telling(DlpackArray):
    """An array as CuPy's: it speaks ``__dlpack__``, and tells the current stream of its library by the other protocol."""

    stream = 0

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        data = {"data": (self.owner.ptr, False), "shape": (64,), "typestr": "<f4"}
        return {"version": 3, "strides": None, "stream": self.stream, **data}


def test_the_current_stream_of_a_library_without_a_table(recording: Recording, level: str) -> None:
    """CTX-08: a library that tells its current stream gets the launch there; if the launch names one, it lets that wait."""
    kernel, current, stream, x = kernels()["saxpy"], podium.Stream(), podium.Stream(), podium.empty(64, "fp32")
    array = Telling(x, x.ptr, (64,), "fp32", (2, 0))
    for handle in (current.handle, 1, current.handle):
        Telling.stream = handle
        kernel[1, 1](array, x, 2.0, 64)
        assert recording.last().stream == handle and array.streams == []
    kernel[1, 1](array, x, 2.0, 64, stream=stream)
    assert recording.last().stream == stream.handle and set(array.streams) == {stream.handle}
    assert "cuStreamWaitEvent" not in recording.calls()


def test_launches_wait_for_the_stream_of_an_array(recording: Recording, level: str) -> None:
    """CTX-10: what is in the stream of ``__cuda_array_interface__`` comes before a launch in another stream."""
    kernel, x = kernels()["saxpy"], podium.empty(64, "fp32")
    mine, theirs = podium.Stream(), podium.Stream()
    kernel[1, 1](x, x, 2.0, 64)

    def waits(*arrays: object, **keywords: Any) -> tuple[int, int]:
        before = recording.calls().get("cuStreamWaitEvent", 0)
        kernel[1, 1](*arrays, 2.0, 64, **keywords)
        return recording.last().stream, recording.calls().get("cuStreamWaitEvent", 0) - before

    other, same = Interfaced(x.ptr, stream=theirs.handle), Interfaced(x.ptr, stream=mine.handle)
    assert waits(other, x) == waits(other, other) == waits(other, x, stream=theirs) == (theirs.handle, 0)
    assert waits(x, other, stream=mine) == waits(same, other, stream=mine) == waits(same, other) == (mine.handle, 1)
    legacy = Interfaced(x.ptr, stream=1)
    assert waits(x, legacy) == (1, 0) and waits(x, legacy, stream=0) == (0, 0)


def test_a_first_launch_in_a_capture_says_so_and_leaves_it_whole(recording: Recording, level: str) -> None:
    """ "Warm up first" is said before anything is called that would end the capture."""
    from cuda.bindings import driver

    warm, cold, stream = kernels()["saxpy"], podium.module(COLD)["cold"], podium.Stream()
    x = podium.empty(64, "fp32")
    warm[1, 1](x, x, 2.0, 64, stream=stream)
    assert driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode(0))[0] == 0
    with pytest.raises(podium.errors.PodiumError, match="captur"):  # type: ignore[attr-defined]
        cold[1, 1](x, stream=stream)
    warm[1, 1](x, x, 2.0, 64, stream=stream)
    status, graph = driver.cuStreamEndCapture(stream.handle)
    assert status == 0 and graph


COLD = 'extern "C" __global__ void cold(float *x) { x[1] = 2; }'

INTEGERS = [("b", 8), ("B", 8), ("h", 16), ("H", 16), ("i", 32), ("I", 32), ("q", 64), ("Q", 64)]
SCALARS = st.tuples(
    *(
        st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if code.islower() else st.integers(0, 2**bits - 1)
        for code, bits in INTEGERS
    ),
    st.floats(width=32),
    st.floats(),
    st.booleans(),
)
SIZES = st.tuples(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300))
BLOCKS = st.tuples(st.integers(1, 16), st.integers(1, 16), st.integers(1, 4))
CONFIGS = st.builds(
    podium.LaunchConfig,
    SIZES,
    BLOCKS,
    cluster=st.sampled_from([(1, 1, 1), (1, 1, 1), (2, 1, 1), (1, 2, 4)]),
    shared=st.integers(0, 50000),
    cooperative=st.booleans(),
    dependent=st.booleans(),
    attributes=st.dictionaries(st.sampled_from(["priority", "cluster_scheduling_policy"]), st.integers(-6, 3)),
)


def _outcome(recording: Recording, launch: Any, values: tuple[Any, ...], **keywords: Any) -> list[Any]:
    try:
        return [shape(each) for each in told(recording, lambda: launch(*values, **keywords))]
    except podium.errors.PodiumError as error:  # type: ignore[attr-defined]
        return [type(error), str(error)]


def test_the_two_levels_are_each_others_oracle(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the values and the shape, both levels tell the driver the same or raise the same error."""
    modules = [at_level(monkeypatch, level) for level in ("interpreted", "generated")]
    for module in modules:
        module["scalars"][1, 1](*[0] * 8, 0.0, 0.0, False)
    levels = [module["scalars"].binding().launcher.level for module in modules]
    assert levels == ["interpreted", "generated"]
    stream = podium.Stream()

    @settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(config=CONFIGS, values=SCALARS, handle=st.sampled_from([None, 0, 1, 2, stream]))
    def compare(config: podium.LaunchConfig, values: tuple[Any, ...], handle: Any) -> None:
        first, second = (_outcome(recording, module["scalars"][config], values, stream=handle) for module in modules)
        assert first == second
        if first and first[0] and isinstance(first[0], tuple):
            packed = struct.pack("=bBhH2xiIqQf4xd?", *values)
            assert first[0][11] == packed

    compare()


def test_a_stream_of_another_device_is_named(recording: Recording, level: str) -> None:
    """CTX-06: CUDA launches in the context of the stream, so with debugging on a launch asks whose an integer is;
    copies, events and waiting always do."""
    kernel, x = kernels()["bounded"], podium.empty(64, "i32")
    there, here = podium.Stream(1), podium.Stream(0)
    kernel[1, 1](x, stream=there.handle)
    with (
        podium.debugging(),
        pytest.raises(ArgumentValueError, match="^bounded: .* is of device 1, and not of device 0"),
    ):
        kernel[1, 1](x, stream=there.handle)
    for use in (x.tobytes, podium.Event(0).record, lambda stream: podium.synchronize(0, stream)):
        use(stream=here.handle)
        with pytest.raises(ArgumentValueError, match=f"stream {there.handle:#x} is of device 1, and not of device 0"):
            use(stream=there.handle)
    podium.synchronize(stream=there.handle)
    kernel[1, 1](podium.empty(64, "i32", device=1), stream=there.handle)
    assert recording.last().device == 1
