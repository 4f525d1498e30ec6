"""Digests of files and folders, for cache keys: what is read once is known again by what the system says of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence

from podium._cache import cache_key
from podium._digest import sha256
from podium._file_stamps import Statuses, look, recall, remember

__all__ = ["folder_digest", "read_files"]


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
