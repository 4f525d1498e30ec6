"""Tensor maps on a real NVIDIA GPU: the tile that a copy reads or writes is the one that numpy takes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from nvidia_gpu import needs

import podium
from podium.errors import ArgumentValueError, BackendError

from podium_nvidia import im2col_tensor_map, tensor_map
from podium_nvidia.driver import NvidiaDriver
from podium_nvidia.tma_rules import SWIZZLES

pytestmark = pytest.mark.gpu

KERNELS = Path(__file__).with_name("nvidia_tma.cu")


@pytest.fixture
def kernels(gpu: NvidiaDriver, level: str) -> podium.Module:
    """The module of the kernels, at one level."""
    needs(gpu, 90, "TMA")
    return podium.module(KERNELS)


def launch(words: int) -> podium.LaunchConfig:
    """Return one block with room for a tile and the barrier behind it."""
    return podium.LaunchConfig(1, 128, shared=4 * words + 16)


def on_gpu(values: Any) -> podium.Array:
    array = podium.empty(values.shape, values.dtype.name)
    array.copy_from(values)
    return array


def tile_of(values: Any, corner: tuple[int, ...], box: tuple[int, ...], fill: float = 0) -> Any:
    """Return a box of an array at a corner that may lie outside, with what the hardware fills in."""
    tile = numpy.full(box, fill, values.dtype)
    for place in numpy.ndindex(*box):
        source = tuple(first + step for first, step in zip(corner, place))
        if all(0 <= index < length for index, length in zip(source, values.shape)):
            tile[place] = values[source]
    return tile


def read(kernel: Any, made: Any, corner: tuple[int, ...], box: tuple[int, ...], dtype: str) -> Any:
    """Let one block read a tile, and return it. Coordinates go to the kernel from the innermost axis."""
    count = int(numpy.prod(box)) * numpy.dtype(dtype).itemsize // 4
    out = podium.empty(count, "u32")
    kernel[launch(count)](made, *reversed(corner), count, out)
    return out.numpy().view(dtype).reshape(box)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "float64"])
def test_a_tile_is_read(kernels: podium.Module, dtype: str) -> None:
    """A box is the slice that numpy takes, for elements of each size; it begins at any row, in steps of 16 bytes."""
    values = (numpy.arange(40 * 64) % 251).astype(dtype).reshape(40, 64)
    box = (8, 16)
    made = tensor_map(on_gpu(values), box)
    for corner in ((0, 0), (8, 16), (31, 48), (5, 16 // values.itemsize)):
        found = read(kernels["read_2d"], made, corner, box, dtype)
        numpy.testing.assert_array_equal(found, tile_of(values, corner, box))


def test_what_lies_outside_is_zero_or_nan(kernels: podium.Module) -> None:
    """Elements beyond each edge, before it too, are read as zeros, or as NaN where that was asked for."""
    values = numpy.arange(1, 1 + 10 * 12, dtype="f4").reshape(10, 12)
    array, box = on_gpu(values), (8, 8)
    for fill, filler in (("zeros", 0.0), ("nan", numpy.nan)):
        made = tensor_map(array, box, fill=fill, l2_promotion="128")
        for corner in ((-3, -4), (7, 8), (-8, 0), (100, 100)):
            found = read(kernels["read_2d"], made, corner, box, "f4")
            numpy.testing.assert_array_equal(found, tile_of(values, corner, box, filler))


def test_arrays_with_padded_rows_and_three_axes(kernels: podium.Module) -> None:
    """Strides are those of the array that is passed, a view of a padded one; an axis of one element has any."""
    values = numpy.arange(3 * 6 * 16, dtype="f4").reshape(3, 6, 16)
    array = on_gpu(values)

    class View:
        def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
            data = {"data": (array.ptr, False), "typestr": "<f4", "version": 3}
            self.__cuda_array_interface__ = {**data, "shape": shape, "strides": strides}

    box = (2, 3, 8)
    made = tensor_map(View((3, 6, 13), (384, 64, 4)), box)
    for corner in ((0, 0, 0), (1, 2, 4), (2, 5, 8)):
        found = read(kernels["read_3d"], made, corner, box, "f4")
        numpy.testing.assert_array_equal(found, tile_of(values[:, :, :13], corner, box))
    row = tensor_map(View((1, 13), (4, 4)), (1, 8))
    numpy.testing.assert_array_equal(
        read(kernels["read_2d"], row, (0, 8), (1, 8), "f4"), tile_of(values[0, :1, :13], (0, 8), (1, 8))
    )


def test_steps_leave_elements_out(kernels: podium.Module) -> None:
    """With element strides, a box of so many rows gives every second one."""
    values = numpy.arange(16 * 16, dtype="f4").reshape(16, 16)
    made = tensor_map(on_gpu(values), (8, 8), element_strides=(2, 1))
    found = read(kernels["read_2d"], made, (3, 4), (4, 8), "f4")
    numpy.testing.assert_array_equal(found, values[3:11:2, 4:12])


def swizzled(tile: Any, span: int) -> Any:
    """Return a tile as it lies in shared memory: chunks of 16 bytes of each row, mixed by where the row begins."""
    flat = tile.tobytes()
    out = bytearray(len(flat))
    for chunk in range(len(flat) // 16):
        # bits 4.. of the address are changed by bits 7.., as many as the span has chunks
        place = chunk ^ (chunk >> 3 & span // 16 - 1)
        out[16 * place : 16 * place + 16] = flat[16 * chunk : 16 * chunk + 16]
    return numpy.frombuffer(bytes(out), tile.dtype).reshape(tile.shape)


@pytest.mark.parametrize("span", [32, 64, 128])
def test_swizzles(kernels: podium.Module, span: int) -> None:
    """A swizzle mixes the chunks of a row by exclusive or with the row's number, in spans of so many bytes."""
    values = numpy.arange(32 * 64, dtype="f4").reshape(32, 64)
    box = (16, span // 4)
    made = tensor_map(on_gpu(values), box, swizzle=str(span))
    found = read(kernels["read_2d"], made, (4, 8), box, "f4")
    numpy.testing.assert_array_equal(found, swizzled(values[4:20, 8 : 8 + span // 4], span))


def columns(lower: tuple[int, int], upper: tuple[int, int], images: Any) -> Iterator[tuple[int, int, int]]:
    """Walk over the pixels of all images between two corners, as the hardware does."""
    count, height, width, _ = images.shape
    for n in range(count):
        for h in range(lower[0], height + upper[0]):
            for w in range(lower[1], width + upper[1]):
                yield n, h, w


def test_columns_of_images(kernels: podium.Module) -> None:
    """An im2col copy walks over rows and images, with offsets of the filter, and zeros outside of an image."""
    images = numpy.arange(1, 1 + 3 * 4 * 6 * 8, dtype="f4").reshape(3, 4, 6, 8)
    lower, upper = (0, -1), (-1, -1)  # a filter of two rows and three columns, padded at the sides only
    made = im2col_tensor_map(on_gpu(images), lower, upper, 8, 16)
    walk = list(columns(lower, upper, images))
    for start, (off_h, off_w) in ((0, (0, 0)), (5, (1, 2)), (20, (0, 2)), (30, (1, 0))):
        n, h, w = walk[start]
        expected = numpy.zeros((16, 8), "f4")
        for row, (image, y, x) in enumerate(walk[start : start + 16]):
            if 0 <= y + off_h < 4 and 0 <= x + off_w < 6:
                expected[row] = images[image, y + off_h, x + off_w]
        out = podium.empty(128, "u32")
        kernels["read_columns"][launch(128)](made, w, h, n, off_w, off_h, 128, out)
        numpy.testing.assert_array_equal(out.numpy().view("f4").reshape(16, 8), expected)


def test_a_tile_is_written(kernels: podium.Module) -> None:
    """A copy to global memory writes the box and nothing beside it, and nothing outside of the array."""
    array = on_gpu(numpy.full((12, 16), 7, "i4"))
    box = (8, 8)
    kernels["write_2d"][launch(64)](tensor_map(array, box), 12, 6, 64)
    expected = numpy.full((12, 16), 7, "i4")
    expected[6:12, 12:16] = numpy.arange(64, dtype="i4").reshape(box)[:6, :4]
    numpy.testing.assert_array_equal(array.numpy(), expected)


def test_arrays_of_libraries(kernels: podium.Module) -> None:
    """Tensors of torch and arrays of CuPy are described as podium's own; torch tells bf16, too."""
    seen = 0
    for name in ("torch", "cupy"):
        try:
            library: Any = __import__(name)
        except ImportError:
            continue
        seen += 1
        values = numpy.arange(24 * 32, dtype="f4").reshape(24, 32)
        array = library.from_numpy(values).cuda() if name == "torch" else library.asarray(values)
        made = tensor_map(array, (4, 8))
        numpy.testing.assert_array_equal(read(kernels["read_2d"], made, (3, 12), (4, 8), "f4"), values[3:7, 12:20])
        if name == "torch":
            assert "24x32 bf16" in repr(tensor_map(array.bfloat16(), (4, 8)))
    if not seen:
        pytest.skip("neither torch nor CuPy is installed")


def test_what_the_rules_take_the_driver_takes(kernels: podium.Module) -> None:
    """Whatever the sizes, strides, boxes and modes, the driver never has to say that it cannot be, without a word why."""
    choose, array = random.Random(3).choice, podium.empty(1 << 16, "fp32")
    lengths, boxes = (1, 2, 7, 8, 16, 33, 256, 1000, 1 << 32), (1, 2, 3, 4, 8, 16, 64, 100, 256)
    taken, refused = 0, []
    for _ in range(3000):
        axes, columns = choose((1, 2, 3, 4, 5)), choose((False, True))
        shape = tuple(choose(lengths) for _ in range(axes))
        strides = (4,)
        for length in reversed(shape[1:]):
            strides = (-(-length * strides[0] // 16) * 16, *strides)
        words = {"interleave": choose(("none", "none", "16", "32")), "swizzle": choose(list(SWIZZLES))}
        words |= {"l2_promotion": choose((64, "none")), "fill": choose(("nan", "zeros"))}
        words["element_strides"] = tuple(choose((1, 1, 1, 2, 8)) for _ in shape)
        data = {"data": (array.ptr + choose((0, 16, 32)), False), "shape": shape, "strides": strides, "typestr": "<f4"}
        view = SimpleNamespace(__cuda_array_interface__={**data, "version": 3})
        try:
            if columns:
                corners = [tuple(choose((-2, 0, 1)) for _ in shape[2:]) for _ in range(2)]
                im2col_tensor_map(view, *corners, choose(boxes), choose(boxes), **words)
            else:
                tensor_map(view, tuple(choose(boxes) for _ in shape), **words)
        except ArgumentValueError as error:
            # What the driver asks of columns with interleaved channels is not published.
            if "the driver refuses" in str(error) and not (columns and words["interleave"] != "none"):
                refused.append(str(error))
            continue
        taken += 1
    assert refused == [] and taken > 100


def test_devices_without_tma_are_refused(gpu: NvidiaDriver) -> None:
    """Below compute capability 9.0 the error says what the device has."""
    arch = int("".join(filter(str.isdigit, gpu.default_target().arch)))
    if arch >= 90:
        pytest.skip(f"this device, sm_{arch}, has TMA")
    with pytest.raises(BackendError, match="tensor maps need 9.0"):
        tensor_map(podium.empty((8, 8), "fp32"), (4, 4))
