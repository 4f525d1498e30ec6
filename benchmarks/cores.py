"""How kernels get faster with more cores: with podium and with OpenMP, in a new process for each number of threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from podium._bench.chart import Line, line_chart
from podium._bench.report import Report

__all__ = ["measure_cores"]

PROGRAM = Path(__file__).parent / "cpu.py"

# One that computes, one that computes and waits at barriers, and one that moves memory.
KERNELS = ("mandelbrot", "matmul", "triad")


def measure_cores(report: Report, options: Sequence[str]) -> None:
    """Measure with 1, 2, ... threads, as many as there are cores, and draw it."""
    counts = _counts(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    seconds = {count: _run(count, options) for count in counts}
    rows = []
    for kernel in KERNELS:
        for way in ("podium", "OpenMP"):
            one = seconds[1][kernel][way]
            cells = [f"{1e3 * seconds[n][kernel][way]:.2f} ({one / seconds[n][kernel][way]:.2f}x)" for n in counts]
            rows.append((f"{kernel}, {way}", *cells))
    columns = ("kernel", *(f"{n} thread{'s' * (n > 1)} (ms)" for n in counts))
    report.table("Scaling over cores", columns, rows, {str(count): seconds[count] for count in counts})
    lines = [Line("as many times as threads", [(count, count) for count in counts], 0, dashed=True)]
    for colour, kernel in enumerate(KERNELS, 1):
        for way in ("podium", "OpenMP"):
            speed = [(n, seconds[1][kernel][way] / seconds[n][kernel][way]) for n in counts]
            lines.append(Line(f"{kernel}, {way}", speed, colour, dashed=way == "OpenMP"))
    report.chart(line_chart("Scaling over cores", "threads", "times as fast as with one", lines))


def _counts(cores: int) -> list[int]:
    """Choose numbers of threads: all up to eight, then powers of two, and the number of cores."""
    return sorted({*range(1, min(cores, 8) + 1), *(1 << i for i in range(cores.bit_length())), cores})


def _run(threads: int, options: Sequence[str]) -> dict[str, dict[str, float]]:
    variables = {**os.environ, "PODIUM_CPU_THREADS": f"{threads}", "OMP_NUM_THREADS": f"{threads}"}
    command = [sys.executable, str(PROGRAM), "--worker", "--kernels", *KERNELS, *options]
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found
