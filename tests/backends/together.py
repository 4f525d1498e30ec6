"""Several real backends that are installed together: folders of them, one damaged in each, and what the doctor says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from installed import ROOT, Environment, build, plain_environment

__all__ = ["BACKENDS", "PROJECTS", "Damage", "Report", "Site", "doctors", "wheels"]

PROJECTS = {
    "amd": ROOT / "backends" / "amd",
    "cpu": ROOT / "backends" / "cpu",
    "nvidia": ROOT / "backends" / "nvidia",
    "opencl": ROOT / "examples" / "backend-opencl",
    "serial": ROOT / "tests" / "serial_backend",
}
BACKENDS = tuple(PROJECTS)
"""All that are installed together, by name: those of this repository and third parties'."""

_CLASSES = {
    "amd": "AmdDriver",
    "cpu": "CpuDriver",
    "nvidia": "NvidiaDriver",
    "opencl": "OpenclDriver",
    "serial": "SerialDriver",
}


def wheels(folder: Path) -> dict[str, Path]:
    """Build the wheels of the core ("podium") and of all backends, by name."""
    projects = {"podium": ROOT / "core", **PROJECTS}
    return {name: build(project, "wheel", folder / name) for name, project in projects.items()}


@dataclass(frozen=True)
class Site:
    """A folder with all backends as pip has installed them, in which those of one may be damaged."""

    folder: Path
    name: str

    @staticmethod
    def make(folder: Path, installed: Path, name: str) -> Site:
        """Link to all but one, and copy that one.

        Without what Python has compiled: a module that is damaged within the second of its installation, and keeps its
        size, would pass for the one that was compiled.
        """
        folder.mkdir()
        for path in installed.glob("podium_*"):
            ours = path.name.startswith(f"podium_{name}")
            if ours and path.is_dir():
                shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (folder / path.name).symlink_to(path)
        return Site(folder, name)

    @property
    def package(self) -> Path:
        """The package of the one."""
        return self.folder / f"podium_{self.name}"

    @property
    def metadata(self) -> Path:
        """Its metadata."""
        return next(self.folder.glob(f"podium_{self.name}-*.dist-info"))

    def write(self, file: str, text: str) -> None:
        """Write a module of the package, or a file of the metadata."""
        folder = self.package if file.endswith((".py", ".in")) else self.metadata
        (folder / file).write_text(text)

    def replace(self, file: str, old: str, new: str) -> None:
        """Replace a piece of a module that must be there."""
        text = (self.package / file).read_text()
        assert old in text
        (self.package / file).write_text(text.replace(old, new))

    def method(self, name: str, body: str, decorator: str = "") -> None:
        """Give the driver class another method; `body` is its one statement."""
        text = (
            f"\n\ndef _other(self, *args, **options): {body}\n\n\n{_CLASSES[self.name]}.{name} = {decorator}(_other)\n"
        )
        with (self.package / "driver.py").open("a") as file:
            file.write(text)

    def reason(self, body: str) -> None:
        """Let what says whether the backend can run here do something else, in the plug-in and in the driver."""
        self.method("inactive_reason", body, "classmethod")
        text = (self.package / "plugin.py").read_text()
        if "def podium_inactive_reason" in text:
            head = "def podium_inactive_reason() -> str | None:\n"
            self.replace("plugin.py", head, f"{head}    {body}\n\n\ndef unused() -> str | None:\n")


Damage = Callable[[Site], object]


@dataclass(frozen=True)
class Report:
    """What ``podium doctor --json`` printed, and its exit code."""

    status: int
    data: Mapping[str, Any]

    def row(self, name: str) -> tuple[Any, ...] | None:
        """Return what the table says of a backend; None if it is not in it."""
        keys = ("distribution", "version", "state", "reason")
        return next((tuple(each[key] for key in keys) for each in self.data["backends"] if each["name"] == name), None)

    @property
    def chosen(self) -> str | None:
        """The backend that is marked as the chosen one."""
        name: str | None = self.data["choice"]["backend"]
        return name

    @property
    def findings(self) -> str:
        """What is to be done, as one text."""
        return "\n".join(f"{each['subject']}: {each['problem']}: {each['action']}" for each in self.data["findings"])


_PROGRAM = """
import json, os, platform, sys
import pluggy, podium.backend
from podium import _build, _dlpack, _extension, _generated
from podium._cli import doctor, main, trial
for folder in sys.argv[2:]:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        sys.path.insert(0, folder)
        os.dup2(writer, 1)
        status = main(["doctor", "--json"])
        sys.stdout.flush()
        os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as file:
        printed = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(sys.argv[1], "a") as file:
        print(json.dumps([folder, status, printed]), file=file)
"""


def doctors(environment: Environment, folders: list[Path], answers: Path, **variables: str) -> dict[Path, Report]:
    """Run the doctor in each of some folders, each in a process that has found no backend yet.

    They are forked from one that has imported podium, since starting Python so often would take long.
    """
    core = answers.with_suffix(".core")
    core.mkdir()
    for path in environment.packages.iterdir():
        if path.name == "podium" or path.name.startswith("podium-"):
            (core / path.name).symlink_to(path)
    path = os.pathsep.join(map(str, (core, environment.dependencies)))
    given = {**plain_environment(), **environment.variables, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    # Without site: what is installed beside these tests must not be found.
    command = [sys.executable, "-S", "-c", _PROGRAM, str(answers), *map(str, folders)]
    done = subprocess.run(command, env=given | variables, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    reports = {}
    for line in answers.read_text().splitlines():
        folder, status, printed = json.loads(line)
        assert printed.startswith("{"), f"{folder}: {printed}\n{done.stderr}"
        reports[Path(folder)] = Report(status, json.loads(printed))
    return reports
