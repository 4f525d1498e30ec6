"""Files of entries: only what a cache wrote, whole and unchanged, is read."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cache_files import (
    PLENTY,
    STRANGER,
    Failing,
    file_of,
    files_below,
    key_of,
    posix_only,
    root_only,
)

from podium._cache import Cache

pytestmark = [posix_only, pytest.mark.usefixtures("fresh_cache")]


def is_rebuilt_once(folder: Path, key: str, data: bytes) -> None:
    """Check that a bad entry is a miss, is out of the way, and is replaced by the next put."""
    cache = Cache(folder, PLENTY)
    assert cache.get(key) is None
    assert not os.path.lexists(file_of(folder, key))
    cache.put(key, data)
    assert Cache(folder, PLENTY).get(key) == data


def test_a_changed_byte_anywhere_is_noticed(folder: Path, cache: Cache) -> None:
    """CAC-02: the checksum binds every byte of an entry."""
    key, data = key_of("k"), b"payload"
    cache.put(key, data)
    good = file_of(folder, key).read_bytes()
    for offset in range(len(good)):
        for change in (0x01, 0x80, 0xFF):
            file_of(folder, key).write_bytes(good[:offset] + bytes([good[offset] ^ change]) + good[offset + 1 :])
            assert cache.get(key) is None, f"byte {offset} changed by {change:#x}"
            assert not file_of(folder, key).exists()
            assert cache.get(key) is None
            file_of(folder, key).write_bytes(good)
            file_of(folder, key).chmod(0o600)
            assert cache.get(key) == data


def test_an_entry_of_another_length_is_noticed(folder: Path, cache: Cache) -> None:
    """CAC-10: an entry that is cut off anywhere, or longer than it says, is a miss and is rebuilt."""
    key, data = key_of("k"), b"payload"
    cache.put(key, data)
    good = file_of(folder, key).read_bytes()
    for other in [good[:length] for length in range(len(good))] + [good + b"\0", good + good]:
        file_of(folder, key).write_bytes(other)
        file_of(folder, key).chmod(0o600)
        is_rebuilt_once(folder, key, data)


def test_an_entry_under_another_key_is_noticed(folder: Path, cache: Cache) -> None:
    """CAC-02: the checksum binds the key, too."""
    cache.put(key_of("a"), b"a")
    file_of(folder, key_of("b")).parent.mkdir(exist_ok=True)
    shutil.copy2(file_of(folder, key_of("a")), file_of(folder, key_of("b")))
    is_rebuilt_once(folder, key_of("b"), b"b")


def link(path: Path) -> None:
    target = path.rename(path.parent / "elsewhere")
    path.symlink_to(target)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def listener(path: Path) -> None:
    path.unlink()
    here = Path.cwd()
    os.chdir(path.parent)  # the name of a socket is limited to about a hundred bytes
    try:
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(path.name)
    finally:
        os.chdir(here)


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir(0o700)


def writable(path: Path) -> None:
    path.chmod(0o602)


def group_writable(path: Path) -> None:
    path.chmod(0o620)


def foreign(path: Path) -> None:
    os.chown(path, STRANGER, STRANGER)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (link, "symbolic link"),
        (pipe, "not a regular file"),
        (listener, "not a regular file"),
        (directory, "not a regular file"),
        (writable, "others can write to it (mode 0602)"),
        (group_writable, "others can write to it (mode 0620)"),
        pytest.param(foreign, f"belongs to user {STRANGER}", marks=root_only),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_file_that_no_cache_wrote_is_not_read(
    folder: Path, cache: Cache, spoil: Callable[[Path], None], words: str
) -> None:
    """CAC-07: links, pipes and other people's files are misses, are moved aside with the reason, and never block."""
    key = key_of("k")
    cache.put(key, b"data")
    spoil(file_of(folder, key))
    # Opening a named pipe can block for ever, so it is done where that would be seen.
    thread = threading.Thread(target=is_rebuilt_once, args=(folder, key, b"data"), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert Cache(folder, PLENTY).get(key) == b"data"
    (text,) = (path.read_text() for path in files_below(folder, "quarantine") if path.suffix == ".txt")
    assert words in text


@pytest.mark.parametrize("code", [errno.ESTALE, errno.EBUSY, errno.EIO, errno.EACCES, errno.ENOENT, errno.ETIMEDOUT])
@pytest.mark.parametrize("call", ["open", "read", "fstat"])
def test_any_error_on_reading_is_a_miss(cache: Cache, monkeypatch: pytest.MonkeyPatch, call: str, code: int) -> None:
    """CAC-04: whatever a network file system answers, the code is compiled again, and the entry stays."""
    cache.put(key_of("k"), b"data")
    with monkeypatch.context() as patch:
        failing = Failing(patch, call, code)
        assert cache.get(key_of("k")) is None
        assert failing.calls
    assert cache.get(key_of("k")) == b"data"


@pytest.mark.parametrize("call", ["open", "read"])
def test_a_stale_handle_is_tried_again(cache: Cache, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """CAC-04, CAC-18: a file that was replaced while it was looked up is found by looking again."""
    cache.put(key_of("k"), b"data")
    failing = Failing(monkeypatch, call, errno.ESTALE, times=1)
    assert cache.get(key_of("k")) == b"data"
    assert failing.calls == 1
