"""Memory of devices and pinned memory of the host; copies between all of them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import ClassVar

from podium.backend import OwnedMemory
from podium.errors import OutOfResourcesError, PodiumError

from podium_amd import context, library
from podium_amd.api import check, hip
from podium_amd.device import Attribute, attribute
from podium_amd.status import INVALID_VALUE, OUT_OF_MEMORY, launch_error, take_last_error
from podium_amd.stream import without_alias

__all__ = ["copy", "device_memory", "pinned_memory", "pointer_device"]

# What the runtime's own allocations are aligned to.
_DEVICE_ALIGNMENT, _HOST_ALIGNMENT = 256, 4096
_MORE_THAN_ANY = 1 << 47  # bytes; some versions call such a size invalid
_PORTABLE_AND_MAPPED = 1 | 2  # hipHostMallocPortable, hipHostMallocMapped
_ANY_DIRECTION = 4  # hipMemcpyDefault

# hipMemoryType in HIP 5, and since; managed memory is a type of its own only since. Then the device types of DLPack,
# which has none for managed memory of ROCm.
_KINDS_OF_5 = {0: "host", 1: "device", 3: "device", 4: "device"}
_KINDS = {1: "host", 2: "device", 3: "device", 11: "device"}
_DL_CPU, _DL_ROCM, _DL_ROCM_HOST = 1, 10, 11


def device_memory(size: int, alignment: int, device: int, stream: int | None) -> OwnedMemory:
    """Allocate memory of a device: with a stream it is there, and is freed, in its order; without, for any stream.

    Raises `OutOfResourcesError`, or `LaunchError` if earlier work has failed.
    """
    functions = hip()
    in_order = stream is not None and attribute(device, Attribute.MEMORY_POOLS_SUPPORTED)
    order = without_alias(stream) if stream is not None and in_order else None

    def allocate(room: int) -> int:
        place = ctypes.c_void_p()
        with context.current(device), context.relaxed():
            if order is None:
                status = functions.hipMalloc(ctypes.byref(place), room)
            else:
                status = functions.hipMallocAsync(ctypes.byref(place), room, order)
            if status:
                raise _refusal(status, "memory in bytes", size, _free_bytes, device)
        return place.value or 0

    def free(address: int) -> None:
        with context.current(device), context.relaxed():
            status = functions.hipFreeAsync(address, order) if order is not None else 0
            if order is None or status:  # or the stream is no more
                status |= functions.hipFree(address)  # waits for the work before; its failure is that work's
            if status:
                take_last_error()

    return OwnedMemory(size, alignment, allocate, free, kept=_DEVICE_ALIGNMENT)


def pinned_memory(size: int, alignment: int, device: int) -> OwnedMemory:
    """Allocate memory of the host that devices reach, and that copies need not stage. Raises `OutOfResourcesError`."""
    functions = hip()

    def allocate(room: int) -> int:
        place = ctypes.c_void_p()
        with context.current(device), context.relaxed():
            status = functions.hipHostMalloc(ctypes.byref(place), room, _PORTABLE_AND_MAPPED)
            if status:
                from podium.parts import free_host_bytes

                raise _refusal(status, "pinned memory of the host in bytes", size, free_host_bytes, device)
        return place.value or 0

    def free(address: int) -> None:
        with context.current(device), context.relaxed():
            if functions.hipHostFree(address):
                take_last_error()

    return OwnedMemory(size, alignment, allocate, free, kept=_HOST_ALIGNMENT)


def _refusal(status: int, what: str, size: int, free_bytes: Callable[[], int], device: int) -> PodiumError:
    """Make the error for memory that there is not, or for a call that fails because of earlier work."""
    take_last_error()
    if status == OUT_OF_MEMORY or (status == INVALID_VALUE and size >= _MORE_THAN_ANY):
        return OutOfResourcesError("allocate", what, size, free_bytes(), "free some")
    return launch_error(status, f"allocating {size} bytes", device)


def _free_bytes() -> int:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    status = hip().hipMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    return 0 if status else free.value


def copy(destination: int, source: int, size: int, device: int, stream: int) -> None:
    """Copy bytes in any direction, after what is in the stream; done when it returns. Raises `LaunchError`."""
    functions, stream = hip(), without_alias(stream)
    with context.current(device), context.relaxed():
        status = functions.hipMemcpyAsync(destination, source, size, _ANY_DIRECTION, stream)
        status = status or functions.hipStreamSynchronize(stream)
    if status:
        raise launch_error(status, f"copying {size} bytes", device)


class _PointerAttributes(ctypes.Structure):
    """hipPointerAttribute_t."""

    _fields_: ClassVar = [
        ("type", ctypes.c_int),
        ("device", ctypes.c_int),
        ("device_pointer", ctypes.c_void_p),
        ("host_pointer", ctypes.c_void_p),
        ("managed", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("room", ctypes.c_uint64 * 4),  # for what later versions add
    ]


def pointer_device(address: int) -> tuple[int, int]:
    """Return the DLPack device type of the memory at an address, and the index of its device.

    Memory that no HIP allocator knows is the host's, (1, 0). Raises `BackendError` if the runtime cannot tell.
    """
    found = _PointerAttributes()
    status = hip().hipPointerGetAttributes(ctypes.byref(found), address)
    if status == INVALID_VALUE:  # what older versions say of memory that they do not know
        take_last_error()
        return _DL_CPU, 0
    check(status, f"asking what memory {address:#x} is")
    kind = (_KINDS_OF_5 if library.abi() == 5 else _KINDS).get(found.type)
    if kind == "device" or found.managed:
        return _DL_ROCM, found.device
    return (_DL_ROCM_HOST, found.device) if kind == "host" else (_DL_CPU, 0)
