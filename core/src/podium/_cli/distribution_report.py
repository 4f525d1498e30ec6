"""Installed distributions whose metadata are damaged, so that what they provide may not be what is shown."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["DistributionReport", "distribution_reports"]

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?", re.IGNORECASE)
_NEEDS_PODIUM = re.compile(r"^Requires-Dist: *podium *($|[^\w.-])", re.IGNORECASE | re.MULTILINE)
_GROUP = re.compile(r"^[ \t]*\[[ \t]*podium[ \t]*\][ \t]*$", re.MULTILINE)
_ENTRY = re.compile(r"[^=]*\w[^=]*=.*\w.*")


@dataclass(frozen=True)
class DistributionReport:
    """A damaged one: what its metadata folder is called, where that is, and what is wrong."""

    name: str
    folder: str
    problem: str


def distribution_reports() -> list[DistributionReport]:
    """Look at what stands on `sys.path`, in folders: at distributions with backends and those that need podium."""
    reports = []
    for folder in dict.fromkeys(item or os.curdir for item in sys.path if isinstance(item, str)):
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info")))
        except OSError:  # no folder, and so not looked at for backends here
            continue
        known: dict[str, str] = {}
        for name in names:
            report = _look(folder, name, known)
            if report is not None:
                reports.append(DistributionReport(name, folder, report))
    return reports


def _look(folder: str, name: str, known: dict[str, str]) -> str | None:
    path = os.path.join(folder, name)
    entry_points, unreadable = _read(os.path.join(path, "entry_points.txt"))
    metadata, _ = _read(os.path.join(path, "PKG-INFO" if name.endswith(".egg-info") else "METADATA"))
    provides = _GROUP.search(entry_points or "") is not None
    distribution = name.partition("-")[0]
    if not provides and not _NEEDS_PODIUM.search(metadata or ""):
        return None
    if not _NAME.fullmatch(distribution):
        return "it is what an interrupted installation has left, and counts as none. Remove it"
    twin = known.setdefault(re.sub(r"[-_.]+", "-", distribution).lower(), name)
    if twin != name:
        return f"{twin} is there, too, so its version may be either. Install that distribution again"
    return next(_problems(path, entry_points, unreadable, metadata, provides), None)


def _problems(
    path: str, entry_points: str | None, unreadable: str | None, metadata: str | None, provides: bool
) -> Iterator[str]:
    if unreadable is not None:
        yield f"its entry_points.txt cannot be read ({unreadable}), so its backends are not seen. Install it again"
    elif entry_points is None and "entry_points.txt" in (_read(os.path.join(path, "RECORD"))[0] or ""):
        yield "its entry_points.txt is gone, so its backends are not seen. Install it again"
    elif entry_points is not None and (line := _malformed(entry_points)) is not None:
        yield f"its entry_points.txt has the line {line!r}, which names no entry point. Install it again"
    elif provides and not metadata:
        yield "its metadata are gone, so it can be neither upgraded nor removed. Install it again"


def _read(path: str) -> tuple[str | None, str | None]:
    """Return the text of a file, None if it is not there; and why it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(), None
    except FileNotFoundError:
        return None, None
    except (OSError, UnicodeDecodeError) as error:
        return None, str(error)


def _malformed(entry_points: str) -> str | None:
    """Return the first line that is neither the head of a section nor an entry point in one."""
    is_in_section = False
    for line in map(str.strip, entry_points.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            is_in_section = True
        elif line and not line.startswith(("#", ";")) and not (is_in_section and _ENTRY.fullmatch(line)):
            return line
    return None
