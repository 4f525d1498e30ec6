"""Occupancy: how many blocks run at once, and whether a shape can run at all; asked before its first launch."""

from __future__ import annotations

import ctypes
from math import prod
from typing import ClassVar

from podium.backend import Function, LaunchConfig, Occupancy
from podium.errors import LaunchConfigError, OutOfResourcesError
from podium.parts import check_cooperative

from podium_nvidia import context
from podium_nvidia.api import check, driver
from podium_nvidia.attribute_keys import CLUSTER
from podium_nvidia.attributes import LaunchAttribute, check_attributes
from podium_nvidia.device import Attribute, attribute
from podium_nvidia.status import INVALID_CLUSTER_SIZE

__all__ = ["check_shape", "occupancy", "suggested_block"]

_DEPENDENT_CAPABILITY = 90


class _LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_: ClassVar = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("attribute_count", ctypes.c_uint),
    ]


def occupancy(function: Function, device: int, config: LaunchConfig) -> Occupancy:
    """Compute how many blocks of a launch run at once. Raises `BackendError`."""
    blocks, cluster = ctypes.c_int(), _fixed_cluster(function) or config.cluster
    with context.current(device):
        status = driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
            ctypes.byref(blocks), function.handle, prod(config.block), config.shared
        )
        check(status, "cuOccupancyMaxActiveBlocksPerMultiprocessor")
        clusters = None if cluster == (1, 1, 1) else _active_clusters(function, config, cluster)
    multiprocessors = attribute(device, Attribute.MULTIPROCESSOR_COUNT)
    most = blocks.value * multiprocessors
    if clusters is not None:
        most = min(most, clusters * prod(cluster))
    return Occupancy(blocks.value, multiprocessors, most, clusters)


def _fixed_cluster(function: Function) -> tuple[int, int, int] | None:
    """Return the cluster that the source gives a kernel, if it does."""
    known = function.attributes
    found = (known.get("cluster_x", 0), known.get("cluster_y", 0), known.get("cluster_z", 0))
    return found if any(found) else None


def _active_clusters(function: Function, config: LaunchConfig, cluster: tuple[int, int, int]) -> int:
    wanted = LaunchAttribute(CLUSTER)
    wanted.value[:3] = cluster
    shape = _LaunchConfig(config.grid, config.block, config.shared, None, ctypes.pointer(wanted), 1)
    clusters = ctypes.c_int()
    status = driver().cuOccupancyMaxActiveClusters(ctypes.byref(clusters), function.handle, ctypes.byref(shape))
    if status == INVALID_CLUSTER_SIZE:  # larger than this device has them, which no attribute of it tells
        return 0
    check(status, "cuOccupancyMaxActiveClusters")
    return clusters.value


def suggested_block(function: Function, device: int, shared: int) -> tuple[int, int]:
    """Return threads in a block that fill the device, and the fewest blocks for that. Raises `BackendError`."""
    grid, block = ctypes.c_int(), ctypes.c_int()
    with context.current(device):
        status = driver().cuOccupancyMaxPotentialBlockSize(
            ctypes.byref(grid), ctypes.byref(block), function.handle, None, shared, 0
        )
    check(status, "cuOccupancyMaxPotentialBlockSize")
    return block.value, grid.value


def check_shape(kernel: str, function: Function, config: LaunchConfig, device: int) -> None:
    """Raise for what this kernel cannot do on this device: attributes, clusters, cooperative grids."""
    known = function.attributes
    check_attributes(kernel, config, device)
    if config.dependent:
        _check_dependent(kernel, known["ptx_version"], known["binary_version"])
    cluster = _check_cluster(kernel, function, config)
    if cluster == (1, 1, 1) and not config.cooperative:
        return
    shape = LaunchConfig(
        config.grid, config.block, cluster=cluster, shared=config.shared, cooperative=config.cooperative
    )
    found = occupancy(function, device, shape)
    if found.max_active_clusters == 0:
        raise OutOfResourcesError(
            kernel,
            "blocks in a cluster",
            prod(cluster),
            0,
            f"device {device} has no place for a cluster {cluster} of blocks of {prod(config.block)} threads and "
            f"{config.shared + known['shared']} bytes of shared memory; make one of them smaller",
        )
    check_cooperative(kernel, config, found, device)


def _check_dependent(kernel: str, *versions: int) -> None:
    """GRD-11: below, compilers leave the wait for the launch before out, and a kernel would read too early."""
    for version in versions:
        if 0 < version < _DEPENDENT_CAPABILITY:
            raise LaunchConfigError(
                f"{kernel}: 'dependent' needs code for compute capability 9.0 or later, and this is for "
                f"{version // 10}.{version % 10}, where waiting for the launch before is left out; compile it for "
                f"the device",
                kernel=kernel,
                axis="dependent",
            )


def _check_cluster(kernel: str, function: Function, config: LaunchConfig) -> tuple[int, int, int]:
    """Return the cluster that the launch has, which the source may have fixed."""
    required, cluster = _fixed_cluster(function), config.cluster
    if required is not None:
        if cluster not in ((1, 1, 1), required):
            raise LaunchConfigError(
                f"{kernel}: the cluster is {cluster}, and the kernel was compiled for clusters of {required}",
                kernel=kernel,
                axis="cluster",
                value=cluster,
            )
        cluster = required
    for axis, blocks, size in zip("xyz", config.grid, cluster):
        if blocks % size:
            raise LaunchConfigError(
                f"{kernel}: grid.{axis} is {blocks}, which is no multiple of the cluster's {size} blocks",
                kernel=kernel,
                axis=f"grid.{axis}",
                value=blocks,
            )
    return cluster
