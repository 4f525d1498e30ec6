"""Distributions as users get them: wheels, built with the hatchling that is installed, and where they are installed.

No network is needed: everything is installed without an index, and what the distributions depend on is linked to.
"""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sys
import venv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Environment", "build", "link_dependencies", "plain_environment", "run"]

ROOT = Path(__file__).parent.parent


def plain_environment() -> dict[str, str]:
    """Return the variables of this process without those that lead back to the repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PODIUM_", "PYTHON", "VIRTUAL_"))}


def run(command: list[str], folder: Path, **environment: str) -> str:
    """Run a command in a folder, which must succeed, and return what it prints."""
    variables = plain_environment() | environment
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(project: Path, target: str, folder: Path) -> Path:
    """Build a wheel or a source distribution of a project into a folder."""
    run([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)], project)
    (made,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made


def link_dependencies(folder: Path, *, metadata: bool = False) -> Path:
    """Make a folder with all that is installed here, but for podium itself and what leads back to the repository.

    With the `metadata` of podium's core, pip takes that for installed.
    """
    folder.mkdir()
    for base in site.getsitepackages():
        for path in sorted(Path(base).iterdir()):
            leads_back = path.name.lower().startswith(("podium", "__editable__")) or path.suffix == ".pth"
            if not leads_back or (metadata and re.fullmatch(r"podium-[\d.]+\.dist-info", path.name)):
                (folder / path.name).symlink_to(path)
    return folder


@dataclass(frozen=True)
class Environment:
    """A virtual environment that has wheels, and their dependencies but nothing else of the environment of the tests."""

    folder: Path
    python: Path
    dependencies: Path

    @staticmethod
    def make(folder: Path, wheels: Iterable[Path]) -> Environment:
        """Make it in a folder."""
        venv.create(folder / "venv", with_pip=False, symlinks=True)
        made = Environment(folder, folder / "venv" / "bin" / "python", link_dependencies(folder / "dependencies"))
        made.pip("install", *map(str, wheels))
        return made

    def copy(self, folder: Path) -> Environment:
        """Make another one that has the same installed, and that can be changed."""
        venv.create(folder / "venv", with_pip=False, symlinks=True)
        made = Environment(folder, folder / "venv" / "bin" / "python", self.dependencies)
        shutil.copytree(self.packages, made.packages, dirs_exist_ok=True)
        return made

    @property
    def packages(self) -> Path:
        """The folder that pip installs into."""
        (folder,) = (self.folder / "venv" / "lib").glob("python*/site-packages")
        return folder

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that its Python is run with."""
        return {"PYTHONPATH": str(self.dependencies), "PODIUM_CACHE_DIR": str(self.folder / "cache")}

    def pip(self, command: str, *arguments: str) -> None:
        """Install or uninstall something."""
        run([*self.pip_command(command), *arguments], self.folder)

    def pip_command(self, command: str) -> list[str]:
        """Return what installs or uninstalls here, without what."""
        options = {"install": ("--no-deps", "--no-index", "--force-reinstall"), "uninstall": ("--yes",)}[command]
        return [sys.executable, "-m", "pip", "--python", str(self.python), command, "--quiet", *options]

    def run(self, *arguments: str, **environment: str) -> str:
        """Run its Python."""
        return run([str(self.python), *arguments], self.folder, **{**self.variables, **environment})
