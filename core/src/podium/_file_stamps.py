"""What was found out from files, kept in the cache for as long as the system says the same of them as it did then.

A process that starts finds things out again only if a file has another size, time or number, is gone, or has come.
What most often is found out is a digest of files, for cache keys.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from struct import Struct

from podium._cache import cache_key, default_cache
from podium._digest import sha256

__all__ = ["Statuses", "folder_digest", "look", "read_files", "recall", "remember"]

Statuses = dict[bytes, "os.stat_result | None"]
"""What the system said of files and folders, by their paths; None stands for what is not there."""

# A file that was written within these may be written again without another time: clocks of file systems are coarse.
_RESTLESS_NS = 2_000_000_000

# What is kept: the bytes of what was found out, how many files, what the system says of each, and their paths.
_HEAD = Struct("<qq")
_NUMBERS = 4
_MISSING = (0,) * _NUMBERS
_LARGEST = (1 << 63) - 1  # the number of a file may have more bits, and so may its times: some file systems take any


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
            numbers += _stamp(status)
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
            numbers += _stamp(status)
    stamps = Struct(f"<{len(numbers)}q").pack(*numbers)
    names = b"\0".join(path.removeprefix(base) for path in statuses)
    default_cache().put(key, _HEAD.pack(len(found), len(statuses)) + found + stamps + names)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    times = status.st_mtime_ns & _LARGEST, status.st_ctime_ns & _LARGEST
    return status.st_size, *times, status.st_ino & _LARGEST


def folder_digest(folder: str | os.PathLike[str], *, suffix: str = "", deep: bool = True) -> str:
    """Return a digest of the names and the contents of the files in a folder whose names end with `suffix`.

    Those in folders below are among them if it is `deep`; what Python compiles is left out. The files are read only if
    one of them, or a folder of them, has another size, time or number than when they were read before, by any process.
    Raises OSError.
    """
    path = os.fsencode(os.path.abspath(folder))
    key = cache_key("digest", path, suffix, "deep" if deep else "")
    known = recall(key, path)
    if known is None:
        now = time.time_ns()
        statuses = _look_below(path, os.fsencode(suffix), deep)
        known = _digest((each.removeprefix(path), each) for each in statuses)
        remember(key, known, statuses, now, path)
    return known.decode("ascii")


def read_files(folders: Sequence[str], files: Sequence[str], suffix: str) -> tuple[bytes, Statuses]:
    """Return a digest of some files, and of those right in some folders whose names end with `suffix`.

    Beside it stands what the system said of all of them before they were read. The paths are absolute; what is not
    there is left out. Raises OSError.
    """
    statuses = look(map(os.fsencode, files))
    named = [(b"%d" % index, path) for index, path in enumerate(statuses)]
    for index, folder in enumerate(map(os.fsencode, folders)):
        is_there = os.path.isdir(folder)
        found = _look_below(folder, os.fsencode(suffix), deep=False) if is_there else look([folder])
        named += [(b"%d/%s" % (index, os.path.basename(path)), path) for path in found]
        statuses |= found
    return _digest((name, path) for name, path in named if statuses[path] is not None), statuses


def _look_below(folder: bytes, suffix: bytes, deep: bool) -> Statuses:
    """Look at the files in a folder, and at folders, whose times tell of names that come or go; those end with a /."""
    statuses: Statuses = {}
    folders = [folder + b"/"]
    for above in folders:
        statuses[above] = os.stat(above)
        with os.scandir(above) as entries:
            for entry in entries:
                if entry.is_dir():
                    if deep and entry.name != b"__pycache__":
                        folders.append(entry.path + b"/")
                elif entry.name.endswith(suffix):
                    statuses[entry.path] = entry.stat()
    return statuses


def _digest(files: Iterable[tuple[bytes, bytes]]) -> bytes:
    pieces: list[bytes] = []
    for name, path in sorted(files):
        if not path.endswith(b"/"):
            with open(path, "rb") as file:
                data = file.read()
            pieces += (name, b"\0%d\0" % len(data), data)
    return sha256(*pieces).hexdigest().encode("ascii")
