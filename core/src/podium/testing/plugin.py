"""podium's plug-in of pytest: the options, the markers and the report of the conformance suite.

pytest imports this module in every run where podium is installed, so it imports nothing of podium.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

__all__: list[str] = []

pytest.register_assert_rewrite("podium.testing._conformance", "podium.testing.conformance")

_PROPERTY = "podium_contract"
_UNCLAIMED = "not claimed: "


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for running the suite on an installed backend."""
    group = parser.getgroup("podium", "podium: conformance of backends (pytest --pyargs podium.testing.conformance)")
    group.addoption("--podium-backend", metavar="NAME", help="the installed backend to test; the active one by default")
    group.addoption(
        "--podium-without",
        metavar="CAPABILITIES",
        default="",
        help="capabilities that the backend does not claim, separated by commas, such as atomics,half",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers."""
    config.addinivalue_line("markers", "contract(area): the section of podium's contracts that a test belongs to")
    config.addinivalue_line("markers", "needs(*capabilities): what a backend must claim for a test to be run")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what the backend does not claim, before any fixture is made."""
    subject: Any = getattr(item, "cls", None)
    if hasattr(subject, "choose") and not hasattr(subject, "driver_class"):
        subject.choose(item.config)
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            if not _claimed(subject, name):
                pytest.skip(f"{_UNCLAIMED}{name}")


def _claimed(subject: Any, name: str) -> bool:
    capabilities = subject.capabilities
    if hasattr(capabilities, name):
        return bool(getattr(capabilities, name))
    driver_class = subject.driver_class
    return name in driver_class.features or getattr(driver_class, name, False) is True  # not a method of that name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note the contract of a test in its report, and show it above what failed."""
    report: Any = yield
    contract = _contract(item)
    if contract is not None:
        area, rule = contract
        report.user_properties = [*report.user_properties, (_PROPERTY, [area, rule])]
        if report.failed:
            report.sections.insert(0, ("podium contract that does not hold", f"{area}: {rule}"))
    return report


def _contract(item: pytest.Item) -> tuple[str, str] | None:
    marker = item.get_closest_marker("contract")
    if marker is None or not marker.args:
        return None
    lines = (getattr(getattr(item, "obj", None), "__doc__", None) or item.name).strip().splitlines()
    return str(marker.args[0]), lines[0].strip()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count, for each area of the contracts, what held, what did not and what was not claimed."""
    counts: dict[str, Counter[str]] = {}
    broken: dict[str, list[str]] = {}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, ()):
            contract = dict(getattr(report, "user_properties", ())).get(_PROPERTY)
            if contract is None:
                continue
            area, rule = contract
            what = "failed" if outcome == "error" else outcome
            if outcome == "skipped" and _UNCLAIMED in _reason(report):
                what = "not claimed"
            counts.setdefault(area, Counter())[what] += 1
            if what == "failed":
                broken.setdefault(f"{area}: {rule}", []).append(report.nodeid)
    if not counts:
        return
    columns = ("passed", "failed", "not claimed", "skipped")
    width = max(len("contract"), *map(len, counts))
    terminalreporter.section("podium conformance")
    terminalreporter.write_line(f"{'contract':{width}}" + "".join(f"{name:>13}" for name in columns))
    for area, count in counts.items():
        terminalreporter.write_line(f"{area:{width}}" + "".join(f"{count[name]:13}" for name in columns))
    for line, tests in broken.items():
        more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
        terminalreporter.write_line(f"does not hold: {line} ({tests[0]}{more})")


def _reason(report: Any) -> str:
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""
