"""Whether the bytes of code are whole: the CUDA driver reads beyond the end of what was cut."""

from __future__ import annotations

import struct

from podium import backend

__all__ = ["is_whole"]

_FATBIN = struct.pack("<I", 0xBA55ED50)


def is_whole(code: bytes) -> bool:
    """Tell whether a cubin or a fatbin is as long as its headers say; other bytes the driver itself looks at."""
    if code[:4] != _FATBIN:
        return backend.is_whole(code)
    try:
        header, size = struct.unpack_from("<HQ", code, 6)
    except struct.error:  # shorter than its header
        return False
    return bool(header + size <= len(code))
