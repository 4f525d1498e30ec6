"""podium-nvidia as podium finds it: the table of the doctor, the choice beside the CPU backend, and explicit choices."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from recording.cuda.library import compiler, environment

pytest.importorskip("cuda.bindings", reason="cuda-python is not installed")
pytestmark = [
    pytest.mark.skipif(compiler() is None, reason="there is no C compiler for the recording library"),
    pytest.mark.skipif(
        not entry_points(group="podium", name="nvidia"), reason="podium-nvidia is not installed, only importable"
    ),
]

CHOICE = """
import json, sys, podium
from podium.errors import PodiumError
told = [podium.driver.active.name]
for name in ("nvidia", "cpu"):
    try:
        with podium.use(name) as driver:
            told.append(driver.name)
    except PodiumError as error:
        told.append([type(error).__name__, str(error)])
print(json.dumps([told, sorted({"cuda.bindings.driver", "ctypes", "podium_nvidia.api"} & set(sys.modules))]))
"""


def run(*arguments: str, **variables: str) -> Any:
    """Run Python where the recording driver stands for a GPU, and read what it prints."""
    changed = {**environment(), **variables}
    kept = {name: value for name, value in changed.items() if value != "unset"}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=kept, timeout=300)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def doctor(**variables: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the doctor says of the choice and of the backend."""
    report = run("-m", "podium", "doctor", "--json", **variables)
    (row,) = [backend for backend in report["backends"] if backend["name"] == "nvidia"]
    assert (row["distribution"], row["priority"], row["api"]) == ("podium-nvidia", 100, 1)
    return report["choice"], row


def test_a_gpu_is_chosen_before_the_cpu() -> None:
    """ACT-03, ACT-04: with a GPU both backends are active, and priority takes the GPU; its devices are listed."""
    choice, row = doctor()
    assert choice["backend"] == "nvidia"
    assert "its priority 100 is the highest" in choice["why"]
    assert (row["state"], row["reason"]) == ("active", None)
    devices = row["devices"]["value"]
    assert [device["target"] for device in devices] == ["nvidia:sm_90:32"] * len(devices)
    assert row["toolchains"]["cuda"]["value"].startswith("NVRTC ")


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="this machine has an NVIDIA GPU")
def test_without_a_gpu_the_cpu_is_chosen() -> None:
    """ACT-02: without a GPU the backend is inactive with its reason, and the CPU takes its place by itself."""
    choice, row = doctor(PODIUM_NVIDIA_LIBCUDA="unset")
    assert choice["backend"] == "cpu"
    assert row["state"] == "inactive"
    assert "NVIDIA" in row["reason"]
    assert row["devices"] is None


def test_a_mask_leaves_the_gpu_out() -> None:
    """ACT-02, ACT-08: a mask that hides every GPU is the reason in the table."""
    choice, row = doctor(CUDA_VISIBLE_DEVICES="-1")
    assert choice["backend"] == "cpu"
    assert row["reason"].startswith("CUDA_VISIBLE_DEVICES=-1 hides every GPU")


def test_a_library_that_is_missing_is_told(tmp_path: Path) -> None:
    """LIB-03: the table has what was tried and the loader's words."""
    _, row = doctor(PODIUM_NVIDIA_LIBCUDA=str(tmp_path / "libcuda.so.1"))
    assert row["state"] == "inactive"
    assert "cannot open shared object file" in row["reason"]


def test_a_driver_that_does_not_start_keeps_its_words(tmp_path: Path) -> None:
    """A driver may be found and fail in cuInit: the doctor goes on, and has the driver's own status."""
    program = """
import sys
from recording.cuda.library import Recording
recording = Recording()
recording.fail("cuInit", 803)
from podium._cli import main
sys.exit(main(["doctor", "--json"]))
"""
    report = run("-c", program)
    (row,) = [backend for backend in report["backends"] if backend["name"] == "nvidia"]
    assert "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" in row["devices"]["error"]


def test_explicit_choices_are_kept_or_refused() -> None:
    """DISC-06: a named backend is taken, or is an error with its reason, and never replaced."""
    told, _ = run("-c", CHOICE)
    assert told == ["nvidia", "nvidia", "cpu"]
    told, modules = run("-c", CHOICE, CUDA_VISIBLE_DEVICES="")
    assert (told[0], told[2]) == ("cpu", "cpu")
    kind, message = told[1]
    assert kind == "InactiveBackendError"
    assert "CUDA_VISIBLE_DEVICES is set and empty" in message
    assert "podium doctor" in message
    assert "cuda.bindings.driver" not in modules


def test_choosing_initialises_nothing() -> None:
    """ACT-05: after the choice the driver is not initialised, so that a forked child can be the first to use it."""
    program = """
import json, os, podium
from recording.cuda.library import Recording
name = podium.driver.active.name
calls = Recording().calls()
child = os.fork()
if child == 0:
    array = podium.asarray([1.0, 2.0])
    os._exit(array.tolist() != [1.0, 2.0])
print(json.dumps([name, calls, os.waitpid(child, 0)[1]]))
"""
    name, calls, status = run("-c", program)
    assert name == "nvidia"
    assert set(calls) <= {"cuDriverGetVersion"}
    assert status == 0


def test_every_variable_is_known_to_the_doctor() -> None:
    """The driver lists the variables that its modules read, and no other; the doctor tells names that are not there."""
    from podium_nvidia.driver import NvidiaDriver

    package = Path(sys.modules[NvidiaDriver.__module__].__file__ or "").parent
    read = {
        name
        for path in package.rglob("*.py")
        for name in re.findall(r"\bPODIUM_NVIDIA_[A-Z]+\b", path.read_text(encoding="utf-8"))
    }
    assert set(NvidiaDriver.environment) == read
