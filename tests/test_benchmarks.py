"""The benchmarks: that they run, and say what they found. What they find is not looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from podium.backend import HostCompiler
from podium.errors import CompileError, ToolchainError

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def run(tmp_path: Path, program: str, *arguments: str) -> tuple[str, dict[str, object]]:
    """Run a program with the fewest samples; return what it printed and the figures that it wrote."""
    output = tmp_path / "figures.json"
    command = [sys.executable, "-W", "error", str(BENCHMARKS / program), "--quick", *arguments, "--json", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    results: dict[str, object] = json.loads(output.read_text())["results"]
    return done.stdout, results


def openmp_is_missing() -> str | None:
    """Say why nothing can be compiled with OpenMP, or None."""
    try:
        HostCompiler.find("c++").compile({"empty.cpp": ""}, "empty.cpp", ["-fopenmp"])
    except (CompileError, ToolchainError) as error:
        return str(error)
    return None


def test_the_benchmark_of_the_cpu_backend_runs(tmp_path: Path) -> None:
    """Kernels come out right in every way that is measured, and the tables and the file have all of them."""
    pytest.importorskip("numpy")
    missing = openmp_is_missing()
    if missing:
        pytest.skip(f"the C++ compiler has no OpenMP: {missing}")
    kernels = ("triad", "sum")
    printed, results = run(tmp_path, "cpu.py", "kernels", "launch", "--size", "small", "--kernels", *kernels)
    assert list(results) == ["Kernels", "One launch of one block", "One launch on the CPU"]
    assert list(results["Kernels"]) == list(kernels)  # type: ignore[call-overload]
    for kernel in kernels:
        assert {"podium", "OpenMP"} <= results["Kernels"][kernel]["times"].keys()  # type: ignore[index]
        assert f"\n| {kernel} | " in printed
    assert "triad: podium/OpenMP" in printed and "PoCL" in printed
