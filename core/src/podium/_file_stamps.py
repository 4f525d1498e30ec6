"""What was found out from files, kept in the cache for as long as the system says the same of them as it did then.

A process that starts finds things out again only if a file has another size, time or number, is gone, or has come.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from struct import Struct

from podium._cache import default_cache

__all__ = ["Statuses", "look", "recall", "remember"]

Statuses = dict[bytes, "os.stat_result | None"]
"""What the system said of files and folders, by their paths; None stands for what is not there."""

# A file that was written within these may be written again without another time: clocks of file systems are coarse.
_RESTLESS_NS = 2_000_000_000

# What is kept: the bytes of what was found out, how many files, what the system says of each, and their paths.
_HEAD = Struct("<qq")
_NUMBERS = 4
_MISSING = (0,) * _NUMBERS
_LARGEST = (1 << 63) - 1  # the number of a file may have more bits


def look(paths: Iterable[bytes]) -> Statuses:
    """Ask the system for each of some files or folders."""
    statuses: Statuses = {}
    for path in paths:
        try:
            statuses[path] = os.stat(path)
        except OSError:
            statuses[path] = None
    return statuses


def recall(key: str, base: bytes = b"") -> bytes | None:
    """Return what `remember` has kept under a key, if the system says the same of all files; else None."""
    kept = default_cache().get(key)
    if kept is None or len(kept) < _HEAD.size:
        return None
    length, count = _HEAD.unpack_from(kept)
    stamps = _HEAD.size + length
    paths = stamps + 8 * _NUMBERS * count
    numbers: list[int] = []
    names = kept[paths:].split(b"\0")
    for name in names:
        try:
            status = os.stat(base + name)
            numbers += (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino & _LARGEST)
        except OSError:
            numbers += _MISSING
    same = len(names) == count and Struct(f"<{len(numbers)}q").pack(*numbers) == kept[stamps:paths]
    return kept[_HEAD.size : stamps] if same else None


def remember(key: str, found: bytes, statuses: Statuses, since: int, base: bytes = b"") -> None:
    """Keep what was found out from files, `since` when in nanoseconds since 1970, unless one could change unseen.

    The system must have been asked for them before they were read. `base` is what their paths begin with.
    """
    numbers: list[int] = []
    for status in statuses.values():
        if status is None:
            numbers += _MISSING
        elif max(status.st_mtime_ns, status.st_ctime_ns) >= since - _RESTLESS_NS:
            return
        else:
            numbers += (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino & _LARGEST)
    stamps = Struct(f"<{len(numbers)}q").pack(*numbers)
    names = b"\0".join(path.removeprefix(base) for path in statuses)
    default_cache().put(key, _HEAD.pack(len(found), len(statuses)) + found + stamps + names)
