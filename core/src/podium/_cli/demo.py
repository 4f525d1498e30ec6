"""``podium demo``: two kernels on the device that podium chooses, checked against numpy and timed."""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podium._cli.backend_report import answer_of, show_backends, survey
from podium._cli.console import Console
from podium._cli.failure import CommandError, need_numpy
from podium._cli.quantity import duration_text
from podium._cli.trial import KERNELS
from podium._limits import find_device
from podium.errors import PodiumWarning

if TYPE_CHECKING:
    from podium._kernel import Kernel
    from podium._memory import Array

__all__ = ["add_arguments", "run"]

_ELEMENTS = 1 << 22
_ROWS, _COLUMNS, _INNER = 250, 270, 330  # of C = A * B; none is a multiple of the tile
_TILE = 16
_SECONDS = 0.5
_MOST_LAUNCHES = 100


@dataclass(frozen=True)
class Demonstration:
    """A kernel to show: its launch, the array that it writes, what must be in it after one launch, and its work.

    `tolerance` bounds the difference, relative to the largest element; `work` is the unit's count for each launch.
    """

    title: str
    kernel: Kernel
    launch: Callable[[], None]
    output: Array
    expected: Any
    tolerance: float
    work: float
    unit: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("--backend", metavar="NAME", help="the backend, in place of the one that podium chooses")


def run(options: argparse.Namespace) -> int:
    """Show the backends, run both kernels, and say "verified". Raises `CommandError` if a result is wrong."""
    import podium

    need_numpy("podium demo")
    console = Console()
    chosen = podium.use(options.backend) if options.backend is not None else contextlib.nullcontext()
    with chosen:
        with warnings.catch_warnings():
            # What it warns of stands in the table.
            warnings.simplefilter("ignore", PodiumWarning)
            reports, choice = survey(detailed=False)
        show_backends(console, reports, choice)
        driver = podium.driver.resolve()
        device = answer_of(driver, "devices()", lambda: find_device("demo", driver, driver.current_device()))
        console.line(f"device: {driver.name} {device.index}, {device.name}, target {device.target}")
        for prepare in (_saxpy, _matmul):
            _demonstrate(console, prepare(podium))
    console.line()
    console.line("verified", style="bold green")
    return 0


def _saxpy(podium: Any) -> Demonstration:
    import numpy

    random = numpy.random.default_rng(0)
    x, y = (random.standard_normal(_ELEMENTS, dtype=numpy.float32) for _ in range(2))
    kernel = podium.kernel(KERNELS / "saxpy.cu")
    a, on_device_x, on_device_y = 2.5, podium.asarray(x), podium.asarray(y)
    return Demonstration(
        title=f"saxpy, {_ELEMENTS} elements",
        kernel=kernel,
        launch=lambda: kernel[-(-_ELEMENTS // 256), 256](_ELEMENTS, a, on_device_x, on_device_y),
        output=on_device_y,
        expected=a * x.astype(numpy.float64) + y,
        tolerance=1e-6,
        work=3 * x.nbytes / 1e9,
        unit="GB/s",
    )


def _matmul(podium: Any) -> Demonstration:
    import numpy

    random = numpy.random.default_rng(1)
    a = random.standard_normal((_ROWS, _INNER), dtype=numpy.float32)
    b = random.standard_normal((_INNER, _COLUMNS), dtype=numpy.float32)
    kernel = podium.kernel(KERNELS / "matmul.cu")
    on_device_a, on_device_b, product = podium.asarray(a), podium.asarray(b), podium.empty((_ROWS, _COLUMNS))
    grid = (-(-_COLUMNS // _TILE), -(-_ROWS // _TILE))
    return Demonstration(
        title=f"tiled matrix product, {_ROWS}x{_INNER} times {_INNER}x{_COLUMNS}",
        kernel=kernel,
        launch=lambda: kernel[grid, (_TILE, _TILE)](on_device_a, on_device_b, product, _ROWS, _COLUMNS, _INNER),
        output=product,
        expected=a.astype(numpy.float64) @ b,
        tolerance=1e-5,
        work=2 * _ROWS * _COLUMNS * _INNER / 1e9,
        unit="GFLOP/s",
    )


def _demonstrate(console: Console, shown: Demonstration) -> None:
    import podium

    console.heading(shown.title)
    with console.progress(f"Compiling {shown.kernel.name}"):
        start = time.perf_counter()
        shown.launch()
        podium.synchronize()
        cold = time.perf_counter() - start
    level = shown.kernel.level
    error = _error(shown)
    console.line(f"first launch, with compiling and loading: {duration_text(cold)}, {level} launcher")
    console.line(f"largest difference from numpy: {error:.1e} of the largest element")
    if not error <= shown.tolerance:  # a NaN is wrong, too
        raise CommandError(f"{shown.title}: the result is wrong: {error:.1e} is more than {shown.tolerance:.0e}")
    before = _median(shown.launch) if level == "interpreted" else None
    with console.progress("Waiting for the generated launcher"):
        shown.kernel.warm_up()
    if before is not None:
        _tell(console, shown, level, before)
    if before is None or shown.kernel.level != level:
        _tell(console, shown, shown.kernel.level, _median(shown.launch))


def _tell(console: Console, shown: Demonstration, level: str, seconds: float) -> None:
    rate = f"{shown.work / seconds:.3g} {shown.unit}"
    console.line(f"warm launch, {level} launcher: {duration_text(seconds)} in the median, {rate}")


def _error(shown: Demonstration) -> float:
    import numpy

    difference = numpy.abs(shown.output.numpy() - shown.expected).max()
    return float(difference / numpy.abs(shown.expected).max())


def _median(launch: Callable[[], None]) -> float:
    import podium

    times: list[float] = []
    while len(times) < _MOST_LAUNCHES and sum(times) < _SECONDS:
        start = time.perf_counter()
        launch()
        podium.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
