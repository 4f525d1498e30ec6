"""What all programs that measure have in common on the command line: parts, ``--quick``, ``--json``, ``--plot``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from podium._bench.report import Report

__all__ = ["add_options", "chosen_parts", "finish", "prints_json", "save"]

_STDOUT = "-"


def add_options(
    parser: argparse.ArgumentParser,
    parts: Mapping[str, str],
    *,
    json_file: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Declare the arguments of a program with these parts, which are described in a few words each.

    `json_file` and `plot` are what is written where nothing else is said.
    """
    listed = "; ".join(f"{name}: {summary}" for name, summary in parts.items())
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure, all by default. {listed}")
    parser.add_argument("--quick", action="store_true", help="fewer samples")
    parser.add_argument(
        "--json",
        nargs="?",
        const=_STDOUT,
        default=None if json_file is None else str(json_file),
        metavar="FILE",
        help="write the figures to a file; without one, print them and nothing else",
    )
    parser.add_argument("--plot", type=Path, default=plot, metavar="FILE", help="write a picture to a file, as SVG")


def chosen_parts(options: argparse.Namespace, parts: Mapping[str, str]) -> list[str]:
    """Return the parts to measure, in their own order.

    Raises ValueError for a part that there is not, and for files that cannot be written: before anything is measured.
    """
    if options.json in parts:  # after --json without a file argparse takes the next word for it
        options.parts.append(options.json)
        options.json = _STDOUT
    unknown = [name for name in options.parts if name not in parts]
    if unknown:
        raise ValueError(f"there is no part {', '.join(unknown)}; there are: {', '.join(parts)}")
    for option, file in (("--json", None if prints_json(options) else options.json), ("--plot", options.plot)):
        if file is not None and not Path(file).absolute().parent.is_dir():
            raise ValueError(f"{option} {file}: there is no folder {Path(file).absolute().parent}")
        if file is not None and Path(file).is_dir():
            raise ValueError(f"{option} {file}: that is a folder; name a file in it")
    return [name for name in parts if not options.parts or name in options.parts]


def prints_json(options: argparse.Namespace) -> bool:
    """Tell whether the figures are printed, and nothing else."""
    return bool(options.json == _STDOUT)


def save(report: Report, options: argparse.Namespace) -> None:
    """Write what a report has so far to the files that the options name."""
    report.write(None if options.json is None or prints_json(options) else Path(options.json), options.plot)


def finish(report: Report, options: argparse.Namespace) -> None:
    """End a report as the options say."""
    report.end()
    save(report, options)
    if prints_json(options):
        sys.stdout.write(json.dumps(report.as_json(), indent=2) + "\n")
