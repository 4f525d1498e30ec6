"""``podium bench``: what launches, start and copies cost on this machine."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterable, Sequence

from podium._bench.machine import about
from podium._bench.report import Report
from podium._bench.suite import PARTS, measure_parts, reservations
from podium._bench.surface import add_options, chosen_parts, finish, prints_json
from podium._cli.backend_report import answer_of
from podium._cli.console import Console
from podium._cli.failure import CommandError

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    add_options(parser, PARTS)
    parser.add_argument("--backend", metavar="NAME", help="the backend, in place of the one that podium chooses")


def run(options: argparse.Namespace) -> int:
    """Measure, then print tables or JSON, and draw what is asked for."""
    import podium

    try:
        parts = chosen_parts(options, PARTS)
    except ValueError as error:
        raise CommandError(str(error), status=2) from None
    watcher = Console(sys.stderr)
    shown = _Shown()
    chosen = podium.use(options.backend) if options.backend is not None else contextlib.nullcontext()
    with chosen:
        driver = podium.driver.resolve()
        machine = answer_of(driver, "describing its device", lambda: about(driver))
        report = Report(machine, shown)
        for text in reservations(machine):
            report.note(f"Note: {text}.")
        with watcher.bar(len(parts)) as bar:
            measure_parts(report, driver, parts, bar, backend=options.backend, quick=options.quick)
    try:
        finish(report, options)
    finally:  # whoever reads the tables may have gone, and a file may be in the way: neither costs the other
        if not prints_json(options):
            shown.print(Console())
    return 0


class _Shown:
    """Keeps what a report shows, to be printed when the bar on the same terminal is gone."""

    def __init__(self) -> None:
        self._kept: list[Callable[[Console], None]] = []

    def note(self, text: str) -> None:
        """Keep a paragraph."""
        self._kept.append(lambda console: console.line(text))

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Keep a table."""
        measured = list(rows)

        def show(console: Console) -> None:
            console.heading(title)
            console.table(columns, measured)

        self._kept.append(show)

    def print(self, console: Console) -> None:
        """Print everything."""
        for show in self._kept:
            show(console)
