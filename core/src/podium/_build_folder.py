"""The private folders that compilers run in: removed in any case, and swept up after processes that were killed."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from podium.errors import ToolchainError

if TYPE_CHECKING:
    from subprocess import Popen

__all__ = ["kill", "private_folder", "running"]

# The folder of every build that is under way, with its process; a thread that the interpreter abandons when it exits
# runs no clean-up of its own.
running: dict[str, Popen[bytes] | None] = {}


@contextmanager
def private_folder() -> Iterator[str]:
    folder = _make_folder()
    _watch_exit(os.getpid())
    running[folder] = None
    try:
        yield folder
    finally:
        _remove(folder)
        running.pop(folder, None)


def _remove(folder: str) -> None:
    """Remove a folder, though a part of a compiler that was killed may write another file before it is gone."""
    import shutil
    import time

    for _ in range(200):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(0.01)


_FOLDER_PREFIX = "podium-build-"
_ABANDONED = 24 * 3600.0  # seconds; no compiler runs for as long


@functools.lru_cache(maxsize=8)
def _sweep(parent: str) -> None:
    """Remove, once in a process, the folders that killed processes of this user have left."""
    import shutil
    import time

    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(_FOLDER_PREFIX):
                continue
            with suppress(OSError):  # one that its owner removes meanwhile must not keep the others
                if not entry.is_dir(follow_symlinks=False):
                    continue
                status = entry.stat(follow_symlinks=False)
                mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
                if mine and time.time() - status.st_mtime > _ABANDONED:
                    shutil.rmtree(entry.path, ignore_errors=True)


def _make_folder() -> str:
    import tempfile

    refusal: OSError | None = None
    try:
        preferred = [tempfile.gettempdir()]
    except OSError as error:
        preferred, refusal = [], error
    # gettempdir decides once; its folder may have become unusable since.
    for parent in dict.fromkeys([*preferred, "/tmp", "/var/tmp", "/usr/tmp", os.curdir]):
        _sweep(parent)
        try:
            return os.path.abspath(tempfile.mkdtemp(prefix=_FOLDER_PREFIX, dir=parent))
        except OSError as error:
            refusal = refusal or error
    raise ToolchainError(
        f"There is no temporary folder to compile in: {refusal}. Set TMPDIR to a folder that is writable"
    )


if hasattr(os, "register_at_fork"):
    # The builds of the parent are left to the parent.
    os.register_at_fork(after_in_child=running.clear)


@functools.lru_cache(maxsize=1)
def _watch_exit(owner: int) -> None:
    import atexit

    atexit.register(_abandon, owner)


def _abandon(owner: int) -> None:
    if os.getpid() != owner:
        return
    for folder, process in list(running.items()):
        kill(process)
        _remove(folder)


def kill(process: Popen[bytes] | None) -> None:
    """End a compiler and its children. Does nothing once it has been waited for: its number may be another's then."""
    if process is None or process.returncode is not None:
        return
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            import signal

            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
