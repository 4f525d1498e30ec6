"""Tensor maps on the recording driver: what the driver is told of an array, and what a kernel gets."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("cuda.bindings", reason="cuda-python is not installed")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler for the recording driver")

PROGRAM = """
import copy, gc, json, pickle, weakref
import podium, podium_nvidia
from podium_nvidia import im2col_tensor_map, tensor_map
from recording.cuda.library import Recording

recording = Recording()
podium.set_active("nvidia")
told = []

def tell(made):
    told.append({**recording.tensor_map(), "map": repr(made)})
    return made

class Interface:
    # a library that tells neither the device nor, for axes of one element, useful strides
    def __init__(self, array, shape, strides, typestr):
        self.array = array
        self.__cuda_array_interface__ = {
            "data": (array.ptr, False), "shape": shape, "strides": strides, "typestr": typestr, "version": 3}

def refused(make, *arguments, **words):
    try:
        make(*arguments, **words)
    except podium.errors.PodiumError as error:
        return [type(error).__name__, str(error)]

array = podium.empty((48, 64), "fp32")
made = tell(tensor_map(array, (8, 32)))
tell(tensor_map(array, [4, 16], element_strides=(2, 1), swizzle=64, l2_promotion="128", fill="nan", dtype="tf32"))
images = podium.empty((2, 7, 9, 16), "fp16")
tell(im2col_tensor_map(images, (-1, -2), (-3, -4), 8, 32))
padded = Interface(array, (5, 1, 6), (64, 4, 4), "<f4")
tell(tensor_map(padded, (4, 1, 4)))
tell(tensor_map(podium.empty(100, "u8"), 64))
depth = recording.context_depth()
kernel = podium.kernel('''#include <cuda.h>
    extern "C" __global__ void take(int n, const __grid_constant__ CUtensorMap map, int *out) {
        if (n) *out = (int)(unsigned long long)&map;
    }''')
kernel[1, 32](0, made, 0)
launch = recording.last()
gone = weakref.ref(array)
own, number = bytes(made).hex(), podium_nvidia.TensorMap
del array, padded
gc.collect()
alive = gone() is not None
copies = []
for copied in (copy.copy, copy.deepcopy, pickle.dumps):
    try:
        copied(made)
    except TypeError as error:
        copies.append(str(error))
del made
gc.collect()
recording.set_attributes({75: 8, 76: 6})
from podium_nvidia.device import attribute
attribute.cache_clear()
errors = [
    refused(tensor_map, images, (1, 1, 1, 8)),
    refused(tensor_map, b"bytes", 1),
    refused(tensor_map, images, (1, 1, 8)),
    refused(tensor_map, images, (1, 1, 1, 8.5)),
    refused(tensor_map, images, (1, 1, 1, 8), dtype=["fp16"]),
    refused(tensor_map, images, (1, 1, 1, 8), element_strides=(1, 1, 9, 1)),
    refused(im2col_tensor_map, images, -1, (-3, -4), 8, 32),
    refused(im2col_tensor_map, images, (-1, -2), (-3, -4), 8, 1025),
    refused(tensor_map, podium.empty((0, 8), "fp32"), (1, 4)),
]
class Host:
    __dlpack_device__ = lambda self: (1, 0)
    def __dlpack__(self, **words):
        import numpy
        return numpy.zeros((4, 8), "f4").__dlpack__(**words)
errors.append(refused(tensor_map, Host(), (4, 8)))
recording.set_attributes({75: 9, 76: 0})
attribute.cache_clear()
with recording.failing("cuTensorMapEncodeTiled", 801):
    errors.append(refused(tensor_map, images, (1, 1, 1, 8)))
errors.append(refused(tensor_map, images, (1, 1, 1, 8), swizzle="128-atom-32"))
errors.append(refused(im2col_tensor_map, images, (-1, -2), (-3, -4), 8, 32, swizzle="128-atom-64"))
errors.append(refused(tensor_map, podium.empty((9, 9, 8), "fp32"), (100, 100, 8)))
with recording.failing("cuTensorMapEncodeTiled", 1):
    errors.append(refused(tensor_map, images, (1, 1, 1, 8)))
long = Interface(images, (2, 1 << 31, 8), (1 << 36, 32, 4), "<f4")
errors.append(refused(im2col_tensor_map, long, 0, 0, 8, 32))
print(json.dumps([told, [own, launch.parameters[1].hex(), alive, gone() is None, depth], errors, copies]))
"""


@pytest.fixture(scope="module")
def outcome() -> Any:
    """Run the program once, on the interpreted level, where both levels hand over the same bytes."""
    from recording.cuda.library import environment

    variables = environment(PODIUM_LAUNCHER="interpreted")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=variables, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_axes_are_told_from_the_innermost(outcome: Any) -> None:
    """Sizes, boxes and steps go to the driver in TMA's order, strides without the innermost, and modes as its numbers."""
    plain, modes, *_ = outcome[0]
    assert (plain["type"], plain["rank"], plain["im2col"]) == (7, 2, 0)
    assert (plain["sizes"], plain["strides"][:1], plain["box"]) == ([64, 48], [256], [32, 8])
    assert plain["element_strides"] == [1, 1]
    assert [plain[name] for name in ("interleave", "swizzle", "promotion", "fill")] == [0, 0, 0, 0]
    assert plain["map"].startswith("<TensorMap of 48x64 fp32 at 0x") and plain["map"].endswith("in boxes of 8x32>")
    assert modes["element_strides"] == [1, 2]
    assert [modes[name] for name in ("type", "swizzle", "promotion", "fill")] == [11, 2, 2, 1]


def test_columns_of_images(outcome: Any) -> None:
    """Corners go to the driver in the order width, height, and channels and pixels as they are."""
    columns = outcome[0][2]
    assert (columns["im2col"], columns["type"], columns["sizes"]) == (1, 6, [16, 9, 7, 2])
    assert (columns["lower"][:2], columns["upper"][:2]) == ([-2, -1], [-4, -3])
    assert (columns["channels"], columns["pixels"]) == (8, 32)
    assert "32 pixels of 8 channels, corners (-1, -2) and (-3, -4)" in columns["map"]


def test_arrays_of_libraries_that_tell_little(outcome: Any) -> None:
    """The driver is asked for the device of an address, and strides that are never used become what it takes."""
    assert outcome[0][3]["sizes"] == [6, 1, 5]
    assert outcome[0][3]["strides"][:2] == [32, 64]
    assert (outcome[0][4]["rank"], outcome[0][4]["sizes"], outcome[0][4]["box"]) == (1, [100], [64])


def test_a_kernel_gets_the_map_by_value(outcome: Any) -> None:
    """A parameter between others has the bytes of the map, which keeps its array alive and left no context current."""
    own, passed, alive, gone, depth = outcome[1]
    assert passed == own
    assert own[:16] != "0" * 16
    assert alive
    assert gone
    assert depth == 0


def test_maps_are_not_copied(outcome: Any) -> None:
    """A copy would have a copy of the array, or none, and go on with the address of the first."""
    assert len(outcome[3]) == 3
    assert all("cannot be copied or pickled" in each for each in outcome[3])


def test_mistakes_are_told_before_the_driver_is_asked(outcome: Any) -> None:
    """Each error names the function and the argument; the driver's refusal has its name and what it was asked for."""
    expected = [
        ("BackendError", "compute capability 8.6, and tensor maps need 9.0 or later"),
        ("ArgumentTypeError", "tensor_map: got bytes, and needs an array that tells its shape"),
        (
            "ArgumentValueError",
            "box is (1, 1, 8), and must have an integer for each of the axes of the array, 4 in all",
        ),
        ("ArgumentTypeError", "box is (1, 1, 1, 8.5), and must have an integer"),
        ("ArgumentTypeError", "got dtype ['fp16']; the types of a tensor map are"),
        ("ArgumentValueError", "element_strides is (1, 1, 9, 1), where every number must be from 1 to 8"),
        ("ArgumentValueError", "lower is -1, and must have an integer for each of the axes of space, 2 in all"),
        ("ArgumentValueError", "pixels is 1025, where every number must be from 1 to 1024"),
        ("ArgumentValueError", "array is of shape (0, 8), where every axis must have from 1 to 2**32 elements"),
        ("ArrayDeviceError", "the array is in the memory of the host"),
        ("BackendError", "CUDA_ERROR_NOT_SUPPORTED"),
        ("ArgumentValueError", "swizzle is '128-atom-32', which devices have from compute capability 10.0 on"),
        ("ArgumentValueError", "swizzle is '128-atom-64', which devices have from"),
        ("ArgumentValueError", "box is of 320000 bytes, which is more than a block has of shared memory, 232448 bytes"),
        ("ArgumentValueError", "of 2x7x9x16 fp16 at"),
        ("ArgumentValueError", "every axis but the first must have less than 2**31 elements"),
    ]
    for (kind, message), (expected_kind, part) in zip(outcome[2], expected, strict=True):
        assert kind == expected_kind, message
        assert part in message
