"""The backend as an installed distribution: what choosing and the doctor make of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from podium.backend import Driver

from podium_opencl._version import __version__
from podium_opencl.detection import inactive_reason

FOLDER = Path(__file__).parent.parent


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with what an installation of the distribution leaves there for others to find it."""
    text = (FOLDER / "pyproject.toml").read_text(encoding="utf-8")
    entries = text.partition("[project.entry-points.podium]\n")[2].partition("\n\n")[0].replace('"', "")
    folder = tmp_path / f"podium_opencl-{__version__}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: podium-opencl\nVersion: {__version__}\n")
    (folder / "entry_points.txt").write_text(f"[podium]\n{entries}\n")
    return tmp_path


def run(installed: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the backend is installed, with this process's path and no settings."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PODIUM_")}
    path = [str(installed), *(each for each in sys.path if each)]
    variables |= {"PYTHONPATH": os.pathsep.join(path), "PODIUM_CACHE_DIR": str(installed / "cache"), **environment}
    done = subprocess.run([sys.executable, *command], env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr  # 1 is the doctor's for a machine on which nothing can run
    return done


def test_it_is_chosen_before_the_cpu_and_imports_little(installed: Path) -> None:
    """Where a platform is installed, the backend is preferred to the CPU's; choosing it does not import pyopencl."""
    if inactive_reason() is not None:
        pytest.skip(f"OpenCL is inactive here: {inactive_reason()}")
    code = (
        "import json, sys, podium\n"
        "print(json.dumps([podium.driver.preferred(), podium.driver.resolve().name, 'pyopencl' in sys.modules]))"
    )
    preferred, resolved, imported = json.loads(run(installed, "-c", code).stdout)
    assert preferred == resolved != "cpu" and not imported


def test_the_doctor_lists_the_devices(installed: Path, opencl: Driver) -> None:
    """`podium doctor --json` has the distribution, its version, that it is active, and its devices."""
    report = json.loads(run(installed, "-m", "podium", "doctor", "--json").stdout)
    (row,) = [each for each in report["backends"] if each["name"] == "opencl"]
    assert (row["distribution"], row["version"], row["state"]) == ("podium-opencl", __version__, "active")
    named = [device["name"] for device in row["devices"]["value"]]
    assert named == [device.name for device in opencl.devices()]


def test_the_doctor_says_why_it_is_inactive(installed: Path) -> None:
    """Without a platform the doctor has the backend's own words, and what to do."""
    pytest.importorskip("pyopencl", reason="pyopencl is not installed")
    done = run(installed, "-m", "podium", "doctor", "--json", OCL_ICD_VENDORS=str(installed / "no"))
    (row,) = [each for each in json.loads(done.stdout)["backends"] if each["name"] == "opencl"]
    assert row["state"] == "inactive" and "OCL_ICD_VENDORS" in row["reason"]
