"""The cache between processes: races, killed writers, and forks."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from cache_files import PLENTY

from podium._cache import Cache, cache_key
from podium._cache_entry import HEADER_SIZE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes of these tests are forked")

# Every script below starts with this: `together` runs a function in many processes that start at the same moment.
COMMON = """
import os, random, signal, sys, warnings
from hashlib import sha256
from pathlib import Path
from podium._cache import Cache, cache_key, default_cache
from podium.errors import PodiumWarning

warnings.simplefilter("error", PodiumWarning)
folder = Path(sys.argv[1])

def payload(writer, size):
    body = random.Random(writer).randbytes(size)
    return sha256(body).digest() + body

def is_whole(data):
    return sha256(data[32:]).digest() == data[:32]

def together(count, work):
    gate, opener = os.pipe()
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(opener)
                os.read(gate, 1)  # returns when the parent closes the other end
                work(number)
                status = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stderr.flush()
                os._exit(status)
        children.append(child)
    os.close(gate)
    os.close(opener)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
"""


def run(tmp_path: Path, script: str, **environment: str) -> str:
    """Run a script that must end well, and return what it printed; a process that hangs is ended after minutes."""
    done = subprocess.run(
        [sys.executable, "-c", COMMON + textwrap.dedent(script), str(tmp_path / "cache")],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_many_processes_race_for_one_key(tmp_path: Path) -> None:
    """CAC-01, CAC-03: 32 processes compile one kernel at once; none fails, each gets the bytes or none."""
    script = """
        key, data = cache_key("kernel", "k"), payload(0, 20_000)

        def work(number):
            cache = Cache(folder, 1 << 30)
            for _ in range(20):
                assert cache.get(key) in (None, data)
                cache.put(key, data)
                assert cache.get(key) == data

        print(together(32, work) == [0] * 32)
    """
    assert run(tmp_path, script) == "True\n"
    (entry,) = files_in(tmp_path / "cache")
    assert entry.name == cache_key("kernel", "k")


def test_writers_with_different_bytes_for_one_key_do_not_mix(tmp_path: Path) -> None:
    """CAC-02: when writers disagree, a reader sees all of one of them and nothing of the others."""
    script = """
        key = cache_key("kernel", "k")
        versions = [payload(number, 50_000 + 977 * number) for number in range(8)]

        def work(number):
            cache = Cache(folder, 1 << 30)
            cache.put(key, versions[number])
            for _ in range(100):
                cache.put(key, versions[number])
                found = cache.get(key)
                assert found in versions, found and len(found)

        print(together(8, work) == [0] * 8)
    """
    assert run(tmp_path, script) == "True\n"
    assert Cache(tmp_path / "cache", PLENTY).get(cache_key("kernel", "k")) is not None


def test_processes_that_meet_a_bad_entry_mend_it(tmp_path: Path) -> None:
    """CAC-12: a bad entry that many processes find at once is replaced by a good one."""
    key = cache_key("kernel", "k")
    Cache(tmp_path / "cache", PLENTY).put(key, b"x" * 100)
    (entry,) = files_in(tmp_path / "cache")
    entry.write_bytes(entry.read_bytes()[:-1] + b"y")
    script = """
        key, data = cache_key("kernel", "k"), payload(0, 1000)

        def work(number):
            cache = Cache(folder, 1 << 30)
            if cache.get(key) is None:
                cache.put(key, data)
            assert cache.get(key) in (None, data)

        print(together(16, work) == [0] * 16)
    """
    assert run(tmp_path, script) == "True\n"


def test_a_killed_writer_leaves_no_wrong_entry(tmp_path: Path) -> None:
    """CAC-10, CAC-19: after kill -9 at any moment, readers get right bytes or none, and nobody waits."""
    script = """
        size = 3_000_000
        data = payload(0, size)
        choose = random.Random(7)
        killed = 0
        for round in range(60):
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                cache = Cache(folder, 1 << 30)
                step = 0
                # Progress is told from inside the write, so that the kill comes at every stage of it.
                write = os.write
                def in_pieces(descriptor, piece):
                    write(writing, b".")
                    return write(descriptor, piece[:500_000])
                os.write = in_pieces
                while True:
                    cache.put(cache_key("kernel", str(step % 3)), data)
                    step += 1
            os.close(writing)
            for _ in range(choose.randrange(1, 30)):
                os.read(reading, 1)
            os.kill(child, signal.SIGKILL)
            killed += os.waitpid(child, 0)[1] == signal.SIGKILL
            os.close(reading)
            cache = Cache(folder, 1 << 30)
            for name in "012":
                found = cache.get(cache_key("kernel", name))
                assert found is None or found == data
        assert not (folder / "v1" / "quarantine").exists()
        print(killed)
    """
    assert run(tmp_path, script) == "60\n"
    # The kills did hit unfinished writes, and those are swept once they are old.
    new = tmp_path / "cache" / "v1" / "new"
    assert list(new.iterdir())
    for path in new.iterdir():
        os.utime(path, (1000, 1000))
    Cache(tmp_path / "cache", PLENTY).put(cache_key("kernel", "next"), b"x")
    assert list(new.iterdir()) == []


def test_processes_that_remove_at_once_keep_the_limit(tmp_path: Path) -> None:
    """CAC-20: several processes over one small folder get right bytes or none, and the folder stays small."""
    script = """
        def work(number):
            cache = Cache(folder, 60_000)
            choose = random.Random(number)
            for step in range(150):
                writer = choose.randrange(60)
                key = cache_key("kernel", str(writer))
                found = cache.get(key)
                assert found is None or found == payload(writer, 2000)
                if found is None:
                    cache.put(key, payload(writer, 2000))

        print(together(6, work) == [0] * 6)
    """
    assert run(tmp_path, script) == "True\n"
    size = sum(path.stat().st_size for path in files_in(tmp_path / "cache"))
    # Each process counts again before it could have used up the rest alone; at worst each adds one entry more.
    assert 30_000 < size <= 60_000 + 6 * (HEADER_SIZE + 2032)


def test_clearing_while_others_write_is_no_trouble(tmp_path: Path) -> None:
    """CAC-01: folders that vanish under a writer are made again."""
    script = """
        def work(number):
            cache = Cache(folder, 1 << 30)
            for step in range(200):
                key = cache_key("kernel", str(step % 5))
                if number == 0:
                    cache.clear()
                else:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # the folder may go twice during one put
                        cache.put(key, payload(step % 5, 1000))
                    assert cache.get(key) in (None, payload(step % 5, 1000))

        print(together(4, work) == [0] * 4)
    """
    assert run(tmp_path, script) == "True\n"


@pytest.mark.parametrize("kind", ["disk", "memory"])
def test_a_fork_while_the_lock_is_held_does_not_block_the_child(tmp_path: Path, kind: str) -> None:
    """CAC-19: a child forked while another thread is inside the cache can use it at once."""
    script = """
        import threading
        warnings.simplefilter("ignore", DeprecationWarning)
        from podium import _cache
        cache = Cache(FOLDER, 1 << 30)
        key = cache_key("kernel", "k")
        cache.put(key, b"parent")
        held, done = threading.Event(), threading.Event()

        def hold():
            with _cache._lock:
                held.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()

        def work(number):
            assert cache.get(key) == b"parent"
            cache.put(key, b"child")
            assert cache.get(key) == b"child"
            assert cache.info().hits == 2
            cache.clear()

        print(together(1, work))
        done.set()
        thread.join()
        print(cache.get(key))
    """
    printed = run(tmp_path, script.replace("FOLDER", "folder" if kind == "disk" else "None")).splitlines()
    assert printed == ["[0]", "None" if kind == "disk" else "b'parent'"]


def test_forked_children_share_the_default_cache(tmp_path: Path) -> None:
    """A cache that was made before a fork, and one made after it, lie in the same folder."""
    script = """
        key = cache_key("kernel", "k")
        together(1, lambda number: default_cache().put(key, b"made in a child"))
        print(default_cache().get(key))

        def work(number):
            assert default_cache().get(key) == b"made in a child"

        print(together(4, work))
    """
    printed = run(tmp_path, script, PODIUM_CACHE_DIR=str(tmp_path / "cache"))
    assert printed == "b'made in a child'\n[0, 0, 0, 0]\n"
