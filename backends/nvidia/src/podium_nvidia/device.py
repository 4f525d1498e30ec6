"""Devices: what the driver says of each, asked once."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from functools import cache

from podium.backend import Device, Target
from podium.errors import BackendError

from podium_nvidia.api import check, driver
from podium_nvidia.arch import WARP_SIZE
from podium_nvidia.status import INVALID_VALUE, cuda_version

__all__ = ["Attribute", "attribute", "capability", "count", "devices", "target"]

# Since CUDA 12.1, on devices since Volta, parameters take up to this much; before, and on others, 4096 bytes.
_PARAMETER_BYTES = 32764
_NON_PORTABLE_CLUSTER = 16


class Attribute(IntEnum):
    """CUdevice_attribute."""

    MAX_THREADS_PER_BLOCK = 1
    MAX_BLOCK_DIM_X = 2
    MAX_GRID_DIM_X = 5
    MAX_SHARED_MEMORY_PER_BLOCK = 8
    MULTIPROCESSOR_COUNT = 16
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76
    COOPERATIVE_LAUNCH = 95
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    MEMORY_POOLS_SUPPORTED = 115
    CLUSTER_LAUNCH = 120
    MEM_SYNC_DOMAIN_COUNT = 126


@cache
def attribute(device: int, number: int) -> int:
    """Return an attribute of a device; 0 for one that the driver is too old to know."""
    value = ctypes.c_int()
    status = driver().cuDeviceGetAttribute(ctypes.byref(value), number, device)
    if status == INVALID_VALUE and number > Attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return 0
    check(status, f"attribute {number} of device {device}")
    return value.value


def capability(device: int) -> int:
    """Return the compute capability of a device, such as 90."""
    major = attribute(device, Attribute.COMPUTE_CAPABILITY_MAJOR)
    return 10 * major + attribute(device, Attribute.COMPUTE_CAPABILITY_MINOR)


def target(device: int) -> Target:
    """Return what code is compiled for that is to run on a device."""
    return Target("nvidia", f"sm_{capability(device)}", WARP_SIZE)


def devices() -> list[Device]:
    """Return the devices that CUDA_VISIBLE_DEVICES leaves, in its order. Raises `BackendError`."""
    return [_device(index) for index in range(count())]


def count() -> int:
    """Return how many devices CUDA_VISIBLE_DEVICES leaves. Raises `BackendError`."""
    number = ctypes.c_int()
    check(driver().cuDeviceGetCount(ctypes.byref(number)), "cuDeviceGetCount")
    return number.value


def _device(index: int) -> Device:
    functions = driver()
    handle, memory, name = ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(256)
    check(functions.cuDeviceGet(ctypes.byref(handle), index), f"device {index}")
    if handle.value != index:  # podium takes the one for the other on each launch
        raise BackendError(f"The CUDA driver calls device {index} by another number, {handle.value}")
    check(functions.cuDeviceGetName(name, len(name), index), f"device {index}")
    check(functions.cuDeviceTotalMem(ctypes.byref(memory), index), f"device {index}")
    optin = attribute(index, Attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
    return Device(
        index=index,
        name=name.value.decode("utf-8", "replace"),
        target=target(index),
        max_grid=_three(index, Attribute.MAX_GRID_DIM_X),
        max_block=_three(index, Attribute.MAX_BLOCK_DIM_X),
        max_threads=attribute(index, Attribute.MAX_THREADS_PER_BLOCK),
        max_shared=max(optin, attribute(index, Attribute.MAX_SHARED_MEMORY_PER_BLOCK)),
        memory=memory.value,
        max_parameter_bytes=_PARAMETER_BYTES if capability(index) >= 70 and cuda_version() >= 12010 else 4096,
        max_cluster=_NON_PORTABLE_CLUSTER if attribute(index, Attribute.CLUSTER_LAUNCH) else 1,
    )


def _three(device: int, first: int) -> tuple[int, int, int]:
    x, y, z = (attribute(device, first + axis) for axis in range(3))
    return x, y, z
