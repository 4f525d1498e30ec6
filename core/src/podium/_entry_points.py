"""The entry points of the installed distributions, read one distribution at a time.

`importlib.metadata` would do, but importing it takes longer than all the rest of choosing a driver, and one
distribution whose ``entry_points.txt`` does not parse makes its `entry_points` fail for all. So the metadata folders
beside the installed packages are read here. Whatever is not a plain folder, such as a zip file or the finder of another
import system, is still left to `importlib.metadata`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.machinery import PathFinder

from podium._record import record

__all__ = ["EntryPoint", "installed_entry_points"]

FILE = "entry_points.txt"

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_PIECE = 1 << 14


@record(frozen=True)
class EntryPoint:
    """A line ``name = value`` of a distribution's entry points; the value is empty if the line has no ``=``."""

    name: str
    value: str
    distribution: str
    version: str

    @property
    def module(self) -> str:
        """The module that the value names, without the extras that may follow it."""
        return self.value.partition("[")[0].strip()


def installed_entry_points(group: str) -> list[EntryPoint]:
    """Return the entry points of a group, in the order of `sys.path`.

    Of two copies of one distribution the first on `sys.path` counts, as it does for imports.
    """
    found: list[EntryPoint] = []
    seen: set[str] = set()
    for distribution, version, read in _distributions():
        if distribution and distribution in seen:
            continue
        seen.add(distribution)
        data = read()
        if group.encode() in data:
            owner, text = distribution or "(a distribution without a name)", data.decode("utf-8", "replace")
            found += [EntryPoint(name, value, owner, version) for name, value in _parse(text, group)]
    return found


# As `open` does it, but for half of what it asks the system: there are hundreds of these files, and few of interest.
def _read(folder: str) -> bytes:
    try:
        descriptor = os.open(f"{folder}{os.sep}{FILE}", _FLAGS)
    except OSError:
        return b""
    data = b""
    try:
        while len(piece := os.read(descriptor, _PIECE)) == _PIECE:
            data += piece
        return data + piece
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _distributions() -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    unusual = []
    for item in sys.path:
        if not isinstance(item, str):
            continue
        folder = item or os.curdir
        try:
            names = os.listdir(folder) if not folder.endswith(".egg") else None
        except (FileNotFoundError, PermissionError):
            continue
        except OSError:
            names = None
        if names is None:
            unusual.append(folder)
            continue
        for name in sorted(name for name in names if name.lower().endswith((".dist-info", ".egg-info"))):
            distribution, _, version = name.rpartition(".")[0].partition("-")
            if _is_name(distribution):  # not "~odium", which an interrupted upgrade by pip leaves
                yield _normalised(distribution), version.partition("-")[0], partial(_read, f"{folder}{os.sep}{name}")
    finders = [finder for finder in sys.meta_path if finder is not PathFinder and hasattr(finder, "find_distributions")]
    if unusual or finders:
        yield from _foreign(unusual, finders)


def _foreign(paths: list[str], finders: Iterable[object]) -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    from importlib.metadata import DistributionFinder

    for finder, context in [
        (PathFinder, DistributionFinder.Context(path=paths)),
        *((finder, DistributionFinder.Context()) for finder in finders),
    ]:
        try:
            for distribution in finder.find_distributions(context):  # type: ignore[attr-defined]
                name, version = distribution.metadata["Name"], distribution.version
                yield _normalised(name or ""), version or "", (distribution.read_text(FILE) or "").encode
        except Exception:  # a finder that is not podium's must not hide the backends of the others
            continue


def _is_name(text: str) -> bool:
    letters = text.replace("_", "").replace(".", "").replace("-", "")
    return letters.isascii() and letters.isalnum() and text[0].isalnum() and text[-1].isalnum()


def _normalised(name: str) -> str:
    name = name.replace("_", "-").replace(".", "-").lower()
    while "--" in name:
        name = name.replace("--", "-")
    return name


def _parse(text: str, group: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
        elif section == group and line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip() or line, value.strip()
