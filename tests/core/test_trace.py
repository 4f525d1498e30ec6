"""The trace file: what a viewer reads, at any moment, whatever was launched."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from fake_launching import LEVELS

import podium
from podium.errors import LaunchError
from podium.testing import FakeArray, FakeDriver

SOURCE = "__global__ void k(float* x, int n, double a) {}"


def strictly(text: str) -> Any:
    """Read JSON as a viewer does, which knows neither NaN nor infinities."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def unfinished(text: str) -> Any:
    """Read a trace that was cut off: the format lets the end be missing."""
    return strictly(text.rstrip().rstrip(",") + "]")


def test_launches_compiles_and_loads_are_traced(fake: FakeDriver, level: str, tmp_path: Path) -> None:
    """A trace has every compile, load and launch of its block, with what hooks know, in microseconds."""
    path = tmp_path / "trace.json"
    kernel = podium.kernel(SOURCE)
    with podium.trace(path):
        kernel[3, (4, 2)](FakeArray(0x40, 1), 7, 1.5, stream=9)
        kernel[1, 1](None, 1, 2.0)
    kernel[1, 1](None, 1, 2.0)
    events = strictly(path.read_text())
    assert [event["cat"] for event in events[:-1]] == ["compile", "load", "launch", "load", "launch"]
    launch = events[2]
    assert (launch["name"], launch["ph"], launch["pid"]) == ("k", "X", os.getpid())
    assert launch["dur"] >= 0 and launch["ts"] >= events[0]["ts"]
    assert launch["args"] == {
        "backend": "fake",
        "device": 1,
        "stream": "0x9",
        "grid": [3, 1, 1],
        "block": [4, 2, 1],
        "shared": 0,
        "arguments": {"x": "0x40", "n": 7, "a": 1.5},
    }
    assert events[0]["name"] == "compile k" and events[0]["args"]["cached"] is False
    assert events[-1]["name"] == "end of trace"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**300, True])
def test_any_value_is_valid_json(fake: FakeDriver, level: str, tmp_path: Path, value: Any) -> None:
    """Numbers that JSON does not have are written as text."""
    path = tmp_path / "trace.json"
    with podium.trace(path):
        podium.kernel(SOURCE)[1, 1](None, 1, value)
    (launch,) = (event for event in strictly(path.read_text()) if event.get("cat") == "launch")
    assert launch["args"]["arguments"]["a"] in (value, str(value))


def test_a_failed_launch_is_in_the_trace(fake: FakeDriver, level: str, tmp_path: Path) -> None:
    """LIF-09: a refused launch is traced with its error."""
    path = tmp_path / "trace.json"
    fake.next_status = 7
    with podium.trace(path), pytest.raises(LaunchError):
        podium.kernel(SOURCE)[1, 1](None, 1, 1.0)
    assert "FAKE_ERROR_7" in strictly(path.read_text())[2]["args"]["error"]


def test_the_file_is_readable_while_it_grows(fake: FakeDriver, tmp_path: Path) -> None:
    """After each event, and after a crash, the file is a trace that a viewer takes."""
    path = tmp_path / "trace.json"
    trace = podium.trace(path).start()
    assert path.read_text() == "[\n"
    assert trace.start() is trace
    podium.kernel(SOURCE)[1, 1](None, 1, 1.0)
    assert len(unfinished(path.read_text())) == 3
    trace.stop()
    text = path.read_text()
    trace.stop()
    assert path.read_text() == text and len(strictly(text)) == 4
    assert not podium.hooks.exit.any() and not podium.hooks.compile.any() and not podium.hooks.load.any()


def test_two_traces_at_once(fake: FakeDriver, tmp_path: Path) -> None:
    """HKS-06: traces do not disturb each other."""
    kernel = podium.kernel(SOURCE)
    with podium.trace(tmp_path / "outer"):
        kernel[1, 1](None, 1, 1.0)
        with podium.trace(tmp_path / "inner"):
            kernel[1, 1](None, 1, 1.0)
    launches = [
        sum(event.get("cat") == "launch" for event in strictly((tmp_path / name).read_text()))
        for name in ("outer", "inner")
    ]
    assert launches == [2, 1]


def test_a_file_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    """The trace says at its start that it cannot be written, and leaves no hook behind."""
    with pytest.raises(OSError):
        podium.trace(tmp_path / "missing" / "trace.json").start()
    assert not podium.hooks.exit.any()


PROGRAM = """
    import os, sys
    import podium
    from podium.testing import FakeDriver
    class Safe(FakeDriver):
        fork_safe = True
    podium.set_active(Safe())
    kernel = podium.kernel("__global__ void k(int n) {}")
    kernel[1, 1](1)
"""


def traced(tmp_path: Path, level: str, more: str = "") -> Any:
    environment = {**os.environ, "PODIUM_TRACE": str(tmp_path / "trace.json"), "PODIUM_LAUNCHER": level}
    program = textwrap.dedent(PROGRAM) + textwrap.dedent(more)
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.stderr == ""
    return (tmp_path / "trace.json").read_text()


@pytest.mark.parametrize("level", LEVELS)
def test_the_variable_traces_the_whole_process(tmp_path: Path, level: str) -> None:
    """PODIUM_TRACE traces from the first launch to the end of the process."""
    events = strictly(traced(tmp_path, level))
    assert [event.get("cat") for event in events] == ["compile", "load", "launch", None]


def test_a_forked_child_does_not_write_into_the_trace_of_its_parent(tmp_path: Path) -> None:
    """ACT-06: the launches and the end of a child leave the parent's file alone."""
    text = traced(
        tmp_path,
        "interpreted",
        """
        child = os.fork()
        if child == 0:
            kernel[2, 1](2)
            sys.exit(0)
        os.waitpid(child, 0)
        kernel[3, 1](3)
        """,
    )
    launches = [event for event in strictly(text) if event.get("cat") == "launch"]
    assert [event["args"]["grid"][0] for event in launches] == [1, 3]


def test_a_killed_process_leaves_a_trace(tmp_path: Path) -> None:
    """After a crash the events so far are there."""
    environment = {**os.environ, "PODIUM_TRACE": str(tmp_path / "trace.json"), "PODIUM_LAUNCHER": "interpreted"}
    program = textwrap.dedent(PROGRAM) + "os.kill(os.getpid(), 9)\n"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment)
    assert run.returncode == -9
    assert len(unfinished((tmp_path / "trace.json").read_text())) == 3


@pytest.mark.parametrize("place", ["missing/trace.json", "."])
def test_a_trace_that_cannot_be_written_names_the_variable(tmp_path: Path, level: str, place: str) -> None:
    """PODIUM_TRACE to a folder that is not there, or to a folder, is a setting error that names variable and path."""
    path = str(tmp_path / place)
    program = """
        import podium
        from podium.errors import SettingError
        from podium.testing import FakeDriver
        podium.set_active(FakeDriver())
        for _ in range(2):
            try:
                podium.kernel("__global__ void k(int n) {}")[1, 1](1)
            except SettingError as error:
                print(error.variable, error)
    """
    environment = {**os.environ, "PODIUM_TRACE": path}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.stderr == "" and run.returncode == 0
    for line in run.stdout.splitlines():
        assert line.startswith("PODIUM_TRACE PODIUM_TRACE=") and str(tmp_path) in line and "can be written" in line
    assert len(run.stdout.splitlines()) == 2
