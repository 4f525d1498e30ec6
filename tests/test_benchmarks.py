"""The benchmarks: that they run, and say what they found. What they find is not looked at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest
from recording.cuda import library

from podium.backend import HostCompiler
from podium.errors import CompileError, ToolchainError

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def run(
    tmp_path: Path, program: str, *arguments: str, variables: Mapping[str, str] | None = None
) -> tuple[str, dict[str, object]]:
    """Run a program with the fewest samples; return what it printed and the figures that it wrote."""
    output = tmp_path / "figures.json"
    command = [sys.executable, "-W", "error", str(BENCHMARKS / program), "--quick", *arguments, "--json", str(output)]
    command += ["--plot", str(tmp_path / "plot.svg")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=variables)
    assert done.returncode == 0, done.stdout + done.stderr
    ElementTree.parse(tmp_path / "plot.svg")
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


def test_the_benchmark_of_podium_s_own_cost_runs(tmp_path: Path) -> None:
    """Launches at both levels are beside the loop in C over the same call, and what was aimed at beside what was found."""
    printed, results = run(tmp_path, "launch.py", "launch", "scale", "installed")
    rows = results["A driver call that does nothing"]
    assert isinstance(rows, dict) and len(rows) == 21
    assert list(results["Launches among many kernels"]) == ["1 of 1", "1 of 1000", "all 1000 in turn"]  # type: ignore[call-overload]
    assert len(results["Choosing among installed backends, time on processors"]) == 4  # type: ignore[arg-type]
    assert "| C loop over the call, 4 parameters | " in printed
    assert "\n### Targets\n" in printed


# What gpu.py needs of torch, on podium's own arrays: it runs here on the library that stands in for the CUDA driver.
TORCH = """
import podium

class Tensor:
    def __init__(self):
        self.array = podium.asarray([1.0] * 1024)
    def data_ptr(self):
        return self.array.ptr
    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)
    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

def rand(count, device):
    return Tensor()

empty = rand

class cuda:
    class current_stream:
        cuda_stream = 0

    def _compile_kernel(source, name):
        raise RuntimeError("there is no such compiler")
"""


def test_the_benchmark_of_a_gpu_runs(tmp_path: Path) -> None:
    """Every peer has a row: with its figures, that it is not installed, or why it failed."""
    pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")
    if library.compiler() is None:
        pytest.skip("there is no C compiler for the library that stands in for the CUDA driver")
    (tmp_path / "torch.py").write_text(TORCH)
    variables = library.environment(library.build())
    variables["PYTHONPATH"] = os.pathsep.join([str(tmp_path), variables["PYTHONPATH"]])
    printed, results = run(tmp_path, "gpu.py", "launch", "calls", "switch", variables=variables)
    rows = results["One launch"]
    assert isinstance(rows, dict)
    ways = [name for name in rows if name.startswith(("C loop over cuLaunchKernel", "podium"))]
    assert len(ways) == 5 and all("median_s" in rows[name] for name in ways)
    assert "cuda.bindings cuLaunchKernel" in rows
    assert rows["torch"] == {"reason": "failed: RuntimeError: there is no such compiler"}
    for peer in ("CuPy", "Triton", "numba"):
        assert any(name.startswith(peer) for name in rows)
    assert "| torch |  |  |  |  | failed: RuntimeError: there is no such compiler |" in printed
    assert len(results["The driver's call"]) == 9  # type: ignore[arg-type]
    (moving,) = results["Moving to the generated level"].values()  # type: ignore[attr-defined]
    assert len(moving["steps_s"]) == 3
