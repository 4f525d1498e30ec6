"""Where the files of libraries lie: places to try, and the folder of the process."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cache_files import mounted, posix_only
from library_files import EXTENSION, LIBRARY, TWO_PHASE, Build, call, needs_compiler, run

from podium import _library, _library_folder
from podium._cache import reset_cache
from podium._library import SharedLibrary, load_extension
from podium._library_folder import library_bases
from podium.errors import LoadError

pytestmark = [posix_only, needs_compiler, pytest.mark.usefixtures("places")]


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give a function that sets the places to try."""

    def only(*bases: Path) -> None:
        monkeypatch.setattr(_library, "library_bases", lambda: iter([str(base) for base in bases]))

    return only


@pytest.fixture
def noexec(tmp_path: Path) -> Iterator[Path]:
    """Give a mount that forbids execution."""
    with mounted(tmp_path / "noexec", "-t", "tmpfs", "-o", "noexec,mode=700,size=4m", "tmpfs") as folder:
        yield folder


def forbidden(path: Path) -> OSError:
    return OSError(f"{path}: failed to map segment from shared object")


@pytest.fixture
def forbid(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Give a function that makes the loader refuse files below some folders, as it does on a noexec mount."""

    def forbid(*bases: Path | str) -> list[str]:
        real, asked = ctypes.CDLL, []

        def load(path: str) -> ctypes.CDLL:
            asked.append(path)
            if any(path.startswith(str(base)) for base in bases):
                raise forbidden(Path(path))
            return real(path)

        monkeypatch.setattr(ctypes, "CDLL", load)
        return asked

    return forbid


def test_a_place_that_forbids_execution_is_passed_over(
    build: Build, tmp_path: Path, only: Callable[..., None], forbid: Callable[..., list[str]]
) -> None:
    """CAC-08: when mapping is forbidden in one place the next is tried, and the first is not tried again."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    only(first, second)
    asked = forbid(first)
    for _ in range(2):
        library = SharedLibrary.from_bytes("sample", build(LIBRARY))
        assert (call(library), library.path.parent) == (42, second)
    assert [Path(path).parent for path in asked] == [first, second, second]
    assert [path for path in first.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("words", ["Operation not permitted", "cannot open: Permission denied"])
def test_other_words_for_forbidden_execution(
    build: Build, tmp_path: Path, only: Callable[..., None], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """CAC-08: the words of other loaders and of security modules are understood, too."""
    second = tmp_path / "second"
    second.mkdir()
    only(tmp_path / "tmp", second)
    real = ctypes.CDLL

    def load(path: str) -> ctypes.CDLL:
        if path.startswith(str(tmp_path / "tmp")):
            raise OSError(f"Error loading shared library {path}: {words}")
        return real(path)

    monkeypatch.setattr(ctypes, "CDLL", load)
    assert SharedLibrary.from_bytes("sample", build(LIBRARY)).path.parent == second


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no memfd_create")
def test_memory_is_the_last_place(
    build: Build, places: Path, only: Callable[..., None], forbid: Callable[..., list[str]]
) -> None:
    """CAC-08: when all folders forbid execution the library is loaded from memory, each under a path of its own."""
    only(places)
    forbid(places)
    first = SharedLibrary.from_bytes("sample", build(LIBRARY))
    second = SharedLibrary.from_bytes("sample", build(LIBRARY.replace("42", "43")))
    assert (call(first), call(second)) == (42, 43)
    assert str(first.path).startswith("/proc/self/fd/")
    assert first.path != second.path
    assert not os.get_inheritable(int(first.path.name))
    assert load_extension("sample", build(EXTENSION, VALUE="5", **TWO_PHASE)).get() == 5


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="the system has no memfd_create")
def test_bad_bytes_in_memory_leave_no_descriptor(build: Build, only: Callable[..., None]) -> None:
    """A library that fails to load from memory is closed again, and the loader's words are kept."""
    only()
    before = os.listdir("/proc/self/fd")
    with pytest.raises(LoadError, match="file too short") as raised:
        SharedLibrary.from_bytes("sample", b"")
    assert "noexec" not in str(raised.value)
    assert os.listdir("/proc/self/fd") == before


def test_when_every_place_fails_all_are_named(
    build: Build,
    tmp_path: Path,
    only: Callable[..., None],
    forbid: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CAC-08: the last error lists each place with its reason, speaks of the mount, and says what to set."""

    def deny(name: str) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "memfd_create", deny, raising=False)
    only(tmp_path / "tmp", tmp_path / "missing")
    forbid(tmp_path)
    with pytest.raises(LoadError) as raised:
        SharedLibrary.from_bytes("sample", build(LIBRARY))
    text = str(raised.value)
    for words in (
        "sample",
        "allows execution",
        f"{tmp_path / 'tmp'}: {tmp_path / 'tmp'}",
        "failed to map segment",
        f"{tmp_path / 'missing'}: No such file",
        "memfd_create: ",
        "Permission denied",
        "TMPDIR",
        "noexec",
    ):
        assert words in text
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(LoadError, match="memfd_create"):
        SharedLibrary.from_bytes("sample", build(LIBRARY))


def test_a_mount_that_forbids_execution(
    build: Build, noexec: Path, tmp_path: Path, only: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAC-08: on a real noexec mount the next place is used, then memory, and in the end the error names the mount."""
    extension = build(EXTENSION, VALUE="3", **TWO_PHASE)
    only(noexec, tmp_path / "tmp")
    assert call(SharedLibrary.from_bytes("sample", build(LIBRARY))) == 42
    assert load_extension("sample", extension).get() == 3
    only(noexec)
    if hasattr(os, "memfd_create"):
        assert load_extension("sample", extension).get() == 3
        assert str(SharedLibrary.from_bytes("sample", build(LIBRARY)).path).startswith("/proc/self/fd/")
        monkeypatch.delattr(os, "memfd_create")
    for load in (SharedLibrary.from_bytes, load_extension):
        with pytest.raises(LoadError, match=r"(?s)noexec: its mount forbids execution \(noexec\).*Set TMPDIR"):
            load("sample", extension)
    assert list(noexec.iterdir()) == []


def test_the_variable_chooses_the_place(build: Build, noexec: Path, tmp_path: Path) -> None:
    """CAC-08: with TMPDIR on a noexec mount a fresh process loads all the same."""
    (tmp_path / "library").write_bytes(build(LIBRARY))
    script = """
        import sys
        from pathlib import Path
        from podium._library import SharedLibrary
        print(SharedLibrary.from_bytes("sample", Path(sys.argv[1]).read_bytes()).path)
    """
    path = Path(run(script, tmp_path / "library", TMPDIR=str(noexec)).strip())
    assert noexec not in path.parents
    assert list(noexec.iterdir()) == []


def test_the_places_and_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-04: places on this machine come before the cache folder, which may be on a network; each comes once."""
    monkeypatch.setenv("TMPDIR", "/tmp")
    monkeypatch.setenv("TMP", "relative")
    monkeypatch.delenv("TEMP", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    assert list(library_bases()) == ["/tmp", "/var/tmp", "/run/user/1", "/dev/shm", str(tmp_path / "cache")]
    (tmp_path / "cache").chmod(0o777)
    reset_cache()
    with pytest.warns(UserWarning, match="is not used"):
        assert list(library_bases())[-1] == "/dev/shm"


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_place_where_others_can_swap_folders_is_passed_over(
    build: Build, tmp_path: Path, only: Callable[..., None], places: Path, mode: int
) -> None:
    """CAC-07: nothing is run from a folder in which others can rename ours, unless it is sticky as /tmp is."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    only(shared, places)
    used = SharedLibrary.from_bytes("sample", build(LIBRARY)).path.parent
    assert used == (shared if mode & stat.S_ISVTX else places)


@pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="only the superuser can give folders away")
def test_a_place_of_another_user_is_passed_over(
    build: Build, tmp_path: Path, only: Callable[..., None], places: Path
) -> None:
    """CAC-07: the owner of a folder can swap what lies in it, so it must be this user or the superuser."""
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    foreign.chmod(0o1777)
    os.chown(foreign, 12345, 12345)
    only(foreign, places)
    assert SharedLibrary.from_bytes("sample", build(LIBRARY)).path.parent == places


def test_a_full_place_is_passed_over(build: Build, tmp_path: Path, only: Callable[..., None], places: Path) -> None:
    """CAC-09: a place without room leaves no partial file, and the next place is used."""
    with mounted(tmp_path / "full", "-t", "tmpfs", "-o", "mode=700,size=8k", "tmpfs") as full:
        only(full, places)
        assert SharedLibrary.from_bytes("sample", build(LIBRARY)).path.parent == places
        assert list(full.iterdir()) == []


def test_a_place_that_fails_while_writing_is_passed_over(
    build: Build, tmp_path: Path, only: Callable[..., None], places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAC-09: an error from opening the file is a reason to try the next place."""
    bad = tmp_path / "bad"
    bad.mkdir()
    real = os.open

    def fail(path: str | Path, flags: int, *arguments: int) -> int:
        if flags & os.O_CREAT and str(path).startswith(str(bad)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, flags, *arguments)

    monkeypatch.setattr(os, "open", fail)
    only(bad, places)
    assert SharedLibrary.from_bytes("sample", build(LIBRARY)).path.parent == places


def test_a_folder_that_was_tidied_away_is_made_again(build: Build, places: Path) -> None:
    """Loading goes on after a job deleted the files for temporary use."""
    first = SharedLibrary.from_bytes("sample", build(LIBRARY), keep_file=True).path.parent
    shutil.rmtree(first)
    second = SharedLibrary.from_bytes("sample", build(LIBRARY), keep_file=True).path.parent
    assert second != first
    assert list(places.iterdir()) == [second]


@pytest.mark.parametrize("keep", [False, True])
def test_threads_get_their_own(build: Build, places: Path, keep: bool) -> None:
    """Threads that load at once each get their library; what stays is in one folder."""
    start = threading.Barrier(8)
    answers: list[int] = []
    data = [build(LIBRARY.replace("42", str(number))) for number in range(8)]

    def work(number: int) -> None:
        start.wait()
        answers.append(call(SharedLibrary.from_bytes("sample", data[number], keep_file=keep)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == list(range(8))
    assert [len(list(folder.iterdir())) for folder in places.iterdir()] == ([8] if keep else [])


def test_a_forked_child_has_files_of_its_own(build: Build, tmp_path: Path, places: Path) -> None:
    """A child does not use or remove its parent's folder, even when it ends in the ordinary way."""
    (tmp_path / "library").write_bytes(build(LIBRARY))
    script = """
        import os, sys
        from pathlib import Path
        from podium._library import SharedLibrary
        data = Path(sys.argv[1]).read_bytes()
        parent = SharedLibrary.from_bytes("parent", data, keep_file=True).path
        child = os.fork()
        if child == 0:
            path = SharedLibrary.from_bytes("child", data, keep_file=True).path
            assert path.parent != parent.parent
            assert str(os.getpid()) in path.parent.name
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert parent.exists()
        assert len(list(parent.parent.parent.iterdir())) == 1
        SharedLibrary.from_bytes("again", data)
        print("done")
    """
    assert run(script, tmp_path / "library") == "done\n"
    assert list(places.iterdir()) == []


def test_a_fork_while_the_folder_is_made_does_not_block_the_child(build: Build, tmp_path: Path) -> None:
    """CAC-19: a child forked while another thread holds the lock can load."""
    (tmp_path / "library").write_bytes(build(LIBRARY))
    script = """
        import os, sys, threading, warnings
        from pathlib import Path
        from podium import _library_folder
        from podium._library import SharedLibrary
        warnings.simplefilter("ignore", DeprecationWarning)
        data = Path(sys.argv[1]).read_bytes()
        held, done = threading.Event(), threading.Event()

        def hold():
            with _library_folder._lock:
                held.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        child = os.fork()
        if child == 0:
            SharedLibrary.from_bytes("child", data)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        done.set()
        thread.join()
    """
    assert run(script, tmp_path / "library") == "0\n"


def test_folders_of_killed_processes_are_removed_and_those_of_live_ones_kept(
    build: Build, tmp_path: Path, places: Path
) -> None:
    """CAC-19, CAC-20: the next process removes what a killed one left, but nothing that is in use or not ours."""
    (tmp_path / "library").write_bytes(build(LIBRARY))
    script = """
        import sys
        from pathlib import Path
        from podium._library import SharedLibrary
        print(SharedLibrary.from_bytes("kept", Path(sys.argv[1]).read_bytes(), keep_file=True).path, flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "library")]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    paths = []
    for process in processes:
        assert process.stdout is not None
        paths.append(Path(process.stdout.readline().strip()))
    killed, recent, alive = paths
    for process in processes[:2]:
        process.kill()
        process.wait()
    foreign = places / f"{_library_folder._prefix()}file"
    foreign.write_text("no library")
    left, loading = (places / f"{_library_folder._prefix()}{number}-sample.so" for number in range(2))
    for path in (left, loading):
        path.write_text("a library")
    for path in (killed.parent, alive.parent, foreign, left):
        os.utime(path, (1000, 1000))
    run("from podium._library_folder import write_library; import sys; write_library(sys.argv[1], 'a', b'')", places)
    assert [path.exists() for path in (killed.parent, left)] == [False, False]
    assert [path.exists() for path in (recent, alive, foreign, loading)] == [True, True, True, True]
    processes[2].communicate("")
    assert not alive.parent.exists()
    for process in processes:
        process.communicate()
