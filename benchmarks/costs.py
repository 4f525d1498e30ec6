"""What single things cost on the CPU backend: a launch, a block, a barrier, a shuffle, an atomic operation."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import podium
from podium._bench.comparison import compare
from podium._bench.level import pinned_level
from podium._bench.report import Report
from podium._bench.turns import Effort, take_turns
from podium._bench.ways import bound
from podium.backend import HostCompiler, SharedLibrary

import podium_cpu

__all__ = ["loop_over_entry", "measure_costs", "measure_launch"]

SOURCES = Path(__file__).parent / "cpu"

LAUNCH_TARGET_US = 3
ENTRY = "C loop over the kernel's entry"

# What is subtracted from what, and how many times the one does what the other does not.
BLOCKS, TIMES = 100_000, 1_000


def _kernel(name: str) -> podium.Kernel:
    return podium.kernel(SOURCES / "costs.cu", name)


def measure_launch(report: Report, effort: Effort) -> None:
    """Measure launches of one small block, beside a loop in C over the entry that the kernel exports."""
    counter = podium.empty(1, "i32")
    kernel = _kernel("touch")
    kernel.warm_up()
    loops = 1000
    rows, figures = [], {}
    for block in (1, 32, 256):
        ways = {
            "podium": partial(kernel[1, block], counter),
            "C": partial(loop_over_entry(kernel, block, counter), loops),
        }
        times = take_turns(ways, effort, {"C": loops})
        rows.append(
            (f"{block}", *(f"{1e6 * figure(way):.2f}" for way in ways for figure in (times.least, times.median)))
        )
        figures[f"{block} threads"] = times.figures()
        if block == 32:
            report.target("launch of one block of 32 threads", LAUNCH_TARGET_US, 1e6 * times.median("podium"), "µs")
    columns = ("threads", "podium: smallest (µs)", "median (µs)", f"{ENTRY}: smallest (µs)", "median (µs)")
    report.table("One launch of one block", columns, rows, figures)
    _measure_arguments(report, effort)


def _measure_arguments(report: Report, effort: Effort) -> None:
    """Measure launches with several kinds of arrays, at both levels."""
    ours = [podium.asarray([1.0] * 32) for _ in range(3)]
    sets: dict[str, list[Any]] = {"addresses, as ints": [array.ptr for array in ours], "podium's arrays": ours}
    try:
        import numpy

        sets["numpy's arrays"] = [numpy.ones(32, numpy.float32) for _ in range(3)]
    except ImportError:
        report.note("No launches with numpy's arrays: it is not installed.")
    loops, ways, counts = 1000, {}, {}
    for level, count in (("generated", 100), ("interpreted", 1)):
        kernel = _kernel("add")
        with pinned_level(level):
            kernel.warm_up()
        if not ways:
            ways[ENTRY], counts[ENTRY] = partial(loop_over_entry(kernel, 32, *ours, 32), loops), loops
        for what, arrays in sets.items():
            kernel[1, 32](*arrays, 32)
            name = f"{level}: {what}"
            ways[name], counts[name] = bound(kernel[1, 32], count, *arrays, 32), count
    times = take_turns(ways, effort, counts)
    what = "one block of 32 threads, three arrays and an int"
    compare(report, "One launch on the CPU", times, what=what, reference=(ENTRY, "C loop"), ours=list(ways)[1:])


def loop_over_entry(kernel: podium.Kernel, block: int, *arguments: int | podium.Array) -> Callable[[int], float]:
    """Make a function that calls a kernel's entry from C, so many times for one block, and gives the seconds of one."""
    include = Path(podium_cpu.__file__).parent / "include"
    source = (SOURCES / "loops.c").read_text(encoding="utf-8")
    code = HostCompiler.find("c").compile({"loops.c": source}, "loops.c", ["-O2", f"-I{include}"])
    library = SharedLibrary.from_bytes("podium_benchmark_loops", code)
    types = (ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_int)
    loop = ctypes.CFUNCTYPE(ctypes.c_double, *types)(library.address("loop_over_entry"))
    entry, count = kernel.load(), len(arguments)
    values = (ctypes.c_uint64 * count)(*(each.ptr if isinstance(each, podium.Array) else each for each in arguments))
    addresses = (ctypes.c_void_p * count)(*(ctypes.addressof(values) + 8 * index for index in range(count)))
    kept = (library, values, arguments)

    def call(calls: int) -> float:
        seconds: float = loop(entry, block, addresses, calls)
        return seconds if kept else 0.0

    return call


def measure_costs(report: Report, effort: Effort) -> None:
    """Measure what a block costs in a launch of very many, and what threads pay for waiting and for meeting."""
    integers, numbers = podium.empty(32, "i32"), podium.empty(1)
    rows, figures = [], {}
    touch = _kernel("touch")
    for block in (1, 32, 256):
        ways = {"many": partial(touch[BLOCKS, block], integers), "one": partial(touch[1, block], integers)}
        times = take_turns(ways, effort)
        least, median = (1e9 * (figure("many") - figure("one")) / BLOCKS for figure in (times.least, times.median))
        what = f"a block of {block} that does nothing, in a launch of {BLOCKS}"
        rows.append((what, f"{least:.1f}", f"{median:.1f}"))
        figures[what] = times.figures()
    # One block, so one core.
    for name, what in (
        ("wait_in_kernel", "a barrier, for each thread"),
        ("wait_in_function", "a barrier in a function that is not inlined, for each thread"),
        ("shuffle", "a shuffle, for each thread"),
        ("add_atomically", "an atomic addition, for each thread"),
    ):
        kernel = _kernel(name)
        for block in (32, 256, 1024):
            x = integers if name == "add_atomically" else numbers
            ways = {"many": partial(kernel[1, block], TIMES, x), "none": partial(kernel[1, block], 0, x)}
            times = take_turns(ways, effort)
            least, median = (
                1e9 * (figure("many") - figure("none")) / TIMES / block for figure in (times.least, times.median)
            )
            rows.append((f"{what}, in a block of {block}", f"{least:.2f}", f"{median:.2f}"))
            figures[rows[-1][0]] = times.figures()
    report.table("What single things cost", ("what", "smallest (ns)", "median (ns)"), rows, figures)
