"""``podium new-backend``: writes a distribution for a backend, to be filled in."""

from __future__ import annotations

import argparse
import keyword
import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

from podium._cli.console import Console
from podium._cli.failure import CommandError
from podium._entry_points import installed_entry_points
from podium._plugin_api import API_VERSION
from podium._plugins import GROUP
from podium._record import record
from podium._version import __version__

__all__ = ["add_arguments", "run"]

_SCAFFOLD = Path(__file__).parent / "scaffold"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_LONGEST = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("name", metavar="NAME", help="what users will write to choose the backend, such as mine")
    parser.add_argument("--into", metavar="FOLDER", default=os.curdir, help="where to make the folder podium-NAME (.)")


def run(options: argparse.Namespace) -> int:
    """Write the distribution into a new folder. Raises `CommandError` if it cannot have the name or the folder."""
    names = _Names.of(options.name)
    _refuse_taken(names)
    into = Path(options.into)
    if not into.is_dir():
        raise CommandError(f"{into} is no folder; make it first, or name another with --into", status=2)
    folder = into / names.distribution
    try:
        folder.mkdir()
    except FileExistsError:
        raise CommandError(
            f"{folder} is there already, and nothing is overwritten: remove it, or choose another place with --into"
        ) from None
    try:
        written = [_write(template, folder, names) for template in sorted(_SCAFFOLD.rglob("*.in"))]
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    console = Console()
    for path in sorted(written):
        console.line(str(path))
    console.line()
    console.line(f"Next: cd {folder}; pip install -e '.[test]'; podium doctor")
    console.line("Then follow podium's page Write a backend (docs/write-a-backend.md), step by step.")
    return 0


@record(frozen=True)
class _Names:
    """What a backend is called: by users, on the package index, in imports, and as the first part of its classes."""

    backend: str
    distribution: str
    package: str
    title: str

    @staticmethod
    def of(given: str) -> _Names:
        """Make the names of one that a user gave. Raises `CommandError` if it cannot be one."""
        if given.lower().startswith(("podium-", "podium_")):
            raise CommandError(f"{given!r} is the name of the distribution; leave out {given[:7]!r}", status=2)
        if not _NAME.fullmatch(given) or len(given) > _LONGEST:
            raise CommandError(
                f"{given!r} cannot be the name of a backend: a name has small letters, digits, and single hyphens or "
                f"underscores between them, begins with a letter, and has at most {_LONGEST} characters, such as mine",
                status=2,
            )
        backend = given.replace("-", "_")
        if keyword.iskeyword(backend):
            raise CommandError(f"{given!r} is a word of Python's own, so no backend can have this name", status=2)
        words = backend.split("_")
        title = "".join(word.capitalize() for word in words)
        return _Names(backend, f"podium-{'-'.join(words)}", f"podium_{backend}", title)


def _refuse_taken(names: _Names) -> None:
    """Raise `CommandError` if a backend or a package of the name is installed."""
    for entry in installed_entry_points(GROUP):
        if entry.name == names.backend:
            owner = f"{entry.distribution} {entry.version}".strip()
            raise CommandError(f"{owner} provides a backend {names.backend!r} here already: choose another name")
    if find_spec(names.package) is not None:
        raise CommandError(f"A package {names.package!r} is installed here already: choose another name")


def _write(template: Path, folder: Path, names: _Names) -> Path:
    parts = template.relative_to(_SCAFFOLD).with_suffix("").parts
    words = {
        "@API@": str(API_VERSION),
        "@CLASS@": names.title,
        "@DISTRIBUTION@": names.distribution,
        "@NAME@": names.backend,
        "@PACKAGE@": names.package,
        "@PODIUM@": ".".join(__version__.split(".")[:2]),
    }
    text = template.read_text(encoding="utf-8")
    for word, value in words.items():
        text = text.replace(word, value)
    path = folder.joinpath(*(names.package if part == "PACKAGE" else part.replace("dot_", ".", 1) for part in parts))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
