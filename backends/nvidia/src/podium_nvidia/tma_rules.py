"""The rules of tensor maps: what the hardware's tensor memory access (TMA) can describe, checked before the driver is.

The driver answers every mistake with one status and no word on which value it means. Axes here are in the order of
arrays, outermost first; TMA counts them from the innermost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.backend import ArrayLayout
from podium.errors import ArgumentTypeError, ArgumentValueError

__all__ = [
    "FILLS",
    "INTERLEAVES",
    "PROMOTIONS",
    "SWIZZLES",
    "Modes",
    "Tensor",
    "check_between",
    "check_box",
    "check_corners",
    "check_inner_bytes",
    "check_room",
    "check_swizzle",
    "choose",
    "integers",
    "wrong",
]

SWIZZLES = {"none": 0, "32": 1, "64": 2, "128": 3, "128-atom-32": 4, "128-atom-32-flip-8": 5, "128-atom-64": 6}
INTERLEAVES = {"none": 0, "16": 1, "32": 2}
PROMOTIONS = {"none": 0, "64": 1, "128": 2, "256": 3}
FILLS = {"zeros": 0, "nan": 1}

# Element types, with CUtensorMapDataType and bytes; there are none for signed bytes and words, whose bits are the same.
_TYPES = {
    "u8": (0, 1),
    "u16": (1, 2),
    "u32": (2, 4),
    "i32": (3, 4),
    "u64": (4, 8),
    "i64": (5, 8),
    "fp16": (6, 2),
    "fp32": (7, 4),
    "fp64": (8, 8),
    "bf16": (9, 2),
    "fp32-ftz": (10, 4),
    "tf32": (11, 4),
    "tf32-ftz": (12, 4),
}
_SAME_BITS = {"i1": "u8", "i8": "u8", "i16": "u16", "fp8e4nv": "u8", "fp8e5": "u8"}
_FLOATS = frozenset({6, 7, 8, 9, 10, 11, 12})

_MOST_STRIDE = 1 << 40  # bytes
_ATOMS_SINCE = 100  # the compute capability of swizzles of larger chunks than 16 bytes

# Corners of an im2col box, by the number of axes: TMA has 16 bits for all of its offsets together.
_CORNERS = {3: (-(1 << 15), (1 << 15) - 1), 4: (-128, 127), 5: (-16, 15)}


def wrong(what: str, argument: str, value: object, why: str) -> ArgumentValueError:
    """Make the error for a value that breaks a rule."""
    return ArgumentValueError(f"{what}: {argument} is {value}, {why}", argument=argument, value=str(value))


def choose(what: str, argument: str, value: object, choices: dict[str, int]) -> int:
    """Return the number of a word, such as "128"; the integer 128 will do as well."""
    if str(value) not in choices:
        raise wrong(what, argument, repr(value), f"and can be {', '.join(map(repr, choices))}")
    return choices[str(value)]


def integers(what: str, argument: str, value: object, count: int, axes: str) -> tuple[int, ...]:
    """Return a sequence of integers, one for each axis; a single one stands for a sequence of one."""
    import operator

    try:
        listed = tuple(value) if isinstance(value, Sequence) else (value,)
        numbers = tuple(map(operator.index, listed))
    except TypeError:
        text = f"{what}: {argument} is {value!r}, and must have an integer for each of the {axes}"
        raise ArgumentTypeError(text, argument=argument, value=repr(value)) from None
    if len(numbers) != count:
        raise wrong(what, argument, value, f"and must have an integer for each of the {axes}, {count} in all")
    return numbers


def check_between(what: str, argument: str, numbers: Sequence[int], low: int, high: int) -> None:
    """Check that every number is in a range."""
    for number in numbers:
        if not low <= number <= high:
            text = number if len(numbers) == 1 else tuple(numbers)
            raise wrong(what, argument, text, f"where every number must be from {low} to {high}")


@dataclass(frozen=True)
class Modes:
    """How elements are moved, in the driver's numbers."""

    swizzle: int
    interleave: int
    promotion: int
    fill: int

    @classmethod
    def of(cls, what: str, swizzle: object, interleave: object, l2_promotion: object, fill: object) -> Modes:
        """Read the modes from the words of a user, and check that they go together."""
        modes = cls(
            choose(what, "swizzle", swizzle, SWIZZLES),
            choose(what, "interleave", interleave, INTERLEAVES),
            choose(what, "l2_promotion", l2_promotion, PROMOTIONS),
            choose(what, "fill", fill, FILLS),
        )
        if modes.interleave == INTERLEAVES["32"] and modes.swizzle != SWIZZLES["32"]:
            raise wrong(what, "swizzle", repr(swizzle), "and must be '32' where interleave is '32'")
        return modes

    @property
    def swizzle_bytes(self) -> int | None:
        """The bytes that a swizzle works on; None without one."""
        return {0: None, 1: 32, 2: 64}.get(self.swizzle, 128)


@dataclass(frozen=True)
class Tensor:
    """An array that a tensor map can describe; `strides` are bytes, and the last one is the size of an element."""

    what: str
    address: int
    kind: int  # CUtensorMapDataType
    element: str
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, what: str, layout: ArrayLayout, dtype: str | None, modes: Modes, least_axes: int) -> Tensor:
        """Check an array. Raises `ArgumentValueError`, or `ArgumentTypeError` for a type of elements."""
        element, (kind, itemsize) = _element(what, layout, dtype)
        shape, axes = layout.shape, len(layout.shape)
        unit = 32 if modes.interleave == INTERLEAVES["32"] else 16
        if modes.interleave:
            least_axes = max(3, least_axes)
        if not least_axes <= axes <= 5:
            raise wrong(what, "array", f"of shape {shape}", f"and a tensor map has from {least_axes} to 5 axes")
        if not all(1 <= length <= 1 << 32 for length in shape):
            raise wrong(what, "array", f"of shape {shape}", "where every axis must have from 1 to 2**32 elements")
        if layout.address % unit:
            raise wrong(what, "array", f"at address {layout.address:#x}", f"which must be a multiple of {unit}")
        if modes.fill == FILLS["nan"] and kind not in _FLOATS:
            raise wrong(what, "fill", "'nan'", f"and elements of {element} have none; it must be 'zeros'")
        strides = _strides(what, layout, itemsize, unit)
        return cls(what, layout.address, kind, element, itemsize, shape, strides)


def _element(what: str, layout: ArrayLayout, dtype: str | None) -> tuple[str, tuple[int, int]]:
    name = dtype if dtype is not None else _SAME_BITS.get(layout.element or "", layout.element)
    if not isinstance(name, str) or name not in _TYPES:
        known = ", ".join(_TYPES)
        given = (
            f"dtype {dtype!r}" if dtype is not None else f"an array of {layout.element or 'elements without a name'}"
        )
        text = f"{what}: got {given}; the types of a tensor map are {known}, and dtype says which one to take"
        raise ArgumentTypeError(text, argument="array" if dtype is None else "dtype", value=str(name))
    if _TYPES[name][1] != layout.itemsize:
        bytes_ = f"elements of {_TYPES[name][1]} bytes, where those of the array have {layout.itemsize}"
        raise wrong(what, "dtype", repr(name), f"which has {bytes_}; make a view of the array with the other type")
    return name, _TYPES[name]


def _strides(what: str, layout: ArrayLayout, itemsize: int, unit: int) -> tuple[int, ...]:
    shape, strides = layout.shape, list(layout.strides)
    last = len(shape) - 1
    if shape[last] > 1 and strides[last] != itemsize:
        why = f"where the last must be {itemsize}: elements of the innermost axis lie next to each other"
        raise wrong(what, "array", f"with the strides {layout.strides}", f"in bytes, {why}. Make a copy in C order")
    strides[last] = itemsize
    for axis in range(last - 1, -1, -1):
        if shape[axis] == 1:  # the stride is never used, and libraries put anything there
            inner = -(-strides[axis + 1] * shape[axis + 1] // unit) * unit
            strides[axis] = inner if inner < _MOST_STRIDE else unit
        if not 0 < strides[axis] < _MOST_STRIDE or strides[axis] % unit:
            why = f"in bytes, where each but the last must be a multiple of {unit}, above 0 and below 2**40"
            advice = "Pad the rows, and pass a view of the array that is padded"
            raise wrong(what, "array", f"with the strides {layout.strides}", f"{why}. {advice}")
    return tuple(strides)


def check_box(tensor: Tensor, box: tuple[int, ...], modes: Modes) -> None:
    """Check the box that one copy moves."""
    check_between(tensor.what, "box", box, 1, 256)
    check_inner_bytes(tensor, "box", box, box[-1], modes)


def check_inner_bytes(tensor: Tensor, argument: str, value: object, count: int, modes: Modes) -> None:
    """Check the bytes of the box's innermost axis, `count` elements."""
    size = count * tensor.itemsize
    if size % 16:
        why = f"whose innermost axis has {size} bytes of {tensor.element}, and must have a multiple of 16"
        raise wrong(tensor.what, argument, value, why)
    most = modes.swizzle_bytes
    if most is not None and size > most and not modes.interleave:
        word = next(word for word, number in SWIZZLES.items() if number == modes.swizzle)
        why = f"whose innermost axis has {size} bytes of {tensor.element}, and swizzle {word!r} allows {most}"
        raise wrong(tensor.what, argument, value, why)


def check_room(tensor: Tensor, argument: str, count: int, room: int) -> None:
    """Check that what one copy moves, so many elements, is not more than the shared memory of a block."""
    if count * tensor.itemsize > room:
        why = f"which is more than a block has of shared memory, {room} bytes"
        raise wrong(tensor.what, argument, f"of {count * tensor.itemsize} bytes", why)


def check_swizzle(what: str, modes: Modes, capability: int) -> None:
    """Check that a device of a compute capability has the swizzle."""
    if modes.swizzle > SWIZZLES["128"] and capability < _ATOMS_SINCE:
        word = next(word for word, number in SWIZZLES.items() if number == modes.swizzle)
        why = f"which devices have from compute capability 10.0 on; this one has {capability // 10}.{capability % 10}"
        raise wrong(what, "swizzle", repr(word), why)


def check_corners(tensor: Tensor, lower: tuple[int, ...], upper: tuple[int, ...]) -> None:
    """Check the corners of the box that an im2col map walks over: offsets from those of the image."""
    low, high = _CORNERS[len(tensor.shape)]
    check_between(tensor.what, "lower", lower, low, high)
    check_between(tensor.what, "upper", upper, low, high)
    for length, first, last in zip(tensor.shape[1:-1], lower, upper):
        if length + last - first <= 0:
            why = f"which with lower {lower} leaves nothing of an image of shape {tensor.shape[1:-1]}"
            raise wrong(tensor.what, "upper", upper, why)
