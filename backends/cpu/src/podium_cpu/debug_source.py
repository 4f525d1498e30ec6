"""Sources where debuggers find them: the file that a kernel comes from, or one that is written for its text."""

from __future__ import annotations

import atexit
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from podium.backend import Program

__all__ = ["debug_flags", "debug_metadata", "write_source"]


def debug_flags(program: Program) -> list[str]:
    """Return the flags that have debug information name the source by its full path.

    Without them it has the name of messages, behind that of the folder that the compiler ran in, which is gone.
    """
    return [] if "=" in program.label else [f"-fdebug-prefix-map={program.label}={_path(program)}"]


def debug_metadata(program: Program) -> dict[str, Any]:
    """Return what must be kept with code that is built for a debugger."""
    text = {} if program.path is not None else {"source": program.source, "source_path": _path(program)}
    return {"debug": True, **text}


def write_source(metadata: Mapping[str, Any]) -> None:
    """Write the text of a kernel that comes from no file to where its debug information says, until the process ends.

    Where that cannot be done, a debugger shows no lines.
    """
    path = metadata.get("source_path")
    if path is None or os.path.exists(path):
        return
    folder = os.path.dirname(path)
    with suppress(OSError):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        status = os.lstat(folder)
        mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        if not mine or not stat.S_ISDIR(status.st_mode) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return
        private = f"{path}.{os.getpid()}"
        with open(private, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(metadata["source"])
        os.replace(private, path)
        atexit.register(_remove, path, os.getpid())


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:
        with suppress(OSError):
            os.unlink(path)
            os.rmdir(os.path.dirname(path))  # if it is empty


def _path(program: Program) -> str:
    if program.path is not None:
        return os.path.abspath(program.path)
    from hashlib import sha256

    user = os.getuid() if hasattr(os, "getuid") else "user"
    digest = sha256(program.source.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return os.path.join(tempfile.gettempdir(), f"podium-sources-{user}", f"{digest}.cu")
