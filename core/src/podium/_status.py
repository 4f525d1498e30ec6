"""The error for a status that a driver gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium import _state
from podium._launch_config import Dim3
from podium.errors import LaunchError, LoadError

if TYPE_CHECKING:
    from podium._target import Target
    from podium.backend import Driver

__all__ = ["complete", "status_error", "surroundings"]


def status_error(
    driver: Driver,
    status: int,
    kernel: str,
    device: int,
    grid: Dim3,
    block: Dim3,
    stream: int,
    binary: Target | None = None,
) -> LaunchError:
    """Make the error for a status. Where it may come from an earlier launch, those are listed.

    It cannot while debugging is on, nor in the host's own order, stream 0 of a driver that runs on the host. `binary`
    is what the kernel's code was compiled for.
    """
    name, text = driver.describe_status(status)
    recent = _state.launches_of(driver.name)
    message = (
        f"{kernel}: {name}: {text} (status {status}; backend {driver.name}, device {device}, grid {grid}, "
        f"block {block}, stream {stream:#x})"
    )
    about = surroundings(driver, device, binary)
    if about:
        message += f"\n{about}"
    owner = driver.stream_device(stream) if stream else None
    if owner is not None and owner != device:
        message += (
            f"\nStream {stream:#x} is of device {owner}: take one of device {device}, or arrays of device {owner}"
        )
    if not (driver.host_memory and stream == 0 and grid != (0, 0, 0)):
        message += _state.suspicion(recent)
    return LaunchError(
        message,
        status=status,
        status_name=name,
        status_text=text,
        kernel=kernel,
        backend=driver.name,
        device=device,
        grid=grid,
        block=block,
        recent=recent,
        binary=None if binary is None else str(binary),
        versions=driver.versions(),
    )


def surroundings(driver: Driver, device: int, binary: Target | None) -> str:
    """Say what a failure may depend on: the architectures of binary and device, and versions; empty if it is nothing.

    Only a backend that knows versions has several architectures and drivers to be confused by.
    """
    versions = driver.versions()
    if not versions:
        return ""
    described = driver.devices()[device]
    parts = [f"device {device} is {described.name}, {described.target}"]
    if binary is not None:
        parts.append(f"the binary is for {binary}")
    return "; ".join([*parts, *(f"{name} {version}" for name, version in versions.items())])


def complete(error: LoadError, driver: Driver, device: int, binary: Target) -> None:
    """Add to an error of the driver's `load` what it may depend on."""
    about = surroundings(driver, device, binary)
    if about:
        error.args = (f"{error}\n{about}",)
        error.binary, error.versions = str(binary), dict(driver.versions())
