"""Launches one after another while a kernel moves to the generated level: the longest of them. A part of gpu.py."""

from __future__ import annotations

import statistics
import time

from launch_peers import Arguments

import podium
from podium._bench.report import Report
from podium._launch import Launch

__all__ = ["measure"]

BLOCK = 32
AFTER = 1000
MOST_S = 20.0
PAUSE = 200
"""Launches after which the device is waited for: so the driver's queue never fills, which would be in the times."""

LIMIT_US = 50
SIGNATURES = ("", ", int m", ", int m, float q")


def measure(report: Report, kernels: int) -> None:
    """Measure each launch of kernels whose C is not in the cache, with three tensors of torch and some numbers."""
    arguments = Arguments.of_torch()
    rows, figures, longest = [], {}, 0.0
    for number, more in enumerate(SIGNATURES[:kernels]):
        source = f'extern "C" __global__ void moving{number}(float* a, float* b, float* c, int n{more}) {{}}'
        kernel = podium.kernel(source)
        times, moved = launch_until_moved(kernel, (*arguments.tensors, arguments.n, *[0] * more.count(",")))
        before, steps, after = times[2 : moved - 3], times[moved - 3 : moved], times[moved:]
        waits = [seconds for seconds in before if 1e6 * seconds > LIMIT_US]
        longest = max([longest, *steps])
        rows.append(
            (
                f"{4 + more.count(',')} parameters",
                ", ".join(f"{1e6 * seconds:.0f}" for seconds in steps),
                f"{1e6 * statistics.median(before or steps):.1f}",
                f"{len(waits)} of {len(before)}",
                f"{1e6 * max(before or steps):.0f}",
                f"{1e6 * statistics.median(after):.1f}",
            )
        )
        figures[kernel.name] = {
            "steps_s": steps,
            "before": len(before),
            "waits": len(waits),
            "longest_s": max(before or steps),
        }
    columns = (
        "kernel",
        "steps (µs)",
        "before: median (µs)",
        f"above {LIMIT_US} µs",
        "longest (µs)",
        "after: median (µs)",
    )
    report.table("Moving to the generated level", columns, rows, figures)
    report.target("a launch that is a step to the generated level", LIMIT_US, 1e6 * longest, "µs")


def launch_until_moved(kernel: podium.Kernel, arguments: tuple[object, ...]) -> tuple[list[float], int]:
    """Return the seconds of each launch, and how many there were before the first that was made in C.

    Raises RuntimeError if there is none for a long time.
    """
    clock, times, moved = time.perf_counter, list[float](), None
    end = clock() + MOST_S
    while moved is None or len(times) < moved + AFTER:
        launch = kernel[1, BLOCK]
        if moved is None and not isinstance(launch, Launch):
            moved = len(times)
        start = clock()
        launch(*arguments)
        stop = clock()
        times.append(stop - start)
        if len(times) % PAUSE == 0:
            podium.synchronize()
        if moved is None and stop > end:
            raise RuntimeError(f"{kernel.name} is still on the interpreted level after {MOST_S:.0f} s")
    return times, moved
