"""The versions of what is at work, for errors and ``podium doctor``."""

from __future__ import annotations

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
        from podium_nvidia.toolchain import nvrtc_version

        found["toolkit"] = f"NVRTC {nvrtc_version()}"
    return found
