"""Generated launchers: built in the background, kept on disk, shared; and what happens where they cannot be built."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_launching import generated_modules, load, make_launcher

import podium
from podium import _build, _extension, _generated, _zig
from podium._cache import default_cache
from podium._extension import INCLUDE_DIR
from podium._launch import Launch
from podium._launcher_source import signature_source
from podium.errors import CompileError, LaunchError, PodiumWarning, ToolchainError
from podium.testing import FakeArray, FakeDriver
from podium.testing._fake import FakeLauncher

SOURCE = "__global__ void k(float* x, int n) {}"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the compilers of these tests are shell scripts")


@pytest.fixture
def python_launches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The launches that went through the driver's Python side, as those of the interpreted level do."""
    calls: list[int] = []
    original = FakeDriver.launch

    def counted(self: FakeDriver, *args: Any) -> int:
        calls.append(1)
        return original(self, *args)

    monkeypatch.setattr(FakeDriver, "launch", counted)
    return calls


@pytest.fixture
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds are made when they are waited for, not in the background: the test decides when a launcher is ready."""
    monkeypatch.setattr(_generated, "start", lambda build, launcher: None)


@pytest.fixture
def auto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODIUM_LAUNCHER", "auto")


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Make the C compiler a shell script that notes each run; returns the function that writes it."""

    def write(body: str) -> Path:
        log = tmp_path / "runs"
        log.touch()
        script = tmp_path / "mycc"
        script.write_text(f'#!/bin/sh\necho "$@" >> {log}\n{body}\n')
        script.chmod(0o755)
        monkeypatch.setenv("CC", str(script))
        _build._find.cache_clear()
        _build._identity.cache_clear()
        _build._versions.clear()
        return log

    return write


def compilations(log: Path) -> int:
    return sum("-shared" in line for line in log.read_text().splitlines())


# ---- Moving over ----


def test_kept_launches_move_over(
    fake: FakeDriver, auto: None, cold_builds: None, no_worker: None, python_launches: list[int]
) -> None:
    """A launch that was kept while it was interpreted moves over, once the module is there, by steps in three of its calls."""
    kernel = podium.kernel(SOURCE)
    launch, other = kernel[1, 1], kernel[2, 1]
    launch(None, 1)
    assert kernel.level == "interpreted" and len(python_launches) == 1
    kernel.binding().launcher.wait()
    assert kernel.level == "generated"
    for _ in range(3):
        launch(None, 1)
        other(None, 1)
    assert 1 < len(python_launches) <= 7
    python_launches.clear()
    for call in (launch, other, kernel[1, 1], kernel[2, 1], kernel[3, 1]):
        call(None, 1)
        call(None, 1, stream=5)
    assert python_launches == []
    assert kernel[1, 1] is not launch and type(kernel[1, 1]).__name__ == "Launch"
    assert kernel[1, 1] is kernel[1, 1]
    assert len({(each.parameters, each.block) for each in fake.launches}) == 1
    assert len(fake.launches) == 17


def test_a_launch_made_on_the_generated_level_is_called_in_c(fake: FakeDriver) -> None:
    """What a program keeps of a warm kernel is the generated launch itself: no call of it goes through Python."""
    kernel = podium.kernel(SOURCE)
    kernel.warm_up()
    for launch in (kernel[1, 32], kernel[podium.LaunchConfig(2, 32)], kernel.binding().launch([2], 32)):
        assert not isinstance(launch, Launch)
        assert type(launch) is kernel.binding().launcher.module.Launch
        launch(FakeArray(4096), 1)
    assert [launch.grid[0] for launch in fake.launches] == [1, 2, 2]


def test_a_kept_launch_is_generated_once_the_kernel_is_warm(
    fake: FakeDriver, auto: None, cold_builds: None, python_launches: list[int]
) -> None:
    """warm_up() moves launches that a program has kept, those that it has launched and others, also by a configuration."""
    kernel = podium.kernel("__global__ void k(float* x, double kept_from_before) {}")
    kept = [kernel[1, 32], kernel[podium.LaunchConfig(2, 32)], kernel.binding().launch([3], 32), kernel[[4], 32]]
    kept[0](None, 1)
    assert len(python_launches) == 1
    kernel.warm_up()
    for launch in kept:
        assert isinstance(launch, Launch)
        launch(None, 1)
        launch(None, 1, stream=5)
    assert len(python_launches) == 1
    assert [launch.grid[0] for launch in fake.launches] == [1, 1, 1, 2, 2, 3, 3, 4, 4]


def test_the_background_build_arrives(
    fake: FakeDriver, auto: None, cold_builds: None, python_launches: list[int]
) -> None:
    """A launch never waits for the compiler; the module comes by itself, and launches then use it."""
    kernel = podium.kernel("__global__ void k(float* x, short arrives) {}")
    launch = kernel[1, 1]
    build = kernel.binding().launcher._build
    assert build is not None
    launch(None, 1)
    assert python_launches == [1] and not build.started  # it would slow down the compilers of other first launches
    launch(None, 1)
    assert python_launches == [1, 1] and build.started  # the compiler takes longer than this
    build.run()  # waits for the thread that builds, or builds
    for _ in range(5):
        launch(None, 1)
    assert len(python_launches) == 5 and kernel.level == "generated"


@pytest.mark.parametrize("watched", [False, True])
def test_the_build_begins_with_the_second_launch(
    fake: FakeDriver, auto: None, cold_builds: None, monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    """A kernel that is launched once is not worth a compiler, and a launch that a hook watches counts as one."""
    begun: list[int] = []
    monkeypatch.setattr(_generated, "start", lambda build, launcher: begun.append(len(fake.launches)))
    if watched:
        podium.hooks.enter.add(lambda event: None)
    kernel = podium.kernel(SOURCE)
    kernel[1, 1](None, 1)
    assert begun == []
    kernel[1, 1](None, 1)
    assert begun == [1] and len(fake.launches) == 2


def test_threads_move_over_together(fake: FakeDriver, auto: None, cold_builds: None, no_worker: None) -> None:
    """Sixteen threads launch while the module becomes ready: every launch is made once and right."""
    kernel = podium.kernel(SOURCE)
    launch = kernel[1, 1]
    barrier = threading.Barrier(17)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        barrier.wait()
        try:
            for index in range(200):
                launch(number * 4096, index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    barrier.wait()
    kernel.binding().launcher.wait()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(fake.launches) == 3200 and len({each.parameters for each in fake.launches}) == 3200


def test_one_build_at_a_time_for_a_shape(fake: FakeDriver, cold_builds: None, compiler: Callable[[str], Path]) -> None:
    """PRF-04: threads that need the same module at once run the compiler once."""
    log = compiler('exec gcc "$@"')
    barrier, levels = threading.Barrier(8), []

    def work() -> None:
        launcher = make_launcher(FakeDriver(), "*fp32, i8, u64", level="auto")
        barrier.wait()
        launcher.wait()
        levels.append(launcher.level)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert levels == ["generated"] * 8
    assert compilations(log) == 1 and generated_modules() == 1


# ---- The cache ----


def test_a_warm_cache_runs_no_compiler(cold_builds: None, compiler: Callable[[str], Path]) -> None:
    """PRF-04: another process finds the module on disk, and starts no compiler at all."""
    log = compiler('exec gcc "$@"')
    program = """
        from podium.testing import FakeDriver
        class Source: signature = "*fp32, i32, fp64, u8"
        import os
        os.environ["PODIUM_LAUNCHER"] = "generated"
        driver = FakeDriver()
        print(driver.launcher_cls(Source, {"block": 1}, driver).level)
    """
    for expected in (1, 1):
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
        )
        assert run.stdout.split() == ["generated"]
        assert compilations(log) == expected
    assert len(log.read_text().splitlines()) == 3  # its version, what all signatures have, and one signature
    make_launcher(FakeDriver(), "*fp32, u64", level="generated")
    assert len(log.read_text().splitlines()) == 4  # only what the other signature has of its own


def test_a_damaged_module_is_rebuilt_exactly_once(cold_builds: None, compiler: Callable[[str], Path]) -> None:
    """CAC-12: a cached module that does not load is put aside and built anew, once, and then it is there again."""
    log = compiler('exec gcc "$@"')
    make_launcher(FakeDriver(), "*fp32, i64", level="generated")
    cache = default_cache()
    (entry,) = (each for each in cache.entries() if each.kind == "launcher")
    for expected in (2, 2):
        if expected == 2 and compilations(log) == 1:
            cache.put(entry.key, b"not a library")
        _generated._builds.clear()
        launcher = make_launcher(FakeDriver(), "*fp32, i64", level="generated")
        assert launcher.level == "generated" and compilations(log) == expected


def test_another_compiler_is_another_entry(cold_builds: None, compiler: Callable[[str], Path]) -> None:
    """CAC-14: changed arguments of the compiler build anew; changing them back finds the first entry."""
    log = compiler('exec gcc "$@"')
    script = os.environ["CC"]
    for cc, expected in ((script, 1), (f"{script} -O1", 2), (script, 2)):
        os.environ["CC"] = cc
        _generated._builds.clear()
        make_launcher(FakeDriver(), "*fp32, i16", level="generated")
        assert compilations(log) == expected


def test_looking_into_the_cache_runs_no_compiler(
    cold_builds: None, compiler: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """PRF-04: what a launch does itself asks no compiler for its version; the thread that builds does."""
    log = compiler('exec gcc "$@"')
    driver = FakeDriver()
    monkeypatch.setattr(_generated, "_ensure_worker", lambda: None)
    launcher = make_launcher(driver, "*fp32, i8", level="auto")
    assert launcher.level == "interpreted" and log.read_text() == ""
    launcher.wait()
    assert launcher.level == "generated" and compilations(log) == 1
    _generated._builds.clear()
    again = make_launcher(driver, "*fp32, i8", level="auto")
    assert again.level == "generated" and compilations(log) == 1


def test_a_launch_waits_for_no_build_of_another_shape(cold_builds: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """PRF-04: while another thread builds, a launcher begins on the interpreted level, in the cache or not."""
    driver = FakeDriver()
    make_launcher(driver, "*fp32, u8", level="generated")
    _generated._builds.clear()
    monkeypatch.setattr(_generated, "_ensure_worker", lambda: None)
    building, done = threading.Event(), threading.Event()

    def build() -> None:
        with _generated._building:
            building.set()
            done.wait(60)

    thread = threading.Thread(target=build)
    thread.start()
    assert building.wait(60)
    try:
        launcher = make_launcher(driver, "*fp32, u8", level="auto")
        assert launcher.level == "interpreted"
    finally:
        done.set()
        thread.join()
    launcher.wait()
    assert launcher.level == "generated"


# ---- No compiler ----


@pytest.fixture
def fresh_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_generated, "_noticed", False)


def break_compiler(kind: str, compiler: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "missing":
        monkeypatch.setenv("CC", "/nonexistent/cc")
    elif kind == "none on the path":
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.setenv("PATH", "/nonexistent")
        monkeypatch.setattr(_zig, "packaged_command", lambda language: None)
    elif kind == "broken":
        compiler('case "$*" in *version*) echo broken 1.0;; *) echo "x.c:1:1: error: no"; exit 1;; esac')
    elif kind == "killed":
        compiler('case "$*" in *version*) echo killed 1.0;; *) kill -9 $$;; esac')
    elif kind == "empty":
        compiler('case "$*" in *version*) echo empty 1.0;; esac')


BROKEN = ["missing", "none on the path", "broken", "killed", "empty"]


@pytest.mark.parametrize("kind", BROKEN)
def test_without_a_compiler_launches_stay_interpreted(
    fake: FakeDriver, auto: None, cold_builds: None, no_worker: None, fresh_notice: None, kind: str,
    compiler: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """CC-01: with no compiler, or one that fails, results are the same and one warning, at the user's line, says why."""
    break_compiler(kind, compiler, monkeypatch)
    first, second = podium.kernel(SOURCE), podium.kernel("__global__ void other(float* x, int n, int m) {}")
    first.binding().launcher._build.run()  # type: ignore[union-attr]
    with pytest.warns(PodiumWarning, match="stay on the interpreted level") as caught:
        first[1, 1](4096, 7)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert "PODIUM_LAUNCHER=interpreted silences this" in text
    if kind == "missing":
        assert "CC='/nonexistent/cc': there is no program '/nonexistent/cc'" in text
    if kind == "none on the path":
        assert "No C compiler was found" in text and "apt" in text
    second.binding().launcher._build.run()  # type: ignore[union-attr]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first[1, 1](4096, 7)
        second[1, 1](4096, 7, 8)
        first.run(1, 1, 1, 0, first.function, 4096, 7)
    assert [each.parameters[:2] for each in fake.launches] == [
        ((4096).to_bytes(8, "little"), (7).to_bytes(4, "little"))
    ] * 4
    assert first.level == second.level == "interpreted"


def test_the_notice_of_the_low_level_launcher_points_at_its_caller(
    auto: None, cold_builds: None, no_worker: None, fresh_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CC-01: the warning points at the line that launched, whichever way it launched."""
    monkeypatch.setenv("CC", "/nonexistent/cc")
    driver = FakeDriver()
    launcher = make_launcher(driver, "i32")
    launcher._build.run()  # type: ignore[union-attr]
    with pytest.warns(PodiumWarning) as caught:
        launcher(1, 1, 1, 0, load(driver, launcher.signature), 1)
    assert caught[0].filename == __file__ and len(driver.launches) == 1


def test_the_notice_is_given_once_even_as_an_error(
    fake: FakeDriver,
    auto: None,
    cold_builds: None,
    no_worker: None,
    fresh_notice: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CC-01: where warnings are errors, the first launch raises the notice and the next ones work."""
    monkeypatch.setenv("CC", "/nonexistent/cc")
    kernel = podium.kernel(SOURCE)
    kernel.binding().launcher._build.run()  # type: ignore[union-attr]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PodiumWarning):
            kernel[1, 1](None, 1)
        kernel[1, 1](None, 1)
    assert len(fake.launches) == 1


@pytest.mark.parametrize("kind", BROKEN)
def test_the_pinned_level_needs_a_compiler(
    fake: FakeDriver, cold_builds: None, kind: str, compiler: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CC-01: PODIUM_LAUNCHER=generated raises what keeps it from being built, each time; a compiler installed later works."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
    path = os.environ["PATH"]
    break_compiler(kind, compiler, monkeypatch)
    kernel = podium.kernel(SOURCE)
    for _ in range(2):
        with pytest.raises(CompileError) as caught:
            kernel[1, 1](None, 1)
        assert isinstance(caught.value, ToolchainError) == (kind != "broken")
        if kind == "missing":
            assert "CC=" in str(caught.value)
        if kind == "none on the path":
            assert "set CC" in str(caught.value)
    monkeypatch.setenv("PATH", path)
    monkeypatch.delenv("CC", raising=False)
    kernel[1, 1](None, 1)
    assert kernel.level == "generated"


def test_a_build_that_failed_is_retried_for_new_kernels(
    fake: FakeDriver,
    auto: None,
    cold_builds: None,
    no_worker: None,
    fresh_notice: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CC-01: a kernel made after a compiler was installed is generated, in the same process."""
    monkeypatch.setenv("CC", "/nonexistent/cc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        podium.kernel(SOURCE).warm_up()
    monkeypatch.delenv("CC")
    kernel = podium.kernel(SOURCE)
    kernel.warm_up()
    assert kernel.level == "generated"


# ---- A package that changes under the process ----


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The template of the fake backend's launchers, as a file of the test's own."""
    copy = tmp_path / "package" / "launch.c.in"
    copy.parent.mkdir()
    copy.write_text(FakeLauncher.template.read_text())
    monkeypatch.setattr(FakeLauncher, "template", copy)
    _extension._read_files.cache_clear()
    return copy


def launch(source: str) -> str:
    """Launch a kernel, wait for its generated launcher, launch it again, and return the level."""
    kernel = podium.kernel(source)
    kernel[1, 1](4096, 7)
    kernel.warm_up()
    kernel[1, 1](4096, 7)
    return kernel.level


@pytest.mark.parametrize("change", ["upgraded", "removed"])
def test_a_package_that_changes_under_the_process(
    fake: FakeDriver, auto: None, cold_builds: None, fresh_notice: None, template: Path, change: str
) -> None:
    """CAC-12: nothing is built of files that are not those the key is made of; launches go on, and are told why, once."""
    assert launch(SOURCE) == "generated"
    text, entries = template.read_text(), default_cache().info().entries
    template.write_text(text + "/* of the next version */\n") if change == "upgraded" else template.unlink()
    other = "__global__ void other(float* x, double n) {}"
    expected = {
        "upgraded": "have changed since this process began to use them",
        "removed": "was removed, or is not whole",
    }
    with pytest.warns(PodiumWarning, match=f"stay on the interpreted level.*{expected[change]}") as caught:
        assert launch(other) == "interpreted"
    assert len(caught) == 1 and len(fake.launches) == 4
    assert default_cache().info().entries == entries + 2  # the kernel and its declaration, and no launcher
    if change == "upgraded":
        _extension._read_files.cache_clear()  # as another process begins
    else:
        template.write_text(text)
    assert launch(other) == "generated"


def test_a_backend_without_its_template(
    fake: FakeDriver, auto: None, cold_builds: None, fresh_notice: None, template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A template that is missing from the start is no other backend's: launches stay interpreted, or say so if pinned."""
    template.unlink()
    with pytest.warns(PodiumWarning, match="what launchers are made of cannot be read .*launch.c.in"):
        assert launch(SOURCE) == "interpreted"
    assert len(fake.launches) == 2
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
    with pytest.raises(CompileError, match="launch.c.in"):
        launch("__global__ void other(float* x, int n, int m) {}")


# ---- What the build depends on ----


def test_the_build_needs_no_header_of_python(
    cold_builds: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CC-02, CC-03, LIB-10, PRF-04: for a declared interpreter neither Python.h nor pyconfig.h is read or looked for."""
    trap = tmp_path / "trap"
    trap.mkdir()
    for name in ("Python.h", "pyconfig.h", "structmember.h", "cuda.h", "hip/hip_runtime.h", "dlpack/dlpack.h"):
        (trap / name).parent.mkdir(exist_ok=True)
        (trap / name).write_text("#error this header must not be needed\n")
    monkeypatch.setenv("CPATH", str(trap))
    launcher = make_launcher(FakeDriver(), ["*fp32", "i32", "fp16", "{i8,fp64}"], level="generated")
    assert launcher.level == "generated"


def test_the_build_reads_headers_of_c_and_of_podium_only(tmp_path: Path) -> None:
    """LIB-09, LIB-10: the compiler's own list of what a launcher includes has the C library and podium, nothing else."""
    template = FakeDriver.launcher_cls.template
    signature = podium.Signature.parse("*fp32, i32, fp16, {i8,fp64}")
    (tmp_path / "launcher.c").write_text(template.read_text() + signature_source(signature.parameters, 1))
    minor = f"-DPODIUM_PYTHON_MINOR={min(sys.version_info.minor, 13)}"
    command = ["cc", "-std=c11", "-M", minor, f"-I{INCLUDE_DIR}", "launcher.c"]
    listing = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    headers = [Path(each) for each in listing.replace("\\\n", " ").split()[2:]]
    assert {"podium_launch.h", "podium_scalars.h"} <= {each.name for each in headers}
    for header in headers:
        assert header.parent == INCLUDE_DIR or "python" not in str(header).lower(), header
        assert not header.name.startswith(("cuda", "hip"))


def test_an_undeclared_interpreter_names_the_header_it_lacks(
    cold_builds: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CC-02, CC-03: where Python's own headers are needed they are looked for first; the first one missing is named."""
    from podium import _extension

    monkeypatch.setattr(_extension, "_DECLARED_VERSIONS", ((3, 0), (3, 1)))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    for missing in ("Python.h", "pyconfig.h"):
        with pytest.raises(ToolchainError, match=f"has no {missing}. Install them") as caught:
            make_launcher(FakeDriver(), "i32", level="generated")
        assert str(tmp_path) in str(caught.value)
        (tmp_path / missing).touch()


# ---- Fork ----

FORK = """
    import os, sys, warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # a thread of podium builds while this forks: that is the point
    import podium
    from podium import _generated
    from podium.testing import FakeDriver

    class Safe(FakeDriver):
        fork_safe = True

    def attempt(function):
        try:
            return str(function())
        except Exception as error:
            return type(error).__name__

    def in_child(function):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                text = attempt(function)
                os.write(write, text.encode())
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
        return text

    def kernel():
        return podium.kernel("__global__ void k(float* x, int n) {}")
"""


def run_forking(program: str) -> list[str]:
    command = [sys.executable, "-c", textwrap.dedent(FORK) + textwrap.dedent(program)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_a_forked_child_is_refused(level: str) -> None:
    """ACT-06: in a child of a process that used the driver, every launch and load raises ForkedProcessError."""
    printed = run_forking("""
        driver = FakeDriver()
        podium.set_active(driver)
        used, launch = kernel(), None
        launch = used[1, 1]
        launch(None, 1)
        run, function = used.run, used.function
        print(in_child(lambda: launch(None, 1)))
        print(in_child(lambda: used[2, 1](None, 1)))
        print(in_child(lambda: kernel()[1, 1](None, 1)))
        print(in_child(lambda: kernel().load()))
        print(in_child(lambda: run(1, 1, 1, 0, function, None, 1)))
        print(in_child(lambda: launch(None, "n")))
        launch(None, 1)
        print(len(driver.launches))
    """)
    assert printed == ["ForkedProcessError"] * 5 + ["ArgumentTypeError", "2"]


def test_a_forked_child_of_a_low_level_user_is_refused(level: str) -> None:
    """ACT-06: launches through the low-level launcher with handles that podium did not load count as use, too."""
    printed = run_forking("""
        from podium.backend import Entry, ObjectCode, Signature
        class Source: signature = "i32"
        driver = FakeDriver()
        code = ObjectCode(b"", "fake", driver.default_target(), (Entry("k", Signature.parse("i32")),))
        function = driver.load(code, "k", 0).handle
        launcher = driver.launcher_cls(Source, {"block": 1}, driver)
        launcher(1, 1, 1, 0, function, 1)
        print(in_child(lambda: launcher(1, 1, 1, 0, function, 1)))
        other = driver.launcher_cls(Source, {"block": 1}, driver)
        print(in_child(lambda: other(1, 1, 1, 0, function, 1)))
        print(len(driver.launches))
    """)
    assert printed == ["ForkedProcessError", "ForkedProcessError", "1"]


def test_a_forked_child_can_still_compile(level: str) -> None:
    """ACT-06: compile-only work goes on in the child, and dropping a kernel there unloads nothing of the parent's."""
    printed = run_forking("""
        import gc
        class Loud(FakeDriver):
            def unload(self, function, device):
                os.write(1, b"unloaded ")
        driver = Loud()
        podium.set_active(driver)
        holder = [kernel()]
        holder[0][1, 1](None, 1)

        def drop():
            holder.clear()
            gc.collect()
            return "dropped"

        print(in_child(lambda: len(podium.kernel("__global__ void other(int n) {}").compile().code) > 0))
        print(in_child(drop))
    """)
    assert printed == ["True", "dropped"]


def test_a_driver_that_survives_a_fork_goes_on(level: str) -> None:
    """ACT-06: a fork-safe driver launches in the child, beside one that is refused there."""
    printed = run_forking("""
        safe, unsafe = Safe(), FakeDriver()
        Safe.name = "safe"
        launches = []
        for driver in (safe, unsafe):
            with podium.use(driver):
                launches.append(kernel()[1, 1])
                launches[-1](None, 1)
        def child():
            launches[0](None, 1)
            return len(safe.launches)
        print(in_child(child))
        print(in_child(lambda: launches[1](None, 1)))
    """)
    assert printed == ["2", "ForkedProcessError"]


def test_a_child_may_be_the_first_to_use_the_driver(level: str) -> None:
    """ACT-05: declaring, choosing and compiling in the parent spoils nothing: the child is the first user."""
    printed = run_forking("""
        driver = FakeDriver()
        podium.set_active(driver)
        declared = kernel()
        declared.compile()
        def child():
            declared[1, 1](None, 1)
            return len(driver.launches)
        print(in_child(child), in_child(child))
        declared[1, 1](None, 1)
        print(len(driver.launches))
    """)
    assert printed == ["1", "1", "1"]


def test_a_fork_in_the_middle_of_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACT-06: a child forked while the parent builds a launcher builds its own, and hangs on no lock of a lost thread."""
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PODIUM_LAUNCHER", "auto")
    printed = run_forking("""
        podium.set_active(Safe())
        declared = kernel()
        declared[1, 1](None, 1)
        declared[1, 1](None, 1)  # the worker is building now, and importing what it needs for that
        def child():
            declared[1, 1](None, 1)
            declared.warm_up()
            declared[1, 1](None, 1)
            return declared.level
        print(in_child(child))
        declared.warm_up()
        print(declared.level)
    """)
    assert printed == ["generated", "generated"]


def test_a_fork_in_the_middle_of_an_import_of_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACT-06: a fork waits until the build imports nothing: a child would keep the half-imported module, and its lock."""
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PODIUM_LAUNCHER", "auto")
    printed = run_forking("""
        import threading, time
        importing = threading.Event()
        class Slow:
            def find_spec(self, name, path=None, target=None):
                if name == "shutil":
                    importing.set()
                    time.sleep(0.5)  # as on a busy disk
        for name in [name for name in sys.modules if name in ("shutil", "tempfile")]:
            del sys.modules[name]
        sys.meta_path.insert(0, Slow())
        podium.set_active(Safe())
        declared = kernel()
        declared[1, 1](None, 1)
        declared[1, 1](None, 1)
        print(importing.wait(60))
        def child():
            declared.warm_up()
            return declared.level
        print(in_child(child))
    """)
    assert printed == ["True", "generated"]


def test_the_interpreter_ends_while_a_build_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIF-02: a program that ends right after its second launch ends cleanly, with a build under way."""
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PODIUM_LAUNCHER", "auto")
    program = """
        import podium
        from podium.testing import FakeDriver
        podium.set_active(FakeDriver())
        launch = podium.kernel("__global__ void k(float* x, int n) {}")[1, 1]
        launch(None, 1)
        launch(None, 1)
    """
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_a_function_is_asked_for_once(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """CTX-04: the C object asks Python for a device's function once, errors in between or not, and anew after unload()."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
    asked: list[int] = []
    original = Launch.prepare

    def prepare(self: Launch, device: int, stream: int) -> int | None:
        asked.append(device)
        return original(self, device, stream)

    monkeypatch.setattr(Launch, "prepare", prepare)
    kernel = podium.kernel(SOURCE)
    launch = kernel[1, 1]
    for device in (0, 1, 0, 1):
        launch(FakeArray(64, device), 1)
    fake.next_status = 3
    with pytest.raises(LaunchError):
        launch(FakeArray(64, 1), 1)
    launch(FakeArray(64, 1), 1)
    assert asked == [0, 1]
    kernel.unload()
    for device in (1, 1, 0, 0):
        launch(FakeArray(64, device), 1)
    assert asked == [0, 1, 1, 0]


# ---- Other interpreters ----

SUBINTERPRETER = """
    import sys, textwrap
    try:
        import _interpreters as interpreters
        create = lambda: interpreters.create("legacy")
        run = interpreters.exec
    except ImportError:
        import _xxsubinterpreters as interpreters
        create = lambda: interpreters.create(isolated=False)
        run = interpreters.run_string
    other = create()
    failed = run(other, textwrap.dedent('''
        import threading
        import podium
        from podium.testing import FakeDriver
        class Counting(FakeDriver):
            # Not through a callback of ctypes: before Python 3.12 those wait for the main interpreter, for ever.
            def launch(self, *args):
                self.launches.append(args)
                return 0
        driver = Counting()
        podium.set_active(driver)
        kernel = podium.kernel("__global__ void k(float* x, int n) {}", "k", signature="x: *fp32, n: i32")
        for _ in range(3):
            kernel[1, 1](4096, 7)
        names = [each.name for each in threading.enumerate() if "podium" in each.name]
        print(len(driver.launches), kernel.level, names, flush=True)
    '''))
    if failed:
        sys.exit(str(failed))
    interpreters.destroy(other)
    print("destroyed", flush=True)
"""


@pytest.mark.skipif(
    importlib.util.find_spec("_interpreters") is None and importlib.util.find_spec("_xxsubinterpreters") is None,
    reason="this Python has no interpreters beside the main one",
)
def test_a_subinterpreter_launches_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LIF-02: beside the main interpreter nothing is built in the background, which would keep one from ending."""
    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PODIUM_LAUNCHER", "auto")
    command = [sys.executable, "-c", textwrap.dedent(SUBINTERPRETER)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout.splitlines()) == (0, ["3 interpreted []", "destroyed"]), run.stderr


# ---- Objects that are not whole ----


def found_by_the_collector(kind: type) -> list[Any]:
    return [each for each in gc.get_objects() if type(each) is kind]


@pytest.mark.parametrize(
    "attribute", ["_encode", "_locate", "_launch", "_allocate_scratch", "_raise_status", "_flags", "_contiguous"]
)
def test_a_launcher_that_is_being_made_cannot_be_called(monkeypatch: pytest.MonkeyPatch, attribute: str) -> None:
    """LIF-05: a half-made generated launcher, as the garbage collector shows it, raises when called; then it works."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
    driver = FakeDriver()
    launcher = make_launcher(driver, "i32")
    module: Any = launcher._build.module  # type: ignore[union-attr]
    function = load(driver, launcher.signature)
    before, refused = found_by_the_collector(module.Launcher), []

    class Owner:
        def __getattr__(self, name: str) -> Any:
            if name == attribute:
                for each in found_by_the_collector(module.Launcher):
                    if not any(each is other for other in before):
                        with pytest.raises(SystemError, match="not whole"):
                            each(1, 1, 1, 0, function, 1)
                        refused.append(name)
            return getattr(launcher, name)

    made = module.Launcher(Owner())
    assert refused == [attribute] and driver.launches == []
    made(1, 1, 1, 0, function, 1)
    assert len(driver.launches) == 1


@pytest.mark.parametrize("attribute", ["stream", "flags", "shared", "grid", "block", "cluster"])
def test_a_launch_that_is_being_made_cannot_be_called(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch, attribute: str
) -> None:
    """LIF-05: the same for a bound launch."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
    kernel = podium.kernel(SOURCE)
    kernel.warm_up()
    launcher, launch = kernel.binding().launcher, Launch(kernel.binding(), podium.LaunchConfig(1, 1))
    module: Any = launcher._build.module  # type: ignore[union-attr]
    before, refused = found_by_the_collector(module.Launch), []

    class Config:
        def __getattr__(self, name: str) -> Any:
            if name == attribute:
                for each in found_by_the_collector(module.Launch):
                    if not any(each is other for other in before):
                        with pytest.raises(SystemError, match="not whole"):
                            each(None, 1)
                        refused.append(name)
            return getattr(launch, name)

    made = module.Launch(launcher.generated, launch.prepare, launch.slow, Config())
    assert refused == [attribute] and fake.launches == []
    made(None, 1)
    assert len(fake.launches) == 1


def test_many_kernels_build_as_many_launchers_as_they_have_shapes(auto: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scale: a thousand kernels with fifty shapes of signatures ask for fifty builds; names and pointees are no shape."""
    asked: list[_generated.Build] = []
    monkeypatch.setattr(_generated, "start", lambda build, launcher: asked.append(build))
    driver = FakeDriver()
    shapes = [", ".join(["a: *fp32"] + [f"x{index}: i32" for index in range(count)]) for count in range(50)]
    others = [shape.replace("a: *fp32", "other: *u8").replace("x", "y") for shape in shapes]
    launchers = [make_launcher(driver, (shapes, others)[index % 2][index // 2 % 50]) for index in range(1000)]
    for launcher in launchers:
        launcher.build()
    assert len({id(build) for build in asked}) == 50 and len(asked) == 1000
