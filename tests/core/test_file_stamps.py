"""What is kept of files: every change of one shows in a digest, and what is unchanged is not read again."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium import _file_stamps
from podium._cache import cache_key, default_cache, reset_cache
from podium._file_stamps import folder_digest

RESTLESS_NS = _file_stamps._RESTLESS_NS

opened: list[str] = []
watching = [False]


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if watching[0] and event == "open":
        path = arguments[0]
        opened.append(os.fsdecode(path) if isinstance(path, bytes) else str(path))


sys.addaudithook(_watch)  # it stays for the process, so it is quiet but for this module's tests


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with files that count as long unchanged, and an empty cache."""
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(_file_stamps, "_RESTLESS_NS", -3_600_000_000_000)
    reset_cache()
    made = tmp_path / "headers"
    for name, text in {"a.h": "int a;", "b.py": "b", "deep/c.h": "int c;", "__pycache__/d.h": "d"}.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    yield made
    watching[0] = False
    reset_cache()


def files_read(folder: Path) -> list[str]:
    """Take the digest, and return the names of the files in the folder that were opened for it."""
    opened.clear()
    watching[0] = True
    try:
        folder_digest(folder)
    finally:
        watching[0] = False
    return sorted(os.path.basename(each) for each in opened if each.startswith(str(folder)) and Path(each).is_file())


def test_unchanged_files_are_read_once(folder: Path) -> None:
    """PRF-04: what was read by one process is known to the next by size, times and number."""
    assert files_read(folder) == ["a.h", "b.py", "c.h"]
    assert files_read(folder) == []
    reset_cache()
    assert files_read(folder) == []


def test_files_that_were_just_written_are_read_each_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-14: a file may be written twice within one tick of the file system's clock, so its time proves nothing yet."""
    monkeypatch.setattr(_file_stamps, "_RESTLESS_NS", RESTLESS_NS)
    before = folder_digest(folder)
    assert files_read(folder) == ["a.h", "b.py", "c.h"]
    assert not [each for each in default_cache().entries() if each.kind == "digest"]
    assert folder_digest(folder) == before


def test_every_change_shows(folder: Path) -> None:
    """CAC-14: other contents, of the same size and with an old time too, another name, and one file more or less."""
    (folder / "a.h").touch()
    seen = [folder_digest(folder)]

    def changed() -> bool:
        seen.append(folder_digest(folder))
        return seen[-1] not in seen[:-1]

    status = os.stat(folder / "a.h")
    (folder / "a.h").write_text("int b;")
    os.utime(folder / "a.h", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert changed()
    (folder / "deep" / "c.h").write_text("int d;")
    assert changed()
    (folder / "a.h").rename(folder / "deep" / "a.h")
    assert changed()
    (folder / "deep" / "e.h").write_text("")
    assert changed()
    (folder / "b.py").unlink()
    assert changed()
    (folder / "__pycache__" / "d.h").write_text("other")
    assert folder_digest(folder) == seen[-1]


def test_a_file_may_have_any_time(folder: Path) -> None:
    """CAC-14: times that no clock shows, as damaged archives leave them, are times like others."""
    path, key = folder / "a.h", cache_key("digest", "far")
    for seconds in (0, -(2**34), 2**34):  # file systems that have no such times take the nearest one
        os.utime(path, (seconds, seconds))
        _file_stamps.remember(key, b"found", _file_stamps.look([os.fsencode(path)]), 2**80)
        assert _file_stamps.recall(key) == b"found"
    os.utime(path, (0, 0))
    assert _file_stamps.recall(key) is None


def test_the_same_files_elsewhere_have_the_same_digest(folder: Path, tmp_path: Path) -> None:
    """What is compiled with one installation is found by another with the same files, written at another time."""
    other = tmp_path / "other"
    for name in ("deep/c.h", "b.py", "a.h"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_bytes((folder / name).read_bytes())
        os.utime(other / name, (time.time() - 1000,) * 2)
    assert folder_digest(other) == folder_digest(folder)


def test_files_can_be_chosen(folder: Path) -> None:
    """Only names with the suffix count, and only those directly in the folder unless it is taken whole."""
    digests = [folder_digest(folder, suffix=".h"), folder_digest(folder, suffix=".h", deep=False)]
    (folder / "b.py").write_text("other")
    assert digests == [folder_digest(folder, suffix=".h"), folder_digest(folder, suffix=".h", deep=False)]
    (folder / "deep" / "c.h").write_text("other")
    assert folder_digest(folder, suffix=".h") != digests[0]
    assert folder_digest(folder, suffix=".h", deep=False) == digests[1]


def test_a_damaged_memory_of_a_digest_is_not_used(folder: Path) -> None:
    """CAC-12: what is no digest in the cache is replaced."""
    digest = folder_digest(folder)
    (entry,) = (each for each in default_cache().entries() if each.kind == "digest")
    kept = default_cache().get(entry.key)
    assert kept is not None
    for damaged in (b"", digest.encode(), kept[:-1], kept[:100], kept + b"\0more", b"\0" * len(kept)):
        default_cache().put(entry.key, damaged)
        assert folder_digest(folder) == digest
        assert default_cache().get(entry.key) == kept
