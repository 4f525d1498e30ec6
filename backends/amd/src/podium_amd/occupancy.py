"""Occupancy: how many blocks run at once, and whether a shape can run at all; asked before its first launch."""

from __future__ import annotations

import ctypes
from math import prod

from podium.backend import Function, LaunchConfig, Occupancy
from podium.errors import LaunchConfigError

from podium_amd import context
from podium_amd.api import check, hip
from podium_amd.attributes import check_attributes
from podium_amd.device import Attribute, attribute

__all__ = ["check_shape", "occupancy", "suggested_block"]

_AXES = "xyz"
_THREADS = (1 << 32) - 1  # of a grid along one axis: the packet that starts it counts them in 32 bits


def occupancy(function: Function, device: int, config: LaunchConfig) -> Occupancy:
    """Compute how many blocks of a launch run at once. Raises `BackendError`."""
    blocks = ctypes.c_int()
    with context.current(device):
        status = hip().hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
            ctypes.byref(blocks), function.handle, prod(config.block), config.shared
        )
    check(status, "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor")
    units = attribute(device, Attribute.MULTIPROCESSOR_COUNT)
    return Occupancy(blocks.value, units, blocks.value * units)


def suggested_block(function: Function, device: int, shared: int) -> tuple[int, int]:
    """Return threads in a block that fill the device, and the fewest blocks for that. Raises `BackendError`."""
    grid, block = ctypes.c_int(), ctypes.c_int()
    with context.current(device):
        status = hip().hipModuleOccupancyMaxPotentialBlockSize(
            ctypes.byref(grid), ctypes.byref(block), function.handle, shared, 0
        )
    check(status, "hipModuleOccupancyMaxPotentialBlockSize")
    return block.value, grid.value


def check_shape(kernel: str, function: Function, config: LaunchConfig, device: int) -> None:
    """Raise for what this kernel cannot do on this device: threads in a grid, attributes, cooperative grids."""
    for axis, blocks, threads in zip(_AXES, config.grid, config.block):
        if blocks * threads > _THREADS:
            raise LaunchConfigError(
                f"{kernel}: grid.{axis} is {blocks} blocks of {threads} threads, and a grid has less than 2**32 "
                f"threads along an axis; let each thread do more",
                kernel=kernel,
                axis=f"grid.{axis}",
                value=blocks,
            )
    check_attributes(kernel, config, device)
    if config.cooperative:
        from podium.parts import check_cooperative

        check_cooperative(kernel, config, occupancy(function, device, config), device, "compute units")
