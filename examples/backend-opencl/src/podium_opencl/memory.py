"""Shared virtual memory: allocated for a context, with addresses that kernels take, and freed in the order of work."""

from __future__ import annotations

import bisect
import ctypes
from contextlib import suppress
from typing import Any

from podium.backend import ForkSafeLock
from podium.errors import OutOfResourcesError, PodiumError

from podium_opencl.device import OpenDevice, is_forked, open_device
from podium_opencl.opencl import opencl
from podium_opencl.status import OUT_OF_MEMORY, launch_error, status_of
from podium_opencl.stream import find_queue, synchronize

__all__ = ["DL_OPENCL", "SvmBuffer", "addresses_of", "copy", "pointer_device", "svm_at"]

DL_OPENCL = 4
"""DLPack's kDLOpenCL."""

_MOST_ALIGNED = 128  # of the type with the largest alignment, long16: what implementations give without a word
_INVALID_SIZE = -61

_lock = ForkSafeLock()
_starts: list[int] = []  # of all allocations, sorted
_allocations: dict[int, tuple[int, int]] = {}  # by start: the end, and the index of the device
_abandoned: list[Any] = []  # of the process that this one was forked from: calls of OpenCL could hang here


class SvmBuffer:
    """Memory of `size` bytes at address `ptr` of a device; it is freed with the object.

    One that was allocated for a stream is freed in its order; any other waits for the device.
    """

    def __init__(self, size: int, alignment: int, device: int, stream: int | None) -> None:
        """Allocate. `alignment` is a power of two. Raises `OutOfResourcesError`."""
        self._allocation: Any = None
        if size < 0:
            raise ValueError(f"A buffer of {size} bytes cannot be")
        if alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"An alignment is a power of two, not {alignment}")
        place = open_device(device)
        spare = alignment - _MOST_ALIGNED if alignment > _MOST_ALIGNED else 0
        self._device, self._stream = device, stream
        self._allocation = _allocate(place, max(size, 1) + spare, size)
        start = int(self._allocation.svm_ptr)
        self._start = start
        with _lock:
            bisect.insort(_starts, start)
            _allocations[start] = start + max(size, 1) + spare, device
        self.size = size
        self.ptr = -(-start // alignment) * alignment

    def __repr__(self) -> str:
        return f"<SvmBuffer of {self.size} bytes at {self.ptr:#x} of device {self._device}>"

    def __del__(self) -> None:
        allocation, self._allocation = self._allocation, None
        if allocation is None:
            return
        with _lock:
            if _allocations.pop(self._start, None) is not None:
                del _starts[bisect.bisect_left(_starts, self._start)]
        if is_forked():
            _abandoned.append(allocation)
            return
        # Work that failed is told to whoever waits for it.
        with suppress(PodiumError, opencl().Error):
            queue = None if self._stream is None else find_queue(self._device, self._stream)
            if queue is not None:
                allocation.enqueue_release(queue)
                return
        with suppress(PodiumError, opencl().Error):
            synchronize(self._device, None)
            allocation.release()


def _allocate(place: OpenDevice, room: int, wanted: int) -> Any:
    cl = opencl()
    largest = int(place.handle.max_mem_alloc_size)
    try:
        if room <= largest:
            return cl.SVMAllocation(place.context, room, 0, cl.svm_mem_flags.READ_WRITE)
    except cl.Error as error:
        if status_of(error) not in OUT_OF_MEMORY | {_INVALID_SIZE}:
            raise launch_error(status_of(error), f"allocating {wanted} bytes", place.index) from None
    raise OutOfResourcesError("allocate", "memory in bytes", wanted, largest, f"device {place.index} is {place.name}")


def svm_at(address: int, size: int = 1) -> Any:
    """Return what pyopencl takes for shared virtual memory at an address. Nothing is read there."""
    return opencl().SVM((ctypes.c_char * size).from_address(address))


def copy(destination: int, source: int, size: int, device: int, stream: int) -> None:
    """Copy bytes in any direction, after what is in the stream; done when it returns. Raises `LaunchError`."""
    if size == 0:
        return
    queue = find_queue(device, stream)
    try:
        opencl().enqueue_copy(queue, svm_at(destination, size), svm_at(source, size), is_blocking=True)
    except opencl().Error as error:
        raise launch_error(status_of(error), f"copying {size} bytes", device) from None


def pointer_device(address: int) -> tuple[int, int] | None:
    """Return DLPack's type and the index of the device whose memory is at an address; None if it is not podium's."""
    with _lock:
        position = bisect.bisect_right(_starts, address)
        if position:
            end, device = _allocations[_starts[position - 1]]
            if address < end:
                return DL_OPENCL, device
    return None


def addresses_of(device: int) -> list[int]:
    """Return the addresses of all memory that a device has now."""
    with _lock:
        return [start for start, (_, owner) in _allocations.items() if owner == device]
