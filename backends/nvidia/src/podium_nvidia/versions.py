"""The versions of what is at work, for errors and ``podium doctor``."""

from __future__ import annotations

import os
import re
from contextlib import suppress

from podium.errors import PodiumError

from podium_nvidia.status import driver_version

__all__ = ["versions"]


def versions() -> dict[str, str]:
    """Return the version of the NVIDIA driver, and of the toolkit that compiles. It does not raise."""
    found = {}
    with suppress(PodiumError):
        found["driver"] = driver_version()
    with suppress(PodiumError, OSError):
        from podium_nvidia.toolchain import nvrtc_path

        name = os.path.basename(os.path.realpath(nvrtc_path()))
        version = re.search(r"\.so\.(\d+(?:\.\d+)*)", name)
        found["toolkit"] = f"NVRTC {version[1]}" if version else name
    return found
