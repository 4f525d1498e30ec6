"""Devices: what the runtime says of each, asked once."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from functools import cache

from podium.backend import Device, Target
from podium.errors import BackendError

from podium_amd.api import check, has, hip
from podium_amd.status import INVALID_VALUE, take_last_error

__all__ = ["Attribute", "attribute", "devices", "target"]

# A grid is in blocks, and the packet that starts it counts threads in 32 bits; `podium_amd.occupancy` looks at both.
_LONGEST_GRID = (1 << 31) - 1
_PARAMETER_BYTES = 4096


class Attribute(IntEnum):
    """hipDeviceAttribute_t, whose numbers are the same since HIP 5.2."""

    COOPERATIVE_LAUNCH = 10
    MAX_BLOCK_DIM_X = 26
    MAX_GRID_DIM_X = 29
    MAX_THREADS_PER_BLOCK = 56
    MULTIPROCESSOR_COUNT = 63
    MAX_SHARED_MEMORY_PER_BLOCK = 74
    WARP_SIZE = 87
    MEMORY_POOLS_SUPPORTED = 88


@cache
def attribute(device: int, number: int) -> int:
    """Return an attribute of a device; 0 for one that the runtime is too old to know."""
    value = ctypes.c_int()
    status = hip().hipDeviceGetAttribute(ctypes.byref(value), number, device)
    if status == INVALID_VALUE and number == Attribute.MEMORY_POOLS_SUPPORTED:
        take_last_error()
        return 0
    check(status, f"attribute {number} of device {device}")
    return value.value


@cache
def target(device: int) -> Target:
    """Return what code is compiled for that is to run on a device: its full name, with its features as they are set."""
    return Target("amd", _arch(device), attribute(device, Attribute.WARP_SIZE))


def devices() -> list[Device]:
    """Return the devices that the masks leave, in their order. Raises `BackendError`."""
    count = ctypes.c_int()
    check(hip().hipGetDeviceCount(ctypes.byref(count)), "hipGetDeviceCount")
    return [_device(index) for index in range(count.value)]


def _device(index: int) -> Device:
    functions = hip()
    memory, name = ctypes.c_size_t(), ctypes.create_string_buffer(256)
    check(functions.hipDeviceGetName(name, len(name), index), f"device {index}")
    check(functions.hipDeviceTotalMem(ctypes.byref(memory), index), f"device {index}")
    described = target(index)
    x, y, z = (min(attribute(index, Attribute.MAX_GRID_DIM_X + axis), _LONGEST_GRID) for axis in range(3))
    block_x, block_y, block_z = (attribute(index, Attribute.MAX_BLOCK_DIM_X + axis) for axis in range(3))
    return Device(
        index=index,
        name=name.value.decode("utf-8", "replace") or described.arch,
        target=described,
        max_grid=(x, y, z),
        max_block=(block_x, block_y, block_z),
        max_threads=attribute(index, Attribute.MAX_THREADS_PER_BLOCK),
        max_shared=attribute(index, Attribute.MAX_SHARED_MEMORY_PER_BLOCK),
        memory=memory.value,
        max_parameter_bytes=_PARAMETER_BYTES,
    )


# hipDeviceProp_t, by the function that fills it: bytes, and where gcnArchName is. No attribute has that.
_PROPERTIES = {"hipGetDevicePropertiesR0600": (1472, 1160), "hipGetDeviceProperties": (792, 396)}
_ROOM = 1 << 13  # for what later versions add


def _arch(device: int) -> str:
    name = next(filter(has, _PROPERTIES))
    _, offset = _PROPERTIES[name]
    properties = ctypes.create_string_buffer(_ROOM)
    check(getattr(hip(), name)(properties, device), f"device {device}")
    text = properties.raw[offset : offset + 256].partition(b"\0")[0].decode("ascii", "replace")
    if not text.startswith("gfx"):
        raise BackendError(f"{name} gives {text!r} as the architecture of device {device}, which is none")
    return text
