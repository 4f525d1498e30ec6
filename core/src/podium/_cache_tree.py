"""The tree of files that the disk cache keeps in its folder: where entries lie, and how many may.

::

    v1/<first two digits>/<key>     entries
    v1/new/                         entries being written
    v1/quarantine/                  bad entries, each with a text that says what was wrong, the newest few
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from podium._cache_entry import HEADER_SIZE, read_entry, write_entry
from podium._cache_folder import CacheFolder, check_folder
from podium._record import record

__all__ = ["CacheEntry", "CacheTree", "kind_of"]

_SHARDS = 256
_HOUR = 3600.0
_KEPT_ASIDE = 16


def kind_of(key: object) -> str | None:
    """Return the kind that a key begins with, a word in front of a digest; None if it is no key."""
    if not isinstance(key, str):
        return None
    kind, _, digest = key.partition("-")
    is_word = kind.isascii() and kind.isalpha() and kind.islower() and len(kind) <= 32
    return kind if is_word and len(digest) == 64 and _is_hexadecimal(digest) else None


def _is_hexadecimal(text: str) -> bool:
    return not text.strip("0123456789abcdef")


@record(frozen=True)
class CacheEntry:
    """One entry: its size in bytes, and when it was last used, to about an hour, in seconds since 1970."""

    key: str
    kind: str
    size: int
    used: float


class CacheTree:
    """The entries on disk. Keys have been checked by the caller; only `write` raises, and only OSError."""

    def __init__(self, root: Path, folder: CacheFolder, max_bytes: int) -> None:
        self._root = root
        self._root_path = str(root)  # to make paths as text takes a tenth of the time, and each read makes one
        self._folder = folder
        self._max_bytes = max_bytes
        self._room: int | None = None  # bytes that may still be written before all entries are counted again
        self._swept = False

    def read(self, key: str) -> tuple[bytes | None, str]:
        """Return the bytes of an entry, or None with what is wrong with it; that is empty if there is none."""
        path = os.path.join(self._root_path, key[-64:-62], key)
        data, used, fault = read_entry(path, key, self._folder.owners)
        if data is not None and time.time() - used > _HOUR:
            # Not at each use, since that would be one write to the disk for each read.
            with suppress(OSError):
                os.utime(path)
        return data, fault

    def write(self, key: str, data: bytes) -> None:
        """Publish an entry, then remove others if there are too many bytes. Raises OSError."""
        path = self._path(key)
        temporary = self._root / "new" / f"{key[-64:]}.{os.getpid()}.{os.urandom(8).hex()}"
        try:
            self._make_folders(path.parent, temporary.parent)
            write_entry(path, temporary, key, data, self._folder.file_bits)
        except FileNotFoundError:
            # Somebody removed folders while this process used them; whoever made them anew is checked again.
            again = check_folder(self._root.parent, trusted=self._folder.trusted, private=self._folder.private)
            if again.mode != "disk":
                raise PermissionError(errno.EACCES, again.reason) from None
            self._make_folders(path.parent, temporary.parent)
            write_entry(path, temporary, key, data, self._folder.file_bits)
        if not self._swept:
            self._swept = True
            self._sweep()
        self._limit(path, HEADER_SIZE + len(data))

    def remove(self, key: str) -> bool:
        """Remove an entry; tell whether it is gone."""
        return _unlink(self._path(key))

    def move_aside(self, key: str, reason: str) -> bool:
        """Move a bad entry to the quarantine, with the reason beside it; tell whether it is gone from its place."""
        folder = self._root / "quarantine"
        # The names sort by time.
        aside = folder / f"{time.time_ns():020d}-{key}"
        try:
            self._folder.make(folder)
            os.replace(self._path(key), aside)
            (folder / f"{aside.name}.txt").write_text(reason + "\n", encoding="utf-8", errors="replace")
        except OSError:
            return self.remove(key)
        for old in sorted(_listing(folder))[: -2 * _KEPT_ASIDE]:
            _unlink(old)
        return True

    def clear(self) -> tuple[int, int]:
        """Remove all that no writer is at work on; return how many entries that were, and their bytes."""
        removed = [entry.size for path, entry in list(self._files()) if _unlink(path)]
        self._sweep()
        for path in _listing(self._root / "quarantine"):
            _unlink(path)
        for folder in _listing(self._root):
            with suppress(OSError):
                os.rmdir(folder)
        self._room = None
        return len(removed), sum(removed)

    def entries(self) -> list[CacheEntry]:
        """List the entries, in no order."""
        return [entry for _, entry in self._files()]

    def has(self, start: str) -> bool:
        """Tell whether there is an entry whose key begins so."""
        with suppress(OSError):
            for shard in os.listdir(self._root):
                if len(shard) == 2 and _is_hexadecimal(shard):
                    with suppress(OSError):
                        if any(name.startswith(start) for name in os.listdir(os.path.join(self._root, shard))):
                            return True
        return False

    def _path(self, key: str) -> Path:
        return self._root / key[-64:-62] / key

    def _make_folders(self, *folders: Path) -> None:
        for folder in folders:
            self._folder.make(folder)

    def _sweep(self) -> None:
        """Remove what killed writers left; a file that is older than an hour has no writer any more."""
        for path in _listing(self._root / "new"):
            with suppress(OSError):
                if time.time() - os.lstat(path).st_mtime > _HOUR:
                    os.unlink(path)

    def _limit(self, path: Path, size: int) -> None:
        """After `path` was written with `size` bytes, remove what was not used for longest if there is too much."""
        if self._room is None:
            # Keys are spread evenly, so one shard tells how full the cache is, at a small part of the cost.
            if _SHARDS * sum(entry.size for _, entry in _shard(path.parent)) <= self._max_bytes:
                return
        elif size <= self._room:
            self._room -= size
            return
        files = sorted(self._files(), key=lambda file: file[1].used)
        aside = [(each, status.st_size) for each in _listing(self._root / "quarantine") if (status := _status(each))]
        sizes = aside + [(each, entry.size) for each, entry in files]
        total = sum(each for _, each in sizes)
        if total > self._max_bytes:
            for old, old_size in sizes:
                if total <= self._max_bytes * 9 // 10:
                    break
                if old != path and _unlink(old):
                    total -= old_size
        # Other processes write, too, so this one counts again well before it could have used up the rest alone.
        self._room = max(0, self._max_bytes - total) // 8

    def _files(self) -> Iterator[tuple[Path, CacheEntry]]:
        for folder in _listing(self._root):
            if len(folder.name) == 2 and _is_hexadecimal(folder.name):
                yield from _shard(folder)


def _shard(folder: Path) -> Iterator[tuple[Path, CacheEntry]]:
    for path in _listing(folder):
        kind = kind_of(path.name)
        status = _status(path)
        if kind and status and stat.S_ISREG(status.st_mode):
            yield path, CacheEntry(path.name, kind, status.st_size, status.st_mtime)


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        # Other processes remove files, too.
        return None


def _listing(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder)]
    except OSError:
        return []


def _unlink(path: Path) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
