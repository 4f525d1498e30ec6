"""Digests of the files of a folder, for cache keys: what is read once is known again by what the system says of it."""

from __future__ import annotations

import os
import time

from podium._cache import cache_key, default_cache
from podium._digest import sha256

__all__ = ["folder_digest"]

# A file that was written within these may be written again without another time: clocks of file systems are coarse.
_RESTLESS_NS = 2_000_000_000

_Row = tuple[str, int, int, int, int]


def folder_digest(folder: str | os.PathLike[str], *, suffix: str = "", deep: bool = True) -> str:
    """Return a digest of the names and the contents of the files in a folder whose names end with `suffix`.

    Those in folders below are among them if it is `deep`; what Python compiles is left out. The files are read only if
    one has another size, time or number than when they were read before, by any process. Raises OSError.
    """
    path = os.fspath(folder)
    rows = _rows(path, suffix, deep)
    if not rows:
        return sha256().hexdigest()
    key = cache_key("digest", os.path.abspath(path), repr(rows))
    cache = default_cache()
    known = cache.get(key)
    if known is not None and len(known) == 64:
        return known.decode("ascii")
    now = time.time_ns()
    pieces: list[bytes] = []
    for name, *_ in rows:
        with open(os.path.join(path, name), "rb") as file:
            data = file.read()
        pieces += (name.encode("utf-8", "surrogateescape"), b"\0%d\0" % len(data), data)
    digest = sha256(*pieces).hexdigest()
    if all(max(changed, modified) < now - _RESTLESS_NS for _, _, modified, changed, _ in rows):
        cache.put(key, digest.encode("ascii"))
    return digest


def _rows(folder: str, suffix: str, deep: bool) -> list[_Row]:
    rows: list[_Row] = []
    folders = [(folder, "")]
    while folders:
        current, prefix = folders.pop()
        with os.scandir(current) as entries:
            for entry in entries:
                name = entry.name
                if entry.is_dir():
                    if deep and name != "__pycache__":
                        folders.append((entry.path, f"{prefix}{name}/"))
                elif name.endswith(suffix):
                    status = entry.stat()
                    times = status.st_mtime_ns, status.st_ctime_ns
                    rows.append((prefix + name, status.st_size, *times, status.st_ino))
    rows.sort()
    return rows
