"""The tree of the cache: the quarantine, the limit on its size, and what killed writers left."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest
from cache_files import (
    PLENTY,
    file_of,
    files_below,
    key_of,
    posix_only,
)

from podium import _cache_tree
from podium._cache import Cache
from podium._cache_entry import HEADER_SIZE
from podium.errors import PodiumWarning

pytestmark = [posix_only, pytest.mark.usefixtures("fresh_cache")]


def test_quarantine_keeps_the_bad_entry_and_the_reason(folder: Path, cache: Cache) -> None:
    """CAC-12: an entry that could not be loaded is out of the way for every process, and can be looked at."""
    key = key_of("k")
    cache.put(key, b"bad code")
    cache.quarantine(key, "undefined symbol: gone")
    assert (cache.get(key), Cache(folder, PLENTY).get(key), cache.entries()) == (None, None, [])
    code, text = files_below(folder, "quarantine")
    assert code.read_bytes().endswith(b"bad code")
    assert text.read_text() == "undefined symbol: gone\n"
    cache.put(key, b"good code")
    assert Cache(folder, PLENTY).get(key) == b"good code"
    cache.quarantine(key_of("never"), "x")


def test_the_quarantine_stays_small(folder: Path, cache: Cache) -> None:
    """CAC-20: only the newest bad entries are kept."""
    for index in range(40):
        cache.put(key_of(str(index)), b"%d" % index)
        cache.quarantine(key_of(str(index)), f"reason {index}")
    names = [path.name for path in files_below(folder, "quarantine")]
    assert len(names) == 32
    assert any(key_of("39") in name for name in names)
    assert not any(key_of("0") in name for name in names)


def test_a_bad_entry_that_cannot_be_moved_is_not_read_again(
    folder: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAC-12: where the disk cannot be changed, a quarantined entry stays out of sight, and the new one is used."""
    key = key_of("k")
    cache.put(key, b"bad code")

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for call in ("replace", "unlink"):
        monkeypatch.setattr(os, call, refuse)
    cache.quarantine(key, "undefined symbol: gone")
    assert (cache.get(key), cache.entries()) == (None, [])
    with pytest.warns(PodiumWarning):
        cache.put(key, b"good code")
    assert cache.get(key) == b"good code"
    monkeypatch.undo()
    cache.put(key, b"better code")
    assert (cache.get(key), Cache(folder, PLENTY).get(key)) == (b"better code", b"better code")


# How much


def bytes_on_disk(folder: Path) -> int:
    return sum(entry.size for entry in Cache(folder, PLENTY).entries())


def test_the_folder_never_grows_beyond_its_limit(folder: Path) -> None:
    """CAC-20: after each put the entries are within the limit, and the last one is among them."""
    cache = Cache(folder, 40_000)
    most = 0
    for index in range(400):
        cache.put(key_of(str(index)), bytes(100 + index))
        most = max(most, bytes_on_disk(folder))
        assert file_of(folder, key_of(str(index))).exists()
    assert 30_000 < most <= 40_000


def test_what_was_not_used_for_longest_goes_first(folder: Path) -> None:
    """CAC-20: entries leave in the order of their last use, down to nine tenths of the limit."""
    size = HEADER_SIZE + 1000
    cache = Cache(folder, 10 * size)
    now = time.time()
    for index in range(10):
        cache.put(key_of(str(index)), bytes(1000))
        os.utime(file_of(folder, key_of(str(index))), (now, now - 10_000 + index))
    assert len(cache.entries()) == 10
    assert cache.get(key_of("0")) is not None  # by this it is the one used last
    cache.put(key_of("new"), bytes(1000))
    left = {index for index in range(10) if file_of(folder, key_of(str(index))).exists()}
    assert left == {0, 3, 4, 5, 6, 7, 8, 9}


def test_use_is_noted_once_an_hour(folder: Path, cache: Cache) -> None:
    """Reading refreshes the time of use, but not so often that reads become writes."""
    cache.put(key_of("k"), b"x")
    path = file_of(folder, key_of("k"))
    now = time.time()
    os.utime(path, (now - 1800, now - 1800))
    cache.get(key_of("k"))
    assert path.stat().st_mtime == pytest.approx(now - 1800, abs=1)
    os.utime(path, (now - 4000, now - 4000))
    cache.get(key_of("k"))
    assert path.stat().st_mtime >= now - 1


def test_an_entry_beyond_the_limit_is_kept_in_memory(folder: Path) -> None:
    """CAC-20: one large entry does not drive all others out; a limit of zero turns the disk off."""
    cache = Cache(folder, 1000)
    cache.put(key_of("small"), b"x")
    cache.put(key_of("large"), bytes(1000))
    cache.put(key_of("largest"), bytes(1000 - HEADER_SIZE))
    assert cache.get(key_of("large")) == bytes(1000)
    assert [entry.key for entry in Cache(folder, PLENTY).entries()] == [key_of("largest")]
    none = Cache(folder.parent / "none", 0)
    none.put(key_of("k"), b"x")
    assert none.get(key_of("k")) == b"x"
    assert [path for path in (folder.parent / "none").rglob("*") if path.is_file()] == []


def test_entries_of_other_processes_count(folder: Path) -> None:
    """CAC-20: the limit is on the folder, not on what one process wrote."""
    for index in range(30):
        Cache(folder, 20_000).put(key_of(str(index)), bytes(1000))
    assert bytes_on_disk(folder) <= 20_000


def test_the_quarantine_counts_and_goes_first(folder: Path) -> None:
    """CAC-20: bad entries do not take room from good ones."""
    cache = Cache(folder, 10_000)
    cache.put(key_of("bad"), bytes(6000))
    cache.quarantine(key_of("bad"), "x")
    cache.put(key_of("a"), bytes(3000))
    cache.put(key_of("b"), bytes(3000))
    assert (cache.get(key_of("a")), cache.get(key_of("b"))) == (bytes(3000), bytes(3000))
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 10_000


def test_an_entry_that_vanishes_during_removal_is_no_trouble(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-01: two processes may remove the same entries at once."""
    cache = Cache(folder, 10_000)
    for index in range(8):
        cache.put(key_of(str(index)), bytes(1000))
    status = _cache_tree._status

    def steal(path: Path) -> os.stat_result | None:
        result = status(path)
        if path.name != key_of("new"):
            path.unlink(missing_ok=True)
        return result

    monkeypatch.setattr(_cache_tree, "_status", steal)
    cache.put(key_of("new"), bytes(5000))
    assert cache.get(key_of("new")) == bytes(5000)


def test_what_killed_writers_left_is_swept(folder: Path) -> None:
    """CAC-10, CAC-20: an unfinished file that is older than an hour goes, a younger one may still be written."""
    Cache(folder, PLENTY).put(key_of("a"), b"a")
    new = folder / "v1" / "new"
    for name, age in (("old", 4000), ("young", 3000)):
        (new / name).write_bytes(b"part")
        os.utime(new / name, (time.time() - age,) * 2)
    Cache(folder, PLENTY).put(key_of("b"), b"b")
    assert [path.name for path in new.iterdir()] == ["young"]
