"""Arrays for those without an array library: memory of the active driver, with a shape and an element type.

In memory that the host reaches, which is all memory of some drivers and pinned memory of others, an array also is a
buffer: ``memoryview(array)`` and ``numpy.asarray(array)`` see it. That needs a C type as base in Python 3.10 and 3.11,
and a ctypes array is one.
"""

from __future__ import annotations

import ctypes
import math
import operator
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from podium import _dlpack
from podium._active import driver_config
from podium._arguments import describe
from podium._array_values import Values, check_element, read_values
from podium._arrays import ANYWHERE, CPU, CUDA, HOST_TYPES, ArrayLocation
from podium._element_types import ElementType, element_type
from podium._stream import device_for, handle_on, stream_handle
from podium._synchronize import synchronize
from podium.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from podium._variable import Variable
    from podium.backend import Buffer, Driver

__all__ = ["Array", "array_at", "asarray", "empty"]

_ALIGNMENT = 256
_MOST_AXES = 64  # as numpy has
_STAGED = 16 << 20  # bytes that are in the host at a time, on the way between devices that do not reach each other


class Array:
    """A C-contiguous array in a driver's memory; pass it to kernels as it is.

    `empty` and `asarray` make one in new memory, `Module.variable` gives one in the memory of a variable. Libraries for
    arrays take it by DLPack or, on CUDA, by ``__cuda_array_interface__``, and keep its memory alive.

    `shape` counts elements along each axis, `dtype` is a spelling such as "fp32", `ptr` the address, `nbytes` the size.
    """

    _shape: tuple[int, ...]
    _device: int
    _driver: Driver
    _element: ElementType
    _buffer: Buffer
    _variable: Variable | None = None  # whose memory this is
    _pinned: bool = False
    _podium_place: bytes = (
        b""  # for generated C: the address and DLPack's device type and index, once a launch has asked
    )

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of elements along each axis."""
        return self._shape

    @property
    def dtype(self) -> str:
        """The element type, spelled as in signatures."""
        return self._element.spelling

    @property
    def device(self) -> int:
        """The index of the device that has the memory."""
        return self._device

    @property
    def driver(self) -> Driver:
        """The driver of that device."""
        return self._driver

    @property
    def pinned(self) -> bool:
        """Whether it is host memory that the device reaches, too."""
        return self._pinned

    @property
    def ptr(self) -> int:
        """The address of the first element."""
        return self._buffer.ptr

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes the elements take."""
        return self.size * self._element.size

    def copy_from(self, value: Any, *, stream: Any = None) -> None:
        """Copy values into the array: what `asarray` takes, of the same shape. It is done when the call returns.

        It waits for the launches before; with a stream only for those in it, so that others go on meanwhile. Numbers
        and sequences of them are converted, buffers and arrays must have the same element type. An array of structs,
        which variables can be, also takes what has as many bytes: a ctypes structure, a numpy record, bytes.
        Raises ArgumentTypeError or ArgumentValueError, which name the array, and the variable if it is one's memory.
        """
        handle = handle_on("copy_from", self.driver, self.device, stream)
        values = self._values_of(value, handle)
        self._copy(self.ptr, values, handle)

    def _values_of(self, value: Any, stream: int | None) -> Values:
        if self._variable is not None and self._variable.is_record and not isinstance(value, Array):
            try:
                data = memoryview(value).tobytes("C")
            except (TypeError, BufferError, ValueError):
                data = b""
            if len(data) == self.nbytes:
                return Values.of_bytes(self._element, self.shape, data)
        taker = f"copy_from into {self!r}"
        values = _read(taker, value, self._element, self.driver, stream)
        if values.shape != self.shape:
            raise ArgumentValueError(
                f"{taker}: the values have the shape {values.shape}, and the shapes must be the same",
                argument="value",
                value=str(values.shape),
            )
        check_element(taker, values.element, self._element)
        return values

    def _copy(self, destination: int, values: Values, stream: int | None) -> None:
        """Copy to an address, after everything that is under way or after what is in a stream."""
        if stream is None:
            synchronize(self.device, driver=self.driver)
            stream = self.driver.current_stream(self.device)
        if values.device not in (-1, self.device) and not self.driver.can_access(self.device, values.device):
            self._copy_through_host(destination, values, stream)
        elif values.nbytes:
            self.driver.copy(destination, values.address, values.nbytes, self.device, stream)

    def _copy_through_host(self, destination: int, values: Values, stream: int) -> None:
        """Copy from a device that this one does not reach: no driver is asked for that in one step."""
        synchronize(self.device, stream, driver=self.driver)  # the source is ready when the stream has come here
        theirs = self.driver.current_stream(values.device)
        staged = ctypes.create_string_buffer(min(values.nbytes, _STAGED))
        for start in range(0, values.nbytes, _STAGED):
            size = min(_STAGED, values.nbytes - start)
            self.driver.copy(ctypes.addressof(staged), values.address + start, size, values.device, theirs)
            self.driver.copy(destination + start, ctypes.addressof(staged), size, self.device, stream)

    def _own(self) -> Values:
        device = -1 if self.driver.host_memory or self._pinned else self.device
        return Values(self._element, self.shape, self.ptr, self.nbytes, self, device)

    def tobytes(self, *, stream: Any = None) -> bytes:
        """Return a copy of the memory, after waiting for the launches before; with a stream, for those in it."""
        data = ctypes.create_string_buffer(max(1, self.nbytes))
        self._copy(ctypes.addressof(data), self._own(), handle_on("tobytes", self.driver, self.device, stream))
        return data.raw[: self.nbytes]

    def numpy(self, *, stream: Any = None) -> Any:
        """Return a copy as a numpy array, after waiting for the launches before; with a stream, for those in it.

        Needs numpy. bf16 has no numpy type without ml_dtypes; its bits come as uint16 then.
        """
        import numpy

        name = self._element.numpy
        if name == "bfloat16":
            try:
                import ml_dtypes  # type: ignore[import-not-found, unused-ignore]
            except ImportError:
                name = "uint16"
            else:
                name = ml_dtypes.bfloat16
        copied = numpy.empty(self.shape, name)
        self._copy(copied.ctypes.data, self._own(), handle_on("numpy", self.driver, self.device, stream))
        return copied

    def tolist(self) -> Any:
        """Return the elements as Python numbers, nested in lists like the axes."""
        values: Sequence[Any]
        if self._element.format is None:  # bf16: the upper half of a single
            halves = struct.unpack(f"={self.size}H", self.tobytes())
            values = struct.unpack(f"={self.size}f", struct.pack(f"={self.size}I", *(half << 16 for half in halves)))
        else:
            values = struct.unpack(f"={self.size}{self._element.format}", self.tobytes())
        for axis in range(len(self.shape) - 1, 0, -1):
            length, count = self.shape[axis], math.prod(self.shape[:axis])
            values = [list(values[index * length : (index + 1) * length]) for index in range(count)]
        return list(values) if self.shape else values[0]

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        """Export as DLPack; the consumer keeps the memory alive. Waits for the launches before."""
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("podium arrays are exported where they are and without a copy")
        synchronize(self.device, driver=self.driver)
        return _dlpack.export(self, self.ptr, self.__dlpack_device__(), self._element, self.shape, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.driver.host_memory:
            return CPU, self.device
        if not self._pinned:
            return min(self.driver.dlpack_devices - ANYWHERE), self.device
        return min(self.driver.dlpack_devices & HOST_TYPES, default=CPU), 0

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Export to CuPy, Numba and others, which keep the memory alive. Waits for the launches before."""
        device_type = self.__dlpack_device__()[0]
        if device_type != CUDA or self._element.typestr is None:  # other libraries must not find it then
            raise AttributeError(f"{self!r} has no __cuda_array_interface__")
        synchronize(self.device, driver=self.driver)
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self._element.typestr,
            "data": (self.ptr if self.size else 0, False),
            "strides": None,
            "stream": None,
        }

    def _podium_location(self) -> ArrayLocation:
        address, device_type = self.ptr, self.__dlpack_device__()[0]
        self._podium_place = struct.pack("=Qii", address, device_type, self.device)
        return ArrayLocation(address, device_type, self.device, self.dtype, True, False, self._buffer)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: object) -> Any:
        raise TypeError("podium arrays are memory for kernels; take .numpy() or .tolist() to look at elements")

    def __setitem__(self, index: object, value: object) -> None:
        raise TypeError("podium arrays are memory for kernels; write all elements with .copy_from(values)")

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_bytes, (self.tobytes(), self.shape, self.dtype)

    def __repr__(self) -> str:
        variable = "" if self._variable is None else f" of the variable {self._variable.name}"
        return f"<podium array {self.dtype}{list(self.shape)}{variable} on {self.driver.name} device {self.device}>"


@lru_cache(maxsize=256)
def _host_type(format: str, shape: tuple[int, ...]) -> type:
    """Make the class of host arrays of one type and shape: an `Array` that is also a ctypes array."""
    scalars: dict[str, Any] = {"?": ctypes.c_bool, "f": ctypes.c_float, "d": ctypes.c_double, "e": ctypes.c_uint16}
    scalars |= {"b": ctypes.c_int8, "h": ctypes.c_int16, "i": ctypes.c_int32, "q": ctypes.c_int64}
    scalars |= {"B": ctypes.c_uint8, "H": ctypes.c_uint16, "I": ctypes.c_uint32, "Q": ctypes.c_uint64}
    base = scalars[format]
    for length in reversed(shape or (1,)):  # ctypes has no array without axes; such a buffer has one of length 1
        base = base * length
    return type(base)("Array", (Array, base), {})  # type: ignore[no-any-return]


def empty(
    shape: int | Iterable[int],
    dtype: Any = "fp32",
    *,
    pinned: bool = False,
    stream: Any = None,
    device: int | None = None,
    driver: Driver | str | None = None,
) -> Array:
    """Make an array whose elements are not set, on the active driver's current device.

    With `pinned` it is host memory that the device reaches: a buffer for numpy, an argument for kernels, and copied to
    and from the device's own memory faster than other host memory.

    With a `stream` the memory is taken and given back in the order of that stream, which waits for nothing. Another
    stream may use it only if it waits for that one, and must be waited for by that one before the array goes.

    `driver` is a driver or the name of a backend. Raises TypeError for an unknown element type, ArgumentValueError for
    a shape that is not one or a stream of another device, OutOfResourcesError if there is not enough memory,
    UnsupportedError if the backend has no pinned memory.
    """
    driver = driver_config._given(driver, "empty")
    element, axes = element_type(dtype), _shape(shape)
    if pinned and stream is not None:
        raise TypeError("empty: pinned memory is not in the order of a stream; leave out one of the two")
    device = device_for("empty", driver, device, stream)
    size = max(1, math.prod(axes) * element.size)
    if pinned:
        buffer = driver.allocate_pinned(size, _ALIGNMENT, device)
    elif stream is None:
        buffer = driver.allocate(size, _ALIGNMENT, device, None)
    else:
        buffer = _StreamMemory(driver, size, device, stream)
    return array_at(driver, device, element.spelling, axes, buffer, pinned=pinned)


class _StreamMemory:
    """Memory in the order of a stream, which lives until the memory is given back, if it is an object."""

    def __init__(self, driver: Driver, size: int, device: int, stream: Any) -> None:
        handle = stream_handle(stream, driver)
        if handle is not None and driver.capturing(device, handle):
            handle = None  # what a graph uses is not allocated by the graph
        self._buffer: Buffer | None = driver.allocate(size, _ALIGNMENT, device, handle)
        self.ptr, self.size, self._stream = self._buffer.ptr, size, stream

    def __del__(self) -> None:
        self._buffer = None  # before the stream goes, which giving it back is ordered by


def array_at(
    driver: Driver,
    device: int,
    dtype: str,
    shape: tuple[int, ...],
    buffer: Buffer,
    *,
    variable: Variable | None = None,
    pinned: bool = False,
) -> Array:
    """Make an array of memory that is there, and keep the buffer. `variable` is the one whose memory it is."""
    element = element_type(dtype)
    array: Any
    if driver.host_memory or pinned:
        array = _host_type(element.format or "H", shape).from_address(buffer.ptr)  # type: ignore[attr-defined]
    else:
        array = Array()
    array._shape, array._device, array._driver = shape, device, driver
    array._element, array._buffer, array._variable, array._pinned = element, buffer, variable, pinned
    return array  # type: ignore[no-any-return]


def asarray(
    value: Any,
    dtype: Any = None,
    *,
    stream: Any = None,
    device: int | None = None,
    driver: Driver | str | None = None,
) -> Array:
    """Copy a buffer (a numpy array, a memoryview), an array or nested sequences of numbers into a new array.

    Arrays are those of podium, and others that speak DLPack or ``__cuda_array_interface__``, in memory of the host or
    of the driver's devices. Without `dtype`, they keep theirs; sequences with a float in them become fp32, of ints i32,
    of bools i1. With one, the numbers of sequences are converted to it, and arrays must have it.

    It is done when the call returns, and waits for the work on the device of `value`; with a `stream` only for what is
    in that, whose order the memory is in then, as that of `empty`.

    Raises ArgumentTypeError or ArgumentValueError for what has no such form.
    """
    driver = driver_config._given(driver, "asarray")
    wanted = None if dtype is None else element_type(dtype)
    handle = stream_handle(stream, driver)
    values = _read("asarray", value, wanted, driver, handle)
    if wanted is not None:
        check_element("asarray", values.element, wanted)
    array = empty(values.shape, values.element.spelling, stream=stream, device=device, driver=driver)
    array._copy(array.ptr, values, driver.current_stream(array.device) if handle is None else handle)
    return array


def _read(taker: str, value: Any, wanted: ElementType | None, driver: Driver, stream: int | None) -> Values:
    """Find values, and wait for what is under way on the device that has them, unless all is to happen in a stream."""
    if isinstance(value, Array):
        if value.driver is not driver and not (value.driver.host_memory or value.pinned):
            return Values.of_bytes(value._element, value.shape, value.tobytes())
        if stream is None or value.driver is not driver:
            synchronize(value.device, driver=value.driver)
        return value._own()
    values = read_values(taker, value, wanted, driver.dlpack_devices)
    if stream is None and values.device >= 0:
        synchronize(values.device, driver=driver)
    return values


def _from_bytes(data: bytes, shape: tuple[int, ...], dtype: str) -> Array:
    array = empty(shape, dtype)
    array._copy(array.ptr, Values.of_bytes(array._element, shape, data), array.driver.current_stream(array.device))
    return array


def _shape(shape: int | Iterable[int]) -> tuple[int, ...]:
    try:
        axes = tuple(map(operator.index, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        text = describe(shape)
        raise ArgumentTypeError(
            f"A shape is one or several integers, not {text}", argument="shape", value=text
        ) from None
    if len(axes) > _MOST_AXES:
        raise ArgumentValueError(f"A shape has at most {_MOST_AXES} axes, not {len(axes)}", argument="shape")
    if any(length < 0 for length in axes):
        raise ArgumentValueError(f"A shape has no negative lengths: {axes}", argument="shape", value=str(axes))
    if math.prod(max(1, length) for length in axes) >= 1 << 59:  # times eight bytes is all that an address reaches
        raise ArgumentValueError(f"No array can have the shape {axes}", argument="shape", value=str(axes))
    return axes
