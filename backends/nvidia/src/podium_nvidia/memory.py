"""Memory of devices and pinned memory of the host; copies between all of them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from podium.backend import OwnedMemory
from podium.errors import OutOfResourcesError, PodiumError

from podium_nvidia import context
from podium_nvidia.api import check, driver
from podium_nvidia.device import Attribute, attribute
from podium_nvidia.status import INVALID_CONTEXT, INVALID_VALUE, OUT_OF_MEMORY, launch_error

__all__ = ["copy", "device_memory", "pinned_memory", "pointer_device"]

# What the driver's own allocations are aligned to.
_DEVICE_ALIGNMENT, _HOST_ALIGNMENT = 256, 4096
_MORE_THAN_ANY = 1 << 47  # bytes; some drivers call such a size invalid
_PORTABLE_AND_MAPPED = 1 | 2  # CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP

# CUpointer_attribute, CUmemorytype and the device types of DLPack
_MEMORY_TYPE, _IS_MANAGED, _DEVICE_ORDINAL = 2, 8, 9
_HOST_MEMORY, _DEVICE_MEMORY = 1, 2
_DL_CPU, _DL_CUDA, _DL_CUDA_HOST, _DL_CUDA_MANAGED = 1, 2, 3, 13


def device_memory(size: int, alignment: int, device: int, stream: int | None) -> OwnedMemory:
    """Allocate memory of a device: with a stream it is there, and is freed, in its order; without, for any stream.

    Raises `OutOfResourcesError`, or `LaunchError` if earlier work has failed.
    """
    functions = driver()
    order = stream if stream is not None and attribute(device, Attribute.MEMORY_POOLS_SUPPORTED) else None

    def allocate(room: int) -> int:
        place = ctypes.c_void_p()
        with context.current(device), context.relaxed():
            if order is None:
                status = functions.cuMemAlloc(ctypes.byref(place), room)
            else:
                status = functions.cuMemAllocAsync(ctypes.byref(place), room, order)
            if status:
                raise _refusal(status, "memory in bytes", size, _free_bytes, device)
        return place.value or 0

    def free(address: int) -> None:
        with context.current(device), context.relaxed():
            if order is None:
                functions.cuMemFree(address)  # waits for the work before; its failure is that work's
            elif functions.cuMemFreeAsync(address, order):
                functions.cuMemFree(address)  # the stream is no more

    return OwnedMemory(size, alignment, allocate, free, kept=_DEVICE_ALIGNMENT)


def pinned_memory(size: int, alignment: int, device: int) -> OwnedMemory:
    """Allocate memory of the host that devices reach, and that copies need not stage. Raises `OutOfResourcesError`."""
    functions = driver()

    def allocate(room: int) -> int:
        place = ctypes.c_void_p()
        with context.current(device), context.relaxed():
            status = functions.cuMemHostAlloc(ctypes.byref(place), room, _PORTABLE_AND_MAPPED)
            if status:
                from podium.parts import free_host_bytes

                raise _refusal(status, "pinned memory of the host in bytes", size, free_host_bytes, device)
        return place.value or 0

    def free(address: int) -> None:
        with context.current(device), context.relaxed():
            functions.cuMemFreeHost(address)

    return OwnedMemory(size, alignment, allocate, free, kept=_HOST_ALIGNMENT)


def _refusal(status: int, what: str, size: int, free_bytes: Callable[[], int], device: int) -> PodiumError:
    """Make the error for memory that there is not, or for a call that fails because of earlier work."""
    if status == OUT_OF_MEMORY or (status == INVALID_VALUE and size >= _MORE_THAN_ANY):
        return OutOfResourcesError("allocate", what, size, free_bytes(), "free some")
    return launch_error(status, f"allocating {size} bytes", device)


def _free_bytes() -> int:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    status = driver().cuMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    return 0 if status else free.value


def copy(destination: int, source: int, size: int, device: int, stream: int) -> None:
    """Copy bytes in any direction, after what is in the stream; done when it returns. Raises `LaunchError`."""
    functions = driver()
    with context.current(device), context.relaxed():
        status = functions.cuMemcpyAsync(destination, source, size, stream) or functions.cuStreamSynchronize(stream)
    if status:
        raise launch_error(status, f"copying {size} bytes", device)


def pointer_device(address: int) -> tuple[int, int]:
    """Return the DLPack device type of the memory at an address, and the index of its device.

    Memory that no CUDA allocator knows is the host's, (1, 0). Raises `BackendError` if the driver cannot tell.
    """
    kind, managed, ordinal = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_int()
    wanted = (ctypes.c_int * 3)(_MEMORY_TYPE, _IS_MANAGED, _DEVICE_ORDINAL)
    places = (ctypes.c_void_p * 3)(*(ctypes.addressof(each) for each in (kind, managed, ordinal)))
    status = driver().cuPointerGetAttributes(3, wanted, places, address)
    if status == INVALID_CONTEXT:  # no context is current, which says nothing of the address
        with context.some():
            status = driver().cuPointerGetAttributes(3, wanted, places, address)
    check(status, f"asking what memory {address:#x} is")
    if managed.value:
        return _DL_CUDA_MANAGED, ordinal.value
    if kind.value == _DEVICE_MEMORY:
        return _DL_CUDA, ordinal.value
    return (_DL_CUDA_HOST, ordinal.value) if kind.value == _HOST_MEMORY else (_DL_CPU, 0)
