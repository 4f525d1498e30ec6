"""What the programs have in common: the same words on the command line, a cache of their own, one report."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from podium._bench.report import Markdown, Report, Silent
from podium._bench.surface import add_options, chosen_parts, finish, prints_json, save
from podium.errors import PodiumError

__all__ = ["Program"]

RESULTS = Path(__file__).parent / "results"


class Program:
    """A program that measures parts; `parts` says in a few words what each is."""

    def __init__(self, description: str | None, name: str, parts: Mapping[str, str]) -> None:
        self._parts = parts
        self.parser = argparse.ArgumentParser(description=description)
        add_options(self.parser, parts, json_file=RESULTS / f"{name}.json", plot=RESULTS / f"{name}.svg")

    def parse(self) -> argparse.Namespace:
        """Read the command line."""
        options = self.parser.parse_args()
        RESULTS.mkdir(exist_ok=True)
        try:
            self._chosen = chosen_parts(options, self._parts)
        except ValueError as error:
            self.parser.error(str(error))
        return options

    def run(
        self,
        options: argparse.Namespace,
        about: Callable[[], dict[str, Any]],
        measure: Mapping[str, Callable[[Report], object]],
    ) -> None:
        """Measure the parts that are asked for, with an empty cache; print, and write JSON and a picture."""
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PODIUM_CACHE_DIR"] = folder
            try:
                machine = about()
            except PodiumError as error:  # such as that there is no device
                raise SystemExit(f"{self.parser.prog}: {error}") from None
            report = Report(machine, Silent() if prints_json(options) else Markdown())
            for part in self._chosen:
                measure[part](report)
                save(report, options)  # so that a run that is ended before its end leaves something
            finish(report, options)
