"""podium's own arrays: made, filled, read, exported and freed, on a device and on the host."""

from __future__ import annotations

import array
import ctypes
import gc
import math
import pickle
import weakref
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy
import pytest
from fake_launching import host_driver_class

import podium
from podium import _memory
from podium._element_types import element_type
from podium.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ArrayDeviceError,
    LaunchConfigError,
    LaunchError,
    OutOfResourcesError,
)
from podium.testing import FakeDriver

DTYPES = {
    "i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32",
    "u64": "uint64", "fp16": "float16", "fp32": "float32", "fp64": "float64",
}  # fmt: skip


@pytest.fixture(params=["device", "host"])
def driver(request: pytest.FixtureRequest, fake: FakeDriver) -> Iterator[FakeDriver]:
    """An active driver: with memory of its own, and with the host's."""
    chosen = fake if request.param == "device" else host_driver_class()()
    with podium.use(chosen):
        yield chosen


# ---- Making and reading ----


@pytest.mark.parametrize("name", DTYPES)
def test_arrays_of_every_type(driver: FakeDriver, name: str) -> None:
    """An array made from numpy's has its type and shape, and gives the same elements back."""
    values = numpy.arange(6).reshape(2, 3).astype(DTYPES[name])
    made = podium.asarray(values)
    assert (made.dtype, made.shape, made.size, made.nbytes) == (name, (2, 3), 6, values.nbytes)
    assert made.device == 0 and made.driver is driver and len(made) == 2
    assert made.ptr % 256 == 0 and made.ptr != values.__array_interface__["data"][0]
    assert made.tobytes() == values.tobytes()
    assert made.tolist() == values.tolist() == list(made)
    back = made.numpy()
    assert back.dtype == values.dtype and (back == values).all() and back.flags.writeable
    for alias in (name, DTYPES[name], numpy.dtype(DTYPES[name])):
        assert podium.empty(3, alias).dtype == name


def test_bfloat16(driver: FakeDriver) -> None:
    """bf16 is made from numbers, rounded to nearest even, and read as numbers or as ml_dtypes' type."""
    made = podium.asarray([1.0, 1.00390625, -2.5, math.inf], "bf16")
    assert made.nbytes == 8 and made.tolist() == [1.0, 1.0, -2.5, math.inf]
    assert made.numpy().dtype == ml_dtypes.bfloat16
    assert podium.empty(2, ml_dtypes.bfloat16).dtype == "bf16"


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (0, 3), (2, 3, 4), (1, 1, 1, 1, 2)])
def test_shapes(driver: FakeDriver, shape: tuple[int, ...]) -> None:
    """Every shape reads back as numpy nests it, empty ones and those without axes, too."""
    values = numpy.arange(math.prod(shape), dtype="i4").reshape(shape)
    made = podium.asarray(values)
    assert made.shape == shape and made.nbytes == values.nbytes
    assert made.tolist() == values.tolist()
    assert made.numpy().shape == shape
    assert podium.empty(shape, "i8").shape == shape
    if shape:
        assert len(made) == shape[0]
    else:
        with pytest.raises(TypeError, match="without axes"):
            len(made)


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        ([1, 2], "i32", (2,)),
        ([1.0, 2], "fp32", (2,)),
        ([True, False], "i1", (2,)),
        ([True, 2], "i32", (2,)),
        ([[1, 2], [3, 4]], "i32", (2, 2)),
        (((1.5,), (2.5,)), "fp32", (2, 1)),
        ([], "fp32", (0,)),
        ([[], []], "fp32", (2, 0)),
        (5, "i32", ()),
        (2.5, "fp32", ()),
        (True, "i1", ()),
        (range(3), "i32", (3,)),
        (array.array("d", [1, 2]), "fp64", (2,)),
        (bytearray(b"ab"), "u8", (2,)),
        (memoryview(b"abcd").cast("B", (2, 2)), "u8", (2, 2)),
        ((ctypes.c_int16 * 3)(1, 2, 3), "i16", (3,)),
    ],
    ids=repr,
)
def test_what_an_array_is_made_of(driver: FakeDriver, value: Any, dtype: str, shape: tuple[int, ...]) -> None:
    """Buffers keep their type; sequences of numbers get the plain one for what they hold."""
    made = podium.asarray(value)
    assert (made.dtype, made.shape) == (dtype, shape)
    assert made.tolist() == numpy.asarray(value).tolist()


def test_layouts_are_made_c_contiguous(driver: FakeDriver) -> None:
    """A strided, turned or backward buffer is copied in the order of its axes."""
    values = numpy.arange(24, dtype="f4").reshape(4, 6)
    for view in (values.T, values[::2, 1::2], values[::-1], numpy.asfortranarray(values)):
        assert podium.asarray(view).tolist() == view.tolist()


@pytest.mark.parametrize(
    ("value", "dtype", "kind"),
    [
        ("text", None, ArgumentTypeError),
        (None, None, ArgumentTypeError),
        ([1, "2"], None, ArgumentTypeError),
        ([1, None], None, ArgumentTypeError),
        ({1, 2}, None, ArgumentTypeError),
        (object(), None, ArgumentTypeError),
        ([[1, 2], [3]], None, ArgumentValueError),
        ([[1], 2], None, ArgumentValueError),
        ([300], "i8", ArgumentValueError),
        ([-1], "u8", ArgumentValueError),
        ([1.5], "i32", ArgumentTypeError),
        ([2**40], None, ArgumentValueError),
        (numpy.zeros(2, "f8"), "fp32", ArgumentTypeError),
        (numpy.zeros(2, "c8"), None, TypeError),
        (numpy.zeros(2, ">f4"), None, ArgumentTypeError),
        (numpy.zeros(2, object), None, ArgumentTypeError),
        (numpy.zeros(2, [("a", "f4")]), None, ArgumentTypeError),
        (numpy.zeros(2, "U3"), None, ArgumentTypeError),
        ([1], "float33", TypeError),
        ([1], None.__class__, TypeError),
    ],
    ids=repr,
)
def test_what_is_no_array(driver: FakeDriver, value: Any, dtype: Any, kind: type[Exception]) -> None:
    """Ragged sequences, texts, unknown types and numbers out of range are errors; nothing is converted silently."""
    with pytest.raises(kind):
        podium.asarray(value, dtype)


def test_only_lists_are_converted(driver: FakeDriver) -> None:
    """An array of another element type is an error that says what to do, and what it says works, for bf16 as well."""
    values = array.array("d", [1.0] * 3)
    for dtype in ("fp16", "bf16"):
        with pytest.raises(ArgumentTypeError, match=rf"the elements are fp64, not {dtype}; .*as \.tolist\(\)"):
            podium.asarray(values, dtype)
        assert podium.asarray(values.tolist(), dtype).tolist() == [1.0] * 3


def test_shapes_that_cannot_be(driver: FakeDriver) -> None:
    """A negative length is an error of the shape; what is no integer a type error."""
    for shape in (-1, (2, -1)):
        with pytest.raises(ArgumentValueError, match="no negative lengths"):
            podium.empty(shape)
    for shape in (1.5, "3", (1, None), [2.0]):
        with pytest.raises(TypeError):
            podium.empty(shape)  # type: ignore[arg-type]
    with pytest.raises(OutOfResourcesError):
        podium.empty(1 << 40)


@pytest.mark.parametrize("shape", [(1,) * 65, (1 << 30,) * 3, 1 << 64, (0, 1 << 62), (1 << 63,), (1 << 59,), (2,) * 64])
def test_shapes_that_no_address_reaches(driver: FakeDriver, shape: Any) -> None:
    """Too many axes, or more elements than there are addresses, are errors of the shape, before memory is asked for."""
    for dtype in ("i1", "fp32", "fp64"):
        with pytest.raises(ArgumentValueError, match="at most 64 axes|No array can have the shape") as caught:
            podium.empty(shape, dtype)
        assert caught.value.argument == "shape"
    assert podium.empty((1,) * 64).shape == (1,) * 64
    with pytest.raises(ArgumentTypeError, match=r"A shape is one or several integers, not 1\.5 \(float\)"):
        podium.empty(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["shape", "dtype", "device", "driver", "ptr", "size", "nbytes"])
def test_what_an_array_is_cannot_be_changed(driver: FakeDriver, name: str) -> None:
    """LIF-03: shape, type and place are those of the memory; with others a copy would read beyond its end."""
    made = podium.asarray([1.0, 2.0])
    before = getattr(made, name)
    with pytest.raises(AttributeError):
        setattr(made, name, before)
    assert getattr(made, name) == before and made.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("index", [5, 2, -1])
def test_devices_that_do_not_exist(driver: FakeDriver, index: int) -> None:
    """CTX-04: memory for a device that is not there, or waiting for it, is an error that names the device."""
    for call in (
        lambda: podium.empty(3, device=index),
        lambda: podium.asarray([1.0], device=index),
        lambda: podium.synchronize(index),
    ):
        with pytest.raises(
            LaunchConfigError, match=f"there is no device {index}; backend '{driver.name}' has 2"
        ) as caught:
            call()
        assert (caught.value.axis, caught.value.value) == ("device", index)


def test_elements_are_not_touched_one_by_one(driver: FakeDriver) -> None:
    """Indexing says what to do instead; printing shows the type and the place, never the elements."""
    made = podium.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match=r"take .numpy\(\) or .tolist\(\)"):
        made[0]
    with pytest.raises(TypeError, match="copy_from"):
        made[0] = 5.0
    assert repr(made) == f"<podium array fp32[2] on {driver.name} device 0>"


def test_devices_and_copies(fake: FakeDriver) -> None:
    """An array can be made on a given device, from another array, and through pickle on the active driver."""
    first = podium.asarray([1, 2, 3], device=1)
    assert first.device == 1 and podium.empty(2, device=1).device == 1
    second = podium.asarray(first)
    assert second.device == 0 and second.ptr != first.ptr and second.tolist() == [1, 2, 3]
    third = pickle.loads(pickle.dumps(first))
    assert (third.tolist(), third.dtype, third.driver) == ([1, 2, 3], "i32", fake)
    with pytest.raises(ArgumentTypeError):
        podium.asarray(first, "fp32")


def test_reading_waits_and_says_what_failed(driver: FakeDriver) -> None:
    """LIF-08: reading an array synchronises, and raises what the launches before did wrong."""
    made = podium.asarray([1])
    for read in (made.tobytes, made.numpy, made.tolist, made.__dlpack__, lambda: pickle.dumps(made)):
        driver.sync_status = 700
        with pytest.raises(LaunchError, match="FAKE_ERROR_700"):
            read()
        read()


# ---- As arguments ----


def test_arrays_are_arguments(driver: FakeDriver, level: str) -> None:
    """podium's arrays are passed by their address, on their device, and only where that driver reaches."""
    kernel = podium.kernel("__global__ void k(float* x, int n) {}")
    made = podium.asarray([1.0, 2.0], device=1 if driver.name == "fake" else 0)
    for _ in range(2):
        kernel[1, 1](made, 2)
        assert int.from_bytes(driver.launches[-1].parameters[0], "little") == made.ptr
        assert driver.launches[-1].device == made.device
    other = FakeDriver() if driver.host_memory else host_driver_class()()
    with podium.use(other):
        foreign = podium.asarray([1.0])
    with pytest.raises(ArrayDeviceError):
        kernel[1, 1](foreign, 1)
    with podium.debugging(), pytest.raises(ArgumentTypeError, match="its elements are i32"):
        kernel[1, 1](podium.asarray([1]), 1)


# ---- DLPack ----


def test_numpy_reads_host_arrays_through_dlpack() -> None:
    """numpy takes a host array without a copy, of either version of the protocol, and keeps its memory."""
    driver = host_driver_class()()
    made = podium.asarray(numpy.arange(6, dtype="f4").reshape(2, 3), driver=driver)
    view = numpy.from_dlpack(made)
    assert view.__array_interface__["data"][0] == made.ptr and view.tolist() == made.tolist()
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]] and gone() is not None
    del view
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 3)])
def test_capsules_that_nobody_takes(driver: FakeDriver, max_version: tuple[int, int] | None) -> None:
    """A capsule that is dropped gives its array back; its name says which version it is."""
    made = podium.asarray([1.0])
    capsule = made.__dlpack__(max_version=max_version)
    assert ("dltensor_versioned" in repr(capsule)) == (max_version is not None and max_version[0] >= 1)
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is not None
    del capsule
    gc.collect()
    assert gone() is None


def test_what_cannot_be_exported(driver: FakeDriver) -> None:
    """A copy or another device is refused as the protocol says; the own device is taken."""
    made = podium.asarray([1.0])
    device = made.__dlpack_device__()
    assert device == ((1, 0) if driver.host_memory else (12, 0))
    for keywords in ({"copy": True}, {"dl_device": (2, 0)}, {"dl_device": (device[0], 5)}):
        with pytest.raises(BufferError):
            made.__dlpack__(**keywords)
    for keywords in ({"copy": False}, {"dl_device": device}, {"stream": 5}):
        assert made.__dlpack__(**keywords) is not None


def test_without_a_compiler_exports_are_buffer_errors(
    driver: FakeDriver, cold_builds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CC-01: exporting needs a compiler once; without one it is the protocol's error, with the reason."""
    from podium import _dlpack

    made = podium.asarray([1.0])
    _dlpack._module.cache_clear()
    monkeypatch.setenv("CC", "/nonexistent/cc")
    with pytest.raises(BufferError, match="needs a C compiler once.*CC="):
        made.__dlpack__()
    monkeypatch.delenv("CC")
    assert made.__dlpack__() is not None


def test_host_arrays_are_buffers() -> None:
    """Where kernels reach host memory an array is a buffer of its type and shape, without a compiler."""
    driver = host_driver_class()()
    for name, dtype in DTYPES.items():
        made = podium.asarray(numpy.arange(6).reshape(2, 3).astype(dtype), driver=driver)
        view = numpy.asarray(memoryview(made))  # type: ignore[arg-type]
        assert view.shape == (2, 3) and view.__array_interface__["data"][0] == made.ptr
        if name != "fp16":  # ctypes has no such type: its bits come
            assert view.dtype == dtype and view.tolist() == made.tolist()
    view[0, 0] = 7
    assert made.tolist()[0][0] == 7


def test_memory_is_freed_with_the_last_reference(driver: FakeDriver, level: str) -> None:
    """LIF-04: memory goes when the array goes, and not before the launch that it was given to was issued."""
    freed: list[int] = []
    original = type(driver).allocate

    def allocate(self: Any, *args: Any) -> Any:
        buffer = original(self, *args)
        weakref.finalize(buffer, freed.append, 1)
        return buffer

    type(driver).allocate = allocate  # type: ignore[method-assign]
    try:
        made = podium.asarray([1.0])
        kernel = podium.kernel("__global__ void k(float* x) {}")
        kernel[1, 1](made)
        gc.collect()
        assert freed == []
        del made
        gc.collect()
        assert freed == [1]
    finally:
        type(driver).allocate = original  # type: ignore[method-assign]


# ---- In the order of a stream ----


@pytest.fixture
def calls(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int | None]]:
    """What is asked of the driver: "allocate", "copy" and "wait", each with the device and the stream."""
    made: list[tuple[str, int, int | None]] = []
    for name, method in (("allocate", "allocate"), ("copy", "copy"), ("wait", "synchronize")):
        original = getattr(FakeDriver, method)

        def noting(self: Any, *args: Any, name: str = name, original: Any = original) -> Any:
            made.append((name, args[-2], args[-1]))
            return original(self, *args)

        monkeypatch.setattr(FakeDriver, method, noting)
    return made


def test_an_array_in_the_order_of_a_stream(calls: list[tuple[str, int, int | None]]) -> None:
    """Memory is taken and filled in the given stream, on its device, and nothing else is waited for."""
    stream = podium.Stream(1)
    made = podium.empty(4, stream=stream)
    assert calls == [("allocate", 1, stream.handle)] and made.device == 1
    calls.clear()
    made = podium.asarray([1.0, 2.0], stream=stream)
    assert calls == [("allocate", 1, stream.handle), ("copy", 1, stream.handle)]
    calls.clear()
    again = podium.asarray(made, stream=stream)
    assert calls == [("allocate", 1, stream.handle), ("copy", 1, stream.handle)]
    assert again.tolist() == [1.0, 2.0] and again.dtype == "fp32"
    calls.clear()
    assert podium.empty(4, stream=77, device=1).ptr and calls == [("allocate", 1, 77)]


def test_a_stream_outlives_the_memory_in_it(fake: FakeDriver) -> None:
    """The stream's handle is given back after the memory that is freed in it, also where a launch keeps only that."""
    order: list[str] = []
    stream = podium.Stream()
    made = podium.empty(4, stream=stream)
    weakref.finalize(stream, order.append, "stream")
    weakref.finalize(made._buffer._buffer, order.append, "memory")  # type: ignore[attr-defined]
    del stream
    gc.collect()
    assert order == []
    kept = made._podium_location().owner
    del made
    gc.collect()
    assert order == [] and kept is not None
    del kept
    gc.collect()
    assert order == ["memory", "stream"]


def test_copies_between_devices(fake: FakeDriver, calls: list[tuple[str, int, int | None]], monkeypatch: Any) -> None:
    """Between devices that do not reach each other a copy goes through the host: the driver is never given both at once.

    The fake driver refuses what its device does not reach. With access it is one copy, and of pinned memory always.
    """
    monkeypatch.setattr(_memory, "_STAGED", 8)
    stream = podium.Stream(1)
    values = [1, 2, 3, 4, 5]
    first, pinned = podium.asarray(values, device=0), podium.empty(5, "i32", pinned=True)
    pinned.copy_from(values)
    staged = [("copy", 0, 7000), ("copy", 1, 7001)] * 3
    calls.clear()
    second = podium.asarray(first, device=1)
    assert second.tolist() == values and [each for each in calls if each[0] == "copy"][:-1] == staged
    calls.clear()
    in_stream = podium.asarray(first, stream=stream)
    staged = [("copy", 0, 7000), ("copy", 1, stream.handle)] * 3
    assert calls == [("allocate", 1, stream.handle), ("wait", 1, stream.handle), *staged]
    assert in_stream.tolist() == values
    first.copy_from([0] * 5)
    first.copy_from(second)
    assert first.tolist() == values
    calls.clear()
    second.copy_from(pinned)
    assert [each for each in calls if each[0] == "copy"] == [("copy", 1, 7001)]
    with pytest.raises(LaunchError, match="memory of device 0, which is not reached"):
        fake.copy(second.ptr, first.ptr, 4, 1, 7001)
    fake.peers = True
    calls.clear()
    assert podium.asarray(first, device=1).tolist() == values
    assert [each[:2] for each in calls if each[0] == "copy"] == [("copy", 1)] * 2


def test_streams_that_memory_cannot_be_in(fake: FakeDriver) -> None:
    """Pinned memory is in no stream's order, and a stream of another backend is refused."""
    with pytest.raises(TypeError, match="pinned memory is not in the order of a stream"):
        podium.empty(4, pinned=True, stream=podium.Stream())
    other = podium.Stream(driver=fake)
    for make in (lambda: podium.empty(4, stream=other), lambda: podium.asarray([1], stream=other)):
        with podium.use(host_driver_class()()), pytest.raises(ArgumentValueError, match="is of another backend than"):
            make()


def test_a_device_and_a_stream_of_another_one(calls: list[tuple[str, int, int | None]]) -> None:
    """A podium stream tells the device; a device that is another one is refused where both are taken (CTX-06)."""
    stream = podium.Stream(1)
    podium.synchronize(stream=stream)
    assert calls == [("wait", 1, stream.handle)]
    assert podium.empty(3, stream=stream).device == podium.asarray([1], stream=stream, device=1).device == 1

    def capture() -> None:
        with podium.capture(stream=stream, device=0):
            raise AssertionError("the capture began")

    for take in (
        lambda: podium.empty(3, stream=stream, device=0),
        lambda: podium.asarray([1], stream=stream, device=0),
        lambda: podium.synchronize(0, stream),
        capture,
    ):
        with pytest.raises(ArgumentValueError, match="on fake device 1> is of device 1, and not of device 0. Take"):
            take()


def test_memory_in_a_stream_that_is_captured(
    fake: FakeDriver, calls: list[tuple[str, int, int | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is made for a stream that is captured is for any stream: no graph is to allocate it."""
    monkeypatch.setattr(FakeDriver, "capturing", lambda self, device, stream: stream == 5)
    made = [podium.empty(4, stream=5), podium.empty(4, stream=6)]
    assert calls == [("allocate", 0, None), ("allocate", 0, 6)] and len(made) == 2


# ---- Element types ----


def test_element_types_by_every_name() -> None:
    """podium's, numpy's and short names, dtypes and Python's own types mean one element type each."""
    for name, numpy_name in DTYPES.items():
        assert element_type(name) is element_type(numpy_name) is element_type(numpy.dtype(numpy_name))
        assert element_type(getattr(numpy, numpy_name)) is element_type(name)
        assert element_type(name).size == numpy.dtype(numpy_name).itemsize
    assert element_type("f32").spelling == "fp32" and element_type("half").spelling == "fp16"
    assert (
        element_type(float).spelling == "fp64"
        and element_type(int).spelling == "i64"
        and element_type(bool).spelling == "i1"
    )
    for bad in ("f33", None, 5, "complex64", numpy.dtype("c8"), object):
        with pytest.raises(TypeError, match="is not an element type; they are i1, i8"):
            element_type(bad)
