"""The conformance suite on installed plug-ins: it passes right ones, and catches those that are wrong in one way."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from plugin_distributions import ANSWERING_PLUGIN, PLUGIN, Site

pytestmark = pytest.mark.newest

IMPORT = "        from {package}.detection import"

AGREES = "test_the_plugin_answers_as_the_driver_class_does"
ALONE = "test_the_plugin_answers_without_its_driver"
LIGHT = "test_the_plugin_module_imports_nothing_but_itself_and_podium"

PLUGINS = {
    "right": (ANSWERING_PLUGIN, {AGREES: "PASSED", ALONE: "PASSED", LIGHT: "PASSED"}),
    "older": (PLUGIN, {AGREES: "SKIPPED", ALONE: "SKIPPED", LIGHT: "PASSED"}),
    "early": (
        ANSWERING_PLUGIN.replace(IMPORT, "        import {package}.driver\n" + IMPORT),
        {AGREES: "PASSED", ALONE: "FAILED", LIGHT: "PASSED"},
    ),
    "other": (
        ANSWERING_PLUGIN.replace("return inactive_reason()", "return 'no device today'"),
        {AGREES: "FAILED", ALONE: "PASSED", LIGHT: "PASSED"},
    ),
    "heavy": (
        ANSWERING_PLUGIN + "\n    import vendor_runtime\n",
        {AGREES: "PASSED", ALONE: "FAILED", LIGHT: "FAILED"},
    ),
}

FILE = """
from importlib import import_module
from podium.testing import DriverConformance

for name in {names!r}:
    driver_class = import_module(f"podium_{{name}}.driver").FakeDriver
    globals()["Test" + name] = type("Test" + name, (DriverConformance,), {{"driver_class": driver_class}})
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What one run of the suite says of each plug-in, by test."""
    folder = tmp_path_factory.mktemp("plugins")
    site = Site(folder / "site")
    for name, (plugin, _) in PLUGINS.items():
        site.install(name, plugin=plugin)
    (site.folder / "vendor_runtime.py").write_text("")
    (folder / "test_suite.py").write_text(FILE.format(names=list(PLUGINS)))
    tests = [f"test_suite.py::Test{name}::{test}" for name in PLUGINS for test in (AGREES, ALONE, LIGHT)]
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *tests],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site.folder), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, dict[str, str]] = {name: {} for name in PLUGINS}
    for name, test, outcome in re.findall(r"::Test(\w+)::(\w+) ([A-Z]+)", process.stdout):
        found[name][test] = outcome
    return found


@pytest.mark.parametrize("name", PLUGINS)
def test_the_suite_on_a_plugin(outcomes: dict[str, dict[str, str]], name: str) -> None:
    """DISC-05, PRF-05: what a plug-in answers is the driver class's answer, and needs no module of the driver's."""
    assert outcomes[name] == PLUGINS[name][1]
