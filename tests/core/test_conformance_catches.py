"""The conformance suite is tested itself: it must pass a right driver, and catch each one that is wrong in one way."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from broken_drivers import BROKEN, Broken

from podium.testing._conformance.subject import Subject
from podium.testing.conformance import DriverConformance

_FILE = """
from broken_drivers import BROKEN, Recording
from podium.testing import FakeDriver

class TestWhole(Recording):
    driver_class = FakeDriver

for broken in BROKEN:
    name = f"Test{broken}"
    globals()[name] = type(name, (Recording,), {"driver_class": broken.driver_class})
"""

_CPU_FILE = """
from broken_cpu_drivers import BROKEN_CPU, Running, WholeCpu

class TestWhole(Running):
    driver_class = WholeCpu

for broken in BROKEN_CPU:
    name = f"Test{broken}"
    globals()[name] = type(name, (Running,), {"driver_class": broken.driver_class})
"""


class Run:
    """What a run of the suite printed, and which tests passed, failed and were skipped in it."""

    def __init__(self, output: str) -> None:
        self.output = output
        self.passed, self.failed, self.skipped = (
            set(re.findall(rf"^{word} \S*::(\w+::\w+(?:\[.*?\])?)", output, re.MULTILINE))
            for word in ("PASSED", "FAILED", "SKIPPED")
        )


def _pytest(folder: Path, *arguments: str) -> Run:
    roots = [str(Path(__file__).parent), *(path for path in sys.path if path)]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "-W", "error", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert process.returncode in (0, 1), process.stdout + process.stderr
    return Run(process.stdout)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of what is needed: for each broken driver its tests, and for the right driver all of these."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_suite.py").write_text(_FILE)
    wanted = [f"test_suite.py::Test{broken}::{test}" for broken in BROKEN for test in broken.tests]
    wanted += sorted({f"test_suite.py::TestWhole::{test}" for broken in BROKEN for test in broken.tests})
    return _pytest(folder, *wanted, "-k", "not warm and not auto and (i32 or not scalars)")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same for drivers that run kernels; on the interpreted level, where they are wrong."""
    pytest.importorskip("podium_cpu", reason="podium-cpu is not installed")
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_suite.py").write_text(_CPU_FILE)
    tests = sorted({test for broken in _broken_cpu() for test in broken.tests})
    wanted = [f"test_suite.py::Test{broken}::{test}" for broken in _broken_cpu() for test in broken.tests]
    wanted += [f"test_suite.py::TestWhole::{test}" for test in tests]
    return _pytest(
        folder, *wanted, "-k", "(interpreted-cold or event) and (i32 or not scalars) and not double and not int]"
    )


def _broken_cpu() -> list[Broken]:
    try:
        from broken_cpu_drivers import BROKEN_CPU
    except ModuleNotFoundError:
        return []
    return BROKEN_CPU


@pytest.mark.parametrize("broken", BROKEN, ids=repr)
def test_a_broken_driver_is_caught(run: Run, broken: Broken) -> None:
    """Each test that stands for the broken contract fails, at each level that it is run at."""
    for test in broken.tests:
        ran = {name for name in run.passed | run.failed if name.partition("[")[0] == f"Test{broken}::{test}"}
        failed = ran & run.failed
        assert failed, f"{test} does not catch a driver of which is true: {broken.driver_class.__doc__}"
        for level in ("interpreted-cold", "generated-cold"):
            of_level = {name for name in ran if level in name}
            assert not of_level or of_level & failed, f"{test} catches it at the other level only, not {level}"


@pytest.mark.parametrize("broken", _broken_cpu(), ids=repr)
def test_wrong_results_are_caught(running: Run, broken: Broken) -> None:
    """Each test that stands for the broken contract fails by what the kernels compute."""
    for test in broken.tests:
        failed = {name for name in running.failed if name.partition("[")[0] == f"Test{broken}::{test}"}
        assert failed, f"{test} does not catch a driver of which is true: {broken.driver_class.__doc__}"


def test_right_results_pass_the_same_tests(running: Run) -> None:
    """What catches the wrong results holds for the driver that they are made from."""
    assert {name for name in running.failed if name.startswith("TestWhole")} == set()
    passed = {name.partition("::")[2].partition("[")[0] for name in running.passed if name.startswith("TestWhole")}
    assert passed == {test for broken in _broken_cpu() for test in broken.tests}


def test_the_right_driver_passes_the_same_tests(run: Run) -> None:
    """What catches the broken drivers holds for the one that they are made from."""
    assert {name for name in run.failed if name.startswith("TestWhole")} == set()
    passed = {name.partition("::")[2].partition("[")[0] for name in run.passed if name.startswith("TestWhole")}
    assert passed == {test for broken in BROKEN for test in broken.tests}


def test_no_part_hides_a_name_of_another() -> None:
    """The parts of the suite are one class: no test and no method of one may have the name of another's."""
    owners: dict[str, list[str]] = {}
    for part in DriverConformance.__mro__:
        if part not in (DriverConformance, Subject, object):
            for name in vars(part):
                if not name.startswith("__") and name != "_abc_impl":
                    owners.setdefault(name, []).append(part.__name__)
    shared = set(vars(Subject)) & set(owners)
    assert {name: parts for name, parts in owners.items() if len(parts) > 1} == {}
    assert {name for name in shared if not name.startswith("__")} == set()
