"""The rules of tensor maps: what no hardware can describe is refused before the driver is asked, and says which value."""

from __future__ import annotations

from typing import Any

import pytest

from podium.backend import ArrayLayout
from podium.errors import ArgumentError, ArgumentTypeError, ArgumentValueError

from podium_nvidia.tma_rules import Modes, Tensor, check_box, check_corners, check_inner_bytes, check_room

_SIZES = {"fp32": 4, "fp16": 2, "bf16": 2, "i8": 1, "u8": 1, "i1": 1, "i64": 8, "c64": 8, "fp64": 8}


def layout(
    shape: tuple[int, ...], element: str | None = "fp32", strides: tuple[int, ...] | None = None, address: int = 0x1000
) -> ArrayLayout:
    size = _SIZES.get(element or "", 4)
    packed = [size]
    for length in reversed(shape[1:]):
        packed.insert(0, packed[0] * length)
    return ArrayLayout(address, 2, 0, element, size, shape, strides or tuple(packed[-len(shape) :]), None)


def modes(**words: Any) -> Modes:
    given = {"swizzle": "none", "interleave": "none", "l2_promotion": "none", "fill": "zeros"} | words
    return Modes.of("test", **given)


def refused(array: ArrayLayout, dtype: str | None = None, least: int = 1, **words: Any) -> str:
    with pytest.raises(ArgumentError) as raised:
        Tensor.of("test", array, dtype, modes(**words), least)
    assert str(raised.value).startswith("test: ")
    return str(raised.value)


def taken(array: ArrayLayout, dtype: str | None = None, least: int = 1, **words: Any) -> Tensor:
    return Tensor.of("test", array, dtype, modes(**words), least)


def test_modes_are_words_and_bytes() -> None:
    """Modes are the driver's numbers for words; integers will do for numbers of bytes, and others are refused."""
    assert modes(swizzle=128, l2_promotion=256) == modes(swizzle="128", l2_promotion="256")
    assert (modes().swizzle, modes(swizzle="128-atom-64").swizzle, modes(fill="nan").fill) == (0, 6, 1)
    with pytest.raises(ArgumentValueError, match=r"swizzle is 48, and can be 'none', '32', '64'"):
        modes(swizzle=48)
    with pytest.raises(ArgumentValueError, match="fill is 'ones', and can be 'zeros', 'nan'"):
        modes(fill="ones")
    with pytest.raises(ArgumentValueError, match="must be '32' where interleave is '32'"):
        modes(interleave=32, swizzle=64)
    assert modes(interleave="32", swizzle="32").interleave == 2


def test_element_types() -> None:
    """Types of the array, those of the same bits, and others of the same size by name; no other."""
    assert [taken(layout((4, 8), name)).kind for name in ("fp32", "fp16", "bf16", "i64")] == [7, 6, 9, 5]
    assert {taken(layout((4, 16), name)).kind for name in ("i8", "u8", "i1")} == {0}
    assert taken(layout((4, 8)), "tf32").kind == 11
    assert "the types of a tensor map are u8, u16" in refused(layout((4, 8), "c64"))
    assert "an array of elements without a name" in refused(layout((4, 8), None))
    assert taken(layout((4, 8), None), "i32").element == "i32"
    assert "got dtype 'fp8'" in refused(layout((4, 8)), "fp8")
    assert "elements of 2 bytes, where those of the array have 4" in refused(layout((4, 8)), "fp16")
    assert "elements of i64 have none" in refused(layout((4, 8), "i64"), fill="nan")
    with pytest.raises(ArgumentTypeError):
        taken(layout((4, 8), "c64"))


def test_shapes() -> None:
    """A tensor has one to five axes, three with interleaved channels or columns of images, none of them empty."""
    assert taken(layout((64,))).shape == (64,)
    assert "from 1 to 5 axes" in refused(layout((1,) * 6))
    assert "from 1 to 5 axes" in refused(layout(()))
    assert "from 3 to 5 axes" in refused(layout((4, 8)), interleave="16")
    assert "from 3 to 5 axes" in refused(layout((4, 8)), least=3)
    assert "from 1 to 2**32 elements" in refused(layout((0, 8)))
    assert "from 1 to 2**32 elements" in refused(layout((2, (1 << 32) + 4)))


def test_addresses_and_strides() -> None:
    """Addresses and strides are multiples of 16 bytes, 32 with interleave '32'; the last axis is packed."""
    assert "at address 0x1008, which must be a multiple of 16" in refused(layout((4, 8), address=0x1008))
    assert "a multiple of 32" in refused(layout((2, 4, 8), address=0x1010), interleave="32", swizzle="32")
    assert "with the strides (12, 4), in bytes, where each but the last must be a multiple of 16" in refused(
        layout((4, 3))
    )
    assert "Pad the rows" in refused(layout((4, 3)))
    assert taken(layout((4, 3), strides=(16, 4))).strides == (16, 4)
    assert "multiple of 32" in refused(layout((2, 4, 4)), interleave="32", swizzle="32")
    assert "the last must be 4" in refused(layout((8, 8), strides=(4, 32)))
    assert "below 2**40" in refused(layout((4, 8), strides=(1 << 40, 4)))
    assert "above 0" in refused(layout((4, 8), strides=(-32, 4)))
    assert "above 0" in refused(layout((4, 8), strides=(0, 4)))


def test_strides_of_axes_of_one_element_are_free() -> None:
    """Libraries put anything there; the driver gets what it takes."""
    assert taken(layout((1, 3), strides=(12, 4))).strides == (16, 4)
    assert taken(layout((5, 1, 8), strides=(32, 7, 4))).strides == (32, 32, 4)
    assert taken(layout((4, 1), strides=(16, 999))).strides == (16, 4)
    assert taken(layout((1, 4, 8), strides=(7, 1 << 39, 4))).strides == (16, 1 << 39, 4)


def test_boxes() -> None:
    """A box has 1 to 256 elements along each axis, and rows of a multiple of 16 bytes that fit into the swizzle."""

    def box(numbers: tuple[int, ...], element: str = "fp32", **words: Any) -> str:
        tensor = taken(layout((64, 64), element), **words)
        try:
            check_box(tensor, numbers, modes(**words))
        except ArgumentValueError as error:
            return f"{error.argument}: {error}"
        return "taken"

    assert box((256, 4)) == box((1, 256)) == "taken"
    assert box((257, 4)) == "box: test: box is (257, 4), where every number must be from 1 to 256"
    assert "from 1 to 256" in box((0, 4))
    assert "whose innermost axis has 8 bytes of fp32, and must have a multiple of 16" in box((4, 2))
    assert box((4, 32), swizzle="128") == box((4, 64), "fp16", swizzle="128-atom-32") == "taken"
    assert "has 144 bytes of fp32, and swizzle '128' allows 128" in box((4, 36), swizzle="128")
    assert "swizzle '32' allows 32" in box((4, 12), swizzle=32)
    tensor = taken(layout((64, 64, 64)))
    with pytest.raises(ArgumentValueError, match="has 8 bytes of fp32, and must have a multiple of 16"):
        check_box(tensor, (1, 4, 2), modes(interleave=16))
    check_room(tensor, "box", 64 * 256, 1 << 16)
    with pytest.raises(
        ArgumentValueError, match="box is of 65540 bytes, which is more than a block has of shared memory"
    ):
        check_room(tensor, "box", 64 * 256 + 1, 1 << 16)


def test_corners_of_images() -> None:
    """Corners fit into the bits that the hardware has for them, and leave something of an image."""
    plane = taken(layout((2, 8, 8, 16)), least=3)
    check_corners(plane, (-1, -1), (-1, -1))
    check_corners(plane, (0, 0), (-7, -7))
    for lower, upper, part in (
        ((-129, 0), (0, 0), "lower is (-129, 0), where every number must be from -128 to 127"),
        ((0, 0), (0, 128), "upper is (0, 128), where"),
        ((0, 2), (0, -6), "upper is (0, -6), which with lower (0, 2) leaves nothing of an image of shape (8, 8)"),
    ):
        with pytest.raises(ArgumentValueError) as raised:
            check_corners(plane, lower, upper)
        assert part in str(raised.value)
    check_corners(taken(layout((2, 8, 16)), least=3), (-32768,), (32767,))
    with pytest.raises(ArgumentValueError, match="from -16 to 15"):
        check_corners(taken(layout((2, 8, 8, 8, 16)), least=3), (0, 0, 16), (0, 0, 0))
    with pytest.raises(ArgumentValueError, match="channels is 6, whose innermost axis has 24 bytes"):
        check_inner_bytes(plane, "channels", 6, 6, modes())
