"""How launches grow with the number of their arguments, beside the driver call with as many."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from podium._bench.chart import Line, line_chart
from podium._bench.driver_loop import driver_loop
from podium._bench.launches import BLOCK, make_ready
from podium._bench.room import block_in
from podium._bench.turns import Effort, take_turns
from podium._bench.ways import repeated
from podium._limits import find_device
from podium._memory import empty
from podium._module import module
from podium._synchronize import synchronize

if TYPE_CHECKING:
    from podium._bench.progress import Progress
    from podium._bench.report import Report
    from podium.backend import Driver

__all__ = ["COUNTS", "measure_growth"]

COUNTS = (0, 1, 4, 16, 58)
_LAUNCHES = 20
_TYPES = {"ints": "int", "arrays": "float*"}
_COLUMNS = ("arguments", "ints\n(µs)", "beside call\n(ns)", "arrays\n(µs)", "beside call\n(ns)")


def measure_growth(report: Report, driver: Driver, effort: Effort, progress: Progress) -> None:
    """Measure bound launches with 0 to 58 ints, and with as many arrays."""
    progress.begin("0 to 58 arguments", effort.rounds)
    device = driver.current_device()
    stream = driver.current_stream(device)
    limits = find_device("the bench", driver, device)
    block = block_in(limits, BLOCK)
    counts = [count for count in COUNTS if 8 * count <= limits.max_parameter_bytes]
    arrays = [empty(1, driver=driver) for _ in range(max(counts))]
    kernels = module("\n".join(_source(kind, count) for kind in _TYPES for count in counts))
    ways: dict[str, Callable[[], object]] = {}
    for kind in _TYPES:
        for count in counts:
            kernel = kernels[f"{kind}_{count}"]
            reason = make_ready(kernel, "generated")
            if reason is not None:
                what = "generated launches"
                report.table("Arguments", _COLUMNS, [(what, "", "", "", reason)], {what: {"reason": reason}})
                return
            values = [7] * count if kind == "ints" else arrays[:count]
            numbers = [7] * count if kind == "ints" else [array.ptr for array in arrays[:count]]
            ways[f"{count} {kind}"] = repeated(kernel[1, block], _LAUNCHES, *values)
            ways[_call(count, kind)] = driver_loop(kernel, block, device, stream, numbers, _LAUNCHES)
    loops = dict.fromkeys(ways, _LAUNCHES)
    calls = [_call(count, kind) for kind in _TYPES for count in counts]
    settle = partial(synchronize, device, driver=driver)
    times = take_turns(ways, effort, loops, settle, progress.advance, clocked=calls)
    rows = []
    for count in counts:
        row = [f"{count}"]
        for kind in _TYPES:
            name = f"{count} {kind}"
            row += [f"{1e6 * times.median(name):.2f}", f"{1e9 * times.beside(name, _call(count, kind)):.0f}"]
        rows.append(row)
    report.table("Arguments", _COLUMNS, rows, times.figures())
    samples = len(next(iter(times.samples.values())))
    report.note(f"Medians of {samples} samples of each, in turn; one is {_LAUNCHES} launches.")
    if len(counts) < len(COUNTS):
        most = limits.max_parameter_bytes
        report.note(f"More are left out: the device takes {most} bytes of arguments.")
    lines = []
    for colour, kind in enumerate(_TYPES):
        lines.append(Line(kind, [(count, 1e6 * times.median(f"{count} {kind}")) for count in counts], colour))
        called = [(count, 1e6 * times.median(_call(count, kind))) for count in counts]
        lines.append(Line(f"driver call, {kind}", called, colour, dashed=True))
    report.chart(line_chart(f"Bound launches with 0 to {max(counts)} arguments", "arguments", "µs, medians", lines))


def _call(count: int, kind: str) -> str:
    return f"{count} {kind}, driver call"


def _source(kind: str, count: int) -> str:
    parameters = ", ".join(f"{_TYPES[kind]} x{index}" for index in range(count))
    return f'extern "C" __global__ void {kind}_{count}({parameters}) {{}}'
