"""Where podium was called from, for warnings that shall point there."""

from __future__ import annotations

import sys

__all__ = ["frames_of_podium"]


def frames_of_podium() -> int:
    """Count the frames down to the caller's own code, as `warnings.warn` counts in the function that asks."""
    depth = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "podium":
        frame = frame.f_back
        depth += 1
    return depth
