"""What a process does that finds everything in the cache: as little as can be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podium.backend import HostCompiler
from podium.errors import ToolchainError

pytest.importorskip("podium_cpu", reason="the CPU backend is not installed")

# Prints what came with the first launch; its first run fills the cache.
PROGRAM = """
import json, sys
events = []
sys.addaudithook(lambda event, args: events.append(event) if event.startswith(("subprocess.", "os.posix_spawn",
    "os.fork", "os.exec", "os.system", "_thread.start_new")) else None)
import threading
started = []
start = threading.Thread.start
threading.Thread.start = lambda self: (started.append(self.name), start(self))[1]

import podium
driver = podium.driver.resolve()
x = podium.asarray([1.0] * 32)
kernel = podium.kernel("__global__ void add_two(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 2; }")
launch = kernel[1, 32]
before = set(sys.modules)
launch(x, 31)
level = type(kernel[1, 32]).__module__, kernel.level
modules = sorted(set(sys.modules))
launch(x, 0)
assert x.tolist() == [3.0] * 31 + [1.0]
print(json.dumps({"events": events, "threads": started, "modules": modules, "level": level}))
kernel.warm_up()
"""

# What a compilation, a first look at a source, or a wait needs.
NOT_FOR_A_WARM_START = {
    "subprocess",
    "tempfile",
    "shutil",
    "signal",
    "queue",
    "hashlib",
    "_hashlib",
    "platformdirs",
    "importlib.metadata",
    "importlib.util",
    "sysconfig",
    "dataclasses",
    "numpy",
    "tree_sitter",
    "tree_sitter_cuda",
    "podium._source",
    "podium._build",
    "podium._compiler_search",
    "podium._launcher_source",
    "podium._module_program",
    "podium._folding",
    "podium_cpu.compiler",
    "podium_cpu.runtime_object",
    "podium_cpu.sanitizers",
    "podium_cpu.timeline",
    "mmap",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two processes saw: one with an empty cache, and one with what that one has left."""
    try:
        HostCompiler.find("c++"), HostCompiler.find("c")
    except ToolchainError as error:
        pytest.skip(f"this machine has no compiler: {error}")
    cache: Path = tmp_path_factory.mktemp("cache")
    variables = {**os.environ, "PODIUM_CACHE_DIR": str(cache), "PODIUM_BACKEND": "cpu"}
    variables.pop("PODIUM_LAUNCHER", None)

    def run() -> dict[str, Any]:
        done = subprocess.run([sys.executable, "-c", PROGRAM], env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        seen: dict[str, Any] = json.loads(done.stdout)
        return seen

    return [run(), run()]


def test_a_warm_first_launch_starts_nothing(runs: list[dict[str, Any]]) -> None:
    """PRF-04: with everything in the cache, the first launch of a process starts no process and no thread."""
    cold, warm = runs
    assert (warm["events"], warm["threads"]) == ([], [])
    assert cold["events"] and "podium-launcher-build" in cold["threads"]  # what is looked for does come


def test_a_warm_first_launch_is_made_by_generated_code(runs: list[dict[str, Any]]) -> None:
    """PRF-04: the launcher that is in the cache makes the first launch already; with an empty cache it is Python's."""
    cold, warm = runs
    assert warm["level"] == ["podium_launcher", "generated"]
    assert cold["level"][0] == "podium._launch"


def test_a_warm_first_launch_imports_only_what_it_needs(runs: list[dict[str, Any]]) -> None:
    """PRF-03: with everything in the cache, no compiler, parser, or module that only those need is imported.

    Nor is a compiler looked for, or the C of a launcher written.
    """
    cold, warm = runs
    assert NOT_FOR_A_WARM_START & set(warm["modules"]) == set()
    assert {"subprocess", "tree_sitter", "podium_cpu.compiler"} <= set(cold["modules"])


def test_a_cold_first_launch_imports_only_what_its_kernel_needs(runs: list[dict[str, Any]]) -> None:
    """PRF-04: a kernel without barriers is compiled without what takes those apart, and without what errors need."""
    cold, _ = runs
    assert {"podium_cpu.regions._kernels", "difflib"} & set(cold["modules"]) == set()
