"""The error for a status that a driver gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium import _state
from podium._debug import enabled as debugging
from podium._launch_config import Dim3
from podium.errors import LaunchError

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["status_error"]

_SHOWN = 8  # recent launches in the message


def status_error(
    driver: Driver, status: int, kernel: str, device: int, grid: Dim3, block: Dim3, stream: int
) -> LaunchError:
    """Make the error for a status. Where it may come from an earlier launch, those are listed.

    It cannot while debugging is on, nor in the host's own order, stream 0 of a driver that runs on the host.
    """
    name, text = driver.describe_status(status)
    recent = [str(each) for each in _state.recent()[-_SHOWN:]]
    message = (
        f"{kernel}: {name}: {text} (status {status}; backend {driver.name}, device {device}, grid {grid}, "
        f"block {block}, stream {stream:#x})"
    )
    certain = debugging() or (driver.host_memory and stream == 0 and grid != (0, 0, 0))
    if not certain and recent:
        message += (
            "\nIf the device runs asynchronously, an earlier launch may be at fault; PODIUM_DEBUG=1 finds out which."
            " The last launches:\n  " + "\n  ".join(recent)
        )
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
    )
