"""Launches on an NVIDIA GPU, beside the loop in C over the call of the driver and beside peers. See README.md."""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import calls
import first_launch
import first_peers
import replay
import switch
from driver_loop import DriverLoop
from floor import floor_ways
from launch_peers import Arguments, measurable_peers, versions_of_peers
from program import Program

import podium
from podium._bench.chart import Line, line_chart
from podium._bench.comparison import compare
from podium._bench.level import pinned_level
from podium._bench.machine import about
from podium._bench.report import Report
from podium._bench.turns import Effort, Times, take_turns
from podium._bench.ways import bound, repeated, subscripted

SOURCES = Path(__file__).parent / "gpu"
PARTS = {
    "launch": "one launch, in every way that podium has, beside the loop in C and beside peers",
    "calls": "the driver's call in other ways, and what stands between two of them, in a loop in C",
    "switch": "launches one after another while a kernel moves to the generated level",
    "arrays": "launches with the arrays of other libraries",
    "growth": "0 to 256 ints and tensors",
    "threads": "1 to 8 threads, a stream for each",
    "replay": "20 captured launches, replayed, beside the loop in C over cuGraphLaunch and beside torch",
    "first": "first launches in new processes, import, and the choice of the driver",
    "peers": "import and first launches of peers in new processes",
}

LAUNCHES = 50
"""Launches in one sample: few enough that the driver's queue never fills."""

BLOCK = 32
COUNTS = (0, 1, 4, 16, 58, 256)
THREADS = (1, 2, 4, 8)
LOOP = "C loop over cuLaunchKernel"
SUBSCRIPT, BOUND, RUN = "podium kernel[grid, block](...)", "podium bound launch", "podium kernel.run(...)"
INTERPRETED = "podium, interpreted level, bound launch"
TARGETS = {SUBSCRIPT: 1.10, BOUND: 1.08}


def main() -> int:
    """Measure what is asked for, print tables, write JSON and a picture."""
    program = Program(__doc__, "gpu", PARTS)
    options = program.parse()
    os.environ["PODIUM_BACKEND"] = "nvidia"
    effort = Effort(rounds=40 if options.quick else 400, sample_s=0, most_s=120)
    measure: dict[str, Callable[[Report], object]] = {
        "launch": lambda report: measure_launch(report, effort),
        "calls": lambda report: calls.measure(report, effort, add_kernel()),
        "switch": lambda report: switch.measure(report, 1 if options.quick else 3),
        "arrays": lambda report: measure_arrays(report, effort),
        "growth": lambda report: measure_growth(report, effort),
        "threads": lambda report: measure_threads(report, effort),
        "replay": lambda report: replay.measure(report, effort, add_kernel()),
        "first": lambda report: first_launch.measure(report, 3 if options.quick else 9),
        "peers": lambda report: first_peers.measure(report, 1 if options.quick else 5),
    }
    program.run(options, lambda: {**about(podium.driver.get("nvidia")), **versions_of_peers()}, measure)
    return 0


def add_kernel(level: str = "generated") -> podium.Kernel:
    """Declare the kernel with its launcher pinned to a level, and make it ready."""
    return ready(podium.kernel(SOURCES / "kernels.cu", "add"), level)


def ready(kernel: podium.Kernel, level: str = "generated") -> podium.Kernel:
    """Pin a kernel's launcher to a level, and make the kernel ready."""
    with pinned_level(level):
        kernel.warm_up()
    return kernel


def bind(kernel: podium.Kernel, *arguments: object) -> Callable[..., None]:
    """Give the launch of one block that a program keeps which has launched the kernel before."""
    kernel[1, BLOCK](*arguments)
    return kernel[1, BLOCK]


def in_turn(ways: Mapping[str, Callable[[], object]], effort: Effort) -> Times:
    """Time ways that launch `LAUNCHES` times a call; the loop in C reads the clock itself."""
    return take_turns(ways, effort, dict.fromkeys(ways, LAUNCHES), podium.synchronize, clocked=(LOOP,))


def measure_launch(report: Report, effort: Effort) -> None:
    """Measure one launch with three tensors of torch and an int, on its current stream, all checks on."""
    arguments = Arguments.of_torch()
    tensors, n = arguments.tensors, arguments.n
    kernel, interpreted = add_kernel(), add_kernel("interpreted")
    loop = DriverLoop(kernel, arguments.addresses, n, arguments.stream, BLOCK)
    run, function = kernel.run, kernel.function
    ours: dict[str, Callable[[], object]] = {
        SUBSCRIPT: subscripted(kernel, 1, BLOCK, LAUNCHES, *tensors, n),
        BOUND: bound(bind(kernel, *tensors, n), LAUNCHES, *tensors, n),
        RUN: repeated(run, LAUNCHES, 1, 1, 1, arguments.stream, function, *tensors, n),
        INTERPRETED: bound(interpreted[1, BLOCK], LAUNCHES, *tensors, n),
    }
    peers, missing = measurable_peers(SOURCES, arguments, BLOCK)
    ways: dict[str, Callable[[], object]] = {LOOP: lambda: LAUNCHES * loop(LAUNCHES)}
    ways |= floor_ways(kernel, tensors, n, BLOCK, LAUNCHES) | ours
    ways |= {name: repeated(launch, LAUNCHES) for name, launch in peers.items()}
    times = in_turn(ways, effort)
    what = "three tensors and an int"
    compare(
        report,
        "One launch",
        times,
        what=what,
        reference=(LOOP, "C loop"),
        ours=ours,
        missing=missing,
        sample=f"one is {LAUNCHES} launches",
    )
    for way, limit in TARGETS.items():
        report.target(f"{way} / {LOOP}", limit, times.ratio(way, LOOP).median, "times")


def measure_arrays(report: Report, effort: Effort) -> None:
    """Measure bound launches with the arrays of other libraries, beside those with torch's."""
    arguments = Arguments.of_torch()
    kernel, n = add_kernel(), arguments.n
    launch = bind(kernel, *arguments.tensors, n)
    sets = {"torch": arguments.tensors, "addresses, as ints": arguments.addresses, **arguments.of_libraries()}
    times = in_turn({name: bound(launch, LAUNCHES, *arrays, n) for name, arrays in sets.items()}, effort)
    what = "a bound launch with arrays of"
    compare(report, "Arrays of other libraries", times, what=what, reference=("torch", "torch"), ours=("podium",))


def measure_growth(report: Report, effort: Effort) -> None:
    """Measure how launches grow with the number of their arguments, beside the loop in C with as many."""
    arguments = Arguments.of_torch()
    ints, tensors = [7] * COUNTS[-1], arguments.more(COUNTS[-1])
    values: dict[str, list[Any]] = {"ints": ints, "tensors": tensors}
    numbers = {"ints": ints, "tensors": [tensor.data_ptr() for tensor in tensors]}
    types = {"ints": "int", "tensors": "float*"}
    ways: dict[str, Callable[[], object]] = {}
    for kind, given in values.items():
        for count in COUNTS:
            parameters = ", ".join(f"{types[kind]} x{index}" for index in range(count))
            kernel = ready(podium.kernel(f'extern "C" __global__ void take({parameters}) {{}}'))
            loop = DriverLoop(kernel, numbers[kind][:count], None, arguments.stream, BLOCK)
            ways[f"{count} {kind}, C loop"] = lambda loop=loop: LAUNCHES * loop(LAUNCHES)  # type: ignore[misc]
            ways[f"{count} {kind}"] = repeated(bind(kernel, *given[:count]), LAUNCHES, *given[:count])
    clocked = [name for name in ways if name.endswith("C loop")]
    fewer = Effort(max(20, effort.rounds // 4), 0, effort.most_s)
    times = take_turns(ways, fewer, dict.fromkeys(ways, LAUNCHES), podium.synchronize, clocked=clocked)
    rows, drawn = [], []
    for colour, kind in enumerate(values):
        for count in COUNTS:
            name, call = f"{count} {kind}", f"{count} {kind}, C loop"
            beside = f"{1e9 * times.beside(name, call):.0f}"
            rows.append((name, f"{1e6 * times.median(name):.2f}", f"{1e6 * times.median(call):.2f}", beside))
        for title, end in ((f"{kind}, podium", ""), (f"{kind}, C loop", ", C loop")):
            points = [(count, 1e6 * times.median(f"{count} {kind}{end}")) for count in COUNTS]
            drawn.append(Line(title, points, colour, dashed=bool(end)))
    columns = ("arguments", "podium (µs)", "C loop (µs)", "beside it (ns)")
    report.table("Growth with arguments", columns, rows, times.figures())
    report.chart(line_chart("Growth with arguments", "arguments", "µs for one launch, medians", drawn))


def measure_threads(report: Report, effort: Effort) -> None:
    """Measure launches from several threads, a stream for each, beside the loop in C in as many threads."""
    arguments = Arguments.of_torch()
    kernel = add_kernel()
    (a, b, c), n = arguments.tensors, arguments.n
    bind(kernel, a, b, c, n)
    launches = 100 * LAUNCHES
    rows, figures = [], {}
    for count in THREADS:
        streams = [podium.Stream() for _ in range(count)]
        loop = DriverLoop(kernel, arguments.addresses, arguments.n, arguments.stream, BLOCK)
        ours, theirs = [], []
        for _ in range(max(5, effort.rounds // 20)):
            podium.synchronize()
            theirs.append(loop.in_threads([stream.handle for stream in streams], launches) / count)
            podium.synchronize()
            ours.append(_seconds_in_threads(kernel, streams, (a, b, c, n), launches) / launches / count)
        mine, its = statistics.median(ours), statistics.median(theirs)
        rows.append((f"{count}", f"{1e6 * mine:.2f}", f"{1e6 * its:.2f}", f"{mine / its:.2f}"))
        figures[f"{count} threads"] = Times({"podium": ours, LOOP: theirs}).figures()
    columns = ("threads", "podium (µs per launch)", "C loop (µs per launch)", "ratio")
    report.table("Threads, a stream for each", columns, rows, figures)
    drawn = [
        Line(name, [(count, 1e6 * figures[f"{count} threads"][name]["median_s"]) for count in THREADS], colour)
        for colour, name in enumerate(("podium", LOOP))
    ]
    report.chart(line_chart("Threads, a stream for each", "threads", "µs for each launch, medians", drawn))


def _seconds_in_threads(
    kernel: podium.Kernel, streams: Sequence[podium.Stream], arguments: tuple[object, ...], launches: int
) -> float:
    """Launch so often in each stream, in a thread of its own; return the seconds from the first start to the last end.

    The threads read the clock: who waits for them would have to wait for the interpreter lock as well.
    """
    barrier, times = threading.Barrier(len(streams)), list[float]()

    def work(stream: podium.Stream) -> None:
        launch, handle = kernel[1, BLOCK], stream.handle
        a, b, c, n = arguments
        launch(a, b, c, n, stream=handle)
        barrier.wait()
        times.append(time.perf_counter())
        for _ in range(launches):
            launch(a, b, c, n, stream=handle)
        times.append(time.perf_counter())

    threads = [threading.Thread(target=work, args=(stream,)) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(times) - min(times)


if __name__ == "__main__":
    sys.exit(main())
