"""podium's plug-in of pytest: the options, the markers and the report of the conformance suite.

pytest imports this module in every run where podium is installed, so it imports none of podium's drivers.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable
from typing import Any

import pytest

from podium.testing import _report

__all__: list[str] = []

pytest.register_assert_rewrite("podium.testing._conformance", "podium.testing.conformance")


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
    """Declare the markers, and refuse options that name no backend that runs here, or no capability."""
    config.addinivalue_line("markers", "contract(area): the section of podium's contracts that a test belongs to")
    config.addinivalue_line("markers", "needs(*capabilities): what a backend must claim for a test to be run")
    if config.getoption("--podium-backend") or config.getoption("--podium-without"):
        from podium.testing import _mistakes

        if (mistake := _mistakes.of_options(config)) is not None:
            raise pytest.UsageError(mistake)


class SuiteClass(pytest.Class):
    """A test class of the suite: with a mistake that would fail all of its tests it is one error, and no test."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Collect the tests, unless the class cannot be tested."""
        from podium.testing import _mistakes

        if (mistake := _mistakes.of_class(self.obj, self.config)) is not None:
            raise self.CollectError(f"{self.name}: {mistake}")
        return super().collect()


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> pytest.Collector | None:
    """Collect the classes of the suite in a way of their own."""
    if not _report.is_suite(obj):
        return None
    made: pytest.Collector | None = None
    if collector.classnamefilter(name):
        made = SuiteClass.from_parent(collector, name=name, obj=obj)
    return made


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what the backend does not claim, before any fixture is made."""
    subject: Any = getattr(item, "cls", None)
    for mark in _report.marks(item, "needs"):
        for name in mark.args:
            if not subject.claims(name):
                pytest.skip(f"{_report.UNCLAIMED}{name}")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Run a test as the cold one first, if it is the warm one and nobody has."""
    level: Any = pyfuncitem.funcargs.get("level")
    if not _report.is_suite(pyfuncitem.cls) or getattr(level, "prepared", True):
        return
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    pyfuncitem.obj(**{**arguments, "level": level.cold()})
    sys.modules[_report.SUITE].forget()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note the contract of a test in its report, and show it above what failed."""
    report: Any = yield
    _report.note(item, report)
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say, for each class and each area of the contracts, what held, what did not and what was not claimed."""
    _report.write(terminalreporter)
