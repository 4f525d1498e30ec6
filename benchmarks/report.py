"""What a benchmark prints and keeps: tables in Markdown, figures in JSON, and targets beside what was found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Report"]


class Report:
    """The tables and the figures of one run."""

    def __init__(self, about: dict[str, Any]) -> None:
        self._about = about
        self._results: dict[str, Any] = {}
        self._targets: list[tuple[str, str, str, bool]] = []
        self.note("; ".join(f"{name} {value}" for name, value in about.items()))

    def note(self, text: str) -> None:
        """Print a paragraph."""
        print(f"\n{text}", flush=True)

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], figures: Any) -> None:
        """Print a table, each row as soon as it is there, and keep figures under its title."""
        print(f"\n### {title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
        for row in rows:
            print(f"| {' | '.join(row)} |", flush=True)
        self._results[title] = figures

    def target(self, what: str, limit: float, found: float, unit: str) -> None:
        """Note what was aimed at, at most `limit`, and what was found."""
        self._targets.append((what, f"at most {limit:g} {unit}", f"{found:.3g} {unit}", found <= limit))

    def end(self, path: Path) -> None:
        """Print the targets, and write all figures to a file."""
        rows = [(what, limit, found, "yes" if met else "**no**") for what, limit, found, met in self._targets]
        if rows:
            kept = [dict(zip(("what", "target", "found", "met"), row)) for row in self._targets]
            self.table("Targets", ("what", "target", "found", "met"), rows, kept)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"about": self._about, "results": self._results}, indent=2) + "\n")
