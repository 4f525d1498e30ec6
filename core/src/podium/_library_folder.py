"""The private folder of this process where compiled bytes lie while the dynamic loader maps them."""

from __future__ import annotations

import atexit
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from podium._fork import ForkSafeLock

__all__ = ["leave_base", "library_bases", "mounted_noexec", "write_library"]

_POSIX = os.name == "posix"
_MINUTE = 60.0
_MOST_SWEPT = 100

_lock = ForkSafeLock()
# The folder of each process and base, with the descriptor that locks it. A forked child finds none for its own id, so
# it neither uses nor removes its parent's.
_folders: dict[tuple[int, str], tuple[Path, int | None]] = {}


def library_bases() -> Iterator[str]:
    """Give the folders in which to try, those of this machine first: mapped files can vanish on a network."""
    seen: set[str] = set()
    for base in _bases():
        if base and os.path.isabs(base) and base not in seen:
            seen.add(base)
            yield base


def _bases() -> Iterator[str | None]:
    if not _POSIX:
        import tempfile

        yield tempfile.gettempdir()
        return
    # What the module tempfile looks at; importing that costs more than loading a library does.
    for variable in ("TMPDIR", "TEMP", "TMP"):
        yield os.environ.get(variable)
    yield from ("/tmp", "/var/tmp", os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm")
    from podium._cache import default_cache

    folder = default_cache().folder
    yield None if folder is None else str(folder)


def mounted_noexec(base: str) -> bool:
    """Tell whether the mount that holds the folder forbids execution; False where that cannot be known."""
    try:
        return bool(os.statvfs(base).f_flag & os.ST_NOEXEC)
    except (AttributeError, OSError):
        return False


def write_library(base: str, file_name: str, data: bytes) -> Path:
    """Write a file into this process's folder under `base`; return its path. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    folder = _folder(base)
    try:
        descriptor = os.open(folder / file_name, flags, 0o700)
    except FileNotFoundError:
        # The folder was tidied away, as jobs do that delete temporary files after some days.
        folder = _folder(base, lost=folder)
        descriptor = os.open(folder / file_name, flags, 0o700)
    path = folder / file_name
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise
    return path


def _folder(base: str, *, lost: Path | None = None) -> Path:
    key = (os.getpid(), base)
    with _lock:
        known = _folders.get(key)
        if known is not None and known[0] == lost:
            _release(_folders.pop(key)[1])
            known = None
        if known is None:
            _require_safe(base)
            _sweep(base)
            path = Path(base) / f"{_prefix()}{os.getpid()}-{os.urandom(8).hex()}"
            os.mkdir(path, 0o700)
            known = _folders[key] = path, _claim(path)
        return known[0]


def _prefix() -> str:
    return f"podium-lib-{os.geteuid()}-" if _POSIX else "podium-lib-"


def leave_base(base: str) -> None:
    """Give up this process's folder under `base`, so that nothing there is kept busy; not while it holds a file."""
    with _lock, suppress(OSError, KeyError):
        folder, claim = _folders[os.getpid(), base]
        os.rmdir(folder)
        del _folders[os.getpid(), base]
        _release(claim)


def _require_safe(base: str) -> None:
    """Raise OSError if others could put a folder of theirs in place of one that is made in `base`."""
    if not _POSIX:
        return
    status = os.stat(base)
    if status.st_uid not in (0, os.geteuid()):
        raise PermissionError(f"it belongs to user {status.st_uid}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        raise PermissionError(f"others can rename what lies in it (mode {stat.S_IMODE(status.st_mode):04o})")


def _claim(folder: Path) -> int | None:
    """Lock a folder, and return the descriptor that holds the lock; None if that cannot be done.

    The kernel drops the lock when this process, and every child that it forked, has ended in whatever way. A process
    id would not do: containers that share a folder for temporary files do not see each other's processes.
    """
    if not _POSIX:
        return None
    import fcntl

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _release(claim: int | None) -> None:
    if claim is not None:
        os.close(claim)


def _sweep(base: str) -> None:
    """Remove folders of this user whose process was killed; trouble with them is not ours."""
    prefix = _prefix()
    with suppress(OSError):
        candidates = [Path(base) / name for name in os.listdir(base) if name.startswith(prefix)]
        for folder in candidates[:_MOST_SWEPT]:
            with suppress(OSError):
                _sweep_one(folder)


def _sweep_one(folder: Path) -> None:
    status = os.lstat(folder)
    # A folder of this minute may be one that its process is about to lock.
    if not stat.S_ISDIR(status.st_mode) or time.time() - status.st_mtime < _MINUTE:
        return
    claim = None
    if _POSIX:
        claim = _claim(folder) if status.st_uid == os.geteuid() else None
        if claim is None:
            return
    try:
        _remove(folder)
    finally:
        _release(claim)


def _remove(folder: Path) -> None:
    for name in os.listdir(folder):
        os.unlink(folder / name)
    os.rmdir(folder)


def _remove_own() -> None:
    for (process, _), (folder, claim) in list(_folders.items()):
        if process == os.getpid():
            with suppress(OSError):
                _remove(folder)
            _release(claim)
    _folders.clear()


atexit.register(_remove_own)
