"""The CPU backend beside C++ with OpenMP and beside PoCL, in one run: tables, JSON and a plot. See README.md."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from compiling import measure_compiling
from cores import measure_cores
from costs import measure_costs, measure_launch
from peers import OPENMP_FLAGS, OpenMp, Pocl, geometric_mean, ours
from program import Program
from workloads import MEMORY_BOUND, WORKLOADS, Example, Work, size_of

import podium
from podium._bench.machine import about
from podium._bench.report import Report
from podium._bench.turns import Effort, Times, take_turns
from podium.backend import HostCompiler

PARTS = {
    "kernels": "kernels beside C++ with OpenMP and beside PoCL",
    "launch": "one launch of one block",
    "compile": "a small kernel in a new process, with an empty and a full cache",
    "costs": "a block among many, a barrier, a shuffle, an atomic addition",
    "cores": "kernels with 1, 2, ... threads",
}

MEMORY_TARGET, MATMUL_TARGET, POCL_TARGET = 1.1, 3, 1

PODIUM, OPENMP, POCL = "podium", "OpenMP", "PoCL"


def main() -> int:
    """Measure what is asked for, print tables, write JSON and a picture. Exits with 1 if a result was wrong."""
    program = Program(__doc__, "cpu", PARTS)
    add = program.parser.add_argument
    add("--kernels", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), metavar="NAME", help="of the part kernels")
    add("--size", choices=("small", "medium", "figures", "short"), help="size of the kernels' work")
    add("--against", type=Path, metavar="FOLDER", help="another checkout, for the part compile")
    add("--worker", action="store_true", help=argparse.SUPPRESS)  # a process of the part cores
    options = program.parse()
    effort = Effort(rounds=5, sample_s=0.01) if options.quick else Effort(rounds=21, sample_s=0.05)
    size = options.size or ("medium" if options.quick else "figures")
    os.environ.update(PODIUM_BACKEND="cpu", PODIUM_LAUNCHER="generated")
    short = ["--size", "small" if size == "small" else "short", *["--quick"] * options.quick]
    right = True

    def kernels(report: Report) -> None:
        nonlocal right
        right = measure_kernels(report, options.kernels, size, effort)

    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("POCL_CACHE_DIR", folder)
        if options.worker:
            effort = Effort(rounds=20 if options.quick else 200, sample_s=0.005)
            print(json.dumps({name: _seconds(name, size, effort) for name in options.kernels}))
            return 0
        measure: dict[str, Callable[[Report], object]] = {
            "kernels": kernels,
            "launch": lambda report: measure_launch(report, effort),
            "compile": lambda report: measure_compiling(report, 2 if options.quick else 15, options.against),
            "costs": lambda report: measure_costs(report, effort),
            "cores": lambda report: measure_cores(report, short),
        }
        program.run(options, _about, measure)
    return 0 if right else 1


def _about() -> dict[str, object]:
    compilers = {"compiler": HostCompiler.find("c++").version, "OpenMP": " ".join(OPENMP_FLAGS)}
    return {**about(podium.driver.get("cpu")), **compilers}


def measure_kernels(report: Report, names: Sequence[str], size: str, effort: Effort) -> bool:
    """Measure kernels beside the same work in C++ and in OpenCL C; tell whether all came out right."""
    openmp = OpenMp.compile()
    pocl = None
    try:
        pocl = Pocl()
        report.note(f"PoCL: {pocl.about}")
    except LookupError as reason:
        report.note(f"No figures of PoCL: {reason}.")
    figures: dict[str, Any] = {}
    wrong: list[str] = []
    to_pocl: list[float] = []

    def rows() -> Iterator[tuple[str, ...]]:
        for name in names:
            example = WORKLOADS[name]
            work = example.prepare(size_of(name, size))
            ways = {PODIUM: ours(work.launches), OPENMP: openmp.of(name, work)}
            if pocl is not None:
                ways[POCL] = pocl.of(work.launches)
            present = {way: call for way, call in ways.items() if call is not None}
            errors = _errors(example, work, present)
            wrong.extend(
                f"{name}, {way}: {error:.1e}" for way, error in errors.items() if not error <= example.tolerance
            )
            times = take_turns(present, effort)
            figures[name] = {"shape": work.shape, "errors": errors, "times": times.figures()}
            if POCL in times:
                to_pocl.append(times.ratio(PODIUM, POCL).median)
            _note_targets(report, name, times)
            yield (name, work.shape, f"{errors[PODIUM]:.0e}", *_cells(times))

    columns = ("kernel", "size", "error", "podium (ms)", "OpenMP (ms)", "PoCL (ms)", "podium/OpenMP", "podium/PoCL")
    report.table("Kernels", columns, rows(), figures)
    report.note(
        "Times are the smallest. Ratios are medians of rounds, in each of which all were run in turn, with quartiles "
        "in parentheses."
    )
    if to_pocl:
        what = f"podium/PoCL, geometric mean of {len(to_pocl)} kernels"
        report.target(what, POCL_TARGET, geometric_mean(to_pocl), "times")
    for text in wrong:
        report.note(f"WRONG: {text}")
    return not wrong


def _errors(example: Example, work: Work, ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    import numpy

    output = numpy.asarray(work.output)
    before, errors = output.copy(), {}
    for way, call in ways.items():
        output[...] = before
        call()
        errors[way] = example.check(work)
    return errors


def _cells(times: Times) -> list[str]:
    seconds = [f"{1e3 * times.least(way):.2f}" if way in times else "-" for way in (PODIUM, OPENMP, POCL)]
    return seconds + [f"{times.ratio(PODIUM, way)}" if way in times else "-" for way in (OPENMP, POCL)]


def _note_targets(report: Report, name: str, times: Times) -> None:
    if OPENMP not in times:
        return
    ratio = times.ratio(PODIUM, OPENMP).median
    if name in MEMORY_BOUND:
        report.target(f"{name}: podium/OpenMP", MEMORY_TARGET, ratio, "times")
    elif name.startswith("matmul"):
        report.target(f"{name}: podium/OpenMP, the same algorithm", MATMUL_TARGET, ratio, "times")


def _seconds(name: str, size: str, effort: Effort) -> dict[str, float]:
    """Give the smallest times of a kernel with podium and with OpenMP."""
    work = WORKLOADS[name].prepare(size_of(name, size))
    theirs = OpenMp.compile().of(name, work)
    assert theirs is not None
    times = take_turns({PODIUM: ours(work.launches), OPENMP: theirs}, effort)
    return {way: times.least(way) for way in (PODIUM, OPENMP)}


if __name__ == "__main__":
    sys.exit(main())
