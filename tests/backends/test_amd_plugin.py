"""podium-amd as podium finds it, beside the other backends: the doctor's table, and the choice with each of them broken."""

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
from recording.cuda.library import build
from recording.hip.library import compiler, environment

pytest.importorskip("podium_amd", reason="podium-amd is not installed")
pytest.importorskip("rocm.bindings.hip", reason="hip-python is not installed")
pytestmark = [
    pytest.mark.skipif(compiler() is None, reason="there is no C compiler for the recording libraries"),
    pytest.mark.skipif(
        not {"amd", "nvidia", "cpu"} <= {each.name for each in entry_points(group="podium")},
        reason="the backends are not installed, only importable",
    ),
]

CHOICE = """
import json, sys, podium
from podium.errors import PodiumError
try:
    told = podium.driver.active.name
except PodiumError as error:
    told = f"{type(error).__name__}: {error}"
print(json.dumps([told, sorted({"rocm.bindings.hip", "ctypes", "podium_amd.api"} & set(sys.modules))]))
"""


def run(*arguments: str, **variables: str) -> Any:
    """Run Python where both stand-ins are, and read what it prints; a variable of "unset" is taken away."""
    changed = {**environment(), "PODIUM_NVIDIA_LIBCUDA": str(build()), **variables}
    kept = {name: value for name, value in changed.items() if value != "unset"}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=kept, timeout=300)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def chosen(**variables: str) -> str:
    """Return the backend that is chosen, or the error."""
    told: str = run("-c", CHOICE, **variables)[0]
    return told


def row(**variables: str) -> dict[str, Any]:
    """Return what the doctor says of the backend."""
    report = run("-m", "podium", "doctor", "--json", **variables)
    (found,) = [backend for backend in report["backends"] if backend["name"] == "amd"]
    assert (found["distribution"], found["priority"]) in (("podium-amd", 100), ("podium-amd", None))
    return dict(found)


def broken(folder: Path, package: str) -> str:
    """Put a package that cannot be imported before the real one, and return the PYTHONPATH for it."""
    (folder / package).mkdir(parents=True)
    (folder / package / "__init__.py").write_text(f"raise RuntimeError('{package} is broken on purpose')\n")
    return os.pathsep.join([str(folder), *filter(None, [environment().get("PYTHONPATH")])])


def test_the_doctor_shows_devices_and_compiler() -> None:
    """ACT-03: where HIP has devices the backend is active, and the doctor lists them with the compiler and versions."""
    found = row(PODIUM_NVIDIA_LIBCUDA="unset")
    assert (found["state"], found["reason"], found["api"]) == ("active", None, 1)
    assert [device["target"] for device in found["devices"]["value"]] == ["amd:gfx90a:sramecc+:xnack-:64"] * 2
    assert found["toolchains"]["cuda"]["value"].startswith("hipRTC ")


@pytest.mark.skipif(os.path.exists("/dev/kfd"), reason="this machine has an AMD GPU")
def test_the_doctor_says_why_there_is_none(tmp_path: Path) -> None:
    """ACT-02: without a device the backend is inactive with its reason: no GPU, no library, or a mask that hides all."""
    found = row(PODIUM_AMD_LIBHIP="unset")
    assert (found["state"], found["devices"]) == ("inactive", None) and "AMD" in found["reason"]
    found = row(PODIUM_AMD_LIBHIP=str(tmp_path / "libamdhip64.so.7"))
    assert "cannot open shared object file" in found["reason"]
    found = row(ROCR_VISIBLE_DEVICES="")
    assert found["reason"].startswith("ROCR_VISIBLE_DEVICES is set and empty")


def test_two_gpus_at_the_top_are_an_error_that_names_both() -> None:
    """SEL-04: with a GPU of each vendor in order neither is taken by chance; a name decides."""
    told = chosen()
    assert told.startswith("AmbiguousBackendError") and "'amd'" in told and "'nvidia'" in told
    assert chosen(PODIUM_BACKEND="amd") == "amd"
    assert chosen(PODIUM_BACKEND="nvidia") == "nvidia"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"PODIUM_NVIDIA_LIBCUDA": "/no/such/libcuda.so.1"}, "amd"),
        ({"PODIUM_AMD_LIBHIP": "/no/such/libamdhip64.so.7"}, "nvidia"),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, "cpu"),
        ({"HIP_VISIBLE_DEVICES": "-1"}, "nvidia"),
    ],
)
def test_a_vendor_that_is_missing_costs_no_other(variables: dict[str, str], expected: str) -> None:
    """DISC-05: what one vendor lacks is that backend's reason; CUDA_VISIBLE_DEVICES counts for both vendors."""
    assert chosen(**variables) == expected


@pytest.mark.parametrize(("package", "expected"), [("podium_amd", "nvidia"), ("podium_nvidia", "amd")])
def test_a_backend_that_is_broken_costs_no_other(tmp_path: Path, package: str, expected: str) -> None:
    """DISC-05: a plug-in that raises when it is imported leaves the others as they are, and its failure is shown."""
    path = broken(tmp_path, package)
    assert chosen(PYTHONPATH=path) == expected
    report = run("-m", "podium", "doctor", "--json", PYTHONPATH=path)
    states = {backend["name"]: (backend["state"], backend["reason"]) for backend in report["backends"]}
    state, reason = states[package.removeprefix("podium_")]
    assert state == "failed" and f"{package} is broken on purpose" in reason
    assert states[expected][0] == states["cpu"][0] == "active"


def test_a_broken_cpu_backend_costs_no_gpu(tmp_path: Path) -> None:
    """DISC-05: without the CPU backend both GPUs are there as ever, and the tie between them is told as ever."""
    path = broken(tmp_path, "podium_cpu")
    assert chosen(PYTHONPATH=path).startswith("AmbiguousBackendError")
    assert [chosen(PYTHONPATH=path, PODIUM_BACKEND=name) for name in ("amd", "nvidia")] == ["amd", "nvidia"]
    assert "podium_cpu is broken on purpose" in chosen(PYTHONPATH=path, PODIUM_BACKEND="cpu")
    report = run("-m", "podium", "doctor", "--json", PYTHONPATH=path)
    states = {backend["name"]: backend["state"] for backend in report["backends"]}
    assert states == {"amd": "active", "cpu": "failed", "nvidia": "active"}


def test_a_broken_hip_python_shows_where_it_is_needed(tmp_path: Path) -> None:
    """What needs hip-python says so: launches from Python and the compiler; detection opens nothing of it."""
    path = broken(tmp_path / "first", "rocm")
    program = """
import json, podium
from podium.errors import PodiumError
x = podium.empty(4)
try:
    podium.kernel("__global__ void k(float *x) {}").compile()
    print(json.dumps("compiled"))
except Exception as error:
    print(json.dumps(f"{type(error).__name__}: {error}"))
"""
    told = run("-c", program, PYTHONPATH=path, PODIUM_BACKEND="amd")
    assert "rocm is broken on purpose" in told


def test_choosing_initialises_nothing() -> None:
    """ACT-05: after the choice HIP was not called at all, so that a forked child can be the first to use it."""
    program = """
import json, os, podium
from recording.hip.library import Recording
name = podium.driver.active.name
calls = Recording().calls()
child = os.fork()
if child == 0:
    array = podium.asarray([1.0, 2.0])
    os._exit(array.tolist() != [1.0, 2.0])
print(json.dumps([name, calls, os.waitpid(child, 0)[1]]))
"""
    assert run("-c", program, PODIUM_NVIDIA_LIBCUDA="/no/such/libcuda.so.1") == ["amd", {}, 0]
    _, modules = run("-c", CHOICE, PODIUM_BACKEND="amd")
    assert "rocm.bindings.hip" not in modules


def test_every_variable_is_known_to_the_doctor() -> None:
    """The driver lists the variables that its modules read, and no other."""
    import podium_amd
    from podium_amd.driver import AmdDriver

    texts = [path.read_text() for path in Path(podium_amd.__file__).parent.glob("*.py")]
    assert {name for text in texts for name in re.findall(r"\bPODIUM_AMD_\w+", text)} == set(AmdDriver.environment)
