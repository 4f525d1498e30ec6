"""Tensor maps: descriptors of arrays for the hardware's tensor memory access (TMA), from compute capability 9.0 on.

A map is passed to a kernel by value, for a parameter ``const __grid_constant__ CUtensorMap map``.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

from podium.backend import ArrayLayout, array_layout
from podium.errors import ArgumentTypeError, ArrayDeviceError, BackendError

from podium_nvidia import api, context, libcuda
from podium_nvidia.device import Attribute, attribute, capability
from podium_nvidia.memory import pointer_device
from podium_nvidia.status import INVALID_VALUE
from podium_nvidia.tma_rules import (
    Modes,
    Tensor,
    check_between,
    check_box,
    check_corners,
    check_inner_bytes,
    check_room,
    check_swizzle,
    integers,
    wrong,
)

__all__ = ["TensorMap", "im2col_tensor_map", "tensor_map"]

_BYTES = 128
_ALIGNMENT = 128  # 64 by the driver's manual; the header of CUDA 13 says 128

_HOST, _DEVICE, _PINNED, _MANAGED = 1, 2, 3, 13  # DLPack's numbers
_CAPABILITY = 90


class TensorMap(ctypes.Structure):
    """A tensor map: 128 bytes that only the driver and the hardware understand. `tensor_map` makes one.

    `array` is what it describes, which lives as long as the map; `text` says how.
    """

    _fields_: ClassVar = [("opaque", ctypes.c_uint64 * (_BYTES // 8))]

    array: object
    text: str

    @classmethod
    def unwritten(cls, array: object, text: str) -> TensorMap:
        """Return a map whose memory is aligned as the driver wants it, for the driver to write."""
        memory = (ctypes.c_char * (_BYTES + _ALIGNMENT))()
        made = cls.from_buffer(memory, -ctypes.addressof(memory) % _ALIGNMENT)  # which keeps the memory
        made.array, made.text = array, text
        return made

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be copied or pickled: it has the address of its own array. Make another one")

    def __repr__(self) -> str:
        return f"<TensorMap {self.text}>"


def tensor_map(
    array: Any,
    box: Sequence[int] | int,
    *,
    element_strides: Sequence[int] | int | None = None,
    swizzle: str | int = "none",
    interleave: str | int = "none",
    l2_promotion: str | int = "none",
    fill: str = "zeros",
    dtype: str | None = None,
) -> TensorMap:
    """Describe an array from which, or to which, one copy moves a box of elements.

    `box` is how many elements a copy spans along each axis, in the order of the array's axes; a kernel counts
    coordinates the other way round, from the innermost axis. What of a box lies outside of the array is read as zeros,
    or as NaN with ``fill="nan"``, and is not written. With `element_strides`, only every so manyth element of the box
    is moved. `swizzle` ("none", "32", "64", "128", "128-atom-32", "128-atom-32-flip-8", "128-atom-64") is how chunks
    are mixed in shared memory, `interleave` ("none", "16", "32") how channels lie in global memory, `l2_promotion`
    ("none", "64", "128", "256") how many bytes at a time the L2 cache fetches. `dtype` names another element type of
    the same size, such as "tf32" for an array of fp32.

    Raises `ArgumentValueError` or `ArgumentTypeError` for what the hardware cannot describe, `ArrayDeviceError` for
    an array in other memory, and `BackendError` for a device without TMA.
    """
    what = "tensor_map"
    modes = Modes.of(what, swizzle, interleave, l2_promotion, fill)
    layout = _layout(what, array)
    tensor = Tensor.of(what, layout, dtype, modes, 1)
    sizes = integers(what, "box", box, len(tensor.shape), "axes of the array")
    check_box(tensor, sizes, modes)
    steps = _steps(tensor, element_strides)
    made = TensorMap.unwritten(array, f"of {_described(tensor)} in boxes of {_product(sizes)}")
    moved = math.prod(-(-size // step) for size, step in zip(sizes, steps))
    _encode("cuTensorMapEncodeTiled", made, layout, tensor, [_reversed(ctypes.c_uint32, sizes)], steps, modes, moved)
    return made


def im2col_tensor_map(
    array: Any,
    lower: Sequence[int] | int,
    upper: Sequence[int] | int,
    channels: int,
    pixels: int,
    *,
    element_strides: Sequence[int] | int | None = None,
    swizzle: str | int = "none",
    interleave: str | int = "none",
    l2_promotion: str | int = "none",
    fill: str = "zeros",
    dtype: str | None = None,
) -> TensorMap:
    """Describe images from which one copy takes the columns that a convolution multiplies.

    The axes of the array are images, then one to three axes of space, then channels. `lower` and `upper` have a number
    for each axis of space: where the walk over an image begins and ends, counted from its first and its last pixel. A
    copy takes `channels` elements of each of `pixels` pixels, and goes on to the next row and image by itself. The
    other arguments and the errors are those of `tensor_map`.
    """
    what = "im2col_tensor_map"
    modes = Modes.of(what, swizzle, interleave, l2_promotion, fill)
    layout = _layout(what, array)
    tensor = Tensor.of(what, layout, dtype, modes, 3)
    if not all(length < 1 << 31 for length in tensor.shape[1:]):
        why = "where every axis but the first must have less than 2**31 elements"
        raise wrong(what, "array", f"of shape {tensor.shape}", why)
    space = len(tensor.shape) - 2
    low = integers(what, "lower", lower, space, "axes of space")
    high = integers(what, "upper", upper, space, "axes of space")
    check_corners(tensor, low, high)
    (channel_count,) = integers(what, "channels", channels, 1, "elements of a pixel")
    (pixel_count,) = integers(what, "pixels", pixels, 1, "pixels of a copy")
    check_between(what, "channels", (channel_count,), 1, 256)
    check_inner_bytes(tensor, "channels", channel_count, channel_count, modes)
    check_between(what, "pixels", (pixel_count,), 1, 1024)
    steps = _steps(tensor, element_strides)
    walk = f"{pixel_count} pixels of {channel_count} channels, corners {low} and {high}"
    made = TensorMap.unwritten(array, f"of {_described(tensor)} in columns of {walk}")
    box = [_reversed(ctypes.c_int32, low), _reversed(ctypes.c_int32, high), channel_count, pixel_count]
    _encode("cuTensorMapEncodeIm2col", made, layout, tensor, box, steps, modes, channel_count * pixel_count)
    return made


def _layout(what: str, array: object) -> ArrayLayout:
    """Read the layout of an array that a GPU of NVIDIA's reaches."""
    layout = array_layout(array)
    if layout is None:
        text = f"{what}: got {type(array).__name__}, and needs an array that tells its shape, through DLPack or CUDA's "
        raise ArgumentTypeError(f"{text}array interface", argument="array", value=type(array).__name__)
    if layout.device_type not in (_DEVICE, _PINNED, _MANAGED):
        kind = "host" if layout.device_type == _HOST else "device"
        place = "in the memory of the host" if kind == "host" else f"on a device of DLPack's type {layout.device_type}"
        text = f"{what}: the array is {place}, which the GPU cannot reach; copy it to the GPU first"
        raise ArrayDeviceError(text, kind=kind, argument="array")
    return layout


def _steps(tensor: Tensor, given: Sequence[int] | int | None) -> tuple[int, ...]:
    axes = len(tensor.shape)
    if given is None:
        return (1,) * axes
    steps = integers(tensor.what, "element_strides", given, axes, "axes of the array")
    check_between(tensor.what, "element_strides", steps, 1, 8)
    return steps


def _encode(
    name: str,
    made: TensorMap,
    layout: ArrayLayout,
    tensor: Tensor,
    box: list[Any],
    steps: Sequence[int],
    modes: Modes,
    moved: int,
) -> None:
    """Let the driver write the map; `moved` is how many elements one copy moves."""
    device = _device(tensor.what, layout)
    if (found := capability(device)) < _CAPABILITY:
        raise BackendError(
            f"{tensor.what}: device {device} has compute capability {found // 10}.{found % 10}, and tensor maps need "
            f"9.0 or later; load the tile there with plain loads or with memcpy_async"
        )
    check_swizzle(tensor.what, modes, found)
    room = attribute(device, Attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
    check_room(tensor, "box" if name == "cuTensorMapEncodeTiled" else "pixels", moved, room)
    function = getattr(libcuda.library(), name, None)
    if function is None:
        raise BackendError(f"{tensor.what}: this driver has no {name}. Install one that serves CUDA 12 or later")
    # Not by cuda-python: the map that it makes lies anywhere, and the driver takes none that is not aligned.
    with context.current(device):
        status = function(
            ctypes.byref(made),
            ctypes.c_int(tensor.kind),
            ctypes.c_uint32(len(tensor.shape)),
            ctypes.c_void_p(tensor.address),
            _reversed(ctypes.c_uint64, tensor.shape),
            _reversed(ctypes.c_uint64, tensor.strides[:-1]),
            *(ctypes.c_uint32(each) if isinstance(each, int) else each for each in box),
            _reversed(ctypes.c_uint32, steps),
            *map(ctypes.c_int, (modes.interleave, modes.swizzle, modes.promotion, modes.fill)),
        )
    if status == INVALID_VALUE:
        why = "which the driver refuses, and it does not say why; other modes, steps of 1 or a smaller box may do"
        raise wrong(tensor.what, "array", f"the one {made.text}", why)
    api.check(status, f"{tensor.what}: {name} {made.text}")


def _device(what: str, layout: ArrayLayout) -> int:
    if layout.device_type == _DEVICE and layout.device >= 0:
        return layout.device
    kind, device = pointer_device(layout.address)
    if kind == _HOST:
        text = f"{what}: the memory at {layout.address:#x} is the host's, as the driver says; copy the array to the GPU"
        raise ArrayDeviceError(text, kind="host", argument="array")
    return max(0, device)


def _reversed(kind: Any, numbers: Sequence[int]) -> Any:
    """Return the numbers in TMA's order, the innermost axis first; an array of none still has an address."""
    return (kind * max(1, len(numbers)))(*reversed(numbers))


def _product(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers))


def _described(tensor: Tensor) -> str:
    return f"{_product(tensor.shape)} {tensor.element} at {tensor.address:#x}"
