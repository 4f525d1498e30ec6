"""What a small kernel costs up to its first launch on the CPU backend, with an empty and with a full cache."""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from podium._bench.processes import run_steps
from podium._bench.report import Report

__all__ = ["measure_compiling"]

COLD_TARGETS_S, WARM_TARGET_MS = {"first": 0.6, "second": 0.3}, 5

# Run in a process of its own, it prints the seconds of each step: on the clock, and on processors.
STEPS = r"""
import json, resource, time

def now():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.perf_counter(), sum(each.ru_utime + each.ru_stime for each in used)

steps, last = {}, now()
def mark(name):
    global last
    ended = now()
    steps[name] = [after - before for before, after in zip(last, ended)]
    last = now()

import podium
mark("import podium")
podium.driver.resolve()
mark("choose the driver")
arrays = [podium.asarray([1.0] * 32) for _ in range(3)]
mark("make three arrays")
for which in ("first", "second"):
    kernel = podium.kernel(f'''__global__ void {which}(const float* a, const float* b, float* c, int n) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) c[i] = a[i] + b[i];
    }}''')
    mark(f"declare the {which} kernel")
    kernel[1, 32](*arrays, 32)
    mark(f"first launch of the {which} kernel")
kernel[1, 32](*arrays, 32)
mark("next launch")
print(json.dumps(steps))
"""

Steps = dict[str, list[float]]


def measure_compiling(report: Report, processes: int, against: Path | None = None) -> None:
    """Measure it in new processes. Those of another checkout take turns with those of this one."""
    trees: dict[str, Path | None] = {"": None} if against is None else {"": None, f" ({against.name})": against}
    with tempfile.TemporaryDirectory() as kept:
        full = {tree: os.path.join(kept, str(number)) for number, tree in enumerate(trees)}
        for tree, folder in trees.items():
            _run(f"{STEPS}\nkernel.warm_up()", full[tree], folder)
            _run(STEPS, full[tree], folder)
        titles: dict[str, Callable[[str], AbstractContextManager[str]]] = {
            "empty": lambda tree: tempfile.TemporaryDirectory(),
            "full": lambda tree: nullcontext(full[tree]),
        }
        for title, cache in titles.items():
            samples: dict[str, list[Steps]] = {tree: [] for tree in trees}
            for _ in range(processes):
                for tree, folder in trees.items():
                    with cache(tree) as place:
                        samples[tree].append(_run(STEPS, place, folder))
            columns = ["step"]
            for tree in trees:
                columns += [f"smallest{tree} (ms)", f"median{tree} (ms)", f"on processors, median{tree} (ms)"]
            rows = [
                (step, *(cell for tree in trees for cell in _cells(samples[tree], step))) for step in samples[""][0]
            ]
            report.table(f"A small kernel in a new process, with {_article(title)} cache", columns, rows, samples)
            for which, limit in COLD_TARGETS_S.items():
                found = statistics.median(each[f"first launch of the {which} kernel"][0] for each in samples[""])
                what = f"first launch of the {which} small kernel of a process, {title} cache"
                if title == "empty":
                    report.target(what, limit, found, "s")
                else:
                    report.target(what, WARM_TARGET_MS, 1e3 * found, "ms")


def _article(title: str) -> str:
    return f"an {title}" if title[0] in "aeiou" else f"a {title}"


def _run(program: str, cache: str, tree: Path | None) -> Steps:
    environment = {"PODIUM_CACHE_DIR": cache, "PODIUM_BACKEND": "cpu"}
    if tree is not None:
        sources = [tree / "core" / "src", tree / "backends" / "cpu" / "src"]
        environment["PYTHONPATH"] = os.pathsep.join(str(each.absolute()) for each in sources)
    steps: Any = run_steps(program, environment=environment)  # two clocks for each
    return dict(steps)


def _cells(samples: list[Steps], step: str) -> tuple[str, str, str]:
    clock = [1e3 * sample[step][0] for sample in samples]
    used = statistics.median(1e3 * sample[step][1] for sample in samples)
    return f"{min(clock):.1f}", f"{statistics.median(clock):.1f}", f"{used:.1f}"
