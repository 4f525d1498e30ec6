"""What runs kernels on the CPU, under the sanitizers for threads, addresses and undefined behaviour."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from podium.backend import HostCompiler
from podium.errors import CompileError, ToolchainError

toolchain = pytest.importorskip("podium_cpu.toolchain", reason="the CPU backend is not installed")

PROGRAM = Path(__file__).parent / "cpu_races.cpp"
SANITIZERS = {"threads": "-fsanitize=thread", "addresses": "-fsanitize=address,undefined"}


def build(compiler: HostCompiler, flag: str, folder: Path, runtime: Path) -> Path:
    include = Path(toolchain.INCLUDE)
    flags = ["-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", flag, f"-I{include / 'dialect'}"]
    objects = {}
    for name, source, extra in (
        ("runtime.o", f'#include "{runtime}"\n', ["-fvisibility=hidden"]),
        ("races.o", PROGRAM.read_text(), ["-include", str(include / "podium_cpu.h")]),
    ):
        objects[name] = compiler.run({"main.cpp": source}, "main.cpp", [*flags, *extra, "-c"]).data
    program = folder / "races"
    program.write_bytes(compiler.run({}, "races.o", [*flags, "-lrt"], objects=objects).data)
    program.chmod(0o755)
    return program


@pytest.fixture(params=["g++", "clang++"])
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> HostCompiler:
    monkeypatch.setenv("CXX", request.param)
    try:
        return HostCompiler.find("c++")
    except ToolchainError:
        pytest.skip(f"{request.param} is not installed")


def run(compiler: HostCompiler, sanitizer: str, folder: Path, runtime: Path) -> subprocess.CompletedProcess[str]:
    flag = SANITIZERS[sanitizer]
    try:
        compiler.run({"main.cpp": "int main() {}\n"}, "main.cpp", [flag])
    except CompileError as error:
        pytest.skip(f"{compiler.command[0]} has no {flag}: {error}")
    program = build(compiler, flag, folder, runtime)
    return subprocess.run([str(program)], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sanitizers are used on Linux only")
@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_launches_from_many_threads_are_clean(compiler: HostCompiler, sanitizer: str, tmp_path: Path) -> None:
    """Launches from several threads, in streams that wait for each other, failing and cooperative ones lose nothing."""
    ran = run(compiler, sanitizer, tmp_path, Path(toolchain.RUNTIME) / "runtime.cpp")
    assert (ran.returncode, ran.stdout) == (0, "0 wrong, 9600 counted\n"), ran.stderr[-4000:]
    assert "Sanitizer" not in ran.stderr and "runtime error" not in ran.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sanitizers are used on Linux only")
def test_a_missing_lock_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: without the lock around the table of workers, the sanitizer for threads finds a race."""
    broken = tmp_path / "podium_cpu"
    for folder in (Path(toolchain.RUNTIME), Path(toolchain.INCLUDE)):
        for file in folder.rglob("*.*"):
            copy = broken / file.relative_to(Path(toolchain.RUNTIME).parent)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(file.read_text())
    source = broken / "runtime" / "worker.h"
    text = source.read_text()
    begin = text.index("worker *take_worker(")
    source.write_text(
        text[:begin]
        + text[begin:]
        .replace("pthread_mutex_lock(&workers_lock);", "", 1)
        .replace("pthread_mutex_unlock(&workers_lock);", "", 1)
    )
    # clang's takes a fifth of the time that gcc's does
    monkeypatch.setenv("CXX", "clang++" if shutil.which("clang++") else "g++")
    try:
        compiler = HostCompiler.find("c++")
    except ToolchainError:
        pytest.skip("neither clang++ nor g++ is installed")
    ran = run(compiler, "threads", tmp_path, broken / "runtime" / "runtime.cpp")
    assert ran.returncode != 0 and "data race" in ran.stderr
