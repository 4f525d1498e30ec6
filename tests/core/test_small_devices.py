"""The launches that podium's commands make by themselves, on devices that can do little."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import podium
from podium._bench import copies, growth, launches
from podium._bench.room import block_in, elements_in, tile_in
from podium._cli import demo, main
from podium._cli.trial import try_device
from podium.backend import Device, Driver, Function
from podium.testing import FakeDriver

SERIAL = Path(__file__).parents[1] / "serial_backend" / "src"


@pytest.fixture
def minimal(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Blocks of eight threads on one axis, no launcher in C, and a compiler without shared memory."""
    monkeypatch.syspath_prepend(str(SERIAL))
    driver: Driver = importlib.import_module("minimal_driver").MinimalDriver()
    return driver


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give the devices of a driver class other limits."""

    def change(kind: type[Driver], **limits: Any) -> None:
        whole = kind.devices

        def devices(self: Driver) -> Sequence[Device]:
            return [replace(each, **limits) for each in whole(self)]

        monkeypatch.setattr(kind, "devices", devices)

    return change


def test_what_fits(fake: FakeDriver) -> None:
    """Blocks, elements and tiles are what is wanted, or the most that each of the limits leaves."""
    whole = fake.devices()[0]
    assert block_in(whole, 256) == 256 and elements_in(whole, 1 << 22, 256, 8) == 1 << 22
    assert block_in(replace(whole, max_threads=8), 256) == block_in(replace(whole, max_block=(8, 1, 1)), 256) == 8
    assert elements_in(replace(whole, max_grid=(3, 1, 1)), 1000, 8, 8) == 24
    assert elements_in(replace(whole, memory=1600), 1000, 8, 8) == 100

    def tile(threads: int = 1024, **limits: Any) -> int | None:
        return tile_in(replace(whole, **limits), threads, 250, 270, 8)

    assert tile() == 16 and tile(255) == tile(max_threads=64) == tile(max_shared=2047) == 8
    assert tile(max_block=(64, 4, 1)) == tile(max_block=(4, 64, 1)) == 4
    assert tile(max_grid=(16, 65535, 1)) is None and tile(max_grid=(17, 16, 1)) == 16
    assert tile(max_shared=0) is tile(max_block=(64, 1, 1)) is tile(3) is None


def test_the_smallest_device(
    minimal: Driver, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo, the doctor's trial and the bench keep to blocks of eight threads, and say what they leave out."""
    pytest.importorskip("numpy", reason="numpy is not installed")
    monkeypatch.setattr(demo, "_MOST_LAUNCHES", 2)
    monkeypatch.setattr(copies, "_SIZES", {"4 KiB": 4096, "16 MiB": 16 << 20})
    with podium.use(minimal):
        assert main(["demo"]) == 0
        out = capsys.readouterr().out
        assert "saxpy, 65536 elements" in out and out.endswith("verified\n")
        assert "tiled matrix product: left out\nno tile fits: the device has " in out
        assert try_device(minimal, 0, "interpreted").outcome == "passed"
        trial = try_device(minimal, 0, "generated")
        assert (trial.outcome, trial.reason) == ("unavailable", "the backend has no launchers in C")
        assert main(["bench", "--quick", "--json", "launch", "copy"]) == 0
        found = json.loads(capsys.readouterr().out)["results"]
    assert "median_s" in found["Launches"][launches.INTERPRETED]
    assert found["Copies"]["16 MiB"] == {"reason": "left out: the device has 1048576 bytes"}


def test_small_tiles(limit: Callable[..., None], capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """The matrix product takes the tile that fits the device, and a smaller one where only the kernel takes less."""
    pytest.importorskip("numpy", reason="numpy is not installed")
    cpu = pytest.importorskip("podium_cpu.driver", reason="podium-cpu is not installed").CpuDriver
    launched: list[tuple[str, tuple[int, int, int]]] = []
    podium.hooks.enter.add(lambda launch: launched.append((launch.kernel, launch.block)))
    monkeypatch.setattr(demo, "_ELEMENTS", 1001)
    monkeypatch.setattr(demo, "_MOST_LAUNCHES", 1)
    limit(cpu, max_threads=20, max_block=(8, 8, 1), max_shared=128, max_grid=(200, 200, 1))
    assert main(["demo", "--backend", "cpu"]) == 0
    assert "left out" not in capsys.readouterr().out
    assert set(launched) == {("saxpy", (8, 1, 1)), ("matmul", (4, 4, 1))}
    launched.clear()
    load = cpu.load

    def loads_less(self: Driver, *args: Any) -> Function:
        return replace(load(self, *args), max_threads=7)

    monkeypatch.setattr(cpu, "load", loads_less)
    assert main(["demo", "--backend", "cpu"]) == 0
    assert set(launched) == {("saxpy", (7, 1, 1)), ("matmul", (2, 2, 1))}


def test_the_bench_with_generated_launchers(
    fake: FakeDriver, limit: Callable[..., None], capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    """Every way to launch has a block that fits, and more arguments than the device takes are left out, which is said."""
    limit(FakeDriver, max_threads=8, memory=4096, max_parameter_bytes=40)
    monkeypatch.setattr(growth, "COUNTS", (0, 2, 6))
    monkeypatch.setattr(launches, "LAUNCHES", 2)
    assert main(["bench", "--quick", "launch", "growth", "copy"]) == 0
    out = capsys.readouterr().out
    assert {launch.block for launch in fake.launches} == {(8, 1, 1), (1, 1, 1)}  # one way is launched without a block
    assert "one block of 8 threads" in out and "More are left out: the device takes 40 bytes of arguments." in out
    assert "left out: the device has 4096 bytes" in out


def test_a_backend_of_another_language(
    fake: FakeDriver, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backend that compiles no CUDA dialect has no trial, and rows that say why no launch is measured."""
    monkeypatch.setattr(FakeDriver, "languages", frozenset({"binary"}))
    trial = try_device(fake, 0, "interpreted")
    assert trial.outcome == "unavailable" and "the backend compiles binary" in (trial.reason or "")
    assert main(["bench", "--quick", "--json", "launch", "growth"]) == 0
    found = json.loads(capsys.readouterr().out)["results"]
    for rows in found.values():
        assert all("does not compile 'cuda'" in figures["reason"] for figures in rows.values())
