"""Launches of the interpreted level, by hip-python: the calls and the bytes of the generated C."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from podium.backend import LaunchConfig, Parameters

from podium_amd import api, bindings
from podium_amd.attributes import HipLaunchConfig, LaunchAttribute, launch_attributes
from podium_amd.function import mark_captured
from podium_amd.status import take_last_error
from podium_amd.stream import without_alias

__all__ = ["launch"]

_UNKNOWN = 999  # hipErrorUnknown


def launch(function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
    """Launch on a device, which is current for the call; return the status."""
    hip = _hip()
    try:
        status, current = hip.hipGetDevice()
        if status == 0 and current != device:
            (status,) = hip.hipSetDevice(device)
        if status != 0:
            return int(status)
    except ValueError:
        return _nameless()
    restored = 0
    try:
        launched = _launch(hip, function, config, without_alias(stream), parameters)
    except ValueError:
        launched = _nameless()
    finally:
        if current != device:
            restored = api.hip().hipSetDevice(current)
    return launched or restored


def _nameless() -> int:
    """Return the status for which hip-python raised ValueError, since it is newer than its names: HIP keeps it."""
    return take_last_error() or _UNKNOWN


@cache
def _hip() -> Any:
    api.hip()  # initialised, in a process that may use it
    return bindings.hip()


def _launch(hip: Any, function: int, config: LaunchConfig, stream: int, parameters: Parameters) -> int:
    # The addresses of the values, and never a tuple for `extra`: hip-python aligns the structs in it to their sizes.
    addresses = parameters.pointer
    if config.is_plain:
        (status,) = hip.hipModuleLaunchKernel(
            function, *config.grid, *config.block, config.shared, stream, addresses, None
        )
    elif config.attributes or not _has_cooperative():
        status = _launch_ex(hip, function, config, stream, addresses)
    else:
        (status,) = hip.hipModuleLaunchCooperativeKernel(
            function, *config.grid, *config.block, config.shared, stream, addresses
        )
    if status == 0 and stream:  # the default stream is never captured
        status, state = hip.hipStreamIsCapturing(stream)
        if status == 0 and state != 0:
            mark_captured(function)
        return 0
    return int(status)


def _launch_ex(hip: Any, function: int, config: LaunchConfig, stream: int, addresses: int) -> Any:
    # hip-python's own type for an attribute has no member for its value
    attributes = launch_attributes(config)
    listed = (LaunchAttribute * len(attributes))()
    for place, (key, words) in zip(listed, attributes):
        place.id = key
        place.value[: len(words)] = words
    shape = HipLaunchConfig(config.grid, config.block, config.shared, stream, listed, len(attributes))
    (status,) = hip.hipDrvLaunchKernelEx(ctypes.addressof(shape), function, addresses, None)
    return status


@cache
def _has_cooperative() -> bool:
    return api.has("hipModuleLaunchCooperativeKernel")
