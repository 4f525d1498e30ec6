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

from podium._bench.room import block_in, elements_in, tile_in
from podium._cli.backend_report import answer_of, show_backends, survey
from podium._cli.console import Console
from podium._cli.failure import CommandError, need_numpy
from podium._cli.quantity import duration_text, shape_text
from podium._cli.trial import KERNELS
from podium._limits import find_device
from podium.errors import PodiumWarning

if TYPE_CHECKING:
    from podium._kernel import Kernel
    from podium._memory import Array
    from podium._target import Device

__all__ = ["add_arguments", "run"]

_ELEMENTS = 1 << 22
_ROWS, _COLUMNS, _INNER = 250, 270, 330  # of C = A * B; none is a multiple of the tile
_BLOCK = 256
_MATRICES = "tiled matrix product"
_SECONDS = 0.5
_MOST_LAUNCHES = 100


@dataclass(frozen=True)
class Demonstration:
    """A kernel to show: its launch, the array that it writes, what must be in it after one launch, and its work.

    `threads` are those of a block. `tolerance` bounds the difference, relative to the largest element; `work` is the
    unit's count for each launch.
    """

    title: str
    kernel: Kernel
    launch: Callable[[], None]
    threads: int
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
        _demonstrate(console, device, _saxpy)
        if (lack := _lack_for_matmul(device)) is None:
            _demonstrate(console, device, _matmul)
        else:
            console.heading(f"{_MATRICES}: left out")
            console.line(lack)
    console.line()
    console.line("verified", style="bold green")
    return 0


def _saxpy(device: Device, threads: int) -> Demonstration:
    import numpy

    import podium

    block = block_in(device, min(_BLOCK, threads))
    n = elements_in(device, _ELEMENTS, block, 2 * 4)
    random = numpy.random.default_rng(0)
    x, y = (random.standard_normal(n, dtype=numpy.float32) for _ in range(2))
    kernel = podium.kernel(KERNELS / "saxpy.cu")
    a, on_device_x, on_device_y = 2.5, podium.asarray(x), podium.asarray(y)
    return Demonstration(
        title=f"saxpy, {n} elements",
        kernel=kernel,
        launch=lambda: kernel[-(-n // block), block](n, a, on_device_x, on_device_y),
        threads=block,
        output=on_device_y,
        expected=a * x.astype(numpy.float64) + y,
        tolerance=1e-6,
        work=3 * x.nbytes / 1e9,
        unit="GB/s",
    )


def _tile(device: Device, threads: int) -> int | None:
    return tile_in(device, threads, _ROWS, _COLUMNS, 2 * 4)


def _lack_for_matmul(device: Device) -> str | None:
    """Say what a device has too little of for the tiled matrix product; None if it fits."""
    if _tile(device, device.max_threads) is None:
        block = f"blocks of at most {device.max_threads} threads and {shape_text(device.max_block)}"
        grid = f"grids of at most {shape_text(device.max_grid)} blocks"
        return f"no tile fits: the device has {device.max_shared} bytes of shared memory, {block}, {grid}"
    size = 4 * (_ROWS * _INNER + _INNER * _COLUMNS + _ROWS * _COLUMNS)
    return f"it needs {size} bytes, and the device has {device.memory}" if size > device.memory // 2 else None


def _matmul(device: Device, threads: int) -> Demonstration:
    import numpy

    import podium

    tile = _tile(device, threads)
    if tile is None:
        raise CommandError(f"{_MATRICES}: this kernel takes blocks of {threads} threads on this device: no tile fits")
    random = numpy.random.default_rng(1)
    a = random.standard_normal((_ROWS, _INNER), dtype=numpy.float32)
    b = random.standard_normal((_INNER, _COLUMNS), dtype=numpy.float32)
    kernel = podium.kernel(KERNELS / "matmul.cu", defines={"TILE": tile})
    on_device_a, on_device_b, product = podium.asarray(a), podium.asarray(b), podium.empty((_ROWS, _COLUMNS))
    grid = (-(-_COLUMNS // tile), -(-_ROWS // tile))
    return Demonstration(
        title=f"{_MATRICES}, {_ROWS}x{_INNER} times {_INNER}x{_COLUMNS}",
        kernel=kernel,
        launch=lambda: kernel[grid, (tile, tile)](on_device_a, on_device_b, product, _ROWS, _COLUMNS, _INNER),
        threads=tile * tile,
        output=product,
        expected=a.astype(numpy.float64) @ b,
        tolerance=1e-5,
        work=2 * _ROWS * _COLUMNS * _INNER / 1e9,
        unit="GFLOP/s",
    )


def _demonstrate(console: Console, device: Device, prepare: Callable[[Device, int], Demonstration]) -> None:
    import podium

    shown = prepare(device, device.max_threads)
    console.heading(shown.title)
    with console.progress(f"Compiling {shown.kernel.name}"):
        start = time.perf_counter()
        most = shown.kernel.attributes(device.index)["max_threads"]
        if most < shown.threads:  # fewer than of other kernels, which is known when it is loaded
            shown = prepare(device, most)
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
