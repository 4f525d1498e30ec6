"""PRF-05: which modules of each installed backend a process imports to choose one: of the others the plug-in alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from recording.cuda.library import compiler, environment

for _backend in ("cpu", "nvidia", "amd"):
    pytest.importorskip(f"podium_{_backend}", reason=f"podium-{_backend} is not installed")
pytest.importorskip("cuda.bindings", reason="cuda-python is not installed")

SERIAL = Path(__file__).parents[1] / "serial_backend" / "src"

PROGRAM = """
import json, sys, podium
name = podium.driver.resolve().name
print(json.dumps([name, sorted(module for module in sys.modules if module.startswith("podium_"))]))
"""

PLUGINS = {"podium_cpu", "podium_cpu._version", "podium_cpu.plugin", "podium_serial", "podium_serial.plugin"} | {
    f"podium_{backend}{module}"
    for backend in ("amd", "nvidia")
    for module in ("", "._version", ".plugin", ".detection", ".system", ".visible_devices")
}


def chosen(folder: Path, **variables: str) -> tuple[str, set[str]]:
    """Return what a process chooses where podium-serial is installed as well, and what it imports of backends."""
    for backend in ("amd", "cpu", "nvidia", "serial"):
        metadata = folder / f"podium_{backend}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "entry_points.txt").write_text(f"[podium]\n{backend} = podium_{backend}.plugin\n")
    path = os.pathsep.join([str(folder), str(SERIAL), *filter(None, sys.path)])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PODIUM_", "CUDA_", "HIP_"))}
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    done = subprocess.run(command, env={**kept, **variables, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    name, modules = json.loads(done.stdout)
    return name, set(modules)


@pytest.mark.skipif(
    any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd"))), reason="this machine has a GPU"
)
def test_without_a_gpu(tmp_path: Path) -> None:
    """The CPU backend is chosen; of the GPUs' backends what detects a GPU is imported, up to its absence."""
    name, modules = chosen(tmp_path)
    assert name == "cpu"
    assert {module for module in modules if not module.startswith("podium_cpu")} <= PLUGINS
    assert "podium_cpu.driver" in modules


@pytest.mark.skipif(os.path.exists("/dev/kfd"), reason="this machine has an AMD GPU")
@pytest.mark.skipif(compiler() is None, reason="there is no C compiler for the recording library")
def test_with_a_gpu(tmp_path: Path) -> None:
    """The backend of the GPU is chosen; what is of lower priority is not even asked."""
    name, modules = chosen(tmp_path, **environment())
    assert name == "nvidia"
    assert {module for module in modules if not module.startswith("podium_nvidia")} <= PLUGINS
    assert "podium_nvidia.driver" in modules
