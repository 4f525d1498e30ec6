"""How the conformance suite is used: what is said of mistakes, what the report has, and that no vendor is known."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from contract_page import PAGE, listed, rules
from markdown_page import Page

import podium.testing
from podium.testing._report import AREAS, anchor, rule_of
from podium.testing.conformance import DriverConformance

_MISTAKES = """
from podium.backend import Driver
from podium.testing import DriverConformance, FakeDriver

class Half(FakeDriver):
    name = "half"

class Abstract(Driver):
    name = "abstract"
    priority = 1

class TestNothing(DriverConformance):
    pass

class TestName(DriverConformance):
    driver_class = "fake"

class TestNoDriver(DriverConformance):
    driver_class = dict

class TestAbstract(DriverConformance):
    driver_class = Abstract

class TestLauncher(DriverConformance):
    driver_class = type("Wrong", (FakeDriver,), {"launcher_cls": None})

class TestClaims(DriverConformance):
    driver_class = FakeDriver
    capabilities = {"executes": False}
"""

_TWO = """
import pytest
from podium.testing import Capabilities, DriverConformance, FakeDriver

class Second(FakeDriver):
    name = "second"
    launcher_cls = type("SecondLauncher", (FakeDriver.launcher_cls,), {"backend": "second"})

class TestFirst(DriverConformance):
    driver_class = FakeDriver
    capabilities = Capabilities(executes=False, compiles=False, records=True)

class TestSecond(DriverConformance):
    driver_class = Second
    capabilities = Capabilities(executes=False, compiles=False, records=True, atomics=False)

    @pytest.mark.xfail
    def test_the_reason_is_a_text_or_none(self):
        assert False

    def test_versions_are_short_texts(self, driver):
        '''The versions are texts.'''
        assert driver.versions() == "old"

    def test_of_its_own(self, driver):
        '''What an author adds.'''
"""


def run_pytest(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder; its output is not cut to the width of a terminal."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "COLUMNS": "300"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", *arguments],
        cwd=folder,
        env={**variables, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_each_mistake_in_a_class_is_one_line(tmp_path: Path) -> None:
    """A class that cannot be tested is one error of collection in one line, and none of its tests is run."""
    (tmp_path / "test_suite.py").write_text(_MISTAKES)
    done = run_pytest(tmp_path, "test_suite.py")
    lines = [line for line in done.stdout.splitlines() if line.startswith("Test")]
    said = dict(line.split(": ", 1) for line in lines)
    assert said.keys() == {f"Test{each}" for each in ("Nothing", "Name", "NoDriver", "Abstract", "Launcher", "Claims")}
    assert said["TestNothing"] == "it does not say what to test: set driver_class to the class of the driver"
    assert "'fake'" in said["TestName"] and "not a subclass" in said["TestNoDriver"]
    assert "Abstract, which lacks allocate, compile, copy" in said["TestAbstract"]
    assert "does not set launcher_cls" in said["TestLauncher"] and "podium.testing.Capabilities" in said["TestClaims"]
    assert "6 errors" in done.stdout and "Traceback" not in done.stdout
    assert re.search(r"\.py:\d", done.stdout) is None


def test_an_unknown_capability_points_to_the_line_that_has_it(tmp_path: Path) -> None:
    """A misspelt capability in a class shows the author's line and none of podium's."""
    (tmp_path / "test_suite.py").write_text(
        "from podium.testing import Capabilities\nCapabilities().without('atomic')\n"
    )
    done = run_pytest(tmp_path, "test_suite.py")
    assert "'atomic' is no capability; they are executes, compiles" in done.stdout
    assert "test_suite.py:2" in done.stdout and "_capabilities.py" not in done.stdout


_OPTIONS = {
    ("--podium-backend", "cup"): "ERROR: Unknown backend 'cup'. Installed: ",
    (
        "--podium-backend",
        "sleeping",
    ): "ERROR: Backend 'sleeping' was chosen by --podium-backend, but it is inactive: it",
    ("--podium-without", "half,atomic"): "ERROR: 'atomic' is no capability; they are executes, ",
    ("--podium-without", "streams"): "ERROR: 'streams' is no capability; they are executes, ",
}


def test_each_mistake_on_the_command_line_is_one_line(tmp_path: Path) -> None:
    """A backend that is unknown or inactive, and an unknown capability, are one line and exit status 4."""
    _sleeping_backend(tmp_path)
    program = (
        "import pytest, sys\n"
        f"for options in {list(_OPTIONS)!r}:\n"
        "    status = pytest.main(['--pyargs', 'podium.testing.conformance', '-p', 'no:cacheprovider', *options])\n"
        "    assert status == 4, status\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line]
    assert len(lines) == len(_OPTIONS)
    for line, said in zip(lines, _OPTIONS.values()):
        assert line.startswith(said)


def _sleeping_backend(folder: Path) -> None:
    """Install a backend that is inactive."""
    (folder / "sleeping.py").write_text(
        "from podium.backend import hookimpl\nfrom podium.testing import FakeDriver\n"
        "PODIUM_API = 1\n"
        "class Launcher(FakeDriver.launcher_cls):\n    backend = 'sleeping'\n"
        "class Sleeping(FakeDriver):\n    name, reason, launcher_cls = 'sleeping', 'it sleeps', Launcher\n"
        "@hookimpl\ndef podium_register_driver():\n    return Sleeping\n"
    )
    information = folder / "sleeping-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: sleeping\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[podium]\nsleeping = sleeping\n")


def test_the_report_has_each_class(tmp_path: Path) -> None:
    """The report has a table for each class, also with -q and with xdist, and says where what does not hold stands."""
    options = ["-q", "-n", "2"] if importlib.util.find_spec("xdist") else ["-q"]
    (tmp_path / "test_suite.py").write_text(_TWO)
    chosen = "reason_is_a_text or atomics or what_the_class_states or versions_are or of_its_own or plugin_states"
    done = run_pytest(tmp_path, "test_suite.py", "-k", chosen, *options)
    _, first, second = done.stdout.split("podium conformance: ")
    second = second.partition("short test summary")[0]
    assert first.startswith("TestFirst (fake) ") and second.startswith("TestSecond (second) ")
    assert _rows(first) == {
        "Discovery": [0, 0, 0, 1],
        "Detection": [1, 0, 0, 0],
        "Driver protocol": [1, 0, 0, 0],
        "Launcher": [1, 0, 0, 0],
        "One kernel source": [0, 0, 4, 0],
        "in all": [3, 0, 4, 1],
    }
    assert _rows(second)["in all"] == [1, 2, 4, 1]
    assert "not claimed: compiles (4 tests)" in first
    assert "skipped: no distribution provides the backend: install it, such as by pip install -e . (1 test)" in first
    broken = re.findall(r"^does not hold: (.*)\n    (.*); (.*)$", second, re.MULTILINE)
    assert broken == [
        ("Detection: test_the_reason_is_a_text_or_none", "docs/contracts.md#detection", "test_suite.py::TestSecond::test_the_reason_is_a_text_or_none"),
        ("Launcher: The versions are texts.", "docs/contracts.md#launcher", "test_suite.py::TestSecond::test_versions_are_short_texts"),
    ]  # fmt: skip
    assert "podium contract that does not hold" in done.stdout
    assert "Launcher: The versions are texts.\nThe contract stands in docs/contracts.md#launcher" in done.stdout


def _rows(table: str) -> dict[str, list[int]]:
    found = re.findall(r"^(\w[\w ,]+?) {2,}(\d+(?: +\d+){3})$", table, re.MULTILINE)
    return {area: [int(each) for each in numbers.split()] for area, numbers in found}


@pytest.mark.newest
def test_tests_of_others_have_marks_and_fixtures_of_the_same_names(tmp_path: Path) -> None:
    """pytest loads podium's plug-in in every run: what is not of the suite is run as without it, also beside that."""
    (tmp_path / "conftest.py").write_text("""
def pytest_configure(config):
    config.addinivalue_line("markers", "needs(database)")
    config.addinivalue_line("markers", "contract")
""")
    (tmp_path / "test_others.py").write_text("""
import pytest
import podium.testing.conformance
from types import SimpleNamespace

@pytest.fixture
def level():
    return SimpleNamespace(prepared=False)

@pytest.mark.needs("database")
@pytest.mark.contract
def test_function(level):
    assert not level.prepared

class TestClass:
    @pytest.mark.needs("database")
    def test_method(self, level):
        assert not level.prepared
""")
    process = run_pytest(tmp_path, "-q", "test_others.py")
    assert process.returncode == 0 and "2 passed" in process.stdout, process.stdout


def test_runs_without_the_suite_have_no_report(tmp_path: Path) -> None:
    """The plug-in prints nothing in other runs, and does not import podium's drivers there."""
    (tmp_path / "test_other.py").write_text(
        "import sys\ndef test_light():\n    assert not {'podium.backend', 'podium.testing._fake'} & set(sys.modules)\n"
    )
    done = run_pytest(tmp_path, "test_other.py")
    assert "1 passed" in done.stdout and "podium conformance" not in done.stdout


def test_an_installed_backend_is_named_on_the_command_line(tmp_path: Path) -> None:
    """``pytest --pyargs podium.testing.conformance --podium-backend NAME`` runs the suite without a file."""
    pytest.importorskip("podium_cpu", reason="podium-cpu is not installed")
    arguments = ["--pyargs", "podium.testing.conformance", "--podium-backend", "cpu", "--podium-without", "atomics"]
    done = run_pytest(tmp_path, *arguments, "-k", "what_the_class_states or plugin_states or histogram")
    assert "2 passed, 4 skipped" in done.stdout and "not claimed: atomics" in done.stdout


def test_the_suite_knows_no_vendor() -> None:
    """No file of the suite names a vendor, a vendor's package or its hardware: it speaks of capabilities."""
    folder = Path(podium.testing.__file__).parent
    vendors = (
        r"nvidia|\bamd\b|\brocm\b|\bhip\b|hiprtc|nvrtc|intel|opencl|pocl|apple|metal\b|qualcomm|vulkan|\bcpu backend"
    )
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".py", ".in")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(vendors, line, re.IGNORECASE)
    ]
    assert found == []


def suite_tests() -> dict[str, object]:
    """Return the tests of the suite by name."""
    return {name: getattr(DriverConformance, name) for name in dir(DriverConformance) if name.startswith("test_")}


def test_every_test_belongs_to_an_area_and_states_its_rule() -> None:
    """Each test of the suite has one area of the contracts, and a docstring whose first line is a sentence."""
    rules: dict[str, list[str]] = {}
    for name, test in suite_tests().items():
        areas = [mark.args[0] for mark in test.pytestmark if mark.name == "contract"]  # type: ignore[attr-defined]
        assert len(areas) == 1 and areas[0] in AREAS, name
        rule = rule_of(test)
        assert rule.endswith("."), name
        rules.setdefault(f"{areas[0]}: {rule}", []).append(name)
    assert {rule: names for rule, names in rules.items() if len(names) > 1} == {}
    assert anchor("Two levels, one behaviour") == "docs/contracts.md#two-levels-one-behaviour"


@pytest.mark.parametrize("area", AREAS)
def test_every_area_stands_in_the_documentation_with_its_rules(area: str) -> None:
    """docs/contracts.md has a section for each area, which says what it is about and lists the rules that are tested."""
    page = Page(PAGE)
    assert anchor(area) == f"{page.name}#{area.lower().replace(',', '').replace(' ', '-')}"
    assert anchor(area).partition("#")[2] in page.anchors
    assert listed(page.text, area) == rules(area), "run python tests/contract_page.py"
    section = page.text.partition(f"\n## {area}\n")[2].partition("\n## ")[0]
    assert len(section.partition("\n- ")[0]) > 100, "it lists rules and does not say what they are about"


def test_every_capability_stands_in_the_documentation() -> None:
    """docs/write-a-backend.md says of each capability what is not asked for without it."""
    section = Page(PAGE.parent / "write-a-backend.md").text.partition("\n## Test it\n")[2].partition("\n## ")[0]
    for name in (*podium.testing.Capabilities.__dataclass_fields__, "attribute_values", "compile_target", "recorded"):
        assert f"`{name}`" in section, name


def test_what_tests_need_is_known() -> None:
    """Each need of a test is a capability, a feature of the protocol or a statement of a class, so none is misspelt."""
    known = set(podium.testing.Capabilities.__dataclass_fields__) | {"observes", "host_memory", "generated_level"}
    known |= {"cluster", "streams", "events", "graphs", "pinned", "occupancy", "fork_safe"}
    for name, test in suite_tests().items():
        needs = {each for mark in test.pytestmark if mark.name == "needs" for each in mark.args}  # type: ignore[attr-defined]
        assert needs <= known, name


def test_a_device_with_next_to_nothing_conforms(tmp_path: Path) -> None:
    """With its claims removed, a backend passes that has small blocks, one axis, no addresses, and no launcher in C."""
    chosen = (
        "interpreted-cold and (every_thread or largest_block or it_launches or metadata_may or allocates or profile or "
        "saxpy-float or contiguous or drivers_stream or sixty_four) or generated-cold and level_that_was"
    )
    root = Path(__file__).parent.parent.parent
    roots = [Path(__file__).parent, root / "tests", root / "tests" / "serial_backend" / "src"]
    done = run_pytest(
        tmp_path,
        str(Path(__file__).parent / "minimal_driver.py"),
        *("-c", os.devnull, "--rootdir", str(tmp_path), "-k", chosen),
        PYTHONPATH=os.pathsep.join([*map(str, roots), *filter(None, sys.path)]),
    )
    assert done.returncode == 0, done.stdout
    assert "not claimed: generated_level (1 test)" in done.stdout and "not claimed: addresses" not in done.stdout
