"""What a small kernel costs before its first launch on the CPU backend, with an empty and with a full cache."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile

from report import Report

__all__ = ["measure_compiling"]

COLD_TARGET_S, WARM_TARGET_MS = 0.6, 5

# Run in a process of its own, it prints the seconds of each step.
STEPS = r"""
import json, time

steps, last, in_compiler = {}, time.perf_counter(), 0.0
def mark(name):
    global last, in_compiler
    now = time.perf_counter()
    steps[name] = now - last
    if "kernel" in name:
        steps[f"{name}: of it the host's C++ compiler"] = in_compiler
    last, in_compiler = time.perf_counter(), 0.0

import podium
from podium.backend import HostCompiler
mark("import podium")

podium.driver.resolve()
arrays = [podium.asarray([1.0] * 32) for _ in range(3)]
mark("choose the driver, make three arrays")

execute = HostCompiler._execute
def timed(self, *arguments, **keywords):
    global in_compiler
    start = time.perf_counter()
    try:
        return execute(self, *arguments, **keywords)
    finally:
        if self.language == "c++":
            in_compiler += time.perf_counter() - start
HostCompiler._execute = timed

for which in ("first", "second"):
    kernel = podium.kernel(f'''__global__ void {which}(const float* a, const float* b, float* c, int n) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) c[i] = a[i] + b[i];
    }}''')
    kernel.load()
    mark(f"{which} kernel, until it is loaded")
    kernel[1, 32](*arrays, 32)
    podium.synchronize()
    mark(f"first launch of the {which} one")
print(json.dumps(steps))
kernel.warm_up()
"""

LOADED = {which: f"{which} kernel, until it is loaded" for which in ("first", "second")}


def measure_compiling(report: Report, processes: int) -> None:
    """Measure it in new processes."""
    cold = []
    for _ in range(processes):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(_steps(folder))
    with tempfile.TemporaryDirectory() as folder:
        _steps(folder)
        warm = [_steps(folder) for _ in range(processes)]
    rows = [(step, *_cells(cold, step), *_cells(warm, step)) for step in cold[0]]
    columns = ("step", "empty cache: smallest (ms)", "median (ms)", "full cache: smallest (ms)", "median (ms)")
    report.table("A small kernel in a new process", columns, rows, {"cold_s": cold, "warm_s": warm})
    for which, step in LOADED.items():
        report.target(f"{which} small kernel of a process, cold", COLD_TARGET_S, _median(cold, step), "s")
        report.target(f"{which} small kernel of a process, warm", WARM_TARGET_MS, 1e3 * _median(warm, step), "ms")


def _steps(cache: str) -> dict[str, float]:
    variables = {**os.environ, "PODIUM_CACHE_DIR": cache, "PODIUM_BACKEND": "cpu"}
    for name in ("PYTHONDONTWRITEBYTECODE", "PODIUM_LAUNCHER"):  # users have neither
        variables.pop(name, None)
    done = subprocess.run([sys.executable, "-c", STEPS], env=variables, capture_output=True, text=True, check=True)
    steps: dict[str, float] = json.loads(done.stdout)
    return steps


def _median(samples: list[dict[str, float]], step: str) -> float:
    return statistics.median(sample[step] for sample in samples)


def _cells(samples: list[dict[str, float]], step: str) -> tuple[str, str]:
    return f"{1e3 * min(sample[step] for sample in samples):.1f}", f"{1e3 * _median(samples, step):.1f}"
