"""The CPU backend beside C++ with OpenMP and beside PoCL, in one run: tables, JSON and a plot. See README.md."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from compiling import measure_compiling
from cores import measure_cores
from costs import measure_costs, measure_launch
from pairing import Effort, Times, take_turns
from peers import OPENMP_FLAGS, OpenMp, Pocl, geometric_mean, ours
from report import Report
from workloads import MEMORY_BOUND, WORKLOADS, Example, Work, size_of

import podium
from podium.backend import HostCompiler

HERE = Path(__file__).parent

SECTIONS = ("kernels", "launch", "compile", "costs", "cores")

MEMORY_TARGET, MATMUL_TARGET, POCL_TARGET = 1.1, 3, 1

PODIUM, OPENMP, POCL = "podium", "OpenMP", "PoCL"


def main() -> int:
    """Measure what is asked for, print tables, write JSON. Exits with 1 if a result was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--kernels", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="fewer samples, and smaller arrays")
    parser.add_argument("--size", choices=("small", "medium", "figures", "short"), help="size of the kernels' work")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="another checkout, for the part compile")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "cpu.json", help="the JSON file")
    options = parser.parse_args()
    unknown = set(options.sections) - {*SECTIONS, "worker"}
    if unknown:
        parser.error(f"there is no section {', '.join(sorted(unknown))}")
    effort = Effort(rounds=5, sample_s=0.01) if options.quick else Effort(rounds=21, sample_s=0.05)
    size = options.size or ("medium" if options.quick else "figures")
    os.environ.update(PODIUM_BACKEND="cpu", PODIUM_LAUNCHER="generated")
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("POCL_CACHE_DIR", folder)
        if options.sections == ["worker"]:
            effort = Effort(rounds=20 if options.quick else 200, sample_s=0.005)
            print(json.dumps({name: _seconds(name, size, effort) for name in options.kernels}))
            return 0
        os.environ["PODIUM_CACHE_DIR"] = folder
        report = Report(_about())
        right = True
        short = ["--size", "small" if size == "small" else "short", *["--quick"] * options.quick]
        measure: dict[str, Callable[[], object]] = {
            "launch": lambda: measure_launch(report, effort),
            "compile": lambda: measure_compiling(report, 2 if options.quick else 15, options.against),
            "costs": lambda: measure_costs(report, effort),
            "cores": lambda: measure_cores(report, short, options.output.with_suffix(".svg")),
        }
        for section in SECTIONS:
            if options.sections and section not in options.sections:
                continue
            if section == "kernels":
                right = measure_kernels(report, options.kernels, size, effort)
            else:
                measure[section]()
        report.end(options.output)
    return 0 if right else 1


def _about() -> dict[str, object]:
    return {
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "processor": podium.driver.get("cpu").devices()[0].name,
        "cores": os.cpu_count(),
        "compiler": HostCompiler.find("c++").version,
        "OpenMP": " ".join(OPENMP_FLAGS),
        "podium": podium.__version__,
    }


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
