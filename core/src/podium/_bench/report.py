"""What a benchmark shows and keeps: tables, figures as JSON, charts, and targets beside what was found."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from podium._bench.chart import Chart, svg

__all__ = ["Markdown", "Report", "Show", "Silent"]

SCHEMA = 1


class Show(Protocol):
    """Where a report is shown while it is made."""

    def note(self, text: str) -> None:
        """Show a paragraph."""

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Show a table; rows may still have to be measured."""


class Markdown:
    """Shows a report on standard output, in Markdown, each row as soon as it is there."""

    def note(self, text: str) -> None:
        """Print a paragraph."""
        self._print(f"\n{text}")

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print a table."""
        self._print(f"\n### {title}\n")
        self._row(columns)
        self._print(f"|{'---|' * len(columns)}")
        for row in rows:
            self._row(row)

    def _row(self, cells: Sequence[str]) -> None:
        self._print(f"| {' | '.join(cells)} |".replace("\n", " "))

    @staticmethod
    def _print(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


class Silent:
    """Shows nothing."""

    def note(self, text: str) -> None:
        """Show nothing."""

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Measure the rows, and show nothing."""
        for _ in rows:
            pass


class Report:
    """The tables, the figures and the charts of one run; `about` says on what machine, with what versions."""

    def __init__(self, about: dict[str, Any], show: Show | None = None) -> None:
        self._about = about
        self._show: Show = Markdown() if show is None else show
        self._results: dict[str, Any] = {}
        self._targets: list[dict[str, Any]] = []
        self._charts: list[Chart] = []
        self.note("; ".join(f"{name} {value}" for name, value in about.items()))

    def note(self, text: str) -> None:
        """Show a paragraph."""
        self._show.note(text)

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], figures: Any) -> None:
        """Show a table, each row as soon as it is there, and keep figures under its title."""
        self._show.table(title, columns, rows)
        self._results[title] = figures

    def chart(self, chart: Chart) -> None:
        """Keep a chart for the picture."""
        self._charts.append(chart)

    def target(self, what: str, limit: float, found: float, unit: str) -> None:
        """Note what was aimed at, at most `limit`, and what was found."""
        met = found <= limit
        self._targets.append({"what": what, "at_most": limit, "found": found, "unit": unit, "met": met})

    def as_json(self) -> dict[str, Any]:
        """Return everything but the charts as what JSON can hold.

        ``schema`` is 1, ``about`` says where it was measured, ``results`` has the figures by the titles of the tables,
        ``targets`` is a list of ``what``, ``at_most``, ``found``, ``unit`` and ``met``.
        """
        return {"schema": SCHEMA, "about": self._about, "results": self._results, "targets": self._targets}

    def write(self, json_file: Path | None, plot: Path | None) -> None:
        """Write all figures to a file, and the charts to another, so far as they are."""
        if json_file is not None:
            json_file.write_text(json.dumps(self.as_json(), indent=2) + "\n", encoding="utf-8")
        if plot is not None and self._charts:
            plot.write_text(svg(self._charts), encoding="utf-8")

    def end(self) -> None:
        """Show what was aimed at beside what was found."""
        if self._targets:
            rows = [
                (
                    each["what"],
                    f"at most {each['at_most']:g} {each['unit']}",
                    f"{each['found']:.3g} {each['unit']}",
                    "yes" if each["met"] else "**no**",
                )
                for each in self._targets
            ]
            self._show.table("Targets", ("what", "target", "found", "met"), rows)
