"""What only AMD's own HIP 7.2 can say, on a modelled device: its hipRTC, and code of it that is loaded and launched."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from recording.hip.isolation import MODELS
from recording.hip.machine import Modelled

import podium

pytest.importorskip("podium_amd", reason="podium-amd is not installed")
pytest.importorskip("rocm.bindings.hip", reason="hip-python is not installed")

_DIALECT = Path(__file__).with_name("amd_dialect.cu")


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.amd_model) for name in MODELS])
def hip_machine(request: pytest.FixtureRequest) -> str:
    """AMD's runtime alone: the stand-in has no compiler of its own."""
    name: str = request.param
    return name


def test_the_dialect_compiles_and_launches(hip: Modelled, level: str) -> None:
    """The names that only CUDA has compile with hipRTC of HIP 7, whose own differ; what comes out is taken and launched."""
    module = podium.module(_DIALECT.read_text(), defines={"NDEBUG": 1})
    kernel = module["rest"]
    x = podium.empty(256, "fp32")
    before = len(hip.dispatches())
    kernel[podium.LaunchConfig(2, 64, shared=512)](x, x, 128, 5, -1)
    (launch,) = hip.dispatches()[before:]
    assert (launch.grid, launch.block, launch.group) == ((2, 1, 1), (64, 1, 1), 512 + 16)
    assert launch.argument(0, 8) == launch.argument(8, 8) == x.ptr.to_bytes(8, "little")
    assert launch.argument(16, 8) == (128).to_bytes(4, "little") + (5).to_bytes(4, "little")
    target = podium.driver.get("amd").default_target()
    assert (target.arch.partition(":")[0], target.warp_size) == (hip.arch, hip.wave)
    assert kernel.attributes()["warp_size"] == hip.wave


def test_an_unknown_architecture_is_refused(hip: Modelled) -> None:
    """RTC-06: hipRTC of HIP 7 returns an error without a log for an architecture that it does not know."""
    with pytest.raises(podium.errors.CompileError, match="an architecture that it does not know: gfx999"):
        podium.kernel("__global__ void k(float *x) {}").compile(target="amd:gfx999:64")


def test_the_doctor_shows_the_device(hip: Modelled) -> None:
    """ACT-03: on AMD's own runtime the backend is active, and the doctor has the device that the runtime reports."""
    from podium._cli import main

    with redirect_stdout(StringIO()) as output:
        main(["doctor", "--json"])
    (found,) = [backend for backend in json.loads(output.getvalue())["backends"] if backend["name"] == "amd"]
    assert (found["state"], found["reason"]) == ("active", None)
    (device,) = found["devices"]["value"]
    _, arch, *_ = device["target"].split(":")
    assert (arch, int(device["target"].rpartition(":")[2])) == (hip.arch, hip.wave)
    assert "7.2" in json.dumps(found["versions"])
