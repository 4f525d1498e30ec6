"""What arrays are made of: numbers in sequences, buffers of the host, and other arrays, wherever they are."""

from __future__ import annotations

import ctypes
from collections.abc import Container, Sequence
from typing import Any

from podium._array_layout import ArrayLayout, array_layout
from podium._arrays import CPU, DEVICE_NAMES, HOST_TYPES, has_masked, locate
from podium._element_types import ElementType, element_type
from podium._record import record
from podium.errors import ArgumentTypeError, ArgumentValueError

__all__ = ["Values", "check_element", "read_values"]


@record(frozen=True)
class Values:
    """Elements in C order at an address, which `owner` keeps; `device` is -1 for memory of the host."""

    element: ElementType
    shape: tuple[int, ...]
    address: int
    nbytes: int
    owner: object
    device: int = -1

    @staticmethod
    def of_bytes(element: ElementType, shape: tuple[int, ...], data: bytes) -> Values:
        """Take the memory of a bytes object; it stays where it is while the object lives."""
        address = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
        return Values(element, shape, address, len(data), data)


def read_values(taker: str, value: Any, wanted: ElementType | None, reachable: Container[int]) -> Values:
    """Find what can be an array; numbers are converted to what is wanted, and everything else stays as it is.

    Arrays of podium are not read here. `reachable` has the device types whose memory can be copied from; `taker` is
    what the value was given to, for errors. Raises `ArgumentTypeError` or `ArgumentValueError`.
    """
    found = _from_host(taker, value)
    if found is None and (layout := array_layout(value)) is not None:
        found = _from_layout(taker, value, layout, reachable)
    if found is not None:
        return found
    axes, flat = _flatten(taker, value)
    element = wanted or element_type(_guess(flat))
    return Values.of_bytes(element, axes, _encode(taker, flat, element.spelling))


def check_element(taker: str, found: ElementType, wanted: ElementType) -> None:
    """Raise `ArgumentTypeError` for elements of another type than is wanted."""
    if found != wanted:
        raise ArgumentTypeError(
            f"{taker}: the elements are {found.spelling}, not {wanted.spelling}; convert them first, or give them as "
            "a list, as .tolist() makes one: its numbers are converted"
        )


def _from_host(taker: str, value: Any) -> Values | None:
    try:
        view = memoryview(value)
    except (TypeError, BufferError, ValueError):
        return None
    if has_masked(value):
        raise ArgumentValueError(f"{taker}: elements of this array are masked; take array.filled(value), or array.data")
    location = locate(view, True, {CPU})
    if location is None or location.element is None:
        raise ArgumentTypeError(
            f"{taker}: the elements of this buffer (format {view.format!r}) are none of podium's types"
        )
    element, shape = element_type(location.element), tuple(view.shape or ())
    if view.c_contiguous:
        return Values(element, shape, location.address, view.nbytes, view)
    return Values.of_bytes(element, shape, view.tobytes("C"))


def _from_layout(taker: str, value: Any, layout: ArrayLayout, reachable: Container[int]) -> Values:
    kind, is_host = type(value).__name__, layout.device_type in HOST_TYPES
    if not is_host and layout.device_type not in reachable:
        where = DEVICE_NAMES.get(layout.device_type, f"device type {layout.device_type}")
        raise ArgumentTypeError(
            f"{taker}: this {kind} is in {where} memory, which the backend does not reach; copy it to the host first"
        )
    if layout.element is None:
        raise ArgumentTypeError(f"{taker}: the elements of this {kind} are none of podium's types")
    if not _is_packed(layout):
        raise ArgumentValueError(f"{taker}: this {kind} is not C-contiguous; make it so first")
    try:
        element = element_type(layout.element)
    except TypeError as error:
        raise ArgumentTypeError(f"{taker}: {error}") from None
    count = 1
    for length in layout.shape:
        count *= length
    device = -1 if is_host else max(0, layout.device)
    return Values(element, layout.shape, layout.address, count * element.size, (value, layout.owner), device)


def _is_packed(layout: ArrayLayout) -> bool:
    expected = layout.itemsize
    for length, stride in zip(reversed(layout.shape), reversed(layout.strides)):
        if length != 1 and stride != expected:
            return 0 in layout.shape
        expected *= length
    return True


def _flatten(taker: str, value: Any) -> tuple[tuple[int, ...], list[Any]]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        if isinstance(value, (bool, int, float)):
            return (), [value]
        raise ArgumentTypeError(
            f"{taker}: an array is made of an array, a buffer or sequences of numbers, not of {type(value).__name__}"
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
