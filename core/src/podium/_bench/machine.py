"""What figures depend on beside what is measured: the machine, its load, and the versions of what is at work."""

from __future__ import annotations

import os
import platform
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from podium._limits import find_device
from podium._version import __version__

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["about"]


def about(driver: Driver) -> dict[str, Any]:
    """Return the date, the device, the machine and the versions. Initialises the driver."""
    found: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "podium": __version__,
        "backend": driver.name,
        "device": find_device("the bench", driver, driver.current_device()).name,
        **driver.versions(),
        "python": f"{sys.implementation.name} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
    with suppress(OSError, AttributeError):  # not every system tells it
        found["load"] = round(os.getloadavg()[0], 1)
    return found


def _processor() -> str:
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
