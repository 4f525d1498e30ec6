"""Memory of devices and pinned memory of the host, as buffers of the driver protocol; copies between all of them."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

from podium.errors import OutOfResourcesError, PodiumError

from podium_amd import context, library
from podium_amd.api import check, hip
from podium_amd.device import Attribute, attribute
from podium_amd.status import INVALID_VALUE, OUT_OF_MEMORY, launch_error, take_last_error
from podium_amd.stream import without_alias

__all__ = ["DeviceBuffer", "PinnedBuffer", "copy", "pointer_device"]

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
        if status:
            take_last_error()
        if status == OUT_OF_MEMORY or (status == INVALID_VALUE and self.size >= _MORE_THAN_ANY):
            raise OutOfResourcesError("allocate", self._kind, self.size, self._free_bytes(), "free some")
        if status:
            raise launch_error(status, f"allocating {self.size} bytes", self.device)
        return place.value or 0


class DeviceBuffer(_Buffer):
    """Memory of a device. With a stream it is there, and is freed, in the stream's order; without, for any stream."""

    def __init__(self, size: int, alignment: int, device: int, stream: int | None) -> None:
        """Allocate. Raises `OutOfResourcesError`, or `LaunchError` if earlier work has failed."""
        in_order = attribute(device, Attribute.MEMORY_POOLS_SUPPORTED)
        self._stream = without_alias(stream) if in_order and stream is not None else None
        super().__init__(size, alignment, device, _DEVICE_ALIGNMENT)

    def _allocate(self, room: int) -> int:
        functions, place = hip(), ctypes.c_void_p()
        with context.current(self.device), context.relaxed():
            if self._stream is None:
                return self._checked(functions.hipMalloc(ctypes.byref(place), room), place)
            return self._checked(functions.hipMallocAsync(ctypes.byref(place), room, self._stream), place)

    def _free(self) -> None:
        functions = hip()
        with context.current(self.device), context.relaxed():
            status = functions.hipFreeAsync(self._address, self._stream) if self._stream is not None else 0
            if self._stream is None or status:  # or the stream is no more
                status |= functions.hipFree(self._address)  # waits for the work before; its failure is that work's
            if status:
                take_last_error()

    def _free_bytes(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        status = hip().hipMemGetInfo(ctypes.byref(free), ctypes.byref(total))
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
            status = hip().hipHostMalloc(ctypes.byref(place), room, _PORTABLE_AND_MAPPED)
            return self._checked(status, place)

    def _free(self) -> None:
        with context.current(self.device), context.relaxed():
            if hip().hipHostFree(self._address):
                take_last_error()

    def _free_bytes(self) -> int:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0


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
