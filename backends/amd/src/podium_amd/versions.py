"""The versions of what is at work, for errors and ``podium doctor``."""

from __future__ import annotations

from contextlib import suppress

from podium.errors import PodiumError

from podium_amd.status import hip_version

__all__ = ["versions"]


def versions() -> dict[str, str]:
    """Return the version of the HIP runtime, and of what compiles. It does not raise."""
    found = {}
    with suppress(PodiumError, OSError):
        found["driver"] = f"HIP {hip_version()}"
    with suppress(PodiumError, OSError):
        from podium_amd.toolchain import hiprtc_version

        found["toolkit"] = f"hipRTC {hiprtc_version()}"
    return found
