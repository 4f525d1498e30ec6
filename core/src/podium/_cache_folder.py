"""The folder of the disk cache: which one is used, whether it can be written, and whether it can be trusted."""

from __future__ import annotations

import os
import stat
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from podium._record import record, replace
from podium.errors import PodiumWarning

__all__ = ["CacheFolder", "Mode", "check_folder", "choose_folder", "forget_notices", "notify_once"]

Mode = Literal["disk", "read-only", "memory"]

_TREE = "v1"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_POSIX = os.name == "posix"
_MEMORY_ONLY = "Compiled code is kept in memory only, and each process compiles again"

_noticed: dict[str, object] = {}


def notify_once(cause: str, message: str) -> None:
    """Warn with `PodiumWarning`, once per process for each cause."""
    token = object()
    # setdefault is atomic, so threads that meet the same cause need no lock, and no fork can inherit a held one.
    if _noticed.setdefault(cause, token) is token:
        from podium._caller import frames_of_podium  # what finds its cache in order does not pay for it

        warnings.warn(message, PodiumWarning, stacklevel=frames_of_podium())


def forget_notices() -> None:
    """Let every cause be told again."""
    _noticed.clear()


@record(frozen=True)
class CacheFolder:
    """A folder for the cache, and what may be done with it.

    `mode` is "disk" (read and write), "read-only" or "memory" (not used at all; `reason` says why, and `refused`
    whether it is because others could have put their code there). `warning` is what the user should be told.
    Entries of `owners` are read, or anyone's if that is None; new folders and files get `folder_bits` and `file_bits`
    as their permissions. `trusted` and `private` are what `check_folder` was asked for.
    """

    path: Path | None
    mode: Mode
    reason: str = ""
    warning: str = ""
    refused: bool = False
    owners: frozenset[int] | None = None
    folder_bits: int = 0o700
    file_bits: int = 0o600
    trusted: bool = False
    private: bool = False

    @property
    def tree(self) -> Path | None:
        """The folder that holds the entries of this layout, or None in memory mode."""
        return None if self.path is None or self.mode == "memory" else self.path / _TREE

    def make(self, folder: Path) -> None:
        """Make one folder inside the tree, unless it is there. Raises OSError."""
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            return
        if self.folder_bits != 0o700:
            os.chmod(folder, self.folder_bits)


def choose_folder(configured: Path | None, *, trusted: bool) -> CacheFolder:
    """Return the first usable one of: the configured folder, the user's cache folder, a private temporary folder.

    A folder that is refused ends the search: whoever prepared it must not decide where the cache goes instead.
    `trusted` accepts a configured or user folder that others can write.
    """
    failures: list[str] = []
    for path, private in _candidates(configured):
        folder = check_folder(path, trusted=trusted and not private, private=private)
        if folder.refused:
            return folder
        if folder.mode != "memory":
            if configured is None or path == configured:
                return replace(folder, reason="; ".join(filter(None, [*failures, folder.reason])))
            warning = f"PODIUM_CACHE_DIR cannot be used: {failures[0]}. The cache is in {path} instead"
            return replace(folder, reason=failures[0], warning=warning)
        failures.append(folder.reason)
    reason = "; ".join(failures) or "no home folder and no folder for temporary files can be used"
    warning = f"No folder for the cache: {reason}. {_MEMORY_ONLY}; set PODIUM_CACHE_DIR to a folder you can write"
    return CacheFolder(None, "memory", reason, warning)


def _candidates(configured: Path | None) -> Iterator[tuple[Path, bool]]:
    """Give folders to try, and whether each must be private: its name can be guessed by others."""
    if configured is not None:
        yield configured, False
    user = _user_folder()
    if user is not None:
        yield user, False
    import tempfile

    try:
        temporary = Path(tempfile.gettempdir())
    except FileNotFoundError:
        return
    # The user id keeps one person's folder from locking out the others on a shared machine.
    yield temporary / (f"podium-{os.geteuid()}" if _POSIX else "podium"), True


def _user_folder() -> Path | None:
    home = Path(os.path.expanduser("~"))
    if sys.platform == "linux":
        # What platformdirs answers here; importing it takes longer than a launch from a warm cache may.
        configured = os.environ.get("XDG_CACHE_HOME", "").strip()
        folder = (Path(configured) if os.path.isabs(configured) else home / ".cache") / "podium"
    else:
        from platformdirs import user_cache_path

        try:
            folder = user_cache_path("podium", appauthor=False)
        except RuntimeError:
            return None
    # Without a home the path is relative; and a home that is missing is not ours to make.
    if not folder.is_absolute() or (home in folder.parents and not home.is_dir()):
        return None
    return folder


def check_folder(path: Path, *, trusted: bool = False, private: bool = False) -> CacheFolder:
    """Make the folder if it is missing, and say what it can be used for; never raises for trouble with it.

    `private` demands a real folder, owned by this user: neither a symbolic link nor the superuser's will do.
    """
    try:
        status = _make_or_look(path, private=private)
        if not stat.S_ISDIR(status.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a folder"
            return _refuse(path, f"it is {kind}") if private else _unusable(path, f"it is {kind}")
        checked, shared = _POSIX and not trusted, _POSIX and trusted
        if checked and (danger := _danger(status, private=private)):
            return _refuse(path, danger)
        bits = stat.S_IMODE(status.st_mode) if shared else 0o700
        folder = CacheFolder(
            path,
            "disk",
            owners=frozenset({os.geteuid(), status.st_uid}) if checked else None,
            folder_bits=bits,
            file_bits=bits & 0o644 if shared else 0o600,
            trusted=trusted,
            private=private,
        )
        tree = path / _TREE
        try:
            tree_status = os.lstat(tree)
        except FileNotFoundError:
            # A folder that can neither be filled nor has anything to read is of no use, so this may fail.
            folder.make(tree)
            tree_status = os.lstat(tree)
    except OSError as error:
        return _unusable(path, error.strerror or str(error))
    if checked and (danger := _danger(tree_status, private=private)):
        return _refuse(tree, danger)
    if not _allowed(tree, os.R_OK | os.X_OK):
        return _unusable(tree, "it cannot be read")
    if not _allowed(tree, os.W_OK):
        return replace(folder, mode="read-only", reason=f"{path} cannot be written")
    return folder


def _make_or_look(path: Path, *, private: bool) -> os.stat_result:
    look = os.lstat if private else os.stat
    try:
        return look(path)
    except FileNotFoundError:
        if private:
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
        else:
            os.makedirs(path, 0o700, exist_ok=True)
        return look(path)


def _danger(status: os.stat_result, *, private: bool) -> str | None:
    """Say how others could have put their code into a folder with this status, or None."""
    if stat.S_ISLNK(status.st_mode):
        return "it is a symbolic link"
    user = os.geteuid()
    # The superuser can replace this very code, so a cache that came with a system image adds no risk.
    if status.st_uid != user and (private or status.st_uid != 0):
        return f"it belongs to user {status.st_uid}, and you are user {user}"
    if status.st_mode & _OTHERS_WRITE:
        return f"others can write to it (mode {stat.S_IMODE(status.st_mode):04o})"
    return None


def _allowed(path: Path, access: int) -> bool:
    return os.access(path, access, effective_ids=os.access in os.supports_effective_ids)


def _unusable(path: Path, why: str) -> CacheFolder:
    reason = f"{path}: {why}"
    warning = f"The cache folder {path} cannot be used: {why}. {_MEMORY_ONLY}"
    return CacheFolder(path, "memory", reason, warning)


def _refuse(path: Path, danger: str) -> CacheFolder:
    warning = (
        f"The cache folder {path} is not used, since {danger}, and cached code runs as you. {_MEMORY_ONLY}. Make the "
        f"folder yours alone (chown $(id -u), chmod 700), choose another with PODIUM_CACHE_DIR, or accept the code of "
        f"others with PODIUM_CACHE_TRUSTED=1"
    )
    return CacheFolder(path, "memory", f"{path}: {danger}", warning, refused=True)
