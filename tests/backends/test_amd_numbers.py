"""The conformance suite on the stand-in with kernels that run, and on AMD's own runtime with a modelled device."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from recording.hip.compiling import MISSING, hiprtc
from recording.hip.isolation import MODEL
from recording.hip.library import compiler, environment
from recording.hip.machine import RUNTIME, build_model, interpreter, why_no_model

pytest.importorskip("podium_amd", reason="podium-amd is not installed")
pytest.importorskip("rocm.bindings", reason="hip-python is not installed")
pytest.importorskip("podium_cpu", reason="podium-cpu is not installed")

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler for the recording HIP runtime")

SUITE = Path(__file__).parents[1] / "recording" / "hip" / "suite.py"


def passed(folder: Path, command: list[str], variables: dict[str, str], chosen: str) -> int:
    """Run the suite in a process of its own, which must have no failure, and return how many tests passed."""
    path = os.pathsep.join([str(SUITE.parents[2]), *filter(None, sys.path)])
    done = subprocess.run(
        [*command, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={folder}", str(SUITE), "-k", chosen],
        cwd=folder,
        env={**variables, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    found = re.search(r"(\d+) passed", done.stdout)
    assert found is not None, done.stdout[-6000:]
    return int(found[1])


def test_real_kernels_give_real_numbers(tmp_path: Path) -> None:
    """Kernels of the suite, compiled by hipRTC and handed over by the launchers, compute what numpy does in their twins."""
    real = hiprtc()
    if real is None:
        pytest.skip(MISSING)
    variables = environment(arch="gfx1030", hiprtc=Path(real), SUITE="twins")
    assert passed(tmp_path, [sys.executable], variables, "not warm and (generated or saxpy)") >= 19


@pytest.mark.amd_model
def test_contracts_hold_on_amds_own_runtime(tmp_path: Path) -> None:
    """As far as they show without running a kernel; priorities and cooperative grids are what a modelled device lacks."""
    reason = why_no_model()
    if reason:
        pytest.skip(reason)
    model, clearing = build_model(tmp_path)
    variables = {**os.environ, "SUITE": "model", MODEL: str(model)}
    command = interpreter(Path(os.environ[RUNTIME]).resolve(), sys.executable, clearing)
    chosen = "not warm and not interpreted and not made_and_given and not cooperative"
    assert passed(tmp_path, command, variables, chosen) >= 20
