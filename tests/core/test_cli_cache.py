"""``podium cache``: listing, describing and clearing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium._cache import cache_key, default_cache, reset_cache
from podium._cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder with two kernels and a launcher in it."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(folder))
    reset_cache()
    for kind, part, size in (("kernel", "a", 100), ("kernel", "b", 2000), ("launcher", "c", 50)):
        default_cache().put(cache_key(kind, part), bytes(size))
    yield folder
    reset_cache()


def kinds() -> list[str]:
    reset_cache()
    return sorted(entry.kind for entry in default_cache().entries())


def test_ls(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ls shows kind, size, time and the whole key of each entry, and the sum."""
    assert main(["cache", "ls"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["kind", "size", "last", "used", "key"]
    assert {line.split()[-1] for line in lines[1:-1]} == {entry.key for entry in default_cache().entries()}
    assert [line.split()[0] for line in lines[1:-1]] == ["kernel", "kernel", "launcher"]
    assert lines[-1].startswith("3 entries, ")


def test_ls_of_a_kind(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--kind lists only that kind; none is no error."""
    assert main(["cache", "ls", "--kind", "launcher"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("1 entries, ")
    assert main(["cache", "ls", "--kind", "nothing"]) == 0
    assert capsys.readouterr().out == "0 entries, 0 B\n"


def test_info(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Info says where the cache is, what may be done there, and how full it is."""
    assert main(["cache", "info"]) == 0
    out = capsys.readouterr().out
    assert f"folder: {folder}\nmode: disk\nholds: 3 entries, " in out
    assert "of at most 1.0 GiB" in out
    assert "kernel: 2 entries" in out and "launcher: 1 entries" in out


def test_clear(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Clear removes everything and says what."""
    assert main(["cache", "clear"]) == 0
    out = capsys.readouterr().out
    assert "kernel: removed 2 entries" in out and "launcher: removed 1 entries" in out
    assert "removed 3 entries" in out and str(folder) in out
    assert kinds() == []


def test_clear_a_kind(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--kind removes only that kind."""
    assert main(["cache", "clear", "--kind", "kernel"]) == 0
    assert "removed 2 entries" in capsys.readouterr().out
    assert kinds() == ["launcher"]


def test_clear_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Clearing what is not there is no error."""
    assert main(["cache", "clear", "--kind", "nothing"]) == 0
    assert capsys.readouterr().out.startswith("removed 0 entries")
    assert len(kinds()) == 3


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser can write everywhere")
def test_clear_a_folder_that_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What could not be removed is told, with exit code 1."""
    tree = folder / "v1"
    tree.chmod(0o500)
    try:
        reset_cache()
        assert main(["cache", "clear"]) == 1
        out = capsys.readouterr().out
    finally:
        tree.chmod(0o700)
    assert "3 entries are still there" in out
    assert len(kinds()) == 3


@pytest.mark.parametrize(("words", "left"), [([], 3), (["--kind", "kernel"], 2)])
def test_entries_that_cannot_be_removed(
    words: list[str], left: int, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the system does not let go is told as still there, with exit code 1, also to the superuser."""

    def refuse(path: object) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", refuse)
        assert main(["cache", "clear", *words]) == 1
    out = capsys.readouterr().out
    assert f"{left} entries are still there" in out
    assert "removed 0 entries" in out
    assert len(kinds()) == 3


@pytest.mark.filterwarnings("default::podium.errors.PodiumWarning")
def test_a_cache_without_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Info says why the cache is in memory only."""
    folder.chmod(0o777)
    reset_cache()
    assert main(["cache", "info"]) == 0
    streams = capsys.readouterr()
    assert "mode: memory" in streams.out and "others can write to it" in streams.out
    assert streams.err.startswith("podium: warning: The cache folder")
    folder.chmod(0o700)


def test_a_setting_that_means_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache that cannot be set up is one message."""
    monkeypatch.setenv("PODIUM_CACHE_SIZE", "plenty")
    reset_cache()
    assert main(["cache", "info"]) == 1
    assert "PODIUM_CACHE_SIZE" in capsys.readouterr().err
