"""Digests of the files of a folder, for cache keys: what is read once is known again by what the system says of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from struct import Struct

from podium._cache import cache_key, default_cache
from podium._digest import sha256

__all__ = ["folder_digest"]

# A file that was written within these may be written again without another time: clocks of file systems are coarse.
_RESTLESS_NS = 2_000_000_000

# What is kept: the digest, how many files and folders it is of, what the system says of each, and their names.
_HEAD = Struct("<64sq")
_NUMBERS = 4
_LARGEST = (1 << 63) - 1  # the number of a file may have more bits


def folder_digest(folder: str | os.PathLike[str], *, suffix: str = "", deep: bool = True) -> str:
    """Return a digest of the names and the contents of the files in a folder whose names end with `suffix`.

    Those in folders below are among them if it is `deep`; what Python compiles is left out. The files are read only if
    one of them, or a folder of them, has another size, time or number than when they were read before, by any process.
    Raises OSError.
    """
    path = os.fsencode(os.path.abspath(folder))
    key = cache_key("digest", path, suffix, "deep" if deep else "")
    kept = default_cache().get(key)
    digest = _recall(kept, path) if kept is not None else None
    if digest is None:
        digest = _read(key, path, os.fsencode(suffix), deep)
    return digest


def _recall(kept: bytes, folder: bytes) -> str | None:
    """Return the digest that is kept, if the system says the same as then. Of a new name, the folder's time tells."""
    if len(kept) < _HEAD.size:
        return None
    digest, count = _HEAD.unpack_from(kept)
    end = _HEAD.size + 8 * _NUMBERS * count
    try:
        statuses = [os.stat(folder + name) for name in kept[end:].split(b"\0")]
    except OSError:
        return None
    same = len(statuses) == count and _pack(statuses) == kept[_HEAD.size : end]
    return str(digest, "ascii") if same else None


def _read(key: str, folder: bytes, suffix: bytes, deep: bool) -> str:
    now = time.time_ns()
    # The system is asked first: of a change between that and the reading, the next process is told.
    statuses = _look(folder, suffix, deep)
    pieces: list[bytes] = []
    for name in sorted(name for name in statuses if not name.endswith(b"/")):
        with open(folder + name, "rb") as file:
            data = file.read()
        pieces += (name[1:], b"\0%d\0" % len(data), data)
    digest = sha256(*pieces).hexdigest()
    if all(max(each.st_mtime_ns, each.st_ctime_ns) < now - _RESTLESS_NS for each in statuses.values()):
        head = _HEAD.pack(digest.encode("ascii"), len(statuses))
        default_cache().put(key, head + _pack(statuses.values()) + b"\0".join(statuses))
    return digest


def _look(folder: bytes, suffix: bytes, deep: bool) -> dict[bytes, os.stat_result]:
    """Give the status of each file, and of each folder, by the end of its path; that of a folder ends with a slash."""
    statuses: dict[bytes, os.stat_result] = {}
    folders = [b"/"]
    for above in folders:
        statuses[above] = os.stat(folder + above)
        with os.scandir(folder + above) as entries:
            for entry in entries:
                name = above + entry.name
                if entry.is_dir():
                    if deep and entry.name != b"__pycache__":
                        folders.append(name + b"/")
                elif name.endswith(suffix):
                    statuses[name] = entry.stat()
    return statuses


def _pack(statuses: Iterable[os.stat_result]) -> bytes:
    numbers: list[int] = []
    for each in statuses:
        numbers += (each.st_size, each.st_mtime_ns, each.st_ctime_ns, each.st_ino & _LARGEST)
    return Struct(f"<{len(numbers)}q").pack(*numbers)
