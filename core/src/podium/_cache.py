"""The cache: bytes under a key, on disk where that is possible and in memory where it is not.

Processes share it without locks. An entry is published by one rename; a reader sees the whole of it or nothing, and
a checksum tells what a crash or a bad disk left. Whoever loses a race has its own bytes already.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

from podium import _settings
from podium._cache_entry import HEADER_SIZE, SCHEMA
from podium._cache_folder import CacheFolder, Mode, check_folder, choose_folder, forget_notices, notify_once
from podium._cache_tree import CacheEntry, CacheTree, kind_of
from podium._digest import sha256
from podium._fork import ForkSafeLock
from podium._record import record
from podium._version import __version__

__all__ = ["Cache", "CacheEntry", "CacheInfo", "cache_key", "default_cache", "reset_cache"]

_MEMORY_BYTES = 256 << 20

_lock = ForkSafeLock()


def cache_key(kind: str, *parts: str | bytes) -> str:
    """Make the key of something that depends on exactly these parts, in this order, and on podium's version.

    `kind` is a lower-case word of at most 32 letters, such as "kernel", which stays readable in the key.
    Raises ValueError if it is not.
    """
    if not (kind.isascii() and kind.isalpha() and kind.islower() and len(kind) <= 32):
        raise ValueError(f"The kind of a cache key is a word of up to 32 lower-case letters, not {kind!r}")
    pieces: list[bytes] = []
    for part in (str(SCHEMA), __version__, kind, *parts):
        # File names may hold lone surrogates, which must not stop a compilation.
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        # The length keeps ("ab", "c") apart from ("a", "bc").
        pieces += ((b"s%d:" if isinstance(part, str) else b"b%d:") % len(data), data)
    return f"{kind}-{sha256(*pieces).hexdigest()}"


@record(frozen=True)
class CacheInfo:
    """The state of a cache: `mode` is "disk", "read-only" or "memory", and `reason` says why it is not as asked for.

    Hits and misses are those of this process.
    """

    folder: Path | None
    mode: Mode
    reason: str
    entries: int
    bytes: int
    max_bytes: int
    hits: int
    misses: int


class Cache:
    """A store of bytes under keys made by `cache_key`. Safe in threads, and between processes that share a folder.

    Trouble with the disk is never an error: what cannot be read is missing, what cannot be written stays in memory,
    and the user gets one `PodiumWarning`. Without a folder all is in memory. Methods that take a key raise
    ValueError if it is not one.
    """

    def __init__(self, folder: Path | CacheFolder | None, max_bytes: int, *, trusted: bool = False) -> None:
        if folder is None:
            folder = CacheFolder(None, "memory", "no folder was given")
        elif not isinstance(folder, CacheFolder):
            folder = check_folder(folder, trusted=trusted)
        self._folder = folder
        self._tree = CacheTree(folder.tree, folder, max_bytes) if folder.tree is not None else None
        self._max_bytes = max_bytes
        self._memory: dict[str, tuple[bytes, float]] = {}
        self._hidden: set[str] = set()  # entries that could not be removed from the disk
        self._hits = self._misses = 0
        if folder.warning:
            notify_once(f"folder {folder.path}", folder.warning)

    @property
    def folder(self) -> Path | None:
        """The folder on disk, if this process can write to it."""
        return self._folder.path if self._folder.mode == "disk" else None

    def get(self, key: str) -> bytes | None:
        """Return the bytes under `key`, or None. A damaged entry is moved aside and counts as missing."""
        _check(key)
        kept = self._memory.get(key)
        data = kept[0] if kept else None
        if data is None and self._tree is not None and key not in self._hidden:
            data, fault = self._tree.read(key)
            if fault:
                self.quarantine(key, fault)
        with _lock:
            if data is None:
                self._misses += 1
            else:
                self._hits += 1
        return data

    def put(self, key: str, data: bytes | bytearray | memoryview) -> None:
        """Keep bytes under `key`, in place of what is there; in memory if they cannot be written to disk."""
        _check(key)
        data = data if isinstance(data, bytes) else bytes(memoryview(data))
        if self._tree is None or self._folder.mode != "disk" or HEADER_SIZE + len(data) > self._max_bytes:
            self._keep(key, data)
            if self._folder.mode == "read-only":
                self._complain("read-only", "cannot be written")
            return
        try:
            self._tree.write(key, data)
        except OSError as error:
            self._keep(key, data)
            # On Windows a refusal means that another process has just published this entry, or is reading it.
            if os.name != "nt" or not isinstance(error, PermissionError):
                name = errno.errorcode.get(error.errno or 0, "OSError")
                self._complain(name, f"could not be written: {error.strerror or error}")
            return
        self._forget(key)
        self._hidden.discard(key)

    def remove(self, key: str) -> None:
        """Forget what is under `key`; nothing happens if there is nothing."""
        _check(key)
        self._forget(key)
        if self._tree is not None and not self._tree.remove(key):
            self._hidden.add(key)

    def quarantine(self, key: str, reason: str) -> None:
        """Move an entry aside that turned out to be of no use, so that it is built anew; keep the reason beside it."""
        _check(key)
        self._forget(key)
        if self._tree is not None and not self._tree.move_aside(key, reason):
            self._hidden.add(key)

    def clear(self) -> tuple[int, int]:
        """Remove everything; return how many entries and bytes that were."""
        with _lock:
            kept, self._memory = self._memory, {}
        count, size = len(kept), sum(len(data) for data, _ in kept.values())
        if self._tree is not None and self._folder.mode == "disk":
            removed, removed_size = self._tree.clear()
            count, size = count + removed, size + removed_size
        return count, size

    def entries(self) -> list[CacheEntry]:
        """List what there is, by key."""
        on_disk = self._tree.entries() if self._tree is not None else []
        found = {entry.key: entry for entry in on_disk if entry.key not in self._hidden}
        with _lock:
            kept = dict(self._memory)
        for key, (data, used) in kept.items():
            found[key] = CacheEntry(key, key.partition("-")[0], len(data), used)
        return [found[key] for key in sorted(found)]

    def has(self, kind: str) -> bool:
        """Tell whether there is anything of a kind. Costs little where there is, or where there is next to nothing."""
        start = f"{kind}-"
        if any(key.startswith(start) for key in list(self._memory)):
            return True
        return self._tree is not None and self._tree.has(start)

    def info(self) -> CacheInfo:
        """Return where the cache is, how full it is, and how it has served this process."""
        entries = self.entries()
        size = sum(entry.size for entry in entries)
        folder = self._folder
        return CacheInfo(
            folder.path, folder.mode, folder.reason, len(entries), size, self._max_bytes, self._hits, self._misses
        )

    def _keep(self, key: str, data: bytes) -> None:
        with _lock:
            self._memory.pop(key, None)
            self._memory[key] = (data, time.time())
            total = sum(len(each) for each, _ in self._memory.values())
            while total > _MEMORY_BYTES and len(self._memory) > 1:
                total -= len(self._memory.pop(next(iter(self._memory)))[0])

    def _forget(self, key: str) -> None:
        with _lock:
            self._memory.pop(key, None)

    def _complain(self, cause: str, what: str) -> None:
        notify_once(
            f"write {cause}",
            f"The cache folder {self._folder.path} {what}. Newly compiled code is kept in memory only, and each "
            f"process compiles it again. Mend the folder, or choose another with PODIUM_CACHE_DIR",
        )


def _check(key: str) -> None:
    # Keys become file names, so nothing else may ever pass.
    if kind_of(key) is None:
        raise ValueError(f"{key!r} is not a cache key; make one with cache_key")


_default: dict[str, Cache] = {}


def default_cache() -> Cache:
    """Return the cache of this process, made on first use from PODIUM_CACHE_DIR and its like."""
    cache = _default.get("")
    if cache is None:
        folder = choose_folder(_settings.cache_dir(), trusted=_settings.cache_trusted())
        # setdefault is atomic: threads that come first together get the same cache, and no fork inherits a held lock.
        cache = _default.setdefault("", Cache(folder, _settings.cache_size()))
    return cache


def reset_cache() -> None:
    """Make the next `default_cache` read the environment again, and tell again what is wrong with the folder."""
    _default.clear()
    forget_notices()
