"""Launches of the interpreted level, by pyopencl: the calls and the bytes of the generated C."""

from __future__ import annotations

import ctypes
from typing import Any

from podium.backend import LaunchConfig, Parameters

from podium_opencl.function import Loaded, find
from podium_opencl.memory import addresses_of, svm_at
from podium_opencl.opencl import function as library_function
from podium_opencl.opencl import opencl
from podium_opencl.status import SUCCESS, status_of
from podium_opencl.stream import find_queue

__all__ = ["declare_memory", "launch"]

_INVALID_KERNEL, _INVALID_KERNEL_ARGS = -48, -52
_SVM_POINTERS = 0x11B6  # CL_KERNEL_EXEC_INFO_SVM_PTRS


def launch(function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
    """Launch on the kernel's own device; return the status."""
    loaded = find(function)
    if loaded is None:
        return _INVALID_KERNEL
    if len(parameters.offsets) != len(loaded.sizes):
        return _INVALID_KERNEL_ARGS
    cl = opencl()
    kernel = None
    try:
        kernel = loaded.take()
        _set_arguments(loaded, kernel, config.shared, parameters)
        if loaded.declares:
            declare_memory(int(kernel.int_ptr), device)
        size = tuple(blocks * threads for blocks, threads in zip(config.grid, config.block))
        queue = find_queue(device, stream)
        cl.enqueue_nd_range_kernel(queue, kernel, size, config.block)
        queue.flush()
    except cl.Error as error:
        return status_of(error)
    finally:
        if kernel is not None:
            loaded.free.append(kernel)
    return SUCCESS


def _set_arguments(loaded: Loaded, kernel: Any, shared: int, parameters: Parameters) -> None:
    index = 0
    for index, (size, place) in enumerate(zip(loaded.sizes, parameters.addresses())):
        if size:
            kernel.set_arg(index, ctypes.string_at(place, size))
        else:
            address = ctypes.c_uint64.from_address(place).value
            kernel.set_arg(index, svm_at(address) if address else None)
    index = len(loaded.sizes)
    if loaded.uses_variables:
        kernel.set_arg(index, svm_at(loaded.record.variables))
        index += 1
    if loaded.dynamic_shared:
        kernel.set_arg(index, opencl().LocalMemory(max(1, shared)))


def declare_memory(kernel: int, device: int) -> None:
    """Tell a kernel of all memory that the device has, since it may reach some by addresses in structs and in memory.

    Only devices that do not reach everything need it. The caller launches before any of that memory can be freed.
    """
    addresses = addresses_of(device)
    values = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
    declare = library_function(
        "clSetKernelExecInfo", ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p
    )
    if addresses:
        declare(kernel, _SVM_POINTERS, ctypes.sizeof(ctypes.c_void_p) * len(addresses), values)
