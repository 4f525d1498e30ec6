"""Arrays for those without an array library: memory of the active driver, with a shape and an element type.

On a driver whose kernels reach host memory, an array also is a buffer: ``memoryview(array)`` and
``numpy.asarray(array)`` see its memory. That needs a C type as base in Python 3.10 and 3.11, and a ctypes array is one.
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
from podium._arrays import CPU, ArrayLocation, has_masked, locate
from podium._element_types import ElementType, element_type
from podium._limits import find_device
from podium.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from podium._variable import Variable
    from podium.backend import Buffer, Driver

__all__ = ["Array", "array_at", "asarray", "empty"]

_ALIGNMENT = 256
_MOST_AXES = 64  # as numpy has


class Array:
    """A C-contiguous array in a driver's memory; pass it to kernels as it is.

    `empty` and `asarray` make one in new memory, `Module.variable` gives one in the memory of a variable.

    `shape` counts elements along each axis, `dtype` is a spelling such as "fp32", `ptr` the address, `nbytes` the size.
    """

    _shape: tuple[int, ...]
    _device: int
    _driver: Driver
    _element: ElementType
    _buffer: Buffer
    _variable: Variable | None = None  # whose memory this is

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

    def copy_from(self, value: Any) -> None:
        """Copy values into the array, after waiting for the launches before: what `asarray` takes, of the same shape.

        Numbers and sequences of them are converted, buffers and arrays must have the same element type. An array of
        structs, which variables can be, also takes what has as many bytes: a ctypes structure, a numpy record, bytes.
        Raises ArgumentTypeError or ArgumentValueError, which name the array, and the variable if it is one's memory.
        """
        from podium._synchronize import synchronize

        data = self._bytes_of(value)
        synchronize(self.device, driver=self.driver)
        if data:
            _write(self, data)

    def _bytes_of(self, value: Any) -> bytes:
        if self._variable is not None and self._variable.is_record and not isinstance(value, Array):
            try:
                data = memoryview(value).tobytes("C")
            except (TypeError, BufferError, ValueError):
                data = b""
            if len(data) == self.nbytes:
                return data
        taker = f"copy_from into {self!r}"
        element, axes, data = _values(taker, value, self._element)
        if axes != self.shape:
            raise ArgumentValueError(
                f"{taker}: the values have the shape {axes}, and the shapes must be the same",
                argument="value",
                value=str(axes),
            )
        _check_element(taker, element, self._element)
        return data

    def tobytes(self) -> bytes:
        """Return a copy of the memory, after waiting for the launches before."""
        from podium._synchronize import synchronize

        synchronize(self.device, driver=self.driver)
        data = ctypes.create_string_buffer(max(1, self.nbytes))
        if self.nbytes:
            stream = self.driver.current_stream(self.device)
            self.driver.copy(ctypes.addressof(data), self.ptr, self.nbytes, self.device, stream)
        return data.raw[: self.nbytes]

    def numpy(self) -> Any:
        """Return a copy as a numpy array, after waiting for the launches before. Needs numpy.

        bf16 has no numpy type without ml_dtypes; its bits come as uint16 then.
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
        return numpy.frombuffer(bytearray(self.tobytes()), dtype=name).reshape(self.shape)

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
        from podium._synchronize import synchronize

        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("podium arrays are exported where they are and without a copy")
        synchronize(self.device, driver=self.driver)
        return _dlpack.export(self, self.ptr, self.__dlpack_device__(), self._element, self.shape, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CPU if self.driver.host_memory else min(self.driver.dlpack_devices), self.device)

    def _podium_location(self) -> ArrayLocation:
        return ArrayLocation(self.ptr, self.__dlpack_device__()[0], self.device, self.dtype, True, False, self._buffer)

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
    shape: int | Iterable[int], dtype: Any = "fp32", *, device: int | None = None, driver: Driver | None = None
) -> Array:
    """Make an array whose elements are not set, on the active driver's current device.

    Raises TypeError for an unknown element type, ArgumentValueError for a shape that is not one, OutOfResourcesError
    if there is not enough memory.
    """
    driver = driver or driver_config.resolve()
    element, axes = element_type(dtype), _shape(shape)
    device = driver.current_device() if device is None else find_device("empty", driver, device).index
    size = math.prod(axes) * element.size
    buffer = driver.allocate(max(1, size), _ALIGNMENT, device, None)
    return array_at(driver, device, element.spelling, axes, buffer)


def array_at(
    driver: Driver,
    device: int,
    dtype: str,
    shape: tuple[int, ...],
    buffer: Buffer,
    *,
    variable: Variable | None = None,
) -> Array:
    """Make an array of memory that is there, and keep the buffer. `variable` is the one whose memory it is."""
    element = element_type(dtype)
    array: Any
    if driver.host_memory:
        array = _host_type(element.format or "H", shape).from_address(buffer.ptr)  # type: ignore[attr-defined]
    else:
        array = Array()
    array._shape, array._device, array._driver = shape, device, driver
    array._element, array._buffer, array._variable = element, buffer, variable
    return array  # type: ignore[no-any-return]


def asarray(value: Any, dtype: Any = None, *, device: int | None = None, driver: Driver | None = None) -> Array:
    """Copy a buffer (a numpy array, a memoryview), a podium array or nested sequences of numbers into a new array.

    Without `dtype`, buffers keep theirs; sequences with a float in them become fp32, of ints i32, of bools i1.
    Raises ArgumentTypeError or ArgumentValueError for what has no such form.
    """
    element, axes, data = _values("asarray", value, None if dtype is None else element_type(dtype))
    if dtype is not None:
        _check_element("asarray", element, element_type(dtype))
    array = empty(axes, element.spelling, device=device, driver=driver)
    if data:
        _write(array, data)
    return array


def _values(taker: str, value: Any, wanted: ElementType | None) -> tuple[ElementType, tuple[int, ...], bytes]:
    """Return the element type, the shape and the bytes of what can be an array; numbers become what is wanted.

    `taker` is what the value was given to, for errors.
    """
    if isinstance(value, Array):
        return value._element, value.shape, value.tobytes()
    if (found := _from_host(taker, value)) is not None:
        return found
    axes, flat = _flatten(taker, value)
    element = wanted or element_type(_guess(flat))
    return element, axes, _encode(taker, flat, element.spelling)


def _check_element(taker: str, found: ElementType, wanted: ElementType) -> None:
    if found != wanted:
        raise ArgumentTypeError(
            f"{taker}: the elements are {found.spelling}, not {wanted.spelling}; convert them first"
        )


def _write(array: Array, data: bytes) -> None:
    source = ctypes.create_string_buffer(data, len(data))
    stream = array.driver.current_stream(array.device)
    array.driver.copy(array.ptr, ctypes.addressof(source), len(data), array.device, stream)


def _from_bytes(data: bytes, shape: tuple[int, ...], dtype: str) -> Array:
    array = empty(shape, dtype)
    if data:
        _write(array, data)
    return array


def _shape(shape: int | Iterable[int]) -> tuple[int, ...]:
    axes = tuple(operator.index(each) for each in shape) if isinstance(shape, Iterable) else (operator.index(shape),)
    if len(axes) > _MOST_AXES:
        raise ArgumentValueError(f"A shape has at most {_MOST_AXES} axes, not {len(axes)}", argument="shape")
    if any(length < 0 for length in axes):
        raise ArgumentValueError(f"A shape has no negative lengths: {axes}", argument="shape", value=str(axes))
    if math.prod(max(1, length) for length in axes) >= 1 << 59:  # times eight bytes is all that an address reaches
        raise ArgumentValueError(f"No array can have the shape {axes}", argument="shape", value=str(axes))
    return axes


def _from_host(taker: str, value: Any) -> tuple[ElementType, tuple[int, ...], bytes] | None:
    try:
        view = memoryview(value)
    except (TypeError, BufferError, ValueError):
        return None
    if has_masked(value):
        raise ArgumentValueError(f"{taker}: elements of this array are masked; take array.filled(value), or array.data")
    location = locate(value, True, {CPU})
    if location is None or location.element is None:
        raise ArgumentTypeError(
            f"{taker}: the elements of this buffer (format {view.format!r}) are none of podium's types"
        )
    return element_type(location.element), tuple(view.shape or ()), view.tobytes("C")


def _flatten(taker: str, value: Any) -> tuple[tuple[int, ...], list[Any]]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        if isinstance(value, (bool, int, float)):
            return (), [value]
        raise ArgumentTypeError(
            f"{taker}: an array is made of a buffer or of sequences of numbers, not of {type(value).__name__}"
        )
    parts = [_flatten(taker, each) for each in value]
    shapes = {shape for shape, _ in parts}
    if len(shapes) > 1:
        raise ArgumentValueError(
            f"{taker}: the sequences have different lengths; an array needs the same length along each axis"
        )
    return (len(parts), *(shapes.pop() if shapes else ())), [number for _, numbers in parts for number in numbers]


def _guess(flat: list[Any]) -> str:
    if any(isinstance(each, float) for each in flat) or not flat:
        return "fp32"
    return "i1" if all(isinstance(each, bool) for each in flat) else "i32"


def _encode(taker: str, flat: list[Any], dtype: Any) -> bytes:
    from podium._arguments import Slot
    from podium._signature import Parameter, Type

    slot = Slot(taker, 0, Parameter("value", Type.parse(element_type(dtype).spelling)))
    return b"".join(map(slot.encode, flat))
