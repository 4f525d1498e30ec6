"""Shared virtual memory: allocated for a context, with addresses that kernels take, and freed once nothing works on it.

OpenCL frees such memory at once, or in the order of a queue by clEnqueueSVMFree, of which PoCL keeps the address of the
caller's list and reads it when the caller is long gone. So memory that is dropped is kept here until the work that was
in its queues has ended. Whatever is called here may be called by a finalizer, in the middle of anything: there are no
locks, and each step is one that no other thread can be in the middle of.
"""

from __future__ import annotations

import ctypes
from collections import deque
from contextlib import suppress
from typing import Any

from podium.errors import OutOfResourcesError, PodiumError

from podium_opencl.device import OpenDevice, is_forked, open_device
from podium_opencl.opencl import opencl
from podium_opencl.status import OUT_OF_MEMORY, launch_error, status_of
from podium_opencl.stream import all_work, find_queue, marker, wait_for

__all__ = ["DL_OPENCL", "SvmBuffer", "addresses_of", "copy", "pointer_device", "svm_at"]

DL_OPENCL = 4
"""DLPack's kDLOpenCL."""

_MOST_ALIGNED = 128  # of the type with the largest alignment, long16: what implementations give without a word
_INVALID_SIZE = -61

_allocations: dict[int, tuple[int, int]] = {}  # by start: the end, and the index of the device
_dropped: deque[tuple[list[Any], Any]] = deque()  # memory that is to be freed after some events
_abandoned: list[Any] = []  # of the process that this one was forked from: calls of OpenCL could hang here


class SvmBuffer:
    """Memory of `size` bytes at address `ptr` of a device; it is freed with the object.

    One that was allocated for a stream is freed after what is in the stream by then; any other after all work of the
    device. Nobody waits for that: it happens when memory is next allocated or dropped.
    """

    def __init__(self, size: int, alignment: int, device: int, stream: int | None) -> None:
        """Allocate. `alignment` is a power of two. Raises `OutOfResourcesError`."""
        self._allocation: Any = None
        if size < 0:
            raise ValueError(f"A buffer of {size} bytes cannot be")
        if alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"An alignment is a power of two, not {alignment}")
        place = open_device(device)
        room = max(size, 1) + max(0, alignment - _MOST_ALIGNED)
        self._device = device
        self._queue = None if stream is None else find_queue(device, stream)  # which may be dropped before the memory
        self._allocation = _allocate(place, room, size)
        self._start = int(self._allocation.svm_ptr)
        _allocations[self._start] = self._start + room, device
        self.size = size
        self.ptr = -(-self._start // alignment) * alignment

    def __repr__(self) -> str:
        return f"<SvmBuffer of {self.size} bytes at {self.ptr:#x} of device {self._device}>"

    def __del__(self) -> None:
        allocation, self._allocation = self._allocation, None
        if allocation is None:
            return
        _allocations.pop(self._start, None)
        if is_forked():
            _abandoned.append(allocation)
            return
        # Work that failed is told to whoever waits for it.
        with suppress(PodiumError, opencl().Error):
            events = all_work(self._device) if self._queue is None else [marker(self._queue)]
            _dropped.append((events, allocation))
            _free_dropped()


def _free_dropped() -> None:
    """Free what was dropped and is not worked on any more."""
    for _ in range(len(_dropped)):
        try:
            events, allocation = _dropped.popleft()
        except IndexError:  # another thread was faster
            return
        # Work that has failed has ended, too: its status is below 0.
        if all(int(event.command_execution_status) <= 0 for event in events):
            allocation.release()
        else:
            _dropped.append((events, allocation))


def _allocate(place: OpenDevice, room: int, wanted: int) -> Any:
    largest = int(place.handle.max_mem_alloc_size)
    if room <= largest:
        _free_dropped()
        for _ in range(2):
            try:
                return _take(place, room)
            except opencl().Error as error:
                if status_of(error) not in OUT_OF_MEMORY | {_INVALID_SIZE}:
                    raise launch_error(status_of(error), f"allocating {wanted} bytes", place.index) from None
            for events, _allocation in list(_dropped):
                wait_for(events)
            _free_dropped()
    raise OutOfResourcesError("allocate", "memory in bytes", wanted, largest, f"device {place.index} is {place.name}")


def _take(place: OpenDevice, room: int) -> Any:
    cl = opencl()
    return cl.SVMAllocation(place.context, room, 0, cl.svm_mem_flags.READ_WRITE)


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
    for start, (end, device) in list(_allocations.items()):
        if start <= address < end:
            return DL_OPENCL, device
    return None


def addresses_of(device: int) -> list[int]:
    """Return the addresses of all memory that a device has now."""
    return [start for start, (_, owner) in list(_allocations.items()) if owner == device]
