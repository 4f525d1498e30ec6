"""The folder of the cache: read-only ones, unsafe ones, and which one is used."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cache_files import (
    PLENTY,
    STRANGER,
    as_user,
    file_of,
    key_of,
    mounted,
    open_to_all,
    posix_only,
    root_only,
)
from platformdirs import user_cache_path

from podium import _settings
from podium._cache import Cache, default_cache, reset_cache
from podium._cache_folder import check_folder, choose_folder
from podium.errors import PodiumWarning, SettingError

pytestmark = [posix_only, pytest.mark.usefixtures("fresh_cache")]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with open_to_all() as path:
        yield path


def test_a_read_only_mount_is_read(tmp_path: Path) -> None:
    """CAC-05: a cache that came with the image is used as it is, and what is new stays in memory, with one warning."""
    source = tmp_path / "source"
    Cache(source, PLENTY).put(key_of("old"), b"old")
    Cache(source, PLENTY).put(key_of("bad"), b"bad")
    os.utime(file_of(source, key_of("old")), (1000, 1000))
    corrupted = file_of(source, key_of("bad"))
    corrupted.write_bytes(corrupted.read_bytes()[:-1])
    with mounted(tmp_path / "view", "--bind", str(source)) as folder:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        cache = Cache(folder, PLENTY)
        assert (cache.info().mode, cache.folder, cache.get(key_of("old"))) == ("read-only", None, b"old")
        assert cache.get(key_of("bad")) is None
        with pytest.warns(PodiumWarning, match="cannot be written") as told:
            cache.put(key_of("new"), b"new")
            cache.put(key_of("bad"), b"good")
        assert len(told) == 1
        assert (cache.get(key_of("new")), cache.get(key_of("bad"))) == (b"new", b"good")
        cache.remove(key_of("old"))
        assert cache.get(key_of("old")) is None
        assert cache.clear() == (2, 7)
        assert (cache.get(key_of("new")), cache.get(key_of("old"))) == (None, None)
    assert Cache(source, PLENTY).get(key_of("old")) == b"old"


@root_only
def test_a_read_only_folder_of_the_superuser_is_read(open_folder: Path) -> None:
    """CAC-05: a user reads a cache that the superuser made for all, and keeps new entries in memory."""
    folder = open_folder / "cache"
    Cache(folder, PLENTY).put(key_of("old"), b"old")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)

    def read() -> None:
        cache = Cache(folder, PLENTY)
        assert (cache.info().mode, cache.get(key_of("old"))) == ("read-only", b"old")
        with pytest.warns(PodiumWarning, match="cannot be written"):
            cache.put(key_of("new"), b"new")
        assert cache.get(key_of("new")) == b"new"

    as_user(STRANGER, read)
    assert not file_of(folder, key_of("new")).exists()


@root_only
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_a_folder_that_cannot_even_be_read_is_unusable(open_folder: Path, mode: int) -> None:
    """CAC-06: a private folder, or a private tree, that the superuser left does not lock a user out of every cache."""
    folder = open_folder / "cache"
    Cache(folder, PLENTY).put(key_of("old"), b"old")
    folder.chmod(mode)
    as_user(STRANGER, lambda: _equal((check_folder(folder).mode, check_folder(folder).refused), ("memory", False)))


@root_only
def test_an_empty_folder_that_cannot_be_written_gives_way(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-05: with a home that is read-only the cache goes to the private temporary folder."""
    monkeypatch.setenv("HOME", str(open_folder))
    monkeypatch.setattr(tempfile, "tempdir", str(open_folder / "tmp"))
    (open_folder / ".cache" / "podium").mkdir(parents=True)
    (open_folder / "tmp").mkdir()
    (open_folder / "tmp").chmod(0o1777)

    def choose() -> None:
        chosen = choose_folder(None, trusted=False)
        assert (chosen.mode, chosen.path) == ("disk", open_folder / "tmp" / f"podium-{STRANGER}")
        assert ".cache/podium" in chosen.reason

    as_user(STRANGER, choose)


def _equal(left: object, right: object) -> None:
    assert left == right


def test_a_denied_folder_is_read_only(folder: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-05: where the system says that the folder cannot be written, it is only read."""
    cache.put(key_of("old"), b"old")
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode, **keywords: not mode & os.W_OK and access(path, mode, **keywords)
    )
    monkeypatch.setattr(os, "supports_effective_ids", {os.access})
    reader = Cache(folder, PLENTY)
    assert (reader.info().mode, reader.get(key_of("old"))) == ("read-only", b"old")
    assert str(folder) in reader.info().reason
    with pytest.warns(PodiumWarning, match="cannot be written"):
        reader.put(key_of("new"), b"new")
    assert reader.get(key_of("new")) == b"new"
    assert not file_of(folder, key_of("new")).exists()


def test_a_folder_that_was_removed_is_made_again(folder: Path, cache: Cache) -> None:
    """A cache survives that its folder is deleted while it is used."""
    cache.put(key_of("a"), b"a")
    shutil.rmtree(folder)
    assert cache.get(key_of("a")) is None
    cache.put(key_of("a"), b"b")
    assert Cache(folder, PLENTY).get(key_of("a")) == b"b"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_was_replaced_is_checked_again(folder: Path, cache: Cache) -> None:
    """CAC-07: nothing is written to a folder that took the place of the one that was checked."""
    shutil.rmtree(folder)
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.warns(PodiumWarning, match="others can write"):
        cache.put(key_of("a"), b"a")
    assert cache.get(key_of("a")) == b"a"
    assert list(folder.iterdir()) == []


def assert_refused(folder: Path, *words: str) -> None:
    entries = sorted(folder.rglob("*"))
    with pytest.warns(PodiumWarning) as told:
        cache = Cache(folder, PLENTY)
        Cache(folder, PLENTY)
    assert len(told) == 1
    for word in ("PODIUM_CACHE_TRUSTED=1", "PODIUM_CACHE_DIR", str(folder), *words):
        assert word in str(told[0].message)
    assert cache.get(key_of("k")) is None
    cache.put(key_of("k"), b"mine")
    assert cache.get(key_of("k")) == b"mine"
    assert (cache.info().mode, cache.folder) == ("memory", None)
    assert all(word in cache.info().reason for word in words)
    assert sorted(folder.rglob("*")) == entries


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775, 0o702, 0o720])
@pytest.mark.parametrize("which", ["", "v1"])
def test_a_folder_that_others_can_write_is_refused(folder: Path, cache: Cache, mode: int, which: str) -> None:
    """CAC-07: code from a folder that others can write is not run; one warning names folder, mode and cure."""
    cache.put(key_of("k"), b"planted")
    (folder / which).chmod(mode)
    assert_refused(folder, f"{mode:04o}")


@root_only
@pytest.mark.parametrize("which", ["", "v1"])
def test_a_folder_of_another_user_is_refused(folder: Path, cache: Cache, which: str) -> None:
    """CAC-07: code from somebody else's folder is not run, even for the superuser."""
    cache.put(key_of("k"), b"planted")
    os.chown(folder / which, STRANGER, STRANGER)
    assert_refused(folder, f"belongs to user {STRANGER}")


def test_a_tree_that_is_a_link_is_refused(folder: Path, cache: Cache) -> None:
    """CAC-07: the folder of entries is not a link to somewhere that was not checked."""
    cache.put(key_of("k"), b"planted")
    (folder / "v1").rename(folder.parent / "elsewhere")
    (folder / "v1").symlink_to(folder.parent / "elsewhere")
    assert_refused(folder, "symbolic link")


def test_a_folder_behind_a_link_is_fine(tmp_path: Path) -> None:
    """The cache folder itself may be a link to a larger disk; its target is what is checked."""
    (tmp_path / "large").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "large")
    Cache(tmp_path / "cache", PLENTY).put(key_of("k"), b"x")
    assert file_of(tmp_path / "large", key_of("k")).exists()
    (tmp_path / "large").chmod(0o777)
    with pytest.warns(PodiumWarning, match="mode 0777"):
        Cache(tmp_path / "cache", PLENTY)


def test_a_trusted_folder_is_shared(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-07: a user who opts in shares the cache: what is made there is as accessible as the folder."""
    folder = open_folder / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(folder))
    monkeypatch.setenv("PODIUM_CACHE_TRUSTED", "1")
    cache = default_cache()
    cache.put(key_of("k"), b"shared")
    assert cache.info().mode == "disk"
    entry = file_of(folder, key_of("k"))
    assert [stat.S_IMODE(path.stat().st_mode) for path in (entry, entry.parent, entry.parent.parent)] == [
        0o644,
        0o777,
        0o777,
    ]

    def share() -> None:
        other = Cache(folder, PLENTY, trusted=True)
        assert other.get(key_of("k")) == b"shared"
        other.put(key_of("k"), b"theirs")
        other.put(key_of("l"), b"theirs")

    if os.geteuid() == 0:
        as_user(STRANGER, share)
        assert cache.get(key_of("l")) == b"theirs"
        reset_cache()
        monkeypatch.setenv("PODIUM_CACHE_TRUSTED", "0")
        with pytest.warns(PodiumWarning, match="PODIUM_CACHE_TRUSTED=1"):
            assert default_cache().get(key_of("l")) is None


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home folder and a folder for temporary files, both empty."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "home"


@pytest.fixture
def temporary(home: Path) -> Path:
    return home.parent / "tmp" / f"podium-{os.geteuid()}"


def test_the_configured_folder_is_used(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PODIUM_CACHE_DIR comes first, is made with its parents, and PODIUM_CACHE_SIZE is its limit."""
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "a" / "b"))
    monkeypatch.setenv("PODIUM_CACHE_SIZE", "5M")
    default_cache().put(key_of("k"), b"x")
    assert file_of(tmp_path / "a" / "b", key_of("k")).exists()
    assert default_cache().info().max_bytes == 5 << 20
    assert list(home.iterdir()) == []


def test_the_users_cache_folder_is_the_default(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a setting the cache is where the system wants caches, as platformdirs knows it."""
    assert choose_folder(None, trusted=False).path == user_cache_path("podium", appauthor=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert choose_folder(None, trusted=False).path == user_cache_path("podium", appauthor=False)
    if sys.platform == "linux":
        assert (tmp_path / "xdg" / "podium").is_dir()
        for meaningless in ("relative", ""):
            monkeypatch.setenv("XDG_CACHE_HOME", meaningless)
            assert choose_folder(None, trusted=False).path == home / ".cache" / "podium"


@pytest.mark.parametrize("trouble", ["missing", "a file", "denied", "unset"])
def test_without_a_usable_home_a_private_temporary_folder_is_used(
    home: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """CAC-05, CAC-06: no home means a private folder, named after the user, and no home is made."""
    if trouble == "unset":
        # What expanding gives for a user whom the system does not know.
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    else:
        home.rmdir()
    if trouble == "a file":
        home.write_text("")
    if trouble == "denied":
        home.mkdir()
        mkdir = os.mkdir

        def deny(path: os.PathLike[str], *arguments: int) -> None:
            if str(path).startswith(str(home)):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            mkdir(path, *arguments)

        monkeypatch.setattr(os, "mkdir", deny)
    cache = default_cache()
    cache.put(key_of("k"), b"x")
    assert file_of(temporary, key_of("k")).exists()
    assert stat.S_IMODE(temporary.stat().st_mode) == 0o700
    assert not home.is_dir() or list(home.iterdir()) == []
    assert (cache.info().mode, cache.info().folder) == ("disk", temporary)


def test_a_configured_folder_that_cannot_be_used_is_told_once(home: Path, tmp_path: Path) -> None:
    """CAC-05: a configured folder that cannot be made gives way to the user's, and the user hears of it."""
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "below"):
        chosen = choose_folder(wrong, trusted=False)
        assert chosen.path == home / ".cache" / "podium"
        with pytest.warns(PodiumWarning, match="PODIUM_CACHE_DIR cannot be used") as told:
            Cache(chosen, PLENTY)
            Cache(chosen, PLENTY)
        assert len(told) == 1
        assert str(wrong) in str(told[0].message)
        assert told[0].filename == __file__
        reset_cache()


def test_a_refused_folder_is_not_replaced_by_another(home: Path, tmp_path: Path) -> None:
    """CAC-07: whoever made the folder unsafe does not get to decide where the cache goes."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    chosen = choose_folder(tmp_path / "open", trusted=False)
    assert (chosen.mode, chosen.refused) == ("memory", True)
    assert list(home.iterdir()) == []


def squat_link(path: Path) -> None:
    (path.parent / "target").mkdir(mode=0o700)
    path.symlink_to(path.parent / "target")


def squat_file(path: Path) -> None:
    path.write_text("")


def squat_open(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def squat_foreign(path: Path) -> None:
    path.mkdir(mode=0o700)
    os.chown(path, STRANGER, STRANGER)


@pytest.mark.parametrize("squat", [squat_link, squat_file, squat_open, pytest.param(squat_foreign, marks=root_only)])
@pytest.mark.parametrize("trusted", [False, True])
def test_a_temporary_folder_that_somebody_prepared_is_refused(
    home: Path, temporary: Path, squat: Callable[[Path], None], trusted: bool
) -> None:
    """CAC-07: the name in the shared temporary folder can be guessed, so only a folder of our own will do."""
    home.rmdir()
    squat(temporary)
    chosen = choose_folder(None, trusted=trusted)
    assert (chosen.mode, chosen.refused) == ("memory", True)


@root_only
def test_a_temporary_folder_of_the_superuser_is_refused(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-06: in the shared temporary folder even the superuser's folder is not taken for the user's own."""
    monkeypatch.setenv("HOME", str(open_folder / "missing"))
    monkeypatch.setattr(tempfile, "tempdir", str(open_folder))
    (open_folder / f"podium-{STRANGER}").mkdir(mode=0o755)
    as_user(STRANGER, lambda: _equal(choose_folder(None, trusted=False).refused, True))


def test_with_no_folder_at_all_the_cache_is_in_memory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-05: after every folder comes memory, with one warning that says what was tried."""
    home.rmdir()
    home.write_text("")

    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.warns(PodiumWarning, match="set PODIUM_CACHE_DIR") as told:
        cache = default_cache()
    assert len(told) == 1
    cache.put(key_of("k"), b"x")
    assert (cache.get(key_of("k")), cache.info().mode) == (b"x", "memory")


@pytest.mark.parametrize("text", ["lots", "\u00b2", "\u0663M", "-1", "1.5G", "1KM", "GB", "0x10", "1 2"])
def test_a_size_that_is_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PODIUM_CACHE_SIZE takes digits and a unit; the error keeps the user's own spelling and says what it takes."""
    monkeypatch.setenv("PODIUM_CACHE_SIZE", text)
    with pytest.raises(SettingError, match="a number of bytes such as 512M or 2G") as caught:
        _settings.cache_size()
    assert f"PODIUM_CACHE_SIZE={text!r}" in str(caught.value)


@pytest.mark.parametrize(("text", "size"), [("", 1 << 30), ("7", 7), ("5m", 5 << 20), ("2GB", 2 << 30), (" 3k ", 3072)])
def test_sizes_in_every_spelling(text: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Units are powers of 1024, in either case, with or without a B."""
    monkeypatch.setenv("PODIUM_CACHE_SIZE", text)
    assert _settings.cache_size() == size
