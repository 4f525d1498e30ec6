"""How much memory of the host is to be had."""

from __future__ import annotations

import os

__all__ = ["free_host_bytes"]


def free_host_bytes() -> int:
    """Return the bytes of the host's memory that programs can still have: the limit in an `OutOfResourcesError`.

    Memory in which the system only keeps files counts, where the system tells. 0 where nothing is known.
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) << 10
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0
