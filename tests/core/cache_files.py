"""What the tests of the cache share: keys and files, other users, mounts, and calls that fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podium._cache import cache_key

PLENTY = 1 << 30
STRANGER = 12345

posix_only = pytest.mark.skipif(os.name != "posix", reason="permissions and file kinds as POSIX has them")
root_only = pytest.mark.skipif(
    os.name == "posix" and os.geteuid() != 0, reason="only the superuser can give files to another user"
)


def key_of(*parts: str | bytes) -> str:
    return cache_key("kernel", *parts)


def file_of(folder: Path, key: str) -> Path:
    return folder / "v1" / key.partition("-")[2][:2] / key


def files_below(folder: Path, name: str) -> list[Path]:
    return sorted(path for path in (folder / "v1" / name).iterdir()) if (folder / "v1" / name).exists() else []


def as_user(user: int, action: Callable[[], None]) -> None:
    """Run `action` in a forked child with another user's rights; it fails if the action raises."""
    # A subprocess of that user might not be able to read this interpreter.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other tests' threads may still be ending
        child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            action()
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@contextmanager
def open_to_all() -> Iterator[Path]:
    """Give a folder that other users can reach, unlike those that pytest makes."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextmanager
def mounted(target: Path, *options: str) -> Iterator[Path]:
    """Mount something on a new folder for a while; skip the test where that is not permitted."""
    target.mkdir()
    try:
        done = subprocess.run(["mount", *options, str(target)], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip().splitlines()[0]}")
    try:
        yield target
    finally:
        subprocess.run(["umount", str(target)], check=True)


class Failing:
    """Make calls of the operating system fail for files below a folder, for as many times as are asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, call: str, code: int, times: int = 1 << 30) -> None:
        self.calls = 0
        real = getattr(os, call)

        def fail(target: object, *arguments: object, **keywords: object) -> object:
            if self.calls < times and self.concerns(target):
                self.calls += 1
                if call == "close":
                    real(target)
                raise OSError(code, os.strerror(code))
            return real(target, *arguments, **keywords)

        monkeypatch.setattr(os, call, fail)

    @staticmethod
    def concerns(target: object) -> bool:
        name = os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else str(target)
        return "/v1/" in name
