"""The private files where compiled bytes lie while the dynamic loader maps them.

A file goes away as soon as it is mapped, and needs no folder of its own until then: to make one takes longer than to
write it. Files that stay until the process ends share a folder, whose lock tells that they are in use.
"""

from __future__ import annotations

import atexit
import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress

from podium._fork import ForkSafeLock

__all__ = ["library_bases", "mounted_noexec", "remove_library", "write_library"]

_POSIX = os.name == "posix"
_MINUTE = 60.0
_MOST_SWEPT = 100

_lock = ForkSafeLock()
# By process, since a forked child neither uses nor removes its parent's: the places with files of it, and its folder in
# each for files that stay, with the descriptor that locks it.
_used: set[tuple[int, str]] = set()
_kept: dict[tuple[int, str], tuple[str, int | None]] = {}


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


def write_library(base: str, file_name: str, data: bytes, *, keep: bool = False) -> str:
    """Write a file that is this process's own under `base`; return its path. Raises OSError.

    One that is to be kept goes when the process has ended; others are for `remove_library`.
    """
    _require_safe(base)
    _used.add((os.getpid(), base))
    # Windows removes no file that is mapped.
    path = os.path.join(_kept_folder(base), file_name) if keep or not _POSIX else f"{_new_path(base)}-{file_name}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags, 0o700)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)
    except OSError:
        remove_library(path)
        raise
    return path


def remove_library(path: str) -> None:
    """Remove a file that `write_library` wrote, as far as that can be done."""
    with suppress(OSError):
        os.unlink(path)


def _new_path(base: str) -> str:
    return os.path.join(base, f"{_prefix()}{os.getpid()}-{os.urandom(8).hex()}")


def _kept_folder(base: str) -> str:
    key = (os.getpid(), base)
    with _lock:
        folder, claim = _kept.get(key, ("", None))
        if not os.path.isdir(folder):  # it may have been tidied away, as jobs do that delete temporary files
            _release(claim)
            folder = _new_path(base)
            os.mkdir(folder, 0o700)
            _kept[key] = folder, _claim(folder)
        return folder


def _prefix() -> str:
    return f"podium-lib-{os.geteuid()}-" if _POSIX else "podium-lib-"


def _require_safe(base: str) -> None:
    """Raise OSError if others could put a folder of theirs in place of one that is made in `base`."""
    if not _POSIX:
        return
    status = os.stat(base)
    if status.st_uid not in (0, os.geteuid()):
        raise PermissionError(f"it belongs to user {status.st_uid}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        raise PermissionError(f"others can rename what lies in it (mode {stat.S_IMODE(status.st_mode):04o})")


def _claim(folder: str) -> int | None:
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
    """Remove what processes of this user left that were killed; trouble with it is not ours."""
    prefix = _prefix()
    with suppress(OSError):
        candidates = [os.path.join(base, name) for name in os.listdir(base) if name.startswith(prefix)]
        for path in candidates[:_MOST_SWEPT]:
            with suppress(OSError):
                _sweep_one(path)


def _sweep_one(path: str) -> None:
    status = os.lstat(path)
    # What is of this minute may be a file that is being loaded, or a folder that its process is about to lock.
    if time.time() - status.st_mtime < _MINUTE or (_POSIX and status.st_uid != os.geteuid()):
        return
    if stat.S_ISREG(status.st_mode) and path.endswith(".so"):
        os.unlink(path)
    elif stat.S_ISDIR(status.st_mode):
        claim = _claim(path)
        if claim is not None or not _POSIX:
            try:
                _remove(path)
            finally:
                _release(claim)


def _remove(folder: str) -> None:
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)


def _tidy_up() -> None:
    """Remove what this process kept, and what killed ones have left: at the end of a process nobody waits for it."""
    process = os.getpid()
    for (owner, _), (folder, claim) in list(_kept.items()):
        if owner == process:
            with suppress(OSError):
                _remove(folder)
            _release(claim)
    for user, base in list(_used):
        if user == process:
            _sweep(base)
    _kept.clear()
    _used.clear()


atexit.register(_tidy_up)
