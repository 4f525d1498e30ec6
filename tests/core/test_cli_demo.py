"""``podium demo``: what it shows, and that it tells a wrong result."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plugin_distributions import site_at

from podium._active import driver_config
from podium._cli import demo, main
from podium._cli.trial import KERNELS
from podium.testing import FakeDriver

pytest.importorskip("numpy", reason="numpy is not installed")


@pytest.fixture
def cpu() -> None:
    """The test needs the CPU backend."""
    pytest.importorskip("podium_cpu", reason="podium-cpu is not installed")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that take no time, and are no multiples of block and tile."""
    monkeypatch.setattr(demo, "_ELEMENTS", 1001)
    monkeypatch.setattr(demo, "_MOST_LAUNCHES", 2)
    for name, size in (("_ROWS", 18), ("_COLUMNS", 35), ("_INNER", 21)):
        monkeypatch.setattr(demo, name, size)


@pytest.mark.usefixtures("cpu")
def test_the_whole_demo() -> None:
    """In a process of its own the demo shows backends, device, both kernels with times, and that they are right."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "podium", "demo", "--backend", "cpu"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["backend", "distribution", "state", "priority", "reason"]
    assert any(line.startswith("* chosen: cpu, since ") for line in lines)
    assert any(line.startswith("device: cpu 0, ") for line in lines)
    assert "saxpy, 4194304 elements" in lines
    assert "tiled matrix product, 250x330 times 330x270" in lines
    assert sum(line.startswith("first launch, with compiling and loading: ") for line in lines) == 2
    assert sum(line.startswith("warm launch, generated launcher: ") for line in lines) == 2
    assert lines[-1] == "verified"


@pytest.mark.oldest
@pytest.mark.usefixtures("cpu", "small", "cold_builds")
@pytest.mark.parametrize("level", ["auto", "interpreted", "generated"])
def test_levels(level: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The level before and after the background build is shown; a pinned one stays."""
    monkeypatch.setenv("PODIUM_LAUNCHER", level)
    assert main(["demo", "--backend", "cpu"]) == 0
    out = capsys.readouterr().out
    shown = [word for word in ("interpreted", "generated") if f"warm launch, {word} launcher" in out]
    assert shown[-1:] == (["interpreted"] if level == "interpreted" else ["generated"])
    if level != "auto":
        assert len(shown) == 1


@pytest.mark.usefixtures("cpu", "small")
@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [("saxpy", "a * x[i] + y[i]", "a * x[i] - y[i]"), ("matmul", "start += TILE", "start += 2 * TILE")],
)
def test_a_wrong_result_is_told(
    name: str,
    right: str,
    wrong: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A kernel that computes something else is an error with exit code 1, and nothing is called verified."""
    for path in KERNELS.iterdir():
        text = path.read_text()
        assert path.stem != name or text.count(right) == 1
        (tmp_path / path.name).write_text(text.replace(right, wrong) if path.stem == name else text)
    monkeypatch.setattr(demo, "KERNELS", tmp_path)
    assert main(["demo", "--backend", "cpu"]) == 1
    streams = capsys.readouterr()
    assert "the result is wrong" in streams.err
    assert "verified" not in streams.out


@pytest.mark.usefixtures("small")
def test_a_device_that_computes_nothing(fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    """A driver that launches but executes nothing does not pass."""
    assert main(["demo"]) == 1
    assert "the result is wrong" in capsys.readouterr().err


def test_numpy_is_needed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without numpy the demo says what to install."""
    genuine = builtins.__import__

    def refuse(name: str, *args: Any, **keywords: Any) -> Any:
        if name == "numpy":
            raise ImportError("No module named 'numpy'")
        return genuine(name, *args, **keywords)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert main(["demo"]) == 1
    assert "pip install 'podium[demo]'" in capsys.readouterr().err


@pytest.fixture
def nothing_active(tmp_path: Path) -> Iterator[None]:
    """One backend is installed, and it cannot run here."""
    with site_at(tmp_path / "site") as site:
        site.install("gpu", probe="return 'there is no /dev/gizmo0'")
        driver_config.rediscover()
        yield
    driver_config.rediscover()


@pytest.mark.usefixtures("nothing_active")
def test_no_active_backend(capsys: pytest.CaptureFixture[str]) -> None:
    """Without an active backend the table is shown and the error says what to do."""
    assert main(["demo"]) == 1
    streams = capsys.readouterr()
    assert "there is no /dev/gizmo0" in streams.out
    assert "install podium-cpu" in streams.err


def test_the_kernels_are_package_data() -> None:
    """The demo's kernels are files beside its code, so that they come with the wheel."""
    import podium

    assert sorted(os.listdir(KERNELS)) == ["matmul.cu", "saxpy.cu"]
    assert Path(podium.__path__[0]) in KERNELS.parents
