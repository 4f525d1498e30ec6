"""Launches on an NVIDIA GPU, beside the loop in C over the call of the driver and beside peers. See README.md."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import first_launch
from driver_loop import DriverLoop
from launch_peers import PEERS, Arguments
from pairing import Effort, Times, take_turns
from report import Report

import podium

HERE = Path(__file__).parent
SOURCES = HERE / "gpu"
SECTIONS = ("launch", "arrays", "growth", "threads", "first")

LAUNCHES = 50
"""Launches in one sample: few enough that the driver's queue never fills."""

BLOCK = 32
LOOP = "C loop over cuLaunchKernel"
SUBSCRIPT, BOUND, RUN = "podium kernel[grid, block](...)", "podium bound launch", "podium kernel.run(...)"
INTERPRETED = "podium, interpreted level, bound launch"
TARGETS = {SUBSCRIPT: 1.10, BOUND: 1.08}


def main() -> int:
    """Measure what is asked for, print tables, write JSON and a plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "gpu.json", help="the JSON file")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"there is no section {', '.join(sorted(unknown))}")
    os.environ["PODIUM_BACKEND"] = "nvidia"
    effort = Effort(rounds=40 if options.quick else 400, sample_s=0, most_s=120)
    measure: dict[str, Callable[[Report, Effort], None]] = {
        "launch": lambda report, effort: measure_launch(report, effort, options.output.with_suffix(".svg")),
        "arrays": measure_arrays,
        "growth": measure_growth,
        "threads": measure_threads,
        "first": lambda report, effort: first_launch.measure(report, 3 if options.quick else 9),
    }
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PODIUM_CACHE_DIR"] = folder
        report = Report(_about())
        for section in SECTIONS:
            if not options.sections or section in options.sections:
                measure[section](report, effort)
        report.end(options.output)
    return 0


def _about() -> dict[str, object]:
    driver = podium.driver.get("nvidia")
    return {
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "device": driver.devices()[0].name,
        **driver.versions(),
        "cores": os.cpu_count(),
        "podium": podium.__version__,
    }


def add_kernel(level: str = "generated") -> podium.Kernel:
    """Declare the kernel with its launcher pinned to a level, and make it ready."""
    os.environ["PODIUM_LAUNCHER"] = level
    kernel = podium.kernel(SOURCES / "kernels.cu", "add")
    kernel.warm_up()
    return kernel


def repeated(launch: Callable[..., object], *arguments: object) -> Callable[[], None]:
    """Make a function that launches `LAUNCHES` times."""

    def way() -> None:
        for _ in range(LAUNCHES):
            launch(*arguments)

    return way


def bound(launch: Callable[..., object], a: object, b: object, c: object, n: int) -> Callable[[], None]:
    """Make a function that launches as users write it, with the configuration kept."""

    def way() -> None:
        for _ in range(LAUNCHES):
            launch(a, b, c, n)

    return way


def subscripted(kernel: podium.Kernel, a: object, b: object, c: object, n: int) -> Callable[[], None]:
    """Make a function that launches as users write it, the configuration said each time."""

    def way() -> None:
        for _ in range(LAUNCHES):
            kernel[1, BLOCK](a, b, c, n)

    return way


def in_turn(ways: Mapping[str, Callable[[], object]], effort: Effort) -> Times:
    """Time ways that launch `LAUNCHES` times a call."""
    return take_turns(ways, effort, dict.fromkeys(ways, LAUNCHES), podium.synchronize)


def measure_launch(report: Report, effort: Effort, plot: Path) -> None:
    """Measure one launch with three tensors of torch and an int, on its current stream, all checks on."""
    arguments = Arguments.of_torch()
    tensors, n = arguments.tensors, arguments.n
    kernel, interpreted = add_kernel(), add_kernel("interpreted")
    loop = DriverLoop(kernel, arguments.addresses, n, arguments.stream, BLOCK)
    run, function = kernel.run, kernel.function
    ways: dict[str, Callable[[], object]] = {
        LOOP: lambda: loop(LAUNCHES),
        SUBSCRIPT: subscripted(kernel, *tensors, n),
        BOUND: bound(kernel[1, BLOCK], *tensors, n),
        RUN: repeated(run, 1, 1, 1, arguments.stream, function, *tensors, n),
        INTERPRETED: bound(interpreted[1, BLOCK], *tensors, n),
    }
    missing = []
    for name, make in PEERS.items():
        try:
            launches = make(SOURCES, arguments, BLOCK)
            for launch in launches.values():
                launch()
        except (ImportError, AttributeError) as error:  # not there, or for another version of numpy
            missing.append(f"{name} ({error})")
        else:
            ways |= {what: repeated(launch) for what, launch in launches.items()}
    times = in_turn(ways, effort)
    rows = []
    for way in ways:
        ratio = times.ratio(way, LOOP)
        beside = 1e6 * statistics.median(a - b for a, b in zip(times.samples[way], times.samples[LOOP]))
        rows.append(
            (way, f"{1e6 * times.median(way):.2f}", f"{1e6 * times.least(way):.2f}", str(ratio), f"{beside:.2f}")
        )
        if way in TARGETS:
            report.target(f"{way} / {LOOP}", TARGETS[way], ratio.median, "times")
    columns = ("one launch, three tensors and an int", "median (µs)", "smallest (µs)", "C loop = 1", "beside it (µs)")
    report.table("One launch", columns, rows, times.figures())
    if missing:
        report.note(f"Not there, so not measured: {'; '.join(missing)}.")
    _plot(plot, {way: 1e6 * times.median(way) for way in ways})


def _plot(path: Path, microseconds: Mapping[str, float]) -> None:
    try:
        from matplotlib import pyplot
    except ImportError:
        return
    figure, axes = pyplot.subplots(figsize=(8, 0.4 * len(microseconds) + 1))
    names = list(microseconds)[::-1]
    colors = ["tab:orange" if name.startswith("podium") else "tab:gray" for name in names]
    axes.barh(names, [microseconds[name] for name in names], color=colors)
    axes.axvline(microseconds[LOOP], color="black", linewidth=0.8)
    axes.set_xlabel("µs for one launch (median)")
    axes.set_xscale("log")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def measure_arrays(report: Report, effort: Effort) -> None:
    """Measure bound launches with the arrays of other libraries, beside those with torch's."""
    arguments = Arguments.of_torch()
    kernel = add_kernel()
    ways = {"torch": bound(kernel[1, BLOCK], *arguments.tensors, arguments.n)}
    a, b, c = arguments.addresses
    ways["addresses, as ints"] = bound(kernel[1, BLOCK], a, b, c, arguments.n)
    for name, arrays in arguments.of_libraries().items():
        ways[name] = bound(kernel[1, BLOCK], *arrays, arguments.n)
    times = in_turn(ways, effort)
    rows = [
        (way, f"{1e6 * times.median(way):.2f}", f"{1e9 * (times.median(way) - times.median('torch')):.0f}")
        for way in ways
    ]
    report.table("Arrays of other libraries", ("arrays", "median (µs)", "beyond torch (ns)"), rows, times.figures())


def measure_growth(report: Report, effort: Effort) -> None:
    """Measure how launches grow with the number of their arguments, beside the loop in C with as many."""
    arguments = Arguments.of_torch()
    os.environ["PODIUM_LAUNCHER"] = "generated"
    rows, figures = [], {}
    for kind, value, type in (("ints", 7, "int"), ("tensors", arguments.tensors[0], "float*")):
        for count in (0, 1, 4, 16, 58, 256):
            parameters = ", ".join(f"{type} x{index}" for index in range(count))
            kernel = podium.kernel(f'extern "C" __global__ void take({parameters}) {{}}')
            kernel.warm_up()
            values = (value,) * count
            addresses = tuple(7 if kind == "ints" else arguments.addresses[0] for _ in range(count))
            loop = DriverLoop(kernel, addresses, None, arguments.stream, BLOCK)
            ways: dict[str, Callable[[], object]] = {
                LOOP: lambda loop=loop: loop(LAUNCHES),  # type: ignore[misc]
                BOUND: repeated(kernel[1, BLOCK], *values),
            }
            times = in_turn(ways, Effort(max(20, effort.rounds // 4), 0, effort.most_s))
            ours, theirs = times.median(BOUND), times.median(LOOP)
            rows.append((f"{count} {kind}", f"{1e6 * ours:.2f}", f"{1e6 * theirs:.2f}", f"{1e9 * (ours - theirs):.0f}"))
            figures[rows[-1][0]] = times.figures()
    columns = ("arguments", "podium (µs)", "C loop (µs)", "beside it (ns)")
    report.table("Growth with arguments", columns, rows, figures)


def measure_threads(report: Report, effort: Effort) -> None:
    """Measure launches from several threads, a stream for each, beside the loop in C in as many threads."""
    import threading
    import time

    arguments = Arguments.of_torch()
    kernel = add_kernel()
    (a, b, c), n = arguments.tensors, arguments.n
    launches = 40 * LAUNCHES
    rows, figures = [], {}
    for count in (1, 2, 4, 8):
        streams = [podium.Stream() for _ in range(count)]
        loop = DriverLoop(kernel, arguments.addresses, arguments.n, arguments.stream, BLOCK)
        ours, theirs = [], []
        for _ in range(max(5, effort.rounds // 20)):
            podium.synchronize()
            theirs.append(loop.in_threads([stream.handle for stream in streams], launches) / count)
            podium.synchronize()
            barrier = threading.Barrier(count + 1)

            def work(stream: podium.Stream, barrier: threading.Barrier = barrier) -> None:
                launch, handle = kernel[1, BLOCK], stream.handle
                launch(a, b, c, n, stream=handle)
                barrier.wait()
                for _ in range(launches):
                    launch(a, b, c, n, stream=handle)

            threads = [threading.Thread(target=work, args=(stream,)) for stream in streams]
            for thread in threads:
                thread.start()
            barrier.wait()
            start = time.perf_counter()
            for thread in threads:
                thread.join()
            ours.append((time.perf_counter() - start) / launches / count)
        mine, its = statistics.median(ours), statistics.median(theirs)
        rows.append((f"{count}", f"{1e6 * mine:.2f}", f"{1e6 * its:.2f}", f"{mine / its:.2f}"))
        figures[f"{count} threads"] = {"podium_s": ours, "loop_s": theirs}
    columns = ("threads", "podium (µs per launch)", "C loop (µs per launch)", "ratio")
    report.table("Threads, a stream for each", columns, rows, figures)


if __name__ == "__main__":
    sys.exit(main())
