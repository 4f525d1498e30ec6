"""The conformance suite is tested itself: it must pass a right driver, and catch each one that is wrong in one way."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from broken_drivers import BROKEN, Broken
from broken_podiums import BROKEN_PODIUMS

from podium.testing._conformance.subject import Subject
from podium.testing.conformance import DriverConformance

try:
    from broken_cpu_drivers import BROKEN_CPU
except ModuleNotFoundError:  # podium-cpu is not installed
    BROKEN_CPU = []

_FILE = """
from {module} import {drivers}, {base}

for broken in {drivers}:
    name = f"Test{{broken}}"
    # Without the tests that say nothing of it: to collect them all for each would take longer than to run the others.
    members = {{test: None for test in dir({base}) if test.startswith("test_") and test not in broken.tests}}
    members["driver_class"] = broken.driver_class
    if hasattr(broken.driver_class, "claimed"):
        members["capabilities"] = broken.driver_class.claimed
    globals()[name] = type(name, ({base},), members)
"""
_COLD = "not warm and not auto and (i32 or not scalars) and not double and not int] and not crlf"
_INTERPRETED = f"{_COLD} and not generated"

# Tests that no broken driver here fails, with the reason.
_NOT_HERE = {
    "test_the_plugin_states_its_distribution_and_the_api_it_speaks": "a plug-in that does not is no backend at all",
    "test_the_plugin_module_imports_nothing_but_itself_and_podium": "in test_conformance_plugin.py",
    "test_the_plugin_answers_as_the_driver_class_does": "in test_conformance_plugin.py",
    "test_the_plugin_answers_without_its_driver": "in test_conformance_plugin.py",
    "test_arrays_go_from_one_device_to_another": "the devices here have one memory; test_memory.py has two that do not",
    "test_kernels_that_were_not_compiled_with_the_others_are_refused": "podium refuses before a backend is asked",
}


def _run(folder: Path, module: str, drivers: str, base: str, broken: list[Broken], chosen: str) -> dict[str, set[str]]:
    """Run the tests that must fail for broken drivers; return for each, and for each of its tests, what failed."""
    (folder / "test_suite.py").write_text(_FILE.format(module=module, drivers=drivers, base=base))
    roots = [str(Path(__file__).parent), *(path for path in sys.path if path)]
    tests = [f"test_suite.py::Test{each}" for each in broken]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "-W", "error", *tests, "-k", chosen],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots), "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert process.returncode == 1, process.stdout + process.stderr
    outcomes: dict[str, set[str]] = {}
    for outcome, name in re.findall(
        r"^(PASSED|FAILED|SKIPPED) \S*::(\w+::\w+(?:\[.*?\])?)", process.stdout, re.MULTILINE
    ):
        outcomes.setdefault(outcome, set()).add(name)
    return outcomes


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """What the tests said that stand for what is broken, of each broken driver."""
    runs = [
        ("broken_drivers", "BROKEN", "Recording", BROKEN, _COLD),
        ("broken_podiums", "BROKEN_PODIUMS", "Patched", BROKEN_PODIUMS, _INTERPRETED),
        ("broken_cpu_drivers", "BROKEN_CPU", "Running", BROKEN_CPU, _INTERPRETED),
    ]
    found: dict[str, set[str]] = {"FAILED": set(), "PASSED": set()}
    for module, drivers, base, broken, chosen in runs:
        if broken:
            for outcome, names in _run(tmp_path_factory.mktemp(module), module, drivers, base, broken, chosen).items():
                found.setdefault(outcome, set()).update(names)
    return found


@pytest.mark.parametrize("broken", [*BROKEN, *BROKEN_PODIUMS, *BROKEN_CPU], ids=repr)
def test_a_broken_backend_is_caught(outcomes: dict[str, set[str]], broken: Broken) -> None:
    """Each test that stands for the broken contract fails, at each level that it is run at."""
    for test in broken.tests:
        failed, passed = (
            {name for name in outcomes[outcome] if name.partition("[")[0] == f"Test{broken}::{test}"}
            for outcome in ("FAILED", "PASSED")
        )
        assert failed, f"{test} does not catch a driver of which is true: {broken.driver_class.__doc__}"
        for level in ("interpreted-cold", "generated-cold"):
            of_level = {name for name in failed | passed if level in name}
            assert not of_level or of_level & failed, f"{test} catches it at the other level only, not {level}"


def test_every_test_of_the_suite_is_shown_to_fail() -> None:
    """Each test of the suite fails for a backend that is broken here, or is among the few that say why not."""
    if not BROKEN_CPU:
        pytest.skip("podium-cpu is not installed")
    shown = {test for broken in (*BROKEN, *BROKEN_PODIUMS, *BROKEN_CPU) for test in broken.tests}
    tests = {name for name in dir(DriverConformance) if name.startswith("test_")}
    assert sorted(tests - shown - set(_NOT_HERE)) == []
    assert sorted(shown - tests) == [] and not shown & set(_NOT_HERE)


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
