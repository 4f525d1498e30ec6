"""Launches of the interpreted level, by cuda-python: the calls and the bytes of the generated C."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from podium.backend import LaunchConfig, Parameters

from podium_nvidia import context
from podium_nvidia.api import bindings, driver
from podium_nvidia.attributes import launch_attributes
from podium_nvidia.function import mark_captured, uses_libraries

__all__ = ["launch"]

# cuda-python takes stream 0 for the per-thread one if this is set; the handle 1 is the legacy stream in any case.
_PER_THREAD_ZERO = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"
_LEGACY = 1
_VALUE_BYTES = 64  # of CUlaunchAttributeValue


def launch(function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
    """Launch in the device's context that is current, or else in its primary one; return the status."""
    cuda = bindings()
    if uses_libraries():
        with context.for_launch(device):
            return _launch(cuda, function, config, stream, parameters)
    with context.current_primary(device):  # the kernel belongs to it
        return _launch(cuda, function, config, stream, parameters)


def _launch(cuda: Any, function: int, config: LaunchConfig, stream: int, parameters: Parameters) -> int:
    addresses = parameters.addresses()
    handle = cuda.CUfunction(function)
    if stream == 0 and os.environ.get(_PER_THREAD_ZERO) == "1":
        stream = _LEGACY
    attributes = launch_attributes(config)
    if attributes:
        shape = cuda.CUlaunchConfig()
        shape.gridDimX, shape.gridDimY, shape.gridDimZ = config.grid
        shape.blockDimX, shape.blockDimY, shape.blockDimZ = config.block
        shape.sharedMemBytes = config.shared
        shape.hStream = cuda.CUstream(stream)
        shape.attrs = [_attribute(cuda, key, words) for key, words in attributes]
        shape.numAttrs = len(attributes)
        (status,) = cuda.cuLaunchKernelEx(shape, handle, ctypes.addressof(addresses), 0)
    else:
        (status,) = cuda.cuLaunchKernel(
            handle, *config.grid, *config.block, config.shared, cuda.CUstream(stream), ctypes.addressof(addresses), 0
        )
    if status == 0 and stream:  # the legacy stream is never captured
        state = ctypes.c_int()
        if driver().cuStreamIsCapturing(stream, ctypes.byref(state)) == 0 and state.value:
            mark_captured(function)
    return int(status)


def _attribute(cuda: Any, key: int, words: tuple[int, ...]) -> object:
    attribute, value = cuda.CUlaunchAttribute(), cuda.CUlaunchAttributeValue()
    attribute.id = cuda.CUlaunchAttributeID(key)
    value.pad = b"".join(word.to_bytes(4, "little") for word in words).ljust(_VALUE_BYTES, b"\0")
    attribute.value = value
    return attribute
