"""Where the stand-ins are compiled to: one folder for a run of the tests, and for all processes that it starts."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

__all__ = ["made"]

_FOLDER = "RECORDINGS_FOLDER"  # the variable that the processes of a run find it by


def _folder() -> Path:
    if _FOLDER not in os.environ:
        folder = os.environ[_FOLDER] = tempfile.mkdtemp(prefix="podium-recording-")
        owner = os.getpid()
        atexit.register(lambda: os.getpid() == owner and shutil.rmtree(folder, ignore_errors=True))
    return Path(os.environ[_FOLDER])


def made(name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder of a name, which `make` fills once for all processes; those that do it at once take one's."""
    target = _folder() / name
    if not target.exists():
        folder = Path(tempfile.mkdtemp(dir=_folder()))
        make(folder)
        try:
            folder.rename(target)
        except OSError:
            if not target.exists():
                raise
            shutil.rmtree(folder)
    return target
