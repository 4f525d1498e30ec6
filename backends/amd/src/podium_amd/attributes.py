"""Launch attributes: what a launch has, and which of HIP's functions for launches it needs."""

from __future__ import annotations

import ctypes
from typing import ClassVar

from podium.backend import LaunchConfig
from podium.errors import LaunchConfigError

from podium_amd import context
from podium_amd.api import check, has, hip
from podium_amd.attribute_keys import COOPERATIVE, KEYS
from podium_amd.device import Attribute, attribute
from podium_amd.status import hip_version

__all__ = ["HipLaunchConfig", "LaunchAttribute", "check_attributes", "launch_attributes"]


class LaunchAttribute(ctypes.Structure):
    """hipLaunchAttribute."""

    _fields_: ClassVar = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint32 * 16)]


class HipLaunchConfig(ctypes.Structure):
    """HIP_LAUNCH_CONFIG."""

    _fields_: ClassVar = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("attribute_count", ctypes.c_uint),
    ]


def launch_attributes(config: LaunchConfig) -> list[tuple[int, tuple[int, ...]]]:
    """Return the attributes of a launch as numbers and words, in the order in which both levels hand them over."""
    found: list[tuple[int, tuple[int, ...]]] = []
    if config.cooperative:
        found.append((COOPERATIVE, (1,)))
    for name, value in config.attributes:
        words = value if isinstance(value, tuple) else (value,)
        found.append((KEYS[name], tuple(word & 0xFFFFFFFF for word in words)))
    return found


def check_attributes(kernel: str, config: LaunchConfig, device: int) -> None:
    """Raise `LaunchConfigError` for what the device or its runtime lacks, or a value that cannot be."""
    if config.cooperative:
        if not attribute(device, Attribute.COOPERATIVE_LAUNCH):
            raise LaunchConfigError(
                f"{kernel}: device {device} runs no cooperative grids", kernel=kernel, axis="cooperative"
            )
        if not (has("hipModuleLaunchCooperativeKernel") or has("hipDrvLaunchKernelEx")):
            raise _too_old(kernel, "cooperative", "5.5")
    for name, value in config.attributes:
        if not has("hipDrvLaunchKernelEx"):
            raise _too_old(kernel, name, "7.0")
        problem = _priority(value, device)
        if problem:
            raise LaunchConfigError(
                f"{kernel}: the launch attribute {name!r} is {value!r}; {problem}",
                kernel=kernel,
                axis=name,
                value=value,
            )


def _too_old(kernel: str, name: str, needed: str) -> LaunchConfigError:
    return LaunchConfigError(
        f"{kernel}: {name!r} needs HIP {needed} or later, and this runtime is {hip_version()}. Install a newer ROCm",
        kernel=kernel,
        axis=name,
    )


def _priority(value: object, device: int) -> str:
    least, greatest = ctypes.c_int(), ctypes.c_int()
    with context.current(device):
        status = hip().hipDeviceGetStreamPriorityRange(ctypes.byref(least), ctypes.byref(greatest))
    check(status, "hipDeviceGetStreamPriorityRange")
    if isinstance(value, int) and greatest.value <= value <= least.value:
        return ""
    return f"on device {device} it is from {greatest.value}, which comes first, to {least.value}"
