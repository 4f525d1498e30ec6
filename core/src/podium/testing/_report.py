"""The report of the conformance suite: for each backend and each area of the contracts, what held and what did not."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

__all__ = ["AREAS", "PAGE", "SUITE", "UNCLAIMED", "anchor", "is_suite", "marks", "note", "rule_of", "write"]

SUITE = "podium.testing._conformance.subject"
"""The module with the class that all classes of the suite have, if the run has imported it."""

AREAS = (
    "Discovery",
    "Detection",
    "Selection",
    "Driver protocol",
    "Launcher",
    "Two levels, one behaviour",
    "Arguments",
    "Streams and devices",
    "Graphs",
    "Scratch",
    "Cache",
    "Hooks",
    "Errors",
    "Security",
    "One kernel source",
)
"""The areas of the contracts, in the order of the page that has them."""

PAGE = "docs/contracts.md"
"""Where the contracts stand, in podium's repository."""

UNCLAIMED = "not claimed: "
"""How the reason of a test begins that is skipped because the backend does not claim what it needs."""

_PROPERTY = "podium_contract"
_COLUMNS = ("passed", "failed", "not claimed", "skipped")


def anchor(area: str) -> str:
    """Return where an area stands in the documentation."""
    return f"{PAGE}#{area.lower().replace(',', '').replace(' ', '-')}"


def rule_of(test: Any) -> str:
    """Return the rule that a test holds a backend to: the first line of its docstring."""
    text: Any = getattr(test, "__doc__", None) or getattr(test, "__name__", str(test))
    return str(text).strip().splitlines()[0].strip()


def is_suite(subject: object) -> bool:
    """Tell whether it is a class of the suite: tests of others have marks and fixtures of the same names."""
    suite = sys.modules.get(SUITE)
    return suite is not None and isinstance(subject, type) and issubclass(subject, suite.Subject)


def marks(item: pytest.Item, name: str) -> list[pytest.Mark]:
    """Return the marks of a test of the suite, and those of the tests that it overrides; none for other tests."""
    subject: Any = getattr(item, "cls", None)
    if not is_suite(subject):
        return []
    overridden = [vars(owner).get(getattr(item, "originalname", "")) for owner in subject.__mro__]
    own = [*item.iter_markers(), *(mark for test in overridden for mark in getattr(test, "pytestmark", ()))]
    return [mark for mark in own if mark.name == name]


def note(item: pytest.Item, report: Any) -> None:
    """Put the contract of a test into its report, and above the text of its failure."""
    contracts = marks(item, "contract")
    if not contracts:
        return
    area, rule = str(contracts[0].args[0]), rule_of(getattr(item, "obj", None))
    subject: Any = getattr(item, "cls", None)
    backend = getattr(getattr(subject, "driver_class", None), "name", "?")
    owner = f"{getattr(subject, '__name__', '?')} ({backend})"
    report.user_properties = [*report.user_properties, (_PROPERTY, [owner, area, rule])]
    if report.failed:
        text = f"{area}: {rule}\nThe contract stands in {anchor(area)}"
        report.sections.insert(0, ("podium contract that does not hold", text))


@dataclass
class _Subject:
    """What is known of the tests of one class."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    broken: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)  # by column

    def add(self, column: str, area: str, rule: str, nodeid: str, reason: str) -> None:
        self.counts.setdefault(area, Counter())[column] += 1
        if column == "failed":
            self.broken.setdefault((area, rule), []).append(nodeid)
        elif reason:
            self.reasons.setdefault(column, Counter())[reason] += 1


def write(terminal: Any) -> None:
    """Write the report at the end of a run; nothing if the suite had no part in it."""
    subjects = _subjects(terminal.stats)
    width = max(map(len, AREAS))
    for owner, subject in sorted(subjects.items()):
        terminal.section(f"podium conformance: {owner}")
        terminal.write_line(f"{'contract':{width}}" + "".join(f"{name:>13}" for name in _COLUMNS))
        total: Counter[str] = Counter()
        for area in sorted(subject.counts, key=_position):
            count = subject.counts[area]
            total += count
            terminal.write_line(f"{area:{width}}" + "".join(f"{count[name]:13}" for name in _COLUMNS))
        terminal.write_line(f"{'in all':{width}}" + "".join(f"{total[name]:13}" for name in _COLUMNS))
        for column in ("not claimed", "skipped"):
            for reason, tests in sorted(subject.reasons.get(column, {}).items()):
                terminal.write_line(f"{column}: {reason} ({tests} test{'s' if tests > 1 else ''})")
        for (area, rule), failed in sorted(subject.broken.items(), key=lambda each: _position(each[0][0])):
            terminal.write_line(f"does not hold: {area}: {rule}")
            more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
            terminal.write_line(f"    {anchor(area)}; {failed[0]}{more}")


def _subjects(stats: dict[str, list[Any]]) -> dict[str, _Subject]:
    subjects: dict[str, _Subject] = {}
    seen: set[str] = set()  # a test that fails and whose fixtures fail, too, has failed once
    for outcome in ("failed", "error", "xfailed", "xpassed", "passed", "skipped"):
        for report in stats.get(outcome, ()):
            contract = dict(getattr(report, "user_properties", ())).get(_PROPERTY)
            if contract is None or report.nodeid in seen:
                continue
            seen.add(report.nodeid)
            owner, area, rule = contract
            column, reason = _outcome(outcome, report)
            subjects.setdefault(owner, _Subject()).add(column, area, rule, report.nodeid, reason)
    return subjects


def _outcome(outcome: str, report: Any) -> tuple[str, str]:
    """Return the column that a test counts in, and its reason if it was skipped."""
    if outcome != "skipped":
        return ("passed", "") if outcome in ("passed", "xpassed") else ("failed", "")
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
    reason = reason.removeprefix("Skipped: ")
    if reason.startswith(UNCLAIMED):
        return "not claimed", reason.removeprefix(UNCLAIMED)
    return "skipped", reason


def _position(area: str) -> int:
    return AREAS.index(area) if area in AREAS else len(AREAS)
