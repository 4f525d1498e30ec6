"""``podium bench``: its tables, its JSON, its picture and its errors. What it finds is not looked at."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from plugin_distributions import site_at

from podium._active import driver_config
from podium._bench import copies, growth, launches, start
from podium._bench.suite import PARTS
from podium._cli import main
from podium._cli.console import Console
from podium.testing import FakeDriver

FIGURES = {"median_s", "lower_s", "upper_s", "min_s", "samples"}


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take few launches and few arguments."""
    monkeypatch.setattr(growth, "COUNTS", (0, 2))
    monkeypatch.setattr(launches, "LAUNCHES", 2)
    monkeypatch.setattr(copies, "_SIZES", {"4 KiB": 4096})


def bench(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Run it quickly and return the object that it prints."""
    assert main(["bench", "--quick", "--json", *words]) == 0
    streams = capsys.readouterr()
    assert streams.err == ""
    found: dict[str, Any] = json.loads(streams.out)
    return found


def check_object(found: dict[str, Any], titles: list[str]) -> None:
    """Look at what every object has."""
    assert list(found) == ["schema", "about", "results", "targets"] and found["schema"] == 1
    assert {"date", "podium", "backend", "device", "python", "processor", "cores"} <= found["about"].keys()
    assert list(found["results"]) == titles
    for rows in found["results"].values():
        for figures in rows.values():
            assert figures.keys() - {"bytes"} in (FIGURES, {"reason"})


def test_on_a_driver_without_a_device(fake: FakeDriver, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Each part has a table with a row for each way; what a process of its own would not choose is told, not measured."""
    found = bench(capsys, "--plot", str(tmp_path / "plot.svg"))
    check_object(found, ["Launches", "Arguments", "Copies", "Start"])
    assert found["about"]["backend"] == "fake"
    ways = [launches.DRIVER_CALL, launches.BOUND, launches.SUBSCRIPT, launches.STREAM, launches.ADDRESSES]
    assert list(found["results"]["Launches"]) == [*ways, launches.LOW, launches.GRAPH, launches.INTERPRETED]
    assert "2 arrays, driver call" in found["results"]["Arguments"]
    assert found["results"]["Copies"]["4 KiB, to the device"]["bytes"] == 4096
    assert "fake" in found["results"]["Start"]["processes"]["reason"]
    texts = {each.text for each in ElementTree.parse(tmp_path / "plot.svg").iter() if each.text}
    assert {*ways, "arguments", "4 KiB, to the host"} <= texts


def test_on_the_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    """Launches, and first kernels in processes of their own with an empty and a full cache."""
    pytest.importorskip("podium_cpu", reason="podium-cpu is not installed")
    found = bench(capsys, "start", "launch", "--backend", "cpu")
    check_object(found, ["Launches", "Start"])
    rows = found["results"]["Start"]
    assert {start.BARE, start.IMPORT, "choose the driver", "first kernel, empty cache"} <= rows.keys()
    assert "second kernel, full cache" in rows
    assert launches.NUMPY in found["results"]["Launches"]


def test_tables(fake: FakeDriver, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without --json there are tables, with the machine before them and the number of samples behind each."""
    assert main(["bench", "--quick", "launch", "copy", "--json", str(tmp_path / "x.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("date ") and "device fake device 0" in lines[0]
    assert "Launches" in lines and "Copies" in lines and "Start" not in lines
    row = next(line for line in lines if line.startswith(launches.BOUND + " "))
    assert re.fullmatch(r"bound launch +[\d.]+ +[\d.]+ to [\d.]+ +[\d.]+ +-?[\d.]+", row)
    assert any(re.match(r"\d+ samples of each, in turn; one is ", line) for line in lines)
    check_object(json.loads((tmp_path / "x.json").read_text()), ["Launches", "Copies"])


@pytest.mark.usefixtures("no_compiler", "cold_builds")
def test_without_a_compiler(fake: FakeDriver, capsys: pytest.CaptureFixture[str]) -> None:
    """What needs generated launchers has rows that say why it is not there; the interpreted level is measured."""
    found = bench(capsys, "launch", "growth")
    rows = found["results"]["Launches"]
    assert all("compiler" in rows[way]["reason"] for way in (launches.DRIVER_CALL, launches.BOUND, launches.SUBSCRIPT))
    assert rows[launches.INTERPRETED].keys() == FIGURES
    assert "compiler" in found["results"]["Arguments"]["generated launches"]["reason"]


def test_a_backend_whose_launches_stay_interpreted(
    fake: FakeDriver, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no launch is ever generated, as with sanitizers, none is said to be: the rows say so."""
    monkeypatch.setattr(FakeDriver.launcher_cls, "generated_level", False)
    found = bench(capsys, "launch", "growth")
    rows = found["results"]["Launches"]
    assert "stay interpreted" in rows[launches.BOUND]["reason"] and rows[launches.INTERPRETED].keys() == FIGURES
    assert "stay interpreted" in found["results"]["Arguments"]["generated launches"]["reason"]


def test_watched_launches_are_said_to_be_slow(
    fake: FakeDriver, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where debugging makes every launch slow, a note says so before the figures."""
    import podium

    with podium.debugging():
        assert main(["bench", "--quick", "launch"]) == 0
    assert "Note: debugging is on" in capsys.readouterr().out


def test_a_variable_that_makes_launches_slow_is_told_as_well() -> None:
    """PODIUM_DEBUG is read with the first launcher, and the note comes before that."""
    pytest.importorskip("podium_cpu", reason="podium-cpu is not installed")
    command = [sys.executable, "-m", "podium", "bench", "copy", "--quick", "--backend", "cpu"]
    done = subprocess.run(command, env={**os.environ, "PODIUM_DEBUG": "1"}, capture_output=True, text=True, check=True)
    assert "Note: debugging is on" in done.stdout.partition("Copies")[0]


def test_figures_are_written_though_nobody_reads_the_tables(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A pipe that is closed meanwhile costs the tables, and not the file."""

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Gone())
    assert main(["bench", "--quick", "copy", "--json", str(tmp_path / "x.json")]) == 141
    check_object(json.loads((tmp_path / "x.json").read_text()), ["Copies"])


@pytest.mark.parametrize(
    ("words", "status", "problem"),
    [
        (["lunch"], 2, "there is no part lunch; there are: launch, growth, copy, start"),
        (["--plot", "/no/such/folder/x.svg"], 2, "there is no folder /no/such/folder"),
        (["--json", "/"], 2, "--json /: that is a folder"),
        (["--backend", "gizmo"], 1, "Unknown backend 'gizmo'"),
    ],
)
def test_mistakes(words: list[str], status: int, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong use is exit code 2, a backend that there is not 1; nothing is measured or printed before."""
    assert main(["bench", *words]) == status
    streams = capsys.readouterr()
    assert problem in streams.err and streams.out == ""


def test_no_active_backend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without an active backend, and with one that is named and inactive, the reason is told and the exit code is 1."""
    with site_at(tmp_path / "site") as site:
        site.install("gpu", probe="return 'there is no /dev/gizmo0'")
        driver_config.rediscover()
        try:
            for words in ([], ["--backend", "gpu"]):
                assert main(["bench", *words]) == 1
                streams = capsys.readouterr()
                assert "there is no /dev/gizmo0" in streams.err and streams.out == ""
        finally:
            driver_config.rediscover()


class Terminal:
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, text: str) -> int:
        self.written.append(text)
        return len(text)

    def flush(self) -> None:
        """Do nothing."""

    def isatty(self) -> bool:
        return True


def test_the_bar_is_drawn_when_it_is_told_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal the bar names the part; it has no thread, so it draws nothing while something is measured."""
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with Console(stream).bar(2) as bar:  # type: ignore[arg-type]
        bar.begin("one launch", 10)
        assert "one launch" in "".join(stream.written)
        before = len(stream.written)
        for _ in range(10):
            bar.advance()
        bar.begin("copies", 1)
        assert "copies" in "".join(stream.written[before:])


def test_no_bar_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Into a file or a pipe no bar is written."""
    with Console().bar(1) as bar:
        bar.begin("one launch", 1)
        bar.advance()
    assert capsys.readouterr().out == ""


def test_each_part_is_described() -> None:
    """The help says in a few words what each part is."""
    assert list(PARTS) == ["launch", "growth", "copy", "start"] and all(PARTS.values())
