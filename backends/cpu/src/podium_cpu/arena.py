"""The memory that kernels built for the sanitizer of addresses are given: arrays far apart, with nothing between them.

How much of each eight bytes a kernel may touch stands in a second memory, the shadow; see runtime/sanitizer.h, which
has the same numbers. Both are address space that takes real memory only where it is used.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import mmap
import os
import platform
import threading
import weakref
from dataclasses import dataclass

from podium.errors import LoadError, OutOfResourcesError

__all__ = ["SHADOW", "Arena", "ArenaBuffer", "arena"]

SHADOW, _START, _BYTES = 0x200000000000, 0x400000000000, 0x100000000000
_SHADOW_BYTES = 1 << (44 if platform.machine().lower() in ("x86_64", "amd64") else 45)

_GAP = 64 << 20  # the least distance of two arrays: an index that is wrong by less than this finds no other array
_PAGE = mmap.PAGESIZE
_OPEN = b"\x08"

_READ_WRITE, _FIXED, _NORESERVE = 1 | 2, 0x100000, 0x2 | 0x20 | 0x4000  # Linux
_DONTNEED, _DONTDUMP = 4, 16


@dataclass
class Allocation:
    """A part of the arena: `size` bytes at `start`. `name` is what messages call it.

    It has `room` bytes at `place`, with those that are closed behind it.
    """

    start: int
    size: int
    name: str
    place: int
    room: int


class Arena:
    """The arena of this process. Made by `arena`, when the first kernel is loaded or the first array made."""

    def __init__(self) -> None:
        """Reserve the address space. Raises `LoadError` if that cannot be had."""
        self._lock = threading.RLock()
        self._next = _START + _GAP
        self._free: dict[int, list[int]] = {}  # places by the room they have
        self._starts: list[int] = []
        self._allocations: dict[int, Allocation] = {}
        for address, size in ((SHADOW, _SHADOW_BYTES), (_START, _BYTES)):
            _reserve(address, size)

    def allocate(self, size: int, offset: int = 0, name: str = "an array of podium") -> Allocation:
        """Open `size` bytes for kernels, `offset` bytes behind the start of a page. Raises `OutOfResourcesError`."""
        pages = -(-max(size + offset, 1) // _PAGE) * _PAGE
        room = pages + max(_GAP, pages)
        with self._lock:
            places = self._free.get(room)
            if places:
                place = places.pop()
            else:
                place = self._next
                if place + room > _START + _BYTES:
                    raise OutOfResourcesError("allocate", "memory in bytes", size, _START + _BYTES - place, "free some")
                self._next += room
            made = Allocation(place + offset, size, name, place, room)
            bisect.insort(self._starts, made.start)
            self._allocations[made.start] = made
        if size:
            _open(made.start, size)
        return made

    def release(self, allocation: Allocation) -> None:
        """Close an allocation, and give its memory back."""
        _close(allocation.start, allocation.size)
        _libc().madvise(allocation.place, allocation.room, _DONTNEED)
        with self._lock:
            self._allocations.pop(allocation.start, None)
            self._starts.remove(allocation.start)
            self._free.setdefault(allocation.room, []).append(allocation.place)

    def nearest(self, address: int) -> Allocation | None:
        """Return the allocation that an address is in or next to; None if it is not in the arena."""
        if not _START <= address < _START + _BYTES:
            return None
        with self._lock:
            index = bisect.bisect_right(self._starts, address)
            near = [self._allocations[start] for start in self._starts[max(0, index - 1) : index + 1]]
        return min(near, key=lambda each: max(each.start - address, address - each.start - each.size), default=None)

    @staticmethod
    def has(address: int) -> bool:
        """Tell whether an address is in the arena."""
        return _START <= address < _START + _BYTES


@functools.lru_cache(maxsize=1)
def arena() -> Arena:
    """Return the arena of this process. Raises `LoadError` if the address space for it cannot be had."""
    return Arena()


def _renew_lock() -> None:
    # Another thread may have held the lock at the fork, and that thread does not exist in the child.
    if arena.cache_info().currsize:
        arena()._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class ArenaBuffer:
    """Zeroed memory in the arena; it is closed and given back with the object."""

    def __init__(self, size: int, alignment: int) -> None:
        """Allocate. `alignment` is a power of two, up to the size of a page. Raises `OutOfResourcesError`."""
        if alignment > _PAGE:
            raise OutOfResourcesError("allocate", "alignment in bytes", alignment, _PAGE)
        allocation = arena().allocate(size)
        self.ptr, self.size = allocation.start, size
        # Arrays that outlive the interpreter's last steps need not be given back.
        weakref.finalize(self, arena().release, allocation).atexit = False

    def __repr__(self) -> str:
        return f"<ArenaBuffer of {self.size} bytes at {self.ptr:#x}>"


def _open(start: int, size: int) -> None:
    # Bytes before the first in its eight cannot be closed without closing that, too.
    first, whole = SHADOW + (start >> 3), (start + size >> 3) - (start >> 3)
    ctypes.memset(first, _OPEN[0], whole)
    if (start + size) & 7:
        ctypes.memset(first + whole, (start + size) & 7, 1)


def _close(start: int, size: int) -> None:
    ctypes.memset(SHADOW + (start >> 3), 0, (start + size + 7 >> 3) - (start >> 3))


def _reserve(address: int, size: int) -> None:
    found = _libc().mmap(address, size, _READ_WRITE, _NORESERVE | _FIXED, -1, 0)
    if found != address:
        reason = "it is taken" if found not in (None, ctypes.c_void_p(-1).value) else "the system refuses it"
        raise LoadError(
            f"The sanitizer of addresses needs {size >> 30} GiB of address space (not of memory) at {address:#x}, and "
            f"{reason}. Is there a limit on address space (ulimit -v), or another sanitizer in this process?",
            backend="cpu",
        )
    _libc().madvise(address, size, _DONTDUMP)


@functools.lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
    )  # fmt: skip
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library
