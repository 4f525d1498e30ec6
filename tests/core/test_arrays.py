"""Arrays of every protocol become addresses, or errors that say where the array is; at both levels alike."""

from __future__ import annotations

import array
import ctypes
import gc
import sys
import weakref
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy
import pytest
from fake_launching import ExchangeArray, Failure, Pair, bytes_of, exchange, exchange_type, host_driver_class
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import podium
from podium import _arrays, _exchange, _state
from podium._arrays import is_address, locate
from podium.errors import ArgumentTypeError, ArgumentValueError, ArrayDeviceError
from podium.testing import FakeArray, FakeDriver


@pytest.fixture(scope="module")
def device() -> Pair:
    """One pointer, on a device."""
    return Pair({"x": "*fp32"}, contiguous=True)


@pytest.fixture(scope="module")
def host() -> Pair:
    """One pointer, where kernels reach host memory."""
    return Pair({"x": "*fp32"}, host_driver_class()(), contiguous=True)


@pytest.fixture(scope="module")
def strided_host() -> Pair:
    return Pair({"x": "*fp32"}, host_driver_class()(), contiguous=False)


@pytest.fixture(scope="module")
def const_host() -> Pair:
    return Pair({"x": "*kfp32"}, host_driver_class()(), contiguous=True)


def address_of(outcome: Any) -> int:
    (data,) = bytes_of(outcome)
    return int.from_bytes(data, sys.byteorder)


# ---- Addresses ----


@pytest.mark.parametrize("value", [0, 1, 4096, 2**63, 2**64 - 1])
def test_integers_are_addresses(device: Pair, host: Pair, value: int) -> None:
    """An int is an address of 64 bits, also in the disguise of numpy or ctypes."""
    assert address_of(device.same(value)) == value
    assert address_of(host.same(value)) == value
    assert address_of(device.same(numpy.uint64(value))) == value
    for both in (device, host):
        assert address_of(both.same(ctypes.c_void_p(value))) == value


def test_none_is_the_null_pointer(device: Pair, host: Pair) -> None:
    """ARG-08: None is a null pointer in every path, before and after an array."""
    for both in (device, host):
        assert address_of(both.same(None)) == 0
    assert address_of(device.same(FakeArray(64))) == 64
    assert address_of(device.same(None)) == 0


@pytest.mark.parametrize("value", [-1, 2**64, -(2**63), 10**30, numpy.int64(-1)])
def test_addresses_have_64_bits(device: Pair, host: Pair, value: int) -> None:
    """A negative or longer integer is no address."""
    for both in (device, host):
        failure = both.same(value)
        assert failure.kind is ArgumentValueError and "64 bits" in failure.message


@pytest.mark.parametrize(
    "value",
    [True, False, numpy.True_, 1.0, numpy.float32(1), "x", [1.0], (1,), {}, object(), int, SimpleNamespace(), 1j, ...],
    ids=lambda value: type(value).__name__ if type(value) is object else repr(value),  # addresses differ in processes
)
def test_what_is_no_array(device: Pair, host: Pair, value: object) -> None:
    """Scalars, texts and containers are no pointers; a sequence is told how to become an array."""
    failure = device.same(value)
    assert failure.kind is ArgumentTypeError
    assert "an array, None or an integer address is needed" in failure.message
    if isinstance(value, (list, tuple)):
        assert "podium.asarray" in failure.message
    if not isinstance(value, numpy.generic):  # those have a buffer, which a host kernel could read
        assert host.same(value).kind is ArgumentTypeError


@pytest.mark.parametrize("kind", [numpy.uint64, numpy.int64, numpy.uintp, numpy.intp, numpy.int32, numpy.uint8])
def test_integers_of_numpy_are_addresses_on_the_host(host: Pair, const_host: Pair, kind: Any) -> None:
    """ARG-07: numpy's integers have buffers of their own, and yet are addresses where kernels reach host memory."""
    for both in (host, const_host):
        assert address_of(both.same(kind(64))) == 64
        assert address_of(both.same(kind(0))) == 0
        assert address_of(both.same(numpy.zeros((), kind))) > 64  # an array without axes is an array


# ---- DLPack ----


def test_dlpack_arrays(device: Pair) -> None:
    """An array that speaks DLPack gives address and device."""
    assert address_of(device.same(FakeArray(0xABC0))) == 0xABC0
    device.same(FakeArray(64, 1))
    assert _state.recent_launches()[-1].device == 1


def test_dlpack_is_asked_for_the_stream_of_the_launch() -> None:
    """CTX-09: a producer is told the launch's stream, or the driver's current one on its own device, as DLPack counts."""
    asked: list[Any] = []

    class Asking(FakeArray):
        def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
            asked.append(stream)
            return super().__dlpack__(stream=stream, max_version=max_version)

    both = Pair({"x": "*fp32"})
    both.same(Asking(64, 0), stream=7)
    both.same(Asking(64, 1), stream=8)
    assert asked == [7, 7, 8, 8]
    packer = both.launchers["interpreted"].packer
    for device in (0, 1):
        packer.pack((Asking(64, device),))
    assert asked[4:] == [7000, 7001] == [packer.export_stream(device) for device in (0, 1)]


def test_producers_from_before_dlpack_1() -> None:
    """A __dlpack__ without max_version, giving the old capsule, serves as well."""

    class Old(FakeArray):
        def __dlpack__(self, stream: Any = None) -> Any:  # type: ignore[override]
            return super().__dlpack__(stream=stream)

    assert address_of(Pair({"x": "*fp32"}).same(Old(0x440))) == 0x440


def raising(error: BaseException) -> Any:
    def method(self: object, *args: object, **keywords: object) -> Any:
        raise error

    return method


@pytest.mark.parametrize(
    "protocol",
    [
        {"__dlpack__": lambda self, **keywords: "nonsense", "__dlpack_device__": lambda self: (12, 0)},
        {"__dlpack__": lambda self, **keywords: None, "__dlpack_device__": lambda self: (12, 0)},
        {"__dlpack__": raising(BufferError("no")), "__dlpack_device__": lambda self: (12, 0)},
        {"__dlpack__": lambda self, **keywords: None},
        {"__dlpack__": lambda self, **keywords: None, "__dlpack_device__": lambda self: "x"},
        {"__dlpack__": lambda self, **keywords: None, "__dlpack_device__": lambda self: None},
        {"__dlpack__": lambda self, **keywords: None, "__dlpack_device__": lambda self: (None, 0)},
        {"__dlpack__": None, "__dlpack_device__": None},
        {"__cuda_array_interface__": 5},
        {"__cuda_array_interface__": {}},
        {"__cuda_array_interface__": {"data": 5, "shape": (1,), "typestr": "<f4"}},
        {"__cuda_array_interface__": {"data": (5, False), "shape": (1,), "typestr": "x"}},
        {"__cuda_array_interface__": {"data": (5, False), "shape": 1, "typestr": "<f4", "strides": (4,)}},
        {"__cuda_array_interface__": {"data": (-5, False), "shape": (1,), "typestr": "<f4"}},
        {"__cuda_array_interface__": {"data": (1 << 64, False), "shape": (1,), "typestr": "<f4"}},
        {"__cuda_array_interface__": {"data": (5, False), "shape": (1,), "typestr": 4}},
        {"__cuda_array_interface__": {"data": (5, False), "shape": (1,), "typestr": "<f4", "mask": object()}},
        {"data_ptr": 5},
        {"data_ptr": lambda self: "x"},
        {"data_ptr": lambda self: -1},
        {"data_ptr": lambda self: 1 << 64},
        {"data_ptr": lambda self: None},
        {"__dlpack_c_exchange_api__": 5},
        {"__dlpack_c_exchange_api__": "capsule"},
    ],
)
def test_protocols_that_return_nonsense(device: Pair, host: Pair, protocol: dict[str, Any]) -> None:
    """An array protocol that does not say what it should is a type error that names the argument, at both levels."""
    value = type("Nonsense", (), protocol)()
    for both in (device, host):
        failure = both.same(value)
        assert isinstance(failure, Failure)
        assert failure.kind in (ArgumentTypeError, ArrayDeviceError)
        assert "argument 0 ('x')" in failure.message


@pytest.mark.parametrize("name", ["__dlpack__", "__dlpack_device__", "data_ptr", "__index__"])
@pytest.mark.parametrize("error", [ZeroDivisionError("own"), RuntimeError("own"), KeyError("own")])
def test_errors_of_array_libraries_reach_the_caller(device: Pair, name: str, error: Exception) -> None:
    """LIF-10: what a protocol method of the array's library raises is not hidden."""
    protocol: dict[str, Any] = {name: raising(error)}
    if name == "__dlpack__":
        protocol["__dlpack_device__"] = lambda self: (12, 0)
    if name == "__dlpack_device__":
        protocol["__dlpack__"] = lambda self, **keywords: None
    failure = device.same(type("Hostile", (), protocol)())
    assert failure.kind is type(error) and "own" in failure.message


def test_a_property_that_raises_reaches_the_caller(device: Pair) -> None:
    """LIF-10: the same for a __cuda_array_interface__ that is computed."""
    failure = device.same(type("Hostile", (), {"__cuda_array_interface__": property(raising(RuntimeError("own")))})())
    assert failure.kind is RuntimeError


# ---- Where an array is ----


def test_host_memory_for_a_device_kernel(device: Pair) -> None:
    """ARG-11: host memory, whatever holds it, is an error of the kind "host"; nothing is exported for it."""
    readonly = numpy.ones(3, "f4")
    readonly.flags.writeable = False
    for value in (numpy.ones(3, "f4"), readonly, numpy.ones(3, object), numpy.ones(3, "f4")[::2], numpy.ones((), "f4")):
        failure = device.same(value)
        assert failure.kind is ArrayDeviceError
        assert dict(failure.attributes)["kind"] == "'host'"
        assert "it is in host memory; copy it to the device first" in failure.message
    # the buffer protocol is for kernels that reach host memory
    for value in (bytes(4), bytearray(4), memoryview(bytes(4)), array.array("f", [1.0]), (ctypes.c_float * 2)()):
        assert device.same(value).kind is ArgumentTypeError


@pytest.mark.parametrize(
    ("device_type", "words"), [(2, "cuda memory"), (10, "rocm memory"), (8, "metal memory"), (99, "device type 99")]
)
def test_memory_of_another_kind_of_device(device: Pair, device_type: int, words: str) -> None:
    """ARG-11: memory of a device that the backend does not reach is an error of the kind "device"."""

    class Foreign(FakeArray):
        def __dlpack_device__(self) -> tuple[int, int]:
            return device_type, 0

    for value in (Foreign(64), exchange_type()(device_type=device_type)):
        failure = device.same(value)
        assert failure.kind is ArrayDeviceError
        assert dict(failure.attributes)["kind"] == "'device'"
        assert words in failure.message and "'fake'" in failure.message


def test_data_ptr_believes_what_dlpack_says_of_the_device(device: Pair) -> None:
    """ARG-11: an array that DLPack cannot export (it needs a gradient, say) still is where it says that it is."""

    class Refusing:
        def __init__(self, device_type: int) -> None:
            self.device_type = device_type

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.device_type, 1

        def __dlpack__(self, **keywords: Any) -> Any:
            raise BufferError("it needs a gradient")

        def data_ptr(self) -> int:
            return 0x500

    assert address_of(device.same(Refusing(12))) == 0x500
    assert _state.recent_launches()[-1].device == 1
    assert device.same(Refusing(1)).kind is ArrayDeviceError


def test_data_ptr_alone(device: Pair) -> None:
    """An object with data_ptr() and nothing else is taken at its word."""
    assert address_of(device.same(type("Tensor", (), {"data_ptr": lambda self: 0x600})())) == 0x600
    assert device.same(type("Tensor", (), {"data_ptr": lambda self: 0x600})).kind is ArgumentTypeError


# ---- Layout ----


def test_device_arrays_must_be_contiguous(device: Pair) -> None:
    """A strided array is refused for a kernel that was not declared to take one, and passes for one that was."""
    strided = exchange_type()(shape=(4, 4), strides=(1, 4))
    failure = device.same(strided)
    assert failure.kind is ArgumentValueError and "contiguous=False" in failure.message
    assert address_of(Pair({"x": "*fp32"}, contiguous=False).same(strided)) == 4096


LAYOUTS = {
    "plain": numpy.zeros((3, 4), "f4"),
    "scalar": numpy.zeros((), "f4"),
    "empty": numpy.zeros((0, 5), "f4"),
    "empty, turned": numpy.zeros((0, 5), "f4").T,
    "fortran": numpy.zeros((3, 4), "f4", order="F"),
    "fortran, one column": numpy.zeros((3, 1), "f4", order="F"),
    "every second": numpy.zeros((3, 8), "f4")[:, ::2],
    "backwards": numpy.zeros(5, "f4")[::-1],
    "backwards, one": numpy.zeros(5, "f4")[2:3][::-1],
    "broadcast": numpy.broadcast_to(numpy.zeros(1, "f4"), (4,)),
    "slice": numpy.zeros((5, 4), "f4")[1:3],
    "column": numpy.zeros((5, 4), "f4")[:, 1],
    "unit axes": numpy.zeros((1, 3, 1), "f4")[::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_host_layouts(host: Pair, strided_host: Pair, const_host: Pair, layout: str) -> None:
    """On the host the address is that of the first element; without strides only C order passes, as numpy defines it."""
    value = LAYOUTS[layout]
    address = value.__array_interface__["data"][0]
    both = host if value.flags.writeable else const_host
    outcome = both.same(value)
    if value.flags.c_contiguous:
        assert address_of(outcome) == address
    else:
        assert outcome.kind is ArgumentValueError and "not C-contiguous" in outcome.message
    if value.flags.writeable:
        assert address_of(strided_host.same(value)) == address


def test_read_only_memory_needs_a_const_parameter(host: Pair, const_host: Pair) -> None:
    """Memory that must not be written is refused unless the kernel declares that it only reads."""
    frozen = numpy.zeros(3, "f4")
    frozen.flags.writeable = False
    for value in (frozen, bytes(12), memoryview(bytes(12))):
        failure = host.same(value)
        assert failure.kind is ArgumentValueError and "read-only" in failure.message and "const" in failure.message
        assert address_of(const_host.same(value)) > 0


def test_every_buffer_is_an_array_on_the_host(host: Pair) -> None:
    """bytearray, array.array, memoryview, ctypes and numpy pass their address where kernels reach host memory."""
    doubles = array.array("d", [1.0])
    assert address_of(host.same(doubles)) == doubles.buffer_info()[0]
    block = (ctypes.c_float * 4)()
    assert address_of(host.same(block)) == ctypes.addressof(block)
    assert address_of(host.same(memoryview(block))) == ctypes.addressof(block)
    assert address_of(host.same(bytearray(b"1234"))) > 0
    record = numpy.zeros(3, [("O", "f4"), ("P", "i4")])  # names like the letters of forbidden formats
    assert address_of(host.same(record)) == record.__array_interface__["data"][0]


def test_arrays_of_python_objects_are_refused(host: Pair, device: Pair) -> None:
    """References to Python objects are nothing that a kernel may see."""
    for value in (numpy.zeros(3, object), numpy.zeros(3, [("x", "f4"), ("y", object)]), (ctypes.py_object * 2)(1, 2)):
        failure = host.same(value)
        assert isinstance(failure, Failure) and failure.kind is ArgumentTypeError


def test_masked_arrays_are_refused(host: Pair) -> None:
    """An array in which an element is masked is refused, at both levels; one without masked elements is an array."""
    values = numpy.arange(4, dtype=numpy.float32)
    record = numpy.ma.array([(1, 2)], mask=[(False, True)], dtype=[("a", "f4"), ("b", "f4")])
    for _ in range(2):
        for masked in (numpy.ma.array(values, mask=[0, 0, 1, 0]), numpy.ma.masked_greater(values, 2), record):
            failure = host.same(masked)
            assert isinstance(failure, Failure) and failure.kind is ArgumentValueError
            assert "masked" in failure.message and "array.filled" in failure.message
            with pytest.raises(ArgumentValueError, match="masked"):
                podium.asarray(masked)
        for clear in (numpy.ma.array(values), numpy.ma.array(values, mask=[0, 0, 0, 0])):
            assert address_of(host.same(clear)) == clear.data.__array_interface__["data"][0]


def test_a_buffer_is_held_during_the_launch_only(host: Pair) -> None:
    """Memory cannot be resized while it is being launched with, and is let go of afterwards."""
    value = bytearray(16)
    sizes: list[str] = []

    def resize(event: object) -> None:
        try:
            value.extend(b"more")
        except BufferError:
            sizes.append("held")

    podium.hooks.enter.add(resize)
    host.same(value)
    podium.hooks.enter.clear()
    assert sizes == ["held", "held"]
    value.extend(b"more")


def swapped(dtype: str) -> str:
    """Spell a type with the bytes in the order that this machine does not have."""
    return (">" if sys.byteorder == "little" else "<") + dtype


@pytest.mark.parametrize("dtype", ["f4", "i2", "u8", "c8", "U1", "f4,i2"])
@pytest.mark.parametrize("pointee", ["fp32", "void"])
def test_swapped_bytes_are_refused(dtype: str, pointee: str) -> None:
    """ARG-13: elements whose bytes are in the other order are refused always, and the cure is told and works."""
    both = Pair({"x": f"*{pointee}"}, host_driver_class()(), contiguous=True)
    value = numpy.zeros(3, ",".join(map(swapped, dtype.split(","))))
    failure = both.same(value)
    assert isinstance(failure, Failure) and failure.kind is ArgumentValueError
    assert "in the other order" in failure.message and "array.astype(dtype.newbyteorder('='))" in failure.message
    cured = value.astype(value.dtype.newbyteorder("="))
    assert address_of(both.same(cured)) == cured.__array_interface__["data"][0]


def test_bytes_have_no_order(host: Pair) -> None:
    """Elements of one byte are the same in either order, and a letter in a field's name is no mark."""
    for value in (numpy.zeros(3, swapped("u1")), numpy.zeros(3, swapped("i1")), numpy.zeros(3, [("a>b!<", "f4")])):
        assert address_of(host.same(value)) == value.__array_interface__["data"][0]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes cannot have __buffer__ before Python 3.12")
def test_a_buffer_that_is_made_anew_lives_as_long_as_the_launch(host: Pair) -> None:
    """LIF-01: memory that __buffer__ hands out for this one call is what the kernel gets, and is alive while it runs."""
    handed_out: list[tuple[int, weakref.ref[Any]]] = []

    class Fresh:
        def __buffer__(self, flags: int) -> memoryview:
            memory = numpy.arange(1000, dtype="f4")
            handed_out.append((memory.__array_interface__["data"][0], weakref.ref(memory)))
            return memoryview(memory)

    alive: list[list[int]] = []
    passed: list[int] = []

    def look(event: podium.LaunchEvent) -> None:
        gc.collect()
        alive.append([address for address, memory in handed_out if memory() is not None])
        passed.append(event.arguments[0].address or 0)

    podium.hooks.enter.add(look)
    for launcher in host.launchers.values():
        handed_out.clear()
        launcher(1, 1, 1, 0, host.function, Fresh())
        gc.collect()
        assert all(memory() is None for _, memory in handed_out)
    podium.hooks.enter.clear()
    assert len(passed) == 2
    assert all(address in addresses for address, addresses in zip(passed, alive))


# ---- The exchange table ----


def test_the_exchange_table_gives_address_and_device(device: Pair) -> None:
    """The DLPack C exchange table of a type is used at both levels, with the byte offset added."""
    Library = exchange_type()
    assert address_of(device.same(Library(0x1000, 1, offset=24))) == 0x1018
    assert _state.recent_launches()[-1].device == 1
    before = exchange().count()
    device.same(Library())
    assert exchange().count() == before + 2  # once a launch


def test_the_exchange_table_of_another_version_is_left_alone(device: Pair) -> None:
    """A table of a version that podium does not know, or without the entry, is no table."""
    for table in (2, 3):
        assert device.same(exchange_type(table)()).kind is ArgumentTypeError


def test_a_library_that_refuses(device: Pair) -> None:
    """An exchange that fails raises the library's own error; one that fails silently is no array."""
    failure = device.same(exchange_type()(strides=(1,), outcome=1))
    assert failure.kind is TypeError and "the library refuses" in failure.message
    assert device.same(exchange_type()(strides=(1,), outcome=2)).kind is ArgumentTypeError


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    axes=st.lists(st.tuples(st.integers(0, 3), st.integers(-4, 12)), max_size=4),
    device_type=st.sampled_from([12, 12, 12, 1, 2]),
    address=st.integers(0, 2**62),
    offset=st.integers(0, 64),
)
def test_any_tensor_fares_alike(
    device: Pair, axes: list[tuple[int, int]], device_type: int, address: int, offset: int
) -> None:
    """Random shapes, strides and devices in an exchange table: the same address or error at both levels."""
    shape, strides = tuple(each[0] for each in axes), tuple(each[1] for each in axes)
    Library = _library()
    outcome = device.same(Library(address, device_type=device_type, shape=shape, strides=strides, offset=offset))
    if device_type == 12:
        probe = numpy.lib.stride_tricks.as_strided(numpy.zeros(200, "i1")[100:], shape, strides)
        assert isinstance(outcome, Failure) != probe.flags.c_contiguous


_libraries: list[type[ExchangeArray]] = []


def _library() -> type[ExchangeArray]:
    if not _libraries:
        _libraries.append(exchange_type())
    return _libraries[0]


def test_many_array_types_go_round(device: Pair) -> None:
    """The C code knows the last types only; more of them than it has room for stay correct and do not pile up.

    Beside them it keeps the one that was seen last with an exchange table.
    """
    types = [exchange_type() if index % 2 else type("Plain", (FakeArray,), {}) for index in range(50)]
    for index, kind in enumerate(types * 2):
        assert address_of(device.same(kind(64 * index))) == 64 * index
    gone = [weakref.ref(kind) for kind in types]
    types.clear()
    del kind
    for _ in range(20):
        device.same(type("Other", (FakeArray,), {})(64))
    gc.collect()
    assert sum(each() is not None for each in gone) <= 1


def test_torch_tensors() -> None:
    """A tensor of PyTorch passes through its exchange table; one that has no memory raises PyTorch's own error."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this PyTorch has no DLPack C exchange table")
    host = Pair({"x": "*fp32"}, host_driver_class()(), contiguous=True)
    tensor = torch.arange(12, dtype=torch.float32)
    assert address_of(host.same(tensor)) == tensor.data_ptr()
    assert address_of(host.same(tensor[3:])) == tensor.data_ptr() + 12
    assert host.same(tensor.reshape(3, 4).T).kind is ArgumentValueError
    assert address_of(host.same(torch.nn.Parameter(tensor))) == tensor.data_ptr()
    device = Pair({"x": "*fp32"})
    failure = device.same(tensor)
    assert failure.kind is ArrayDeviceError and dict(failure.attributes)["kind"] == "'host'"
    assert device.same(torch.nn.Parameter(tensor)).kind is ArrayDeviceError
    for value in (torch.empty(3, device="meta"), torch.eye(3).to_sparse()):
        interpreted, generated = device.outcomes(value)
        assert isinstance(interpreted, Failure) and isinstance(generated, Failure)
        assert interpreted.kind is generated.kind
        # the lines after the first are a native backtrace
        assert interpreted.message.splitlines()[0] == generated.message.splitlines()[0]


# ---- __cuda_array_interface__ ----


def interface(**changes: Any) -> Any:
    fields = {"data": (0x700, False), "shape": (2, 3), "typestr": "<f4", "version": 3, **changes}
    return type("Array", (), {"__cuda_array_interface__": fields})()


def located(value: object) -> Any:
    return locate(value, False, {2, 12})


def test_the_cuda_array_interface() -> None:
    """CTX-10: address, layout, stream and read-only flag are those that the interface tells."""
    found = located(interface())
    assert (found.address, found.device_type, found.device, found.element) == (0x700, 2, -1, "fp32")
    assert found.contiguous and not found.readonly and found.stream is None
    assert located(interface(strides=(12, 4))).contiguous
    assert not located(interface(strides=(4, 8))).contiguous
    assert located(interface(data=(0x700, True))).readonly
    assert located(interface(stream=1)).stream == 1
    assert located(interface(data=(0, False), shape=(0,))).address == 0
    assert located(interface(data=(None, False), shape=(0,))).address == 0


@pytest.mark.parametrize(
    ("typestr", "element"),
    [
        ("<f2", "fp16"),
        ("<f8", "fp64"),
        ("|b1", "i1"),
        ("|i1", "i8"),
        ("<u8", "u64"),
        ("<c8", "c64"),
        (">f4", None),
        ("|V2", None),
        ("|u1", "u8"),
    ],
)
def test_element_types_of_the_cuda_array_interface(typestr: str, element: str | None) -> None:
    """The element type is known for numbers in the order of this machine."""
    assert located(interface(typestr=typestr)).element == element


def test_swapped_bytes_in_the_cuda_array_interface() -> None:
    """ARG-13: the interface tells the order of the bytes; the other one is refused, and single bytes have none."""

    class Reaching(FakeDriver):
        dlpack_devices = frozenset({2})

    both = Pair({"x": "*fp32"}, Reaching())
    failure = both.same(interface(typestr=swapped("f4")))
    assert isinstance(failure, Failure) and failure.kind is ArgumentValueError and "other order" in failure.message
    for fine in ("<f4" if sys.byteorder == "little" else ">f4", swapped("u1"), "|u1"):
        assert address_of(both.same(interface(typestr=fine))) == 0x700


def test_the_cuda_array_interface_where_cuda_is_not_reached(device: Pair) -> None:
    """ARG-11: memory of CUDA is another device's for a backend that is not CUDA's."""
    failure = device.same(interface())
    assert failure.kind is ArrayDeviceError and "cuda memory" in failure.message


# ---- Element types, when debugging ----


@pytest.mark.parametrize(
    ("dtype", "spelling"),
    [
        ("f4", "fp32"),
        ("f8", "fp64"),
        ("f2", "fp16"),
        ("i4", "i32"),
        ("i8", "i64"),
        ("u1", "u8"),
        ("?", "i1"),
        ("c8", "c64"),
    ],
)
def test_debugging_checks_element_types(dtype: str, spelling: str) -> None:
    """ARG-13: with debugging on, an array of other elements than the kernel declares is an error; void takes all."""
    driver = host_driver_class()()
    for declared in ("fp32", "fp64", "fp16", "i32", "i64", "u8", "i1", "void"):
        both = Pair({"x": f"*{declared}"}, driver)
        value = numpy.zeros(3, dtype)
        assert address_of(both.same(value)) > 0
        with podium.debugging():
            outcome = both.same(value)
            if declared in (spelling, "void"):
                assert address_of(outcome) > 0
            else:
                assert outcome.kind is ArgumentTypeError
                assert f"its elements are {spelling}" in outcome.message


@pytest.mark.parametrize("dtype", ["U1", "longdouble", "S3", "f4,i4"])
def test_debugging_refuses_elements_without_a_name(dtype: str) -> None:
    """ARG-13: elements that are none of podium's types are not those that a kernel declares; void takes them."""
    driver, value = host_driver_class()(), numpy.zeros(3, dtype)
    both = Pair({"x": "*fp32"}, driver)
    assert address_of(both.same(value)) == value.__array_interface__["data"][0]
    with podium.debugging():
        failure = both.same(value)
        assert isinstance(failure, Failure) and failure.kind is ArgumentTypeError
        assert "its elements are of a type that podium has no name for" in failure.message
        assert address_of(Pair({"x": "*void"}, driver).same(value)) == value.__array_interface__["data"][0]


def test_debugging_knows_elements_of_dlpack() -> None:
    """ARG-13: element types of DLPack arrays are checked; vectors and unknown codes are let pass."""
    Library = exchange_type()
    both = Pair({"x": "*bf16"})
    with podium.debugging():
        assert address_of(both.same(Library(64, dtype=(4, 16)))) == 64
        assert both.same(Library(64, dtype=(2, 16))).kind is ArgumentTypeError
        assert address_of(both.same(Library(64, dtype=(4, 16), lanes=2))) == 64
        assert address_of(both.same(Library(64, dtype=(77, 16)))) == 64


def test_bfloat16_arrays_of_ml_dtypes_have_no_buffer_but_an_address(host: Pair) -> None:
    """An array whose type the buffer protocol cannot say is refused with words, or passed; never a crash."""
    outcome = host.same(numpy.zeros(4, ml_dtypes.bfloat16))
    assert isinstance(outcome, (Failure, list))


def test_addresses_and_arrays_are_told_apart() -> None:
    """An object with an array protocol is an array although it could be an index, as arrays of one element can."""
    assert is_address(5) and is_address(numpy.int32(5)) and is_address(ctypes.c_void_p(5))
    assert not is_address(True) and not is_address(numpy.ones(1, "i4")) and not is_address(5.0)
    for protocol in ("__dlpack__", "__cuda_array_interface__", "data_ptr"):
        assert not is_address(type("Array", (), {"__index__": lambda self: 1, protocol: None})())


def test_the_structures_are_those_of_the_c_header() -> None:
    """The ctypes structures and the C ones have one layout."""
    assert ctypes.sizeof(_exchange.Tensor) == 48
    assert ctypes.sizeof(_arrays.VersionedTensor) == 80
    assert _exchange.Tensor.byte_offset.offset == 40


def test_the_interface_of_torch_for_rocm(monkeypatch: pytest.MonkeyPatch) -> None:
    """CTX-10: a build of torch for ROCm has the interface too, and calls its devices "cuda"; its version tells them apart."""
    tensor = type(interface())

    def torch(hip: str | None) -> SimpleNamespace:
        return SimpleNamespace(Tensor=tensor, version=SimpleNamespace(hip=hip))

    monkeypatch.setitem(sys.modules, "torch", torch(None))
    assert located(tensor()).device_type == 2
    monkeypatch.setitem(sys.modules, "torch", torch("7.2.53211"))
    assert located(tensor()).device_type == 10
    assert located(interface()).device_type == 2  # of another library in the same process


def test_arrays_of_another_vendor_are_not_taken_for_the_hosts() -> None:
    """ARG-11: a driver knows nothing of another vendor's memory, and says that it is the host's; the array says more."""

    class Vendor(FakeDriver):
        dlpack_devices = frozenset({10})

        def pointer_device(self, address: int) -> tuple[int, int] | None:
            return (10, 1) if address == 0x900 else (1, 0)

    both = Pair({"x": "*fp32"}, Vendor())
    failure = both.same(interface())
    assert failure.kind is ArrayDeviceError and "cuda memory" in failure.message
    assert address_of(both.same(interface(data=(0x900, False)))) == 0x900  # the driver knows this one
    assert address_of(both.same(interface(data=(0, False), shape=(0,)))) == 0
    pointer = type("Array", (), {"data_ptr": lambda self: 0x700})()
    assert "host memory" in both.same(pointer).message
