"""What a process imports and starts up to its first launch on an NVIDIA GPU: as little as can be, and no more later."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recording.cuda.library import compiler, environment

pytest.importorskip("cuda.bindings", reason="cuda-python is not installed")

from podium_nvidia.toolkit import find_library

pytestmark = [
    pytest.mark.skipif(compiler() is None, reason="there is no C compiler for the recording library"),
    pytest.mark.skipif(find_library("nvrtc") is None, reason="NVRTC is not installed"),
]

# Prints what had been imported, and which threads had been started, after each step.
PROGRAM = """
import json, sys, threading
started = []
start = threading.Thread.start
threading.Thread.start = lambda self: (started.append(self.name), start(self))[1]
seen = {}
def look(step):
    seen[step] = sorted(sys.modules.copy()), list(started)

import podium
podium.driver.resolve()
look("choice")
x = podium.asarray([1.0] * 32)
look("device")
kernel = podium.kernel("__global__ void add_two(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] += %s; }")
kernel[1, 32](x, 31)
look("launch")
print(json.dumps(seen))
if len(sys.argv) > 1:
    kernel.warm_up()
"""

# Prints, for a bare Python with pluggy, what each step imports, and what the launch reads of folders and of the cache.
FIRST_STEPS = """
import sys
import pluggy, threading
events = []
sys.addaudithook(lambda event, args: events.append((event, str(args[0]))) if event in ("open", "os.scandir", "os.listdir") else None)
seen = set(sys.modules)
steps = {}
def look(step):
    global seen
    new, seen = set(sys.modules.copy()) - seen, set(sys.modules.copy())
    steps[step] = sorted(new)

import podium
podium.driver.resolve()
look("choice")
x = podium.asarray([1.0] * 32)
while threading.active_count() > 1:  # a thread may begin another one
    threading.enumerate()[-1].join()
look("device")
maps = open("/proc/self/maps").read()
events.clear()
kernel = podium.kernel("__global__ void add_two(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 2; }")
kernel[1, 32](x, 31)
read = list(events)
look("launch")
import json
print(json.dumps([steps, read, "/libnvrtc.so" in maps]))
"""

# What choosing imports beside pluggy and what that imports: the list is whole, so that nothing comes in unnoticed.
CHOICE = {
    *(
        "_active",
        "_deferred",
        "_entry_points",
        "_feature_methods",
        "_fork",
        "_plugin_api",
        "_import_aware_lock",
        "_imports_at_fork",
        "_late_names",
        "_plugin_loading",
    ),
    *("_plugins", "_record", "_selection", "_settings", "_version", "backend", "errors", "hookspecs"),
}
CHOICE_NVIDIA = {
    *("_version", "attribute_keys", "default_stream", "detection", "driver", "libcuda", "plugin", "system")
}
CHOICE_PYTHON = {
    "weakref",
    "_contextvars",
    "_ctypes",
    "_struct",
    "contextvars",
    "ctypes",
    "ctypes._endian",
    "errno",
    "struct",
}

# What only a compiler, a first look at a source, or a launch from Python needs.
NOT_FOR_A_WARM_START = {
    "cuda",
    "cuda.bindings.driver",
    "cuda.bindings.nvrtc",
    "cuda.pathfinder",
    "podium_nvidia.compiler",
    "podium_nvidia.nvrtc",
    "podium_nvidia.options",
    "podium_nvidia.cubin",
    "podium_nvidia.attributes",
    "podium_nvidia.launch",
    "podium._source",
    "podium._folding",
    "podium._module_program",
    "tree_sitter",
    "numpy",
    "dataclasses",
    "subprocess",
    "tempfile",
    "shutil",
    "hashlib",
    "queue",
    "importlib.metadata",
    "importlib.util",
}

# What choosing does not need either, which only has to know that there is a GPU.
NOT_FOR_A_CHOICE = {
    *NOT_FOR_A_WARM_START,
    "podium_cpu",
    "podium_nvidia.api",
    "podium_nvidia.arch",
    "podium_nvidia.device",
    "podium_nvidia.function",
    "podium_nvidia.status",
    "podium_nvidia.toolchain",
    "podium_nvidia.toolkit",
    "podium._array_layout",
    "podium._build",
    "podium._cache",
    "podium._kernel",
    "podium._memory",
}

Seen = dict[str, Any]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Seen]:
    """What processes saw: with an empty cache, with all in it, with an edited kernel, and without a launcher."""
    folder: Path = tmp_path_factory.mktemp("start")
    variables = environment(PODIUM_CACHE_DIR=str(folder / "cache"), PODIUM_BACKEND="nvidia")
    variables.pop("PODIUM_LAUNCHER", None)

    def run(added: int, *arguments: str, **more: str) -> Seen:
        command = [sys.executable, "-c", PROGRAM % added, *arguments]
        done = subprocess.run(command, env={**variables, **more}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        seen: Seen = json.loads(done.stdout)
        return seen

    return {
        "cold": run(2, "warm up"),
        "warm": run(2),
        "edited": run(3),
        "interpreted": run(2, PODIUM_LAUNCHER="interpreted"),
    }


@pytest.fixture(scope="module")
def first_steps(runs: dict[str, Seen], tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, list[str]], Any]:
    """What the steps of a process with a full cache import, and what its first launch reads."""
    folder = tmp_path_factory.mktemp("first")
    variables = environment(PODIUM_CACHE_DIR=str(folder), PODIUM_BACKEND="nvidia")
    for name in ("PODIUM_LAUNCHER", "CUDA_VISIBLE_DEVICES"):
        variables.pop(name, None)
    for _ in range(2):
        fill = FIRST_STEPS + "kernel.warm_up()"
        done = subprocess.run([sys.executable, "-c", fill], env=variables, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    steps, read, _ = json.loads(done.stdout)
    return steps, read


def modules(seen: Seen, step: str) -> set[str]:
    """Return what had been imported after a step."""
    return set(seen[step][0])


def test_choosing_the_driver_imports_only_what_it_needs(runs: dict[str, Seen]) -> None:
    """ACT-05, PRF-05: the choice brings in no other backend, nothing of the vendor's, and starts no thread."""
    for seen in runs.values():
        assert NOT_FOR_A_CHOICE & modules(seen, "choice") == set()
        assert seen["choice"][1] == []


def test_choosing_imports_no_more_than_this(first_steps: tuple[dict[str, list[str]], Any]) -> None:
    """PRF-05: whatever choosing imports beyond pluggy is in a list, which grows by what choosing needs and no more."""
    found = set(first_steps[0]["choice"]) - {"podium", "podium_nvidia"}
    allowed = {f"podium.{each}" for each in CHOICE} | {f"podium_nvidia.{each}" for each in CHOICE_NVIDIA}
    assert found - allowed - CHOICE_PYTHON == set()
    assert allowed - found == set()  # so that the list stays true


def test_a_cold_first_launch_finds_its_compiler_open(tmp_path: Path) -> None:
    """PRF-03: with an empty cache too all imports are made, and NVRTC is opened, while CUDA is initialised."""
    variables = environment(PODIUM_CACHE_DIR=str(tmp_path), PODIUM_BACKEND="nvidia")
    for name in ("PODIUM_LAUNCHER", "CUDA_VISIBLE_DEVICES"):
        variables.pop(name, None)
    done = subprocess.run([sys.executable, "-c", FIRST_STEPS], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    steps, _, is_open = json.loads(done.stdout)
    assert steps["launch"] == []
    assert is_open


def test_a_warm_first_launch_imports_nothing(first_steps: tuple[dict[str, list[str]], Any]) -> None:
    """PRF-03: all that a first launch needs was imported while CUDA was initialised."""
    assert first_steps[0]["launch"] == []
    assert "podium._launcher" in first_steps[0]["device"]


def test_a_warm_first_launch_reads_little(first_steps: tuple[dict[str, list[str]], Any]) -> None:
    """PRF-03: what can be found out before a kernel is known was found out while CUDA was initialised.

    So a launch looks into no folder of the backend or of the toolkit, and reads of the cache what is the kernel's alone.
    """
    read = first_steps[1]
    assert [path for event, path in read if event != "open"] == []
    entries = [Path(path).name for event, path in read if event == "open" and "/v1/" in path]
    assert sorted(entry.partition("-")[0] for entry in entries) == ["declaration", "kernel", "launcher"]


def test_a_warm_first_launch_imports_only_what_it_needs(runs: dict[str, Seen]) -> None:
    """PRF-03: with all in the cache neither cuda-python nor a compiler or a parser is imported; no thread is started."""
    warm, cold = runs["warm"], runs["cold"]
    assert NOT_FOR_A_WARM_START & modules(warm, "launch") == set()
    assert warm["launch"][1] == warm["device"][1]
    assert {"cuda.bindings.nvrtc", "tree_sitter", "podium_nvidia.launch"} <= modules(cold, "launch")


def test_what_launches_need_is_imported_while_the_driver_starts(runs: dict[str, Seen]) -> None:
    """One thread, begun with CUDA, imports it; cuda-python is a part of it only where no kernel was ever compiled.

    There another one opens NVRTC, as soon as the first knows which.
    """
    for which, seen in runs.items():
        started = seen["device"][1]
        assert started == ["podium-background"] * (len(started) if which == "cold" else 1)
        assert 1 <= len(started) <= 2
    for which in ("warm", "edited", "interpreted"):
        assert {"cuda.bindings.driver", "cuda.pathfinder"} & modules(runs[which], "device") == set()


def test_where_cuda_is_initialised_already_nothing_is_imported_early(tmp_path: Path) -> None:
    """A library such as torch has done it: then there is no idle time, and two threads would only be slower."""
    program = "import ctypes, os; ctypes.CDLL(os.environ['PODIUM_NVIDIA_LIBCUDA']).cuInit(0)\n" + PROGRAM % 2
    variables = environment(PODIUM_CACHE_DIR=str(tmp_path), PODIUM_BACKEND="nvidia")
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["device"][1] == []


def test_an_edited_kernel_is_launched_by_the_launcher_that_is_there(runs: dict[str, Seen]) -> None:
    """A new source with a signature that the cache has needs the compiler, and no launch from Python."""
    assert "podium_nvidia.nvrtc" in modules(runs["edited"], "launch")
    assert "podium_nvidia.launch" not in modules(runs["edited"], "launch")


def test_a_launch_from_python_needs_no_compiler(runs: dict[str, Seen]) -> None:
    """Pinned to the interpreted level, with the code in the cache: cuda-python for the launch, and no NVRTC."""
    after = modules(runs["interpreted"], "launch")
    assert {"cuda.bindings.driver", "podium_nvidia.launch"} <= after
    assert {"podium_nvidia.nvrtc", "podium_nvidia.compiler", "podium._source"} & after == set()
