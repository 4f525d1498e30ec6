"""Memory of devices and pinned memory of the host, as buffers of the driver protocol; copies between all of them."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from podium.errors import OutOfResourcesError, PodiumError

from podium_nvidia import context
from podium_nvidia.api import check, driver
from podium_nvidia.device import Attribute, attribute
from podium_nvidia.status import INVALID_CONTEXT, INVALID_VALUE, OUT_OF_MEMORY, launch_error

__all__ = ["DeviceBuffer", "PinnedBuffer", "copy", "pointer_device"]

# What the driver's own allocations are aligned to.
_DEVICE_ALIGNMENT, _HOST_ALIGNMENT = 256, 4096
_MORE_THAN_ANY = 1 << 47  # bytes; some drivers call such a size invalid
_PORTABLE_AND_MAPPED = 1 | 2  # CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP

# CUpointer_attribute, CUmemorytype and the device types of DLPack
_MEMORY_TYPE, _IS_MANAGED, _DEVICE_ORDINAL = 2, 8, 9
_HOST_MEMORY, _DEVICE_MEMORY = 1, 2
_DL_CPU, _DL_CUDA, _DL_CUDA_HOST, _DL_CUDA_MANAGED = 1, 2, 3, 13


class _Buffer:
    """Memory of `size` bytes at address `ptr`; it is freed with the object."""

    _address = 0  # what a finalizer finds if there is no allocation
    _kind = "memory in bytes"

    def __init__(self, size: int, alignment: int, device: int, kept: int) -> None:
        if size < 0:
            raise ValueError(f"A buffer of {size} bytes cannot be")
        if alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"An alignment is a power of two, not {alignment}")
        self.size, self.device, self._process = size, device, os.getpid()
        # the driver aligns to `kept` bytes; for more, the memory begins somewhere within what is allocated
        self._address = self._allocate(max(size, 1) + (alignment - kept if alignment > kept else 0))
        self.ptr = -(-self._address // alignment) * alignment

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.size} bytes at {self.ptr:#x}>"

    def __del__(
        self, is_ending: Callable[[], bool] = sys.is_finalizing, process: Callable[[], int] = os.getpid
    ) -> None:
        # Not in a forked child, whose parent still uses it, nor at the end, when the driver may be gone already.
        if self._address and not is_ending() and process() == self._process:
            with suppress(PodiumError):  # the context is lost, and the memory with it
                self._free()
            self._address = 0

    def _allocate(self, room: int) -> int:
        raise NotImplementedError

    def _free(self) -> None:
        raise NotImplementedError

    def _free_bytes(self) -> int:
        raise NotImplementedError

    def _checked(self, status: int, place: Any) -> int:
        if status == OUT_OF_MEMORY or (status == INVALID_VALUE and self.size >= _MORE_THAN_ANY):
            raise OutOfResourcesError("allocate", self._kind, self.size, self._free_bytes(), "free some")
        if status:
            raise launch_error(status, f"allocating {self.size} bytes", self.device)
        return place.value or 0


class DeviceBuffer(_Buffer):
    """Memory of a device. With a stream it is there, and is freed, in the stream's order; without, for any stream."""

    def __init__(self, size: int, alignment: int, device: int, stream: int | None) -> None:
        """Allocate. Raises `OutOfResourcesError`, or `LaunchError` if earlier work has failed."""
        in_order = stream is not None and attribute(device, Attribute.MEMORY_POOLS_SUPPORTED)
        self._stream = stream if in_order else None
        super().__init__(size, alignment, device, _DEVICE_ALIGNMENT)

    def _allocate(self, room: int) -> int:
        functions, place = driver(), ctypes.c_void_p()
        with context.current(self.device), context.relaxed():
            if self._stream is None:
                return self._checked(functions.cuMemAlloc(ctypes.byref(place), room), place)
            return self._checked(functions.cuMemAllocAsync(ctypes.byref(place), room, self._stream), place)

    def _free(self) -> None:
        functions = driver()
        with context.current(self.device), context.relaxed():
            if self._stream is None:
                functions.cuMemFree(self._address)  # waits for the work before; its failure is that work's
            elif functions.cuMemFreeAsync(self._address, self._stream):
                functions.cuMemFree(self._address)  # the stream is no more

    def _free_bytes(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        status = driver().cuMemGetInfo(ctypes.byref(free), ctypes.byref(total))
        return 0 if status else free.value


class PinnedBuffer(_Buffer):
    """Memory of the host that devices reach, and that copies need not stage."""

    _kind = "pinned memory of the host in bytes"

    def __init__(self, size: int, alignment: int, device: int) -> None:
        """Allocate. Raises `OutOfResourcesError`."""
        super().__init__(size, alignment, device, _HOST_ALIGNMENT)

    def _allocate(self, room: int) -> int:
        place = ctypes.c_void_p()
        with context.current(self.device), context.relaxed():
            status = driver().cuMemHostAlloc(ctypes.byref(place), room, _PORTABLE_AND_MAPPED)
            return self._checked(status, place)

    def _free(self) -> None:
        with context.current(self.device), context.relaxed():
            driver().cuMemFreeHost(self._address)

    def _free_bytes(self) -> int:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0


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
