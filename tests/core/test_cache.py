"""The cache in one process: keys, bytes in and out, memory, and what cannot be written."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from cache_files import (
    PLENTY,
    Failing,
    file_of,
    files_below,
    key_of,
    mounted,
    posix_only,
)

from podium import _cache, _cache_folder, _digest
from podium._cache import Cache, CacheEntry, cache_key, default_cache, reset_cache
from podium._cache_entry import HEADER_SIZE
from podium._digest import sha256
from podium.errors import PodiumWarning

pytestmark = [posix_only, pytest.mark.usefixtures("fresh_cache")]


def test_equal_parts_give_equal_keys_in_every_process() -> None:
    """CAC-15: a key depends on nothing but its parts."""
    code = "from podium._cache import cache_key; print(cache_key('kernel', 'source', b'flags'))"
    keys = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert keys == {key_of("source", b"flags")}


def test_every_part_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-11, CAC-14, CAC-16, CAC-21: whatever is handed in as a part is in the key, and so is podium's version."""
    variants = [
        cache_key("kernel"),
        cache_key("kernel", ""),
        cache_key("kernel", b""),
        cache_key("kernel", "", ""),
        cache_key("kernel", "ab", "c"),
        cache_key("kernel", "a", "bc"),
        cache_key("kernel", "abc"),
        cache_key("kernel", b"abc"),
        cache_key("launcher", "abc"),
        cache_key("kernel", "1:a"),
        cache_key("kernel", "s1:a"),
        cache_key("kernel", "a"),
    ]
    monkeypatch.setattr(_cache, "__version__", "0.0.0")
    variants.append(cache_key("kernel", "abc"))
    monkeypatch.setattr(_cache, "SCHEMA", 99)
    variants.append(cache_key("kernel", "abc"))
    assert len(set(variants)) == len(variants)


def test_a_part_may_be_any_text() -> None:
    """A file name that is not valid text can be part of a key."""
    assert key_of("/tmp/\udcff") != key_of("/tmp/\udcfe")


@pytest.mark.parametrize("kind", ["", "Kernel", "ker nel", "../x", "kernel-", "kernel\n", "a" * 33, "kernél"])
def test_a_kind_is_a_word(kind: str) -> None:
    """The kind stands in a file name, so only a plain word is one."""
    with pytest.raises(ValueError, match="kind of a cache key"):
        cache_key(kind, "x")


DIGITS = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "key",
    [
        "",
        "kernel",
        DIGITS,
        f"kernel-{DIGITS}\n",
        f"kernel-{DIGITS}\0",
        f"kernel-{DIGITS[:-1]}",
        f"kernel-{DIGITS}0",
        f"kernel-{DIGITS.upper()}",
        f"../kernel-{DIGITS}",
        f"/kernel-{DIGITS}",
        f"kernel-{DIGITS}/../../x",
        f"kernel-{'../' * 21}x",
        f"kernel-{'٠' * 64}",
        f"Kernel-{DIGITS}",
        "../../../../etc/passwd",
        f"kernel-{DIGITS}".encode(),
        None,
        7,
    ],
)
def test_only_keys_are_taken_for_keys(tmp_path: Path, cache: Cache, key: str) -> None:
    """A key that could lead out of the folder is refused by every method, before anything is touched."""
    before = sorted(tmp_path.rglob("*"))
    for method, arguments in (
        (cache.get, ()),
        (cache.put, (b"x",)),
        (cache.remove, ()),
        (cache.quarantine, ("x",)),
        (Cache(None, PLENTY).get, ()),
    ):
        with pytest.raises(ValueError, match="is not a cache key"):
            method(key, *arguments)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("data", [b"", b"\0", b"x" * 1000, bytes(range(256)) * 20000], ids=len)
def test_bytes_come_back(folder: Path, cache: Cache, data: bytes) -> None:
    """What was put is what another process's cache gets."""
    assert cache.get(key_of("k")) is None
    cache.put(key_of("k"), data)
    assert cache.get(key_of("k")) == data
    assert Cache(folder, PLENTY).get(key_of("k")) == data


def test_putting_again_replaces(folder: Path, cache: Cache) -> None:
    """The last bytes under a key are the ones that count."""
    cache.put(key_of("k"), b"first")
    cache.put(key_of("k"), b"second")
    assert Cache(folder, PLENTY).get(key_of("k")) == b"second"


def test_every_kind_of_bytes_is_taken(cache: Cache) -> None:
    """Buffers are stored by content, and what is none is a TypeError rather than so many zeros."""
    cache.put(key_of("a"), bytearray(b"abc"))
    cache.put(key_of("b"), memoryview(b"abcdef")[::2])
    assert (cache.get(key_of("a")), cache.get(key_of("b"))) == (b"abc", b"ace")
    for wrong in (5, "text", None):
        with pytest.raises(TypeError):
            cache.put(key_of("c"), wrong)  # type: ignore[arg-type]


def test_folder_and_files_are_private(tmp_path: Path) -> None:
    """CAC-06: nobody else can read or write what is made, whatever the process's mask allows."""
    mask = os.umask(0)
    try:
        Cache(tmp_path / "cache", PLENTY).put(key_of("k"), b"x")
    finally:
        os.umask(mask)
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in [tmp_path / "cache", *tmp_path.rglob("cache/**/*")]
    }
    assert modes.pop(key_of("k")) == 0o600
    assert set(modes.values()) == {0o700}
    assert {"cache", "v1", "new"} <= set(modes)


def test_a_write_that_the_system_does_in_pieces_is_completed(
    folder: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A short write or read is continued, not taken for the whole."""
    write, read = os.write, os.read
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    monkeypatch.setattr(os, "read", lambda descriptor, size: read(descriptor, min(size, 5)))
    cache.put(key_of("k"), b"0123456789" * 9)
    assert Cache(folder, PLENTY).get(key_of("k")) == b"0123456789" * 9


def test_remove_forgets_one_entry(folder: Path, cache: Cache) -> None:
    """Removing an entry leaves the others, and removing what is not there is no error."""
    cache.put(key_of("a"), b"1")
    cache.put(key_of("b"), b"2")
    cache.remove(key_of("a"))
    cache.remove(key_of("never"))
    assert (cache.get(key_of("a")), cache.get(key_of("b"))) == (None, b"2")
    assert not file_of(folder, key_of("a")).exists()


def test_entries_and_info_tell_what_is_there(folder: Path, cache: Cache) -> None:
    """Listing gives key, kind, size and time of use; the counters are those of this process."""
    cache.put(cache_key("kernel", "a"), b"12345")
    cache.put(cache_key("launcher", "b"), b"1")
    os.utime(file_of(folder, cache_key("launcher", "b")), (1000, 2000))
    (folder / "v1" / "ab").mkdir(exist_ok=True)
    (folder / "v1" / "ab" / "README").write_text("not an entry")
    kernel, launcher = cache.entries()
    assert (kernel.key, kernel.kind, kernel.size) == (cache_key("kernel", "a"), "kernel", HEADER_SIZE + 5)
    assert launcher == CacheEntry(cache_key("launcher", "b"), "launcher", HEADER_SIZE + 1, 2000.0)
    cache.get(kernel.key)
    cache.get(key_of("missing"))
    cache.get(key_of("missing"))
    info = cache.info()
    assert (info.folder, info.mode, info.reason, info.max_bytes) == (folder, "disk", "", PLENTY)
    assert (info.entries, info.bytes, info.hits, info.misses) == (2, 2 * HEADER_SIZE + 6, 1, 2)
    assert cache.folder == folder


def test_clear_removes_everything(folder: Path, cache: Cache) -> None:
    """Clearing leaves no file, tells how much there was, and the cache goes on working."""
    cache.put(key_of("a"), b"12345")
    cache.put(key_of("b"), b"1")
    cache.put(key_of("c"), b"1")
    cache.quarantine(key_of("c"), "bad")
    assert cache.clear() == (2, 2 * HEADER_SIZE + 6)
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    assert cache.clear() == (0, 0)
    cache.put(key_of("a"), b"again")
    assert Cache(folder, PLENTY).get(key_of("a")) == b"again"


def test_without_a_folder_all_is_in_memory() -> None:
    """A cache with no folder keeps bytes for this process."""
    cache = Cache(None, PLENTY)
    cache.put(key_of("a"), b"123")
    assert cache.get(key_of("a")) == b"123"
    assert [(entry.key, entry.kind, entry.size) for entry in cache.entries()] == [(key_of("a"), "kernel", 3)]
    assert (cache.info().mode, cache.info().folder, cache.folder) == ("memory", None, None)
    cache.remove(key_of("a"))
    assert cache.get(key_of("a")) is None
    cache.put(key_of("a"), b"123")
    cache.quarantine(key_of("a"), "bad")
    assert cache.get(key_of("a")) is None
    cache.put(key_of("b"), b"123")
    assert cache.clear() == (1, 3)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-20: what is kept in memory has a limit, and the oldest goes first."""
    monkeypatch.setattr(_cache, "_MEMORY_BYTES", 1000)
    cache = Cache(None, PLENTY)
    for index in range(6):
        cache.put(key_of(str(index)), bytes(300))
    cache.put(key_of("3"), bytes(300))
    cache.put(key_of("6"), bytes(300))
    kept = [index for index in range(7) if cache.get(key_of(str(index))) is not None]
    assert kept == [3, 5, 6]
    cache.put(key_of("huge"), bytes(5000))
    assert [entry.key for entry in cache.entries()] == [key_of("huge")]


def test_threads_share_a_cache(cache: Cache) -> None:
    """Threads that read, write, list and remove at once get right bytes or none."""
    wrong: list[object] = []

    def work(seed: int) -> None:
        try:
            for step in range(60):
                name = str((seed * 7 + step) % 10)
                cache.put(key_of(name), name.encode() * 500)
                if cache.get(key_of(name)) not in (None, name.encode() * 500):
                    wrong.append(name)
                if step % 10 == seed:
                    cache.entries()
                    cache.remove(key_of(name))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    "code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.EXDEV]
)
@pytest.mark.parametrize("call", ["open", "write", "close", "replace"])
def test_what_cannot_be_written_stays_in_memory(
    folder: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    """CAC-09: a full disk costs one warning and no partial file, and nothing is compiled twice in the process."""
    with monkeypatch.context() as patch:
        failing = Failing(patch, call, code)
        with pytest.warns(PodiumWarning, match=os.strerror(code)) as told:
            cache.put(key_of("a"), b"first")
            cache.put(key_of("b"), b"second")
        assert failing.calls == 2
        assert len(told) == 1
        assert str(folder) in str(told[0].message)
    assert (cache.get(key_of("a")), cache.get(key_of("b"))) == (b"first", b"second")
    assert Cache(folder, PLENTY).entries() == []
    assert files_below(folder, "new") == []
    cache.put(key_of("a"), b"third")
    assert Cache(folder, PLENTY).get(key_of("a")) == b"third"
    assert cache.get(key_of("a")) == b"third"


def test_a_write_that_fails_does_not_bring_old_bytes_back(
    folder: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process goes on with the bytes that it put last, even if older ones are on the disk."""
    cache.put(key_of("k"), b"old")
    Failing(monkeypatch, "write", errno.ENOSPC)
    with pytest.warns(PodiumWarning):
        cache.put(key_of("k"), b"new")
    assert cache.get(key_of("k")) == b"new"
    assert [entry.size for entry in cache.entries()] == [3]


def test_a_really_full_disk(tmp_path: Path) -> None:
    """CAC-09: on a file system without room, entries stay in memory and no partial file takes up what room there is."""
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs") as folder:
        cache = Cache(folder, PLENTY)
        with pytest.warns(PodiumWarning, match="No space left"):
            cache.put(key_of("big"), bytes(100_000))
        assert cache.get(key_of("big")) == bytes(100_000)
        assert files_below(folder, "new") == []
        cache.put(key_of("small"), b"fits")
        assert [entry.key for entry in Cache(folder, PLENTY).entries()] == [key_of("small")]


def test_there_is_one_default_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All threads share the cache of the process, and reset_cache makes it look at the settings again."""
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "first"))
    start = threading.Barrier(8)
    found: list[Cache] = []

    def work() -> None:
        start.wait()
        found.append(default_cache())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "other"))
    assert default_cache() is found[0]
    reset_cache()
    assert default_cache().info().folder == tmp_path / "other"


def test_a_look_into_the_cache_imports_nothing_slow(tmp_path: Path) -> None:
    """PRF-03: importing the cache and reading from it loads no folder lookup and no cryptographic library."""
    code = """
import sys
from podium._cache import cache_key, default_cache
default_cache().put(cache_key("kernel", "x"), b"data")
assert default_cache().get(cache_key("kernel", "x")) == b"data"
print(default_cache().folder, sorted({"platformdirs", "hashlib", "_hashlib", "tempfile"} & set(sys.modules)))
"""
    environment = {**os.environ, "HOME": str(tmp_path)}
    environment.pop("PODIUM_CACHE_DIR", None)
    if sys.platform != "linux":
        environment["PODIUM_CACHE_DIR"] = str(tmp_path / ".cache" / "podium")
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{tmp_path / '.cache' / 'podium'} []\n", "")


def test_digests_are_those_of_hashlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter's own digest, used where hashlib is not loaded, gives the same as hashlib."""
    data = bytes(range(256)) * 20
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "hashlib", raising=False)
        own = sha256(data).hexdigest()
        assert "hashlib" not in sys.modules
        patch.setattr(_digest, "_LARGE", 10)
        large = sha256(data).hexdigest()
    assert own == large == hashlib.sha256(data).hexdigest()


def test_notices_are_given_once_per_cause(recwarn: pytest.WarningsRecorder) -> None:
    """A notice is given once for each cause, and again after a reset."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for cause in ("a", "b", "a", "b"):
            _cache_folder.notify_once(cause, f"about {cause}")
        reset_cache()
        _cache_folder.notify_once("a", "about a")
    assert [str(each.message) for each in recwarn] == ["about a", "about b", "about a"]
