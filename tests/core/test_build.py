"""The host compiler: found, identified, and run without leaving anything behind."""

from __future__ import annotations

import ctypes
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import podium
import podium._build as build
from podium._build import HostCompiler
from podium.errors import CompileError, ToolchainError
from podium.parts import parse_diagnostics

ADD = "int add(int a, int b) { return a + b; }\n"


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test its own disk cache and forget compilers that the test before has found."""
    cache = pytest.importorskip("podium._cache", reason="the disk cache is part of podium")
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    forget()
    cache.reset_cache()
    yield
    forget()
    cache.reset_cache()


def forget() -> None:
    build._forget()
    build._identity.cache_clear()
    build._versions.clear()


@pytest.fixture
def compiler() -> HostCompiler:
    try:
        return HostCompiler.find("c")
    except ToolchainError as error:
        pytest.skip(f"this machine has no C compiler: {error}")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the temporary folder during the test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def fake(folder: Path, name: str, body: str) -> Path:
    """Write a program that plays the compiler; it answers --version, and runs `body` for everything else."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(
        f"#!{sys.executable}\n"
        + textwrap.dedent(
            f"""\
            import os, sys, time
            log = {str(folder / "calls")!r}
            with open(log, "a") as file:
                file.write(" ".join(sys.argv[1:]) + "\\n")
            if "--version" in sys.argv:
                print("{name} 1.2.3")
                sys.exit(0)
            output = sys.argv[sys.argv.index("-o") + 1]
            """
        )
        + textwrap.dedent(body)
    )
    path.chmod(0o755)
    return path


def calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def test_compiles_a_shared_library(compiler: HostCompiler, tmp_path: Path) -> None:
    """The bytes that compile returns are a library that loads and runs."""
    path = tmp_path / "add.so"
    path.write_bytes(compiler.compile({"add.c": ADD}, "add.c", ["-O1"]))
    assert ctypes.CDLL(str(path)).add(40, 2) == 42


def test_sources_include_each_other_and_libraries_link(compiler: HostCompiler, tmp_path: Path) -> None:
    """All sources share a folder, and libraries stand behind the source so that its symbols are found."""
    main = '#include "two.h"\n#include <math.h>\ndouble both(double x) { return cos(x) + TWO; }\n'
    path = tmp_path / "both.so"
    path.write_bytes(compiler.compile({"main.c": main, "two.h": "#define TWO 2\n"}, "main.c", libraries=["m"]))
    both = ctypes.CDLL(str(path)).both
    both.restype, both.argtypes = ctypes.c_double, [ctypes.c_double]
    assert both(0.0) == 3.0


@pytest.mark.parametrize("name", ["../out.c", "a/b.c", "-o.c", "output", ".hidden.c"])
def test_source_names_stay_in_the_folder(compiler: HostCompiler, name: str) -> None:
    """A source name cannot leave the private folder, be taken for an option, or be overwritten by the output."""
    with pytest.raises(ValueError, match="name of a source file"):
        compiler.compile({name: ADD}, name)


def test_nothing_stays_behind(compiler: HostCompiler, temporary: Path) -> None:
    """The private folder is gone after success and after failure."""
    compiler.compile({"add.c": ADD}, "add.c")
    with pytest.raises(CompileError):
        compiler.compile({"add.c": "int add("}, "add.c")
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="the program that plays the compiler needs a shell's background")
def test_a_part_of_the_compiler_that_goes_on_writing(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAC-09: the folder of a compilation goes, though a child of a compiler that has ended still writes into it."""
    body = """
    import subprocess
    writer = "import os, sys\\nfor i in range(3000):\\n  try: open(os.path.join(sys.argv[1], str(i)), 'w')\\n  except OSError: break"
    folder = os.path.dirname(sys.argv[-1])
    subprocess.Popen([sys.executable, "-c", writer, folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while not os.path.exists(os.path.join(folder, "10")):
        time.sleep(0.001)
    sys.exit(1)
    """
    monkeypatch.setenv("CC", str(fake(tmp_path / "bin", "writing-cc", body)))
    for _ in range(5):
        with pytest.raises(CompileError):
            HostCompiler.find("c").compile({"add.c": ADD}, "add.c")
        assert list(temporary.iterdir()) == []


def test_compile_error_carries_log_and_places(compiler: HostCompiler) -> None:
    """An error names the first place; the log has the command and all output; both survive pickling."""
    with pytest.raises(CompileError) as caught:
        compiler.compile({"bad.c": "int f(void)\n{\n  return nowhere;\n}\n"}, "bad.c", ["-O1"])
    error = pickle.loads(pickle.dumps(caught.value))
    assert not isinstance(error, ToolchainError)
    first = next(each for each in error.diagnostics if each.severity == "error")
    assert (first.file, first.line, first.column) == ("bad.c", 3, 10)
    assert "nowhere" in first.message and "bad.c:3:10" in str(error)
    assert error.log.startswith("$ ") and " -O1 " in error.log.splitlines()[0]
    assert "-O1" not in str(error)


def test_logs_do_not_depend_on_the_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler speaks English, whatever the user's language, so that its log can be read."""
    body = "open(output, 'w').write(repr([os.environ.get(name) for name in ('LC_ALL', 'LANGUAGE')]))"
    monkeypatch.setenv("CC", str(fake(tmp_path / "bin", "cc", body)))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    assert HostCompiler.find("c").compile({"a.c": ""}, "a.c") == b"['C', None]"


def test_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that writes without end does not fill memory with its log for good."""
    path = fake(tmp_path / "bin", "cc", "print('x' * (3 << 20)); sys.exit(1)")
    monkeypatch.setenv("CC", str(path))
    with pytest.raises(CompileError) as caught:
        HostCompiler.find("c").compile({"a.c": ""}, "a.c")
    assert (1 << 20) < len(caught.value.log) < (1 << 20) + 1000


def test_diagnostics_of_gcc_and_clang() -> None:
    """Errors, warnings and notes are read with and without a column; other lines are left out."""
    log = (
        "In file included from a.c:1:\n"
        "dir with space/a.h:3:5: fatal error: none.h: No such file or directory\n"
        "<podium source>:7: warning: odd\n"
        "a.c:1:2: note: declared here\n"
        "compilation terminated.\n"
    )
    assert [(d.file, d.line, d.column, d.severity, d.message) for d in parse_diagnostics(log)] == [
        ("dir with space/a.h", 3, 5, "fatal error", "none.h: No such file or directory"),
        ("<podium source>", 7, 1, "warning", "odd"),
        ("a.c", 1, 2, "note", "declared here"),
    ]


@pytest.mark.parametrize(
    ("language", "variable", "package"), [("c", "CC", "apt install gcc"), ("c++", "CXX", "apt install g++")]
)
def test_missing_compiler_names_variable_and_package(
    language: build.Language, variable: str, package: str, no_compiler: None
) -> None:
    """CC-01: without a compiler the error says which variable chooses one and which packages bring one."""
    with pytest.raises(ToolchainError) as caught:
        HostCompiler.find(language)
    for word in (variable, package, "pip install ziglang"):
        assert word in str(caught.value)


def test_missing_compiler_is_looked_for_again(
    tmp_path: Path, no_compiler: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler that is installed after a failed search is found; only positive answers are kept."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ToolchainError):
        HostCompiler.find("c")
    path = fake(tmp_path / "bin", "cc", "")
    assert HostCompiler.find("c").command == (str(path),)


def test_variable_beats_path_and_may_have_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CC may hold a prefix and arguments, as in 'ccache gcc -m64', with quotes as in a shell."""
    wrapper = fake(tmp_path / "bin", "wrapper", "open(output, 'w').write(repr(sys.argv[1:3]))")
    real = fake(tmp_path / "bin", "real", "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("CC", "wrapper real '-DX=a b'")
    compiler = HostCompiler.find("c")
    assert compiler.command == (str(wrapper), "real", "-DX=a b")
    assert compiler.programs == (str(wrapper), str(real))
    assert compiler.compile({"a.c": ""}, "a.c") == b"['real', '-DX=a b']"


@pytest.mark.parametrize("value", ["no-such-compiler -O2", "gcc 'unbalanced"])
def test_bad_variable_is_named(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CC-01: a CC that means nothing is an error that names it; another compiler is not taken silently."""
    monkeypatch.setenv("CC", value)
    with pytest.raises(ToolchainError, match="CC="):
        HostCompiler.find("c")


def test_a_vendors_command_is_run_as_the_hosts_compiler_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CC-01: a compiler by its name is asked for its version, parsed, and is no business of CXX; advice ends its error."""
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("CXX", "another")
    with pytest.raises(ToolchainError, match="'quernc'.*: install the SDK"):
        HostCompiler.named("quernc", "install the SDK")
    says = "names = map(os.path.basename, sys.argv[1:]); open(output, 'w').write(' '.join(names))"
    path = fake(folder, "quernc", f"{says}; print('k.cu:2:3: warning: odd')")
    compiler = HostCompiler.named("quernc", "install the SDK")
    build_of = compiler.run({"k.cu": ""}, "k.cu", ["build", "-O2"])
    assert build_of.data == b"build -O2 -o output k.cu"  # a subcommand first, and operands behind all options
    assert [each.line for each in parse_diagnostics(build_of.log)] == [2]
    assert "quernc 1.2.3" in compiler.identity
    fake(folder, "quernc", "print('k.cu:2:3: error: bad'); sys.exit(1)")
    with pytest.raises(CompileError, match="k.cu:2:3: bad") as caught:
        compiler.run({"k.cu": ""}, "k.cu", [])
    assert not isinstance(caught.value, ToolchainError)
    path.unlink()
    with pytest.raises(ToolchainError, match=f"The compiler '{path}' is gone"):
        compiler.identity  # noqa: B018
    with pytest.raises(ToolchainError, match="install the SDK"):
        HostCompiler.named("quernc", "install the SDK")


def test_changed_variable_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is read at each search: a test or a notebook may set it late."""
    one, two = (fake(tmp_path / name, "cc", "") for name in ("one", "two"))
    for each in (one, two, one):
        monkeypatch.setenv("CC", str(each))
        assert HostCompiler.find("c").command == (str(each),)


def test_identity_runs_the_compiler_once_per_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PRF-03: a later process takes the version from the disk cache and starts no compiler."""
    monkeypatch.setenv("CC", str(fake(tmp_path / "bin", "cc", "")))
    first = HostCompiler.find("c").identity
    assert HostCompiler.find("c").identity == first and "cc 1.2.3" in first
    program = "from podium._build import HostCompiler; print(HostCompiler.find('c').identity)"
    later = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert later.stdout.strip() == first
    assert calls(tmp_path / "bin") == ["--version"]


def test_identity_changes_with_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-14: another file, other arguments, or another program behind a prefix give another identity, at once."""
    folder = tmp_path / "bin"
    wrapper, real = fake(folder, "wrapper", ""), fake(folder, "real", "")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CC", "wrapper real")
    compiler = HostCompiler.find("c")
    seen = {compiler.identity}
    for each in (wrapper, real):
        os.utime(each, ns=(1, 1))
        seen.add(compiler.identity)
    monkeypatch.setenv("CC", "wrapper real -m32")
    seen.add(HostCompiler.find("c").identity)
    assert len(seen) == 4


def test_identity_has_the_search_variables(compiler: HostCompiler, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-14: variables that make the compiler find other headers are part of what it is."""
    before = compiler.identity
    monkeypatch.setenv("CPATH", "/somewhere/include")
    assert compiler.identity != before


def test_compiler_that_goes_away(tmp_path: Path, no_compiler: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """CC-01: a compiler that is removed while the process runs is a toolchain error, and the next search is fresh."""
    path = fake(tmp_path / "bin", "cc", "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    compiler = HostCompiler.find("c")
    path.unlink()
    with pytest.raises(ToolchainError, match="gone"):
        compiler.identity  # noqa: B018
    with pytest.raises(ToolchainError, match="could not be run"):
        compiler.compile({"a.c": ""}, "a.c")
    with pytest.raises(ToolchainError, match="apt install gcc"):
        HostCompiler.find("c")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("os.kill(os.getpid(), 9)", "SIGKILL.*memory"),
        ("print('cc1: out of memory allocating 65536 bytes'); sys.exit(1)", "ran out of memory"),
        ("print('gcc: fatal error: Killed signal terminated program cc1'); sys.exit(1)", "ran out of memory"),
        ("print('a.c:1:1: fatal error: error writing to x.s: No space left on device'); sys.exit(1)", "disk.*TMPDIR"),
        ("print('a.c:1:1: internal compiler error: Segmentation fault'); sys.exit(1)", "crashed"),
        ("print(\"gcc: fatal error: cannot execute 'cc1plus': No such file\"); sys.exit(1)", "not installed"),
        ("sys.exit(0)", "left no output"),
    ],
)
def test_trouble_that_is_not_the_sources(body: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that is killed, crashes, or has no disk or memory is a toolchain error that says so (CAC-09)."""
    monkeypatch.setenv("CC", str(fake(tmp_path / "bin", "cc", body)))
    with pytest.raises(ToolchainError, match=says):
        HostCompiler.find("c").compile({"a.c": ""}, "a.c")


def test_users_error_text_is_not_taken_for_trouble(compiler: HostCompiler) -> None:
    """An #error that happens to speak of memory is still the source's fault."""
    with pytest.raises(CompileError) as caught:
        compiler.compile({"a.c": "#error out of memory\n"}, "a.c")
    assert not isinstance(caught.value, ToolchainError)


def test_file_that_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be executed is a toolchain error that names the variable."""
    path = tmp_path / "cc"
    path.write_bytes(b"\x00\x01\x02\x03")
    path.chmod(0o755)
    monkeypatch.setenv("CC", str(path))
    with pytest.raises(ToolchainError, match="CC"):
        HostCompiler.find("c").compile({"a.c": ""}, "a.c")


# A compiler that starts a child, tells both process numbers, leaves a file where it should and waits to be ended.
ENDLESS = """
import subprocess
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(os.path.join(os.environ["TMPDIR"], "intermediate.s"), "w").close()
with open(log + ".pids", "w") as file:
    file.write(f"{os.getpid()} {child.pid}\\n")
os.rename(log + ".pids", log + ".ready")
time.sleep(600)
"""

WAIT_AND_COMPILE = """
import os, signal, sys, tempfile, threading
tempfile.tempdir = sys.argv[1]
ready = sys.argv[2] + "/calls.ready"
from podium._build import HostCompiler

def send(number):
    while not os.path.exists(ready):
        pass
    os.kill(os.getpid(), number)

kind = sys.argv[3]
compiler = HostCompiler.find("c")
if kind == "thread":
    threading.Thread(target=compiler.compile, args=({"a.c": ""}, "a.c"), daemon=True).start()
    while not os.path.exists(ready):
        pass
    sys.exit(0)
if kind == "SIGTERM":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
threading.Thread(target=send, args=(getattr(signal, kind),)).start()
compiler.compile({"a.c": ""}, "a.c")
"""


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def left(pids: list[int]) -> list[int]:
    """Return the processes that go on living; one that was killed takes a moment to go."""
    deadline = time.monotonic() + 30
    while (living := [pid for pid in pids if alive(pid)]) and time.monotonic() < deadline:
        os.sched_yield()
    return living


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked up in /proc")
@pytest.mark.parametrize(("kind", "status"), [("SIGINT", -signal.SIGINT), ("SIGTERM", 3), ("thread", 0)])
def test_interrupt_leaves_no_process_and_no_file(kind: str, status: int, temporary: Path, tmp_path: Path) -> None:
    """Ctrl-C, SystemExit, and the interpreter's exit under a background build end the compiler with its children."""
    path = fake(tmp_path / "bin", "cc", ENDLESS)
    ran = subprocess.run(
        [sys.executable, "-c", WAIT_AND_COMPILE, str(temporary), str(path.parent), kind],
        env={**os.environ, "CC": str(path)},
        capture_output=True,
        timeout=120,
    )
    assert ran.returncode == status, ran.stderr.decode()
    pids = [int(each) for each in (path.parent / "calls.ready").read_text().split()]
    assert len(pids) == 2
    assert left(pids) == []
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked up in /proc")
def test_time_limit(temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that does not finish in time is ended with its children, and the error says so."""
    path = fake(tmp_path / "bin", "cc", ENDLESS)
    monkeypatch.setenv("CC", str(path))
    with pytest.raises(ToolchainError, match="did not finish within"):
        HostCompiler.find("c").compile({"a.c": ""}, "a.c", timeout=3)
    assert list(temporary.iterdir()) == []
    if (ready := path.parent / "calls.ready").exists():
        assert left([int(each) for each in ready.read_text().split()]) == []


def test_terminal_interrupt_does_not_reach_background_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler runs in its own session, so the terminal's Ctrl-C goes to Python alone."""
    monkeypatch.setenv("CC", str(fake(tmp_path / "bin", "cc", "open(output, 'w').write(str(os.getsid(0)))")))
    assert int(HostCompiler.find("c").compile({"a.c": ""}, "a.c")) != os.getsid(0)


def test_temporary_folder_that_cannot_be_used(
    compiler: HostCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAC-05: when the preferred temporary folder has become unusable, the next usual one is taken."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "removed"))
    assert compiler.compile({"add.c": ADD}, "add.c")


def test_threads_compile_at_the_same_time(compiler: HostCompiler, temporary: Path) -> None:
    """Builds do not share anything: each thread gets the library of its own source."""
    results: dict[int, bytes] = {}

    def work(number: int) -> None:
        results[number] = compiler.compile({"a.c": f'char text[] = "number {number}.";\n'}, "a.c")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"number {number}.".encode() in results[number] for number in range(4))
    assert list(temporary.iterdir()) == []


def test_importing_is_light() -> None:
    """PRF-03: importing the module imports neither subprocess nor tempfile, and finding a compiler starts nothing."""
    program = (
        "import sys; before = set(sys.modules); import podium._build; "
        "print(sorted({'subprocess', 'tempfile', 'shutil', 'shlex', 'signal'} & (set(sys.modules) - before)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


TRUNCATING = """
    import subprocess
    real = {real!r}
    if subprocess.run([real, *sys.argv[1:]]).returncode:
        sys.exit(1)
    with open(output, "rb+") as file:
        if file.read(4) == bytes([127]) + b"ELF":
            file.truncate({keep})
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the libraries of this system are not ELF files")
@pytest.mark.parametrize("keep", ["os.path.getsize(output) - 1", "os.path.getsize(output) // 2", "80", "40", "4"])
@pytest.mark.parametrize(("language", "variable", "real"), [("c", "CC", "cc"), ("c++", "CXX", "c++")])
def test_output_that_was_cut_off(
    language: build.Language, variable: str, real: str, keep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CAC-12: a linker that left a part of its output and said nothing is trouble; the temporary folder is named."""
    if (path := shutil.which(real)) is None:
        pytest.skip(f"this machine has no {real}")
    body = textwrap.dedent(TRUNCATING).format(real=path, keep=keep)
    monkeypatch.setenv(variable, str(fake(tmp_path / "bin", "cutter", body)))
    with pytest.raises(
        ToolchainError, match=r"only a part of its output, \d+ bytes.*folder of temporary files.*TMPDIR"
    ):
        HostCompiler.find(language).compile({"add.c": ADD}, "add.c")


@pytest.mark.skipif(sys.platform != "linux", reason="the libraries of this system are not ELF files")
def test_cut_output_enters_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CAC-12: neither a launcher nor a kernel is kept of a build whose output was cut off; a later build works."""
    cpu = pytest.importorskip("podium_cpu.driver", reason="the CPU backend is not installed")
    if shutil.which("cc") is None or shutil.which("c++") is None:
        pytest.skip("this machine has no C and C++ compiler")
    keep = "os.path.getsize(output) // 2"
    for variable, real in (("CC", "cc"), ("CXX", "c++")):
        body = textwrap.dedent(TRUNCATING).format(real=shutil.which(real), keep=keep)
        monkeypatch.setenv(variable, str(fake(tmp_path / variable, f"{real}-cutter", body)))
    driver = cpu.CpuDriver()
    source = "__global__ void cut(int* p) { *p = 42; }"
    out = (ctypes.c_int * 1)()
    for level in ("interpreted", "generated"):
        monkeypatch.setenv("PODIUM_LAUNCHER", level)
        with pytest.raises(ToolchainError, match="only a part of its output"):
            podium.kernel(source).binding(driver).get((1, 1))(out)
    kept = [path.read_bytes() for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert kept and not any(b"\x7fELF" in data for data in kept)
    monkeypatch.delenv("CC")
    monkeypatch.delenv("CXX")
    podium.kernel(source).binding(driver).get((1, 1))(out)
    assert out[0] == 42


# ---- zig, the compiler that is a Python package ----


@pytest.fixture
def zig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package ziglang that cannot be imported, whose program writes how it was called; no compiler is on the path."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))
    for variable in ("ZIG_LOCAL_CACHE_DIR", "ZIG_GLOBAL_CACHE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "site").mkdir()
    folders = "[os.environ.get(f'ZIG_{each}_CACHE_DIR') for each in ('LOCAL', 'GLOBAL')]"
    path = fake(tmp_path / "site" / "ziglang", "zig", f"open(output, 'w').write(repr([*sys.argv, *{folders}]))")
    (path.parent / "__init__.py").write_text("raise ImportError\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    return path


def test_zig_is_found_where_there_is_no_other_compiler(zig: Path, tmp_path: Path) -> None:
    """CC-01: the package ziglang is the compiler where there is none, and only there."""
    for language, subcommand in (("c", "cc"), ("c++", "c++")):
        found = HostCompiler.find(language)  # type: ignore[arg-type]
        assert found.is_zig and found.command[:2] == (str(zig), subcommand)
        assert str(zig) in found.programs and f"file {zig}" in found.identity
    for name in ("clang", "clang++"):
        fake(tmp_path / "bin", name, "")
    build._forget()
    assert HostCompiler.find("c").command == (str(tmp_path / "bin" / "clang"),)
    assert not HostCompiler.find("c++").is_zig


@pytest.mark.parametrize("cc", ["", "{zig} cc -g", "'{python}' {zig} cc -g"])
def test_zig_compiles_as_others_do(
    zig: Path, cc: str, temporary: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """zig is told not to compile for this very processor; flags of the user come after that, and may say otherwise."""
    monkeypatch.setenv("CC", cc.format(zig=zig, python=sys.executable))
    called = eval(HostCompiler.find("c").compile({"a.c": ""}, "a.c", ["-march=x86_64_v3"]))
    assert called[1:3] == ["cc", "-mcpu=baseline"]
    assert called.index("-fno-sanitize=undefined") < called.index("-march=x86_64_v3")
    assert ("-g" in called) == bool(cc) and ("-g" not in called or called.index("-g") > 2)
    # What it keeps for the next time lies in the user's cache; what belongs to one run goes with that.
    assert os.path.dirname(called[-2]) == str(temporary) and called[-1] is None
    assert (tmp_path / "user-cache" / "zig").is_dir()


def test_zig_works_without_a_home(zig: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user may have no folder for zig's cache: it is given one, unless the user has named one."""
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    called = eval(HostCompiler.find("c").compile({"a.c": ""}, "a.c"))
    assert called[-1] == called[-2] and os.path.dirname(called[-1]) == str(temporary)
    monkeypatch.setenv("ZIG_GLOBAL_CACHE_DIR", "/somewhere")
    assert eval(HostCompiler.find("c").compile({"a.c": ""}, "a.c"))[-1] == "/somewhere"
