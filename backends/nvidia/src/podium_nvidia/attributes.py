"""Launch attributes: what a launch has, whether a device and its driver know them, and whether their values can be."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import ClassVar

from podium.backend import LaunchConfig
from podium.errors import LaunchConfigError

from podium_nvidia import context
from podium_nvidia.api import check, driver
from podium_nvidia.attribute_keys import (
    CARVEOUT,
    CLUSTER,
    CLUSTER_POLICY,
    COOPERATIVE,
    DEPENDENT,
    KEYS,
    MEMORY_DOMAIN,
    PREFERRED_CLUSTER,
    PRIORITY,
)
from podium_nvidia.device import Attribute, attribute, capability
from podium_nvidia.status import cuda_version, spell_version

__all__ = ["PORTABLE_CLUSTER", "LaunchAttribute", "check_attributes", "launch_attributes"]

PORTABLE_CLUSTER = 8
"""The blocks in a cluster that every device with clusters can run; for more, see "non_portable_cluster"."""

# The first CUDA version whose driver knows the attribute.
_SINCE = {COOPERATIVE: 9000, CLUSTER: 11080, CLUSTER_POLICY: 11080, DEPENDENT: 11080, PRIORITY: 11070}
_SINCE |= {MEMORY_DOMAIN: 12000, PREFERRED_CLUSTER: 12080, CARVEOUT: 12050}
_EXTENDED_LAUNCH = 11060  # cuLaunchKernelEx


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_: ClassVar = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint32 * 16)]


def launch_attributes(config: LaunchConfig) -> list[tuple[int, tuple[int, ...]]]:
    """Return the attributes of a launch as numbers and words, in the order in which both levels hand them over."""
    found: list[tuple[int, tuple[int, ...]]] = []
    if config.cluster != (1, 1, 1):
        found.append((CLUSTER, config.cluster))
    if config.cooperative:
        found.append((COOPERATIVE, (1,)))
    if config.dependent:
        found.append((DEPENDENT, (1,)))
    for name, value in config.attributes:
        words = value if isinstance(value, tuple) else (value,)
        found.append((KEYS[name], tuple(word & 0xFFFFFFFF for word in words)))
    return found


def check_attributes(kernel: str, config: LaunchConfig, device: int) -> None:
    """Raise `LaunchConfigError` for an attribute that the device or its driver lacks, or a value that cannot be."""
    if config.cluster != (1, 1, 1):
        _require_version(kernel, "cluster", CLUSTER)
    if config.cooperative and not attribute(device, Attribute.COOPERATIVE_LAUNCH):
        raise _lacking(kernel, device, "cooperative", "the device runs no cooperative grids")
    if config.dependent:
        _require_version(kernel, "dependent", DEPENDENT)
        if capability(device) < 90:
            raise _lacking(kernel, device, "dependent", "dependent launches come with compute capability 9.0")
    for name, value in config.attributes:
        _require_version(kernel, name, KEYS[name])
        problem = _CHECKS[name](value, config, device)
        if problem:
            raise LaunchConfigError(
                f"{kernel}: the launch attribute {name!r} is {value!r}; {problem}",
                kernel=kernel,
                axis=name,
                value=value,
            )


def _require_version(kernel: str, name: str, key: int) -> None:
    needed, present = max(_SINCE.get(key, 0), _EXTENDED_LAUNCH), cuda_version()
    if present < needed:
        raise LaunchConfigError(
            f"{kernel}: {name!r} needs a driver for CUDA {spell_version(needed)}, and this one is for CUDA "
            f"{spell_version(present)}. Update the NVIDIA driver",
            kernel=kernel,
            axis=name,
        )


def _lacking(kernel: str, device: int, name: str, reason: str) -> LaunchConfigError:
    return LaunchConfigError(
        f"{kernel}: device {device} (sm_{capability(device)}) does not have the launch feature {name!r}; {reason}",
        kernel=kernel,
        axis=name,
    )


# ---- values: each function gives what is wrong with one, or nothing ----


def _one_of(*choices: str) -> Callable[[object, LaunchConfig, int], str]:
    listed = ", ".join(f"{number} ({choice})" for number, choice in enumerate(choices))

    def problem(value: object, config: LaunchConfig, device: int) -> str:
        return "" if isinstance(value, int) and 0 <= value < len(choices) else f"it is one of {listed}"

    return problem


def _cluster_policy(value: object, config: LaunchConfig, device: int) -> str:
    if not attribute(device, Attribute.CLUSTER_LAUNCH):
        return f"device {device} (sm_{capability(device)}) has no clusters"
    return _one_of("default", "spread", "load balancing")(value, config, device)


def _non_portable(value: object, config: LaunchConfig, device: int) -> str:
    blocks = config.cluster[0] * config.cluster[1] * config.cluster[2]
    if value == 0 and blocks > PORTABLE_CLUSTER:
        return f"a cluster of {blocks} blocks is larger than the {PORTABLE_CLUSTER} that every device can run"
    return _one_of("refused", "allowed")(value, config, device)


def _preferred_cluster(value: object, config: LaunchConfig, device: int) -> str:
    if capability(device) < 100:
        return (
            f"device {device} (sm_{capability(device)}) knows no preferred clusters, which come with compute "
            f"capability 10.0; give the cluster itself"
        )
    axes = value if isinstance(value, tuple) else (value,)
    if len(axes) != 3 or any(not isinstance(size, int) or size < 1 for size in axes):
        return "it is three numbers of blocks, along x, y and z"
    if any(size % least for size, least in zip(axes, config.cluster)):
        return f"along each axis it is a multiple of the cluster {config.cluster}"
    if any(blocks % size for size, blocks in zip(axes, config.grid)):
        return f"along each axis the grid {config.grid} is a multiple of it"
    return ""


def _priority(value: object, config: LaunchConfig, device: int) -> str:
    least, greatest = ctypes.c_int(), ctypes.c_int()
    with context.current(device):
        status = driver().cuCtxGetStreamPriorityRange(ctypes.byref(least), ctypes.byref(greatest))
    check(status, "cuCtxGetStreamPriorityRange")
    if isinstance(value, int) and greatest.value <= value <= least.value:
        return ""
    return f"on device {device} it is from {greatest.value}, which comes first, to {least.value}"


def _carveout(value: object, config: LaunchConfig, device: int) -> str:
    # -1, the default of a kernel, is none for a launch: the driver refuses it
    return "" if isinstance(value, int) and 0 <= value <= 100 else "it is from 0 to 100 per cent"


def _memory_domain(value: object, config: LaunchConfig, device: int) -> str:
    if attribute(device, Attribute.MEM_SYNC_DOMAIN_COUNT) < 2:
        return f"device {device} (sm_{capability(device)}) has one memory synchronisation domain only"
    return _one_of("default", "remote")(value, config, device)


_CHECKS: dict[str, Callable[[object, LaunchConfig, int], str]] = {
    "cluster_scheduling_policy": _cluster_policy,
    "memory_sync_domain": _memory_domain,
    "non_portable_cluster": _non_portable,
    "preferred_cluster": _preferred_cluster,
    "priority": _priority,
    "shared_memory_carveout": _carveout,
}
