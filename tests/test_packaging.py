"""The distributions as users get them: what is in them, and that an installed copy works without the repository."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

import pytest
from installed import ROOT, Environment, build

PROJECTS = [ROOT / "core", *sorted(path.parent for path in (ROOT / "backends").glob("*/pyproject.toml"))]
IDS = [project.name for project in PROJECTS]


@dataclass(frozen=True)
class Built:
    """A project, with the wheel and the source distribution made from it."""

    project: Path
    wheel: Path
    sdist: Path

    @property
    def package(self) -> Path:
        """The import package in the repository."""
        return next(path.parent for path in (self.project / "src").glob("*/_version.py"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Built]:
    """Build every project once."""
    folder = tmp_path_factory.mktemp("dist")
    return {
        project: Built(
            project,
            build(project, "wheel", folder / f"{project.name}-wheel"),
            build(project, "sdist", folder / f"{project.name}-sdist"),
        )
        for project in PROJECTS
    }


def files_in(package: Path) -> dict[str, bytes]:
    """Return what a wheel must have of a package: all files but those that Python makes."""
    return {
        path.relative_to(package.parent).as_posix(): path.read_bytes()
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
        if not any(part.startswith(".") for part in path.relative_to(package).parts)  # caches of tools
    }


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def metadata_of(wheel: Path) -> dict[str, list[str]]:
    (name,) = [name for name in contents(wheel) if name.endswith(".dist-info/METADATA")]
    message = message_from_bytes(contents(wheel)[name])
    return {key: [str(value) for value in message.get_all(key, [])] for key in message}


@pytest.mark.parametrize("project", PROJECTS, ids=IDS)
def test_the_wheel_has_exactly_the_package(built: dict[Path, Built], project: Path) -> None:
    """A wheel holds every file of its package, unchanged, the licence, and nothing else."""
    held = contents(built[project].wheel)
    package = {name: data for name, data in held.items() if ".dist-info/" not in name}
    assert package == files_in(built[project].package)
    assert any(name.endswith("/licenses/LICENSE") for name in held)


def test_the_wheels_have_what_is_no_python(built: dict[Path, Built]) -> None:
    """C headers, launcher templates, the kernels of the command line and the markers for type checkers are shipped."""
    core = set(contents(built[ROOT / "core"].wheel))
    assert {"podium/py.typed", "podium/include/podium_launch.h", "podium/include/podium_module.h"} <= core
    assert any(name.startswith("podium/_cli/kernels/") and name.endswith(".cu") for name in core)
    scaffold = "podium/_cli/scaffold/"
    assert {
        f"{scaffold}pyproject.toml.in",
        f"{scaffold}dot_gitignore.in",
        f"{scaffold}src/PACKAGE/launch.c.in.in",
    } <= core
    for project in PROJECTS[1:]:
        names = set(contents(built[project].wheel))
        package = built[project].package.name
        assert {f"{package}/py.typed", f"{package}/launch.c.in"} <= names


@pytest.mark.parametrize("project", PROJECTS, ids=IDS)
def test_the_source_distribution_builds_the_same_wheel(built: dict[Path, Built], project: Path, tmp_path: Path) -> None:
    """Who builds from the source distribution gets the very wheel that the repository builds."""
    with tarfile.open(built[project].sdist) as archive:
        archive.extractall(tmp_path, **({"filter": "data"} if sys.version_info >= (3, 12) else {}))
    (unpacked,) = tmp_path.iterdir()
    assert {"README.md", "LICENSE", "pyproject.toml", "PKG-INFO"} <= {path.name for path in unpacked.iterdir()}
    again = build(unpacked, "wheel", tmp_path / "again")
    assert contents(again) == contents(built[project].wheel)


def test_the_metadata_agree(built: dict[Path, Built]) -> None:
    """All distributions have one version, licence and range of Pythons; a backend asks for the core of its series."""
    metadata = {project: metadata_of(each.wheel) for project, each in built.items()}
    for key in ("Version", "License-Expression", "Requires-Python"):
        assert len({tuple(each[key]) for each in metadata.values()}) == 1, key
    (version,) = metadata[ROOT / "core"]["Version"]
    series = ".".join(version.split(".")[:2])
    for project, each in metadata.items():
        assert each["Summary"]
        assert each.get("Description-Content-Type") == ["text/markdown"], project
        if project != ROOT / "core":
            assert f"podium~={series}.0" in each["Requires-Dist"]
            entries = contents(built[project].wheel)
            (listed,) = [data.decode() for name, data in entries.items() if name.endswith("/entry_points.txt")]
            assert f"[podium]\n{project.name} = {built[project].package.name}.plugin" in listed


@pytest.fixture(scope="module")
def installed(built: dict[Path, Built], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Install the wheels into a new virtual environment."""
    return Environment.make(tmp_path_factory.mktemp("installed"), [each.wheel for each in built.values()])


PROGRAM = f"""
import os, sys
root = {str(ROOT)!r} + os.sep
def watch(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)) and os.fsdecode(args[0]).startswith(root):
        print("opened", args[0])
sys.addaudithook(watch)
import podium
kernel = podium.kernel('''
__global__ void saxpy(int n, float a, const float* x, float* y) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}}''')
x, y = podium.asarray([1.0, 2.0, 3.0]), podium.asarray([10.0, 20.0, 30.0])
kernel[1, 32](3, 2.0, x, y)
print(y.tolist(), kernel.level)
for name, module in sys.modules.items():
    if name.partition(".")[0].startswith("podium") and not (module.__file__ or "").startswith(sys.prefix):
        print("not from the environment:", name, module.__file__)
"""


@pytest.mark.parametrize("level", ["interpreted", "generated"])
def test_an_installed_copy_runs_a_kernel_by_itself(installed: Environment, level: str) -> None:
    """The installed wheels compile, load and launch a kernel at either level and open no file of the repository."""
    assert installed.run("-c", PROGRAM, PODIUM_LAUNCHER=level) == f"[12.0, 24.0, 36.0] {level}\n"


def test_an_installed_copy_has_its_command(installed: Environment) -> None:
    """The command is installed, knows its version, and its demo runs."""
    command = str(installed.python.parent / "podium")
    (version,) = metadata_of_installed(installed)
    assert version in installed.run(command, "--version")
    assert "cpu" in installed.run(command, "doctor")
    installed.run(command, "demo")
    installed.run(command, "new-backend", "mine")
    assert (installed.folder / "podium-mine" / ".github" / "workflows" / "test.yml").is_file()


def metadata_of_installed(installed: Environment) -> set[str]:
    names = "podium", *(f"podium-{project.name}" for project in PROJECTS[1:])
    code = f"from importlib.metadata import version\nprint(*map(version, {names!r}))"
    return set(installed.run("-c", code).split())
