"""Launches of the interpreted level: the calls and the bytes of the generated C.

They are calls of the OpenCL library and not of pyopencl, which makes an event for each launch, and an object for each
argument.
"""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from typing import Any

from podium.backend import LaunchConfig, Parameters

from podium_opencl.function import Loaded, find
from podium_opencl.memory import addresses_of
from podium_opencl.opencl import function as library_function
from podium_opencl.status import INVALID_KERNEL, INVALID_KERNEL_ARGS, INVALID_QUEUE, SUCCESS
from podium_opencl.stream import queue_handle

__all__ = ["declare_memory", "launch"]

_SVM_POINTERS = 0x11B6  # CL_KERNEL_EXEC_INFO_SVM_PTRS
_Sizes = ctypes.c_size_t * 3
_address_at = ctypes.c_uint64.from_address


class _Calls:
    """The calls of the OpenCL library that launch."""

    def __init__(self) -> None:
        handle, size, index, status = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_int
        self.set_argument = library_function("clSetKernelArg", status, handle, index, size, handle)
        self.set_pointer = library_function("clSetKernelArgSVMPointer", status, handle, index, handle)
        self.enqueue = library_function(
            "clEnqueueNDRangeKernel", status, handle, handle, index, handle, _Sizes, _Sizes, index, handle, handle
        )
        self.flush = library_function("clFlush", status, handle)
        self.declare = library_function("clSetKernelExecInfo", status, handle, index, size, handle)


_calls = cache(_Calls)


def launch(function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
    """Launch on the kernel's own device; return the status."""
    loaded = find(function)
    if loaded is None:
        return INVALID_KERNEL
    if len(parameters.offsets) != len(loaded.sizes):
        return INVALID_KERNEL_ARGS
    queue = queue_handle(device, stream)
    if queue is None:
        return INVALID_QUEUE
    kernel, status = loaded.take()
    if kernel is None:
        return status
    try:
        status = _set_arguments(loaded, kernel, config.shared, parameters)
        if status == SUCCESS and loaded.declares:
            status = declare_memory(kernel, device)
        if status == SUCCESS:
            calls, (size, group) = _calls(), _sizes(config.grid, config.block)
            status = calls.enqueue(queue, kernel, 3, None, size, group, 0, None, None) or calls.flush(queue)
    finally:
        loaded.give_back(kernel)
    return int(status)


@lru_cache(maxsize=1024)
def _sizes(grid: tuple[int, int, int], block: tuple[int, int, int]) -> tuple[Any, Any]:
    """Return the size of a launch and that of a block, in threads."""
    return _Sizes(*(blocks * threads for blocks, threads in zip(grid, block))), _Sizes(*block)


def _set_arguments(loaded: Loaded, kernel: int, shared: int, parameters: Parameters) -> Any:
    calls, index = _calls(), 0
    for size, place in zip(loaded.sizes, parameters.addresses()):
        address = 0 if size else _address_at(place).value
        if address:
            status = calls.set_pointer(kernel, index, address)
        else:  # a number, or a null pointer
            status = calls.set_argument(kernel, index, size or 8, place)
        if status:
            return status
        index += 1
    status = SUCCESS
    if loaded.uses_variables:
        status = calls.set_pointer(kernel, index, loaded.record.variables)
        index += 1
    if loaded.dynamic_shared and status == SUCCESS:
        status = calls.set_argument(kernel, index, max(1, shared), None)
    return status


def declare_memory(kernel: int, device: int) -> int:
    """Tell a kernel of all memory that the device has, since it may reach some by addresses in structs and in memory.

    Only devices that do not reach everything need it. The caller launches before any of that memory can be freed, and
    not at all unless the status that is returned is 0: a kernel would reach memory that it may not.
    """
    addresses = addresses_of(device)
    if not addresses:
        return SUCCESS
    values = (ctypes.c_void_p * len(addresses))(*addresses)
    return int(_calls().declare(kernel, _SVM_POINTERS, ctypes.sizeof(values), values))
