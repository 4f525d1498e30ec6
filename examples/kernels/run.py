"""Run the example kernels on the active backend, compare each with numpy, and time it: `run.py --help` says how."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass

from catalogue import EXAMPLES, Example, Work
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import podium

# A kernel is timed until it has taken this many seconds or runs.
SECONDS, MOST_RUNS = 0.3, 100

# Above this many operations for each byte of memory, a rate of operations says more than one of bytes.
BALANCE = 4


@dataclass(frozen=True)
class Row:
    """What came out for one example."""

    example: Example
    work: Work
    error: float
    seconds: float

    @property
    def right(self) -> bool:
        """Say whether the error is within the tolerance; one that is not a number is not."""
        return self.error <= self.example.tolerance

    @property
    def throughput(self) -> str:
        """The rate that limits the kernel: of memory, or of arithmetic."""
        if self.work.operations > BALANCE * self.work.bytes:
            return f"{self.work.operations / self.seconds / 1e9:.3g} GFLOP/s"
        return f"{self.work.bytes / self.seconds / 1e9:.3g} GB/s"


def measure(example: Example, size: str) -> Row:
    """Run an example once and check it, then time it."""
    work = example.prepare(example.sizes[size])
    work.run()
    error = example.check(work)
    for launch in work.launches:
        launch.kernel.warm_up()
    times: list[float] = []
    while len(times) < MOST_RUNS and sum(times) < SECONDS:
        start = time.perf_counter()
        work.run()
        podium.synchronize()
        times.append(time.perf_counter() - start)
    return Row(example, work, error, statistics.median(times))


def duration(seconds: float) -> str:
    """Write a time with three digits."""
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def table(rows: list[Row]) -> Table:
    """Lay out the results; an error is relative to the largest element, or the share of the elements that differ."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("kernel", "size", "error", "allowed", "time", "throughput"):
        made.add_column(column, no_wrap=True, justify="right" if column in ("time", "throughput") else "left")
    for row in rows:
        style = "" if row.right else "bold red"
        error = f"{row.error:.1e}" if row.error else "0"
        allowed = f"{row.example.tolerance:.0e}" if row.example.tolerance else "0"
        cells = (row.example.name, row.work.shape, error, allowed, duration(row.seconds), row.throughput)
        made.add_row(*cells, style=style)
    return made


def main() -> int:
    """Run what the command line asks for; return 1 if a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="KERNEL", help="which ones, by name; default: all")
    parser.add_argument("--backend", metavar="NAME", help="the backend, in place of the one that podium chooses")
    parser.add_argument("--size", choices=("small", "medium", "large"), default="medium", help="default: medium")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in EXAMPLES]
    if unknown:
        parser.error(f"there is no kernel {unknown[0]!r}; there are: {', '.join(EXAMPLES)}")
    if options.backend is not None:
        podium.set_active(options.backend)

    console = Console(highlight=False)
    driver = podium.driver.resolve()
    console.print(f"{driver.name}: {driver.devices()[driver.current_device()].name}", markup=False)
    rows = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        examples = [EXAMPLES[name] for name in options.names or EXAMPLES]
        task = progress.add_task("", total=len(examples))
        for example in examples:
            progress.update(task, description=example.name)
            rows.append(measure(example, options.size))
            progress.advance(task)
    console.print(table(rows))
    wrong = [row for row in rows if not row.right]
    for row in wrong:
        console.print(f"{row.example.name} is wrong: {row.error:.1e}, where {row.example.because}", markup=False)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
