"""Measuring on the NVIDIA backend: what is compared with launches is the same call of the driver."""

from __future__ import annotations

import json

import pytest
from nvidia_recorded import at_level, shape, told
from recording.cuda.library import Recording

import podium
from podium._bench import launches
from podium._bench.driver_loop import driver_loop
from podium._cli import main


def test_the_loop_calls_the_driver_as_launches_do(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop in C tells the driver what a bound launch tells it, as often as it was made for."""
    kernel = at_level(monkeypatch, "generated")["saxpy"]
    x, y = podium.empty(64), podium.empty(64)
    stream = podium.Stream()
    launch = kernel[1, 32]
    (ours,) = told(recording, lambda: launch(y, x, 2.0, 64, stream=stream))
    two = int.from_bytes(b"\0\0\0\x40", "little")  # 2.0f
    loop = driver_loop(kernel, 32, 0, stream.handle, (y.ptr, x.ptr, two, 64), 5)
    theirs = told(recording, loop)
    assert [shape(each) for each in theirs] == [shape(ours)] * 5


def test_bench(recording: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    """`podium bench` has rows for all ways, and says on what device and with what versions."""
    assert main(["bench", "--quick", "--json", "launch", "--backend", "nvidia"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["about"]["backend"] == "nvidia" and "Recording" in found["about"]["device"]
    assert "driver" in found["about"]
    rows = found["results"]["Launches"]
    assert [name for name, figures in rows.items() if "reason" in figures] == []
    assert {launches.DRIVER_CALL, launches.BOUND, launches.SUBSCRIPT, launches.INTERPRETED} <= rows.keys()
