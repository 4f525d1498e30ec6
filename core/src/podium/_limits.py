"""The limits of devices: checked by name and with the value, before the driver would say only "invalid argument"."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from podium import _state
from podium._arguments import describe
from podium._launch_config import AXES, LaunchConfig
from podium._target import Device
from podium.errors import ForkedProcessError, LaunchConfigError, LoadError, OutOfResourcesError

if TYPE_CHECKING:
    from podium._function import Function, Occupancy
    from podium.backend import Driver

__all__ = [
    "check_block",
    "check_cooperative",
    "check_features",
    "check_function",
    "check_limits",
    "find_device",
    "grid_error",
    "loadable_device",
    "usable_device",
]


def check_features(kernel: str, driver: Driver, config: LaunchConfig) -> None:
    """Raise `LaunchConfigError` for a launch feature or attribute that the backend does not have."""
    wanted = [name for name, _ in config.attributes if name not in driver.attribute_keys]
    flags = {"cluster": config.cluster != (1, 1, 1), "cooperative": config.cooperative, "dependent": config.dependent}
    wanted += [name for name, is_wanted in flags.items() if is_wanted and name not in driver.features]
    for name in wanted:
        known = ", ".join(sorted({*driver.attribute_keys, *(flags.keys() & driver.features)})) or "none"
        problem = f"backend {driver.name!r} has no launch feature {name!r}; it has: {known}"
        if name in getattr(type(driver), "features", frozenset()):
            problem = (
                f"backend {driver.name!r} has the launch feature {name!r}, and not with the options that it was chosen "
                "with, or that its environment variables give it"
            )
        if name in flags and name in driver.features:
            problem = f"{name!r} is no attribute but an argument of its own: LaunchConfig(grid, block, {name}=...)"
        raise LaunchConfigError(
            f"{kernel}: {problem}",
            kernel=kernel,
            axis=name,
        )


def find_device(what: str, driver: Driver, index: int, kernel: str | None = None) -> Device:
    """Return a device of a driver. Raises `LaunchConfigError` if there is no such device."""
    devices = driver.devices()
    try:
        number = operator.index(index)
    except TypeError:
        number = -1
    if not 0 <= number < len(devices):
        shown = index if type(index) is int and index.bit_length() <= 64 else describe(index)
        has = f"{len(devices)}, counted from 0" if devices else "none"
        raise LaunchConfigError(
            f"{what}: there is no device {shown}; backend {driver.name!r} has {has}",
            kernel=kernel,
            axis="device",
            value=shown,
        )
    return devices[number]


def usable_device(what: str, driver: Driver, index: int | None) -> Device:
    """Return a device that is about to be used, by default the current one, and note that its driver is in use.

    Raises `LaunchConfigError` if there is no such device, `ForkedProcessError` where the driver does not work.
    """
    if parent := _state.forked_from(driver.name):
        raise ForkedProcessError(driver.name, parent)
    device = find_device(what, driver, driver.current_device() if index is None else index)
    if not driver.fork_safe:
        _state.used(driver.name)
    return device


def loadable_device(what: str, driver: Driver, index: int, stream: int | None = None) -> Device:
    """Return a device that code is about to be loaded on.

    Raises `LaunchConfigError` if there is no such device, `ForkedProcessError` or `LoadError` if nothing can be loaded.
    """
    if parent := _state.forked_from(driver.name):
        raise ForkedProcessError(driver.name, parent)
    device = find_device(what, driver, index, what)
    if driver.capturing(index, driver.current_stream(index) if stream is None else stream):
        raise LoadError(
            f"{what} is not loaded on device {index} yet, and its stream is being captured into a graph, "
            f"where nothing can be loaded. Call kernel.load() or launch it once before the capture",
            kernel=what,
            backend=driver.name,
        )
    return device


def check_limits(kernel: str, device: Device, config: LaunchConfig) -> None:
    """Raise `LaunchConfigError` or `OutOfResourcesError` for what the device cannot do."""
    for axis, size, limit in zip(AXES, config.grid, device.max_grid):
        if size > limit:
            raise grid_error(kernel, axis, size, limit)
    for axis, size, limit in zip(AXES, config.block, device.max_block):
        if size > limit:
            raise OutOfResourcesError(kernel, f"block.{axis}", size, limit, f"device {device.index} is {device.name}")
    check_block(kernel, config, device.max_threads, device.name)
    if config.shared > device.max_shared:
        raise OutOfResourcesError(
            kernel,
            "shared memory in bytes",
            config.shared,
            device.max_shared,
            f"device {device.index} is {device.name}",
        )
    blocks = config.cluster[0] * config.cluster[1] * config.cluster[2]
    if blocks > device.max_cluster:
        advice = f"device {device.index} is {device.name}" + (
            ", which has no clusters" if device.max_cluster == 1 else ""
        )
        raise OutOfResourcesError(kernel, "blocks in a cluster", blocks, device.max_cluster, advice)


def check_block(kernel: str, config: LaunchConfig, limit: int | None, where: str) -> None:
    """Raise `OutOfResourcesError` if a block has more threads than fit."""
    threads = config.block[0] * config.block[1] * config.block[2]
    if limit is not None and threads > limit:
        raise OutOfResourcesError(
            kernel, f"threads in a block of {config.block}", threads, limit, f"the limit of {where}"
        )


def check_function(kernel: str, function: Function, config: LaunchConfig, device: int) -> None:
    """Raise `OutOfResourcesError` for what this kernel cannot have on a device, though others may."""
    check_block(kernel, config, function.max_threads, "this kernel on this device")
    most = function.attributes.get("max_dynamic_shared")
    if most is not None and config.shared > most:
        own = function.attributes.get("shared", 0)
        raise OutOfResourcesError(
            kernel,
            "dynamic shared memory in bytes",
            config.shared,
            most,
            f"device {device} has {most + own} for a block, and the kernel itself takes {own}",
        )


def check_cooperative(
    kernel: str, config: LaunchConfig, found: Occupancy, device: int, units: str = "multiprocessors"
) -> None:
    """Raise `OutOfResourcesError` if the blocks of a cooperative grid cannot run all at once.

    `units` is what messages call the multiprocessors.
    """
    if config.cooperative and config.blocks > found.max_active_blocks:
        raise OutOfResourcesError(
            kernel,
            "blocks in a cooperative grid",
            config.blocks,
            found.max_active_blocks,
            f"they run all at once: {found.blocks_per_multiprocessor} on each of the {found.multiprocessors} "
            f"{units} of device {device}; let each thread do more",
        )


def grid_error(kernel: str, axis: str, size: int, limit: int) -> LaunchConfigError:
    """Make the error for a grid that is larger than the device takes."""
    return LaunchConfigError(
        f"{kernel}: grid.{axis} is {size}, the device takes at most {limit}"
        + ("; put the long axis first, the x axis takes more" if axis != "x" else "; let each thread do more"),
        kernel=kernel,
        axis=f"grid.{axis}",
        value=size,
    )
