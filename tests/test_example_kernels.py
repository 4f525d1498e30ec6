"""The example kernels: right on every backend that is active, at both launcher levels and at awkward sizes."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import podium

np = pytest.importorskip("numpy", reason="numpy is what the kernels are compared with")

FOLDER = Path(__file__).parent.parent / "examples" / "kernels"


def load(name: str) -> ModuleType:
    """Import a module of the folder, which is no package: programs there are run as they are."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(FOLDER))


catalogue = load("catalogue")


def active_backends() -> Iterator[str]:
    for backend in podium.driver.backends():
        if backend.probe().state == "active":
            yield backend.name


@pytest.mark.parametrize("name", catalogue.EXAMPLES)
def test_a_kernel_computes_what_numpy_does(name: str, level: str) -> None:
    """With no element, with one, and with a number that is no multiple of the block."""
    example = catalogue.EXAMPLES[name]
    backends = list(active_backends())
    assert backends
    for backend in backends:
        with podium.use(backend):
            for size in (0, 1, example.sizes["small"]):
                work = example.prepare(size)
                work.run()
                error = example.check(work)
                assert error <= example.tolerance, f"{backend}, size {work.shape}: {error}"
                assert {launch.kernel.level for launch in work.launches} == {level}


def test_no_size_is_a_multiple_of_a_block() -> None:
    """Odd sizes need the guards of the kernels."""
    assert all(size % 2 for example in catalogue.EXAMPLES.values() for size in example.sizes.values())


def test_every_kernel_file_is_used_and_told_of() -> None:
    """A file that is added is described, by the catalogue and by the README; `fill.cu` serves the others."""
    files = {file.name for file in FOLDER.glob("*.cu")}
    assert files == {example.file for example in catalogue.EXAMPLES.values()} | {"fill.cu"}
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"[{file}]({file})" in text for file in files)


def test_the_program_prints_a_table(tmp_path: Path) -> None:
    """It takes names, a backend and a size, says what came out, and ends with 0."""
    command = [sys.executable, "-W", "error", str(FOLDER / "run.py"), "saxpy", "mandelbrot"]
    environment = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run(
        [*command, "--backend", "cpu", "--size", "small"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "saxpy" in done.stdout and "10007" in done.stdout and "GB/s" in done.stdout and "GFLOP/s" in done.stdout


def test_the_program_tells_a_wrong_result(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An error above the tolerance, or one that is not a number, makes the exit status 1."""
    run = load("run")
    example = catalogue.EXAMPLES["saxpy"]

    def prepare(size: int) -> object:
        work = example.prepare(size)
        work.expected[size // 2] = np.nan
        return work

    monkeypatch.setitem(catalogue.EXAMPLES, "saxpy", replace(example, prepare=prepare))
    monkeypatch.setattr(run, "MOST_RUNS", 1)
    monkeypatch.setattr(sys, "argv", ["run.py", "--size", "small", "saxpy"])
    assert run.main() == 1
    assert "saxpy is wrong" in capsys.readouterr().out
