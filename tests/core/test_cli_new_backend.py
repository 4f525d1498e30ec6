"""``podium new-backend``: the distribution that it writes, and the names and the places that it refuses."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_distributions import Site

from podium._cli import main
from podium._plugin_api import API_VERSION

LONGEST = "a-name-of-forty-characters-and-no-more-x"

FILES = """
.github/workflows/test.yml
.gitignore
README.md
pyproject.toml
src/{package}/__init__.py
src/{package}/detection.py
src/{package}/driver.py
src/{package}/launch.c.in
src/{package}/launcher.py
src/{package}/plugin.py
src/{package}/py.typed
tests/test_conformance.py
"""


def files_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, status: int) -> str:
    """Return what the command says when it refuses."""
    assert main(["new-backend", *arguments]) == status
    output = capsys.readouterr()
    assert output.out == "" and output.err.startswith("podium new-backend: ") and output.err.count("\n") == 1
    return output.err


def test_it_writes_a_whole_distribution(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All files are there, with the names put in, and the next command is said; a name may have hyphens and digits."""
    assert main(["new-backend", "my-chip2", "--into", str(tmp_path)]) == 0
    folder = tmp_path / "podium-my-chip2"
    assert list(tmp_path.iterdir()) == [folder]
    assert files_of(folder) == set(FILES.format(package="podium_my_chip2").split())
    left = re.compile(r"@[A-Z]+@")
    assert [path for path in folder.rglob("*") if path.is_file() and left.search(path.read_text())] == []
    assert 'my_chip2 = "podium_my_chip2.plugin"' in (folder / "pyproject.toml").read_text()
    assert "class MyChip2Driver(Driver):" in (folder / "src/podium_my_chip2/driver.py").read_text()
    assert f"PODIUM_API = {API_VERSION}\n" in (folder / "src/podium_my_chip2/plugin.py").read_text()
    assert f"Next: cd {folder}; pip install -e '.[test]'; podium doctor\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("podium-mine", "leave out 'podium-'"),
        ("Mine", "small letters"),
        ("9lives", "begins with a letter"),
        ("a--b", "single hyphens"),
        ("a.b", "small letters"),
        ("../a", "small letters"),
        ("é", "small letters"),
        ("", "begins with a letter"),
        (f"{LONGEST}y", "at most 40 characters"),
        ("lambda", "a word of Python's own"),
    ],
)
def test_names_that_no_backend_can_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    """A name that is no name of a package, of a distribution or of a backend is a wrong use, and says what one is."""
    said = refused(capsys, name, "--into", str(tmp_path), status=2)
    assert text in said and repr(name) in said
    assert list(tmp_path.iterdir()) == []


def test_names_that_are_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a backend that is installed is refused, and so is one whose package is there for something else."""
    Site(tmp_path / "site").install("mine", distribution="vendor-mine", version="7.0", package="vendor_mine")
    (tmp_path / "site" / "podium_other.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    importlib.invalidate_caches()
    into = ["--into", str(tmp_path)]
    assert "vendor-mine 7.0 provides a backend 'mine' here already" in refused(capsys, "mine", *into, status=1)
    assert "A package 'podium_other' is installed here already" in refused(capsys, "other", *into, status=1)
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the folder's name is taken, by a folder, a file or a link to nowhere, it stays as it is."""
    (tmp_path / "podium-folder").mkdir()
    (tmp_path / "podium-file").write_text("mine")
    (tmp_path / "podium-link").symlink_to("nowhere")
    for name in ("folder", "file", "link"):
        said = refused(capsys, name, "--into", str(tmp_path), status=1)
        assert "is there already, and nothing is overwritten" in said
    assert list((tmp_path / "podium-folder").iterdir()) == []
    assert (tmp_path / "podium-file").read_text() == "mine" and os.readlink(tmp_path / "podium-link") == "nowhere"
    assert "is no folder" in refused(capsys, "mine", "--into", str(tmp_path / "missing"), status=2)
    assert "is no folder" in refused(capsys, "mine", "--into", str(tmp_path / "podium-file"), status=2)


def test_what_cannot_be_written_whole_is_taken_away(tmp_path: Path) -> None:
    """A disk that is full leaves no half of a distribution behind, and the error names the file."""

    def no_large_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    done = subprocess.run(
        [sys.executable, "-B", "-m", "podium", "new-backend", "mine", "--into", str(tmp_path)],
        preexec_fn=no_large_files,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("podium new-backend: ")
    assert list(tmp_path.iterdir()) == []


def test_it_is_inactive_before_the_first_edit(tmp_path: Path) -> None:
    """The doctor shows the backend as inactive, with a reason that says which function of which file comes first."""
    assert main(["new-backend", "mine", "--into", str(tmp_path)]) == 0
    site = Site(tmp_path / "podium-mine" / "src")
    site.add_metadata("podium-mine", "0.1.0", "[podium]\nmine = podium_mine.plugin\n")
    done = site.run("import sys; from podium._cli import main; sys.exit(main(['doctor', '--json']))\n")
    (backend,) = json.loads(done.stdout)["backends"]
    detection = site.folder / "podium_mine" / "detection.py"
    assert (backend["state"], backend["priority"]) == ("inactive", 50)
    assert backend["reason"] == f"nothing is written yet: begin with inactive_reason() in {detection}"
    # What is not written yet says so, too.
    code = "from podium_mine.driver import MineDriver\nMineDriver().devices()\n"
    assert f"devices() is still to be written, in {site.folder / 'podium_mine' / 'driver.py'}" in site.run(code).stderr


@pytest.mark.newest
@pytest.mark.skipif(
    importlib.util.find_spec("ruff") is None or importlib.util.find_spec("mypy") is None,
    reason="ruff and mypy are not installed",
)
def test_what_it_writes_is_clean(tmp_path: Path) -> None:
    """ruff and mypy --strict have nothing to say, with the settings that it writes, and whatever the length of the name."""
    assert main(["new-backend", LONGEST, "--into", str(tmp_path)]) == 0
    folder = tmp_path / f"podium-{LONGEST}"
    for command in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy", "--follow-imports=silent"]):
        done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
