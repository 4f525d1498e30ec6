"""Memory of the host as a buffer of the driver protocol."""

from __future__ import annotations

import ctypes

from podium.errors import OutOfResourcesError

__all__ = ["MIN_ALIGNMENT", "HostBuffer"]

MIN_ALIGNMENT = 64

# From this size on, memory comes from the system page by page as it is first touched, and is zero without a write.
_MAPPED_BYTES = 128 << 10


class HostBuffer:
    """Zeroed memory of `size` bytes at address `ptr`; it is freed with the object."""

    def __init__(self, size: int, alignment: int) -> None:
        """Allocate. `alignment` is a power of two; at least 64 bytes are kept. Raises `OutOfResourcesError`."""
        if size < 0:
            raise ValueError(f"A buffer of {size} bytes cannot be")
        if alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"An alignment is a power of two, not {alignment}")
        alignment = max(alignment, MIN_ALIGNMENT)
        room = max(size, 1) + alignment - 1
        try:
            self._memory = _mapped(room) if room >= _MAPPED_BYTES else ctypes.create_string_buffer(room)
        except (MemoryError, OverflowError, OSError, ValueError):
            from podium.parts import free_host_bytes

            raise OutOfResourcesError("allocate", "memory in bytes", size, free_host_bytes(), "free some") from None
        self.size = size
        self.ptr = -(-ctypes.addressof(self._memory) // alignment) * alignment

    def __repr__(self) -> str:
        return f"<HostBuffer of {self.size} bytes at {self.ptr:#x}>"


def _mapped(room: int) -> ctypes.Array[ctypes.c_char]:
    import mmap  # which few programs need, and none to begin

    if hasattr(mmap, "MAP_PRIVATE"):
        # A child that is forked later gets a copy, as of all other memory.
        mapping = mmap.mmap(-1, room, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    else:
        mapping = mmap.mmap(-1, room)
    return (ctypes.c_char * room).from_buffer(mapping)
