"""Launches of the interpreted level, by cuda-python: the calls and the bytes of the generated C."""

from __future__ import annotations

import os
from functools import cache, lru_cache
from typing import Any

from podium.backend import LaunchConfig, Parameters

from podium_nvidia import context
from podium_nvidia.api import bindings
from podium_nvidia.attributes import LaunchAttribute, launch_attributes
from podium_nvidia.device import count
from podium_nvidia.function import mark_captured, uses_libraries
from podium_nvidia.graph import takes

__all__ = ["launch"]

_LEGACY = 1  # a handle of the legacy stream that is not 0


def launch(function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
    """Launch in the device's context that is current, or else in its primary one; return the status.

    A thread that had no context keeps the primary one, as it does in generated launches: the next launch finds it.
    """
    cuda, call, are_free, has_one, legacy = _cuda()
    if has_one and not stream and not device:
        # Without a context such a launch fails by itself, which is found out cheaper than by asking.
        if config.is_plain:  # most launches: here, since to call another function takes as long as what is done in it
            (x, y, z), (i, j, k) = config.grid, config.block
            kernel, pointer = _kernel(function), parameters.pointer
            (launched,) = call(kernel, x, y, z, i, j, k, config.shared, legacy, pointer, 0)
        else:
            launched = _launch(cuda, function, config, device, stream, parameters)
        if not launched:
            return 0
        status, _ = cuda.cuCtxGetDevice()
        if not status:
            return int(launched)
    else:
        status, current = cuda.cuCtxGetDevice()
        if not status and are_free and int(current) == device:
            return _launch(cuda, function, config, device, stream, parameters)
    if status and context.current_device() is None:
        (status,) = cuda.cuCtxSetCurrent(cuda.CUcontext(context.primary(device)))
        if status:
            return int(status)
    with context.current(device) if are_free else context.current_primary(device):
        return _launch(cuda, function, config, device, stream, parameters)


@cache
def _cuda() -> tuple[Any, Any, bool, bool, Any]:
    """Return cuda-python, and its launch call; whether kernels can be launched in any context of their device, not so
    with old drivers; whether, besides, there is one device, so that whatever context is current is of it; and the
    legacy stream.
    """
    cuda, are_free = bindings(), uses_libraries()
    # cuda-python takes stream 0 for the per-thread one if this is set
    is_other = os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM") == "1"
    return cuda, cuda.cuLaunchKernel, are_free, are_free and count() == 1, cuda.CUstream(_LEGACY if is_other else 0)


@lru_cache(maxsize=1024)
def _kernel(function: int) -> Any:
    """Return cuda-python's object of a number, which it would make for each launch."""
    return bindings().CUfunction(function)


def _launch(cuda: Any, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
    queue, kernel, pointer = cuda.CUstream(stream) if stream else _cuda()[4], _kernel(function), parameters.pointer
    if config.is_plain:
        (x, y, z), (i, j, k) = config.grid, config.block
        (status,) = cuda.cuLaunchKernel(kernel, x, y, z, i, j, k, config.shared, queue, pointer, 0)
    else:
        (status,) = cuda.cuLaunchKernelEx(_shape(cuda, config, queue), kernel, pointer, 0)
    if not status and stream > _LEGACY:  # the legacy stream is never captured
        status, state = cuda.cuStreamIsCapturing(stream)
        if not status and state and not takes(device, stream, function):
            mark_captured(function)
        return 0
    return int(status)


def _shape(cuda: Any, config: LaunchConfig, stream: Any) -> Any:
    shape = cuda.CUlaunchConfig()
    shape.gridDimX, shape.gridDimY, shape.gridDimZ = config.grid
    shape.blockDimX, shape.blockDimY, shape.blockDimZ = config.block
    shape.sharedMemBytes = config.shared
    shape.hStream = stream
    shape.attrs = [_attribute(cuda, key, words) for key, words in launch_attributes(config)]
    shape.numAttrs = len(shape.attrs)
    return shape


def _attribute(cuda: Any, key: int, words: tuple[int, ...]) -> object:
    attribute = cuda.CUlaunchAttribute()
    # by its memory, since an older cuda-python has no name for some of those that the driver knows
    memory = LaunchAttribute.from_address(attribute.getPtr())
    memory.id = key
    memory.value[: len(words)] = words
    return attribute
