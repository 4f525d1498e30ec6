"""How many instructions a launch takes in C, up to the driver call: figures that no clock and no other program disturbs."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recording.cuda.library import build, environment

HEADER = Path("/usr/include/valgrind/callgrind.h")
LAUNCHES = 1000  # of each kind

BUDGETS = {
    "no argument": 200,
    "16 ints": 475,
    "3 tensors and an int": 490,
    "16 tensors": 1475,
    "16 tensors of a library like PyTorch": 2700,
    "3 tensors and an int, in a stream": 570,
    "3 arrays of podium and an int": 1470,
    "kernel[grid, block] of the last launch": 395,
}
"""The most instructions for each kind: a tenth above what gcc 12 makes for CPython 3.13, more where Python is called.

Whoever makes launches cheaper lowers them; whoever has to raise one says why.
"""


NVIDIA_BUDGETS = {
    "nvidia: 3 tensors and an int": 1185,
    "nvidia: 3 tensors and an int, in a stream": 1275,
    "nvidia: 3 addresses and an int": 1100,
    "nvidia: replay of a graph": 670,
    "nvidia: kernel[grid, block] with 3 tensors and an int": 1240,
}
"""The same on the recording CUDA driver, without the driver's own instructions; to let go of the interpreter lock and
to take it back is among them, which is Python's."""

DRIVER_CALLS = ("cuLaunchKernel", "cuCtxGetDevice", "cuStreamIsCapturing", "cuGraphLaunch")


def counted(folder: Path, backend: str | None = None) -> dict[str, float]:
    """Return the instructions of one launch of each kind, as callgrind counts them in the functions that Python calls."""
    for tool in ("valgrind", "gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if not HEADER.exists():
        pytest.skip("the headers of valgrind are not installed, by which the program asks to be counted")
    program = [sys.executable, str(Path(__file__).with_name("counted.py"))]
    backends = [backend] if backend else []
    variables = environment(build()) if backend else dict(os.environ)
    variables |= {"PODIUM_CACHE_DIR": str(folder / "cache"), "CC": "gcc", "PODIUM_LAUNCHER": "generated"}
    # Outside of valgrind, in which NVRTC takes half a minute: what it compiles comes from the cache there.
    _run([*program, "1", *backends], variables)
    # What begins and ends within what is counted is left out.
    toggles = ["podium_launch_call", "podium_subscript", "podium_replay_call", *(DRIVER_CALLS if backend else ())]
    command = [
        "valgrind",
        "--tool=callgrind",
        "--instr-atstart=no",
        f"--callgrind-out-file={folder / 'counts'}",
        *(f"--toggle-collect={name}" for name in toggles),
        "--dump-before=podium_launcher_forget",
        *program,
        str(LAUNCHES),
        *backends,
    ]
    printed = _run(command, variables)
    found = {}
    for number, kind in enumerate(printed.splitlines(), 2):  # the first part has what was before
        totals = re.search(r"^totals: (\d+)$", (folder / f"counts.{number}").read_text(), re.MULTILINE)
        assert totals is not None
        found[kind] = int(totals[1]) / LAUNCHES
    return found


def _run(command: list[str], variables: dict[str, str]) -> str:
    run = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-4000:]
    return run.stdout


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """The instructions of one launch of each kind on the fake driver."""
    return counted(tmp_path_factory.mktemp("counts"))


def test_launches_keep_to_their_budgets(counts: dict[str, float]) -> None:
    """No kind of launch takes more instructions than its budget allows; and the budgets are not idle."""
    assert beyond(counts, BUDGETS) == {}


@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda-python is not installed")
def test_launches_on_nvidia_keep_to_their_budgets(tmp_path: Path) -> None:
    """Launches through the NVIDIA backend's C keep to theirs: what the driver is asked for beside the launch is seen."""
    assert beyond(counted(tmp_path, "nvidia"), NVIDIA_BUDGETS) == {}


def beyond(counts: dict[str, float], budgets: dict[str, int]) -> dict[str, float]:
    """Return the kinds that take more than their budget, or so little that it is none."""
    assert counts.keys() == budgets.keys()
    return {kind: count for kind, count in counts.items() if not budgets[kind] / 1.5 <= count <= budgets[kind]}


def test_arguments_cost_the_same_however_many(counts: dict[str, float]) -> None:
    """A further int takes some fifteen instructions, a further array with an exchange table seventy."""
    assert (counts["16 ints"] - counts["no argument"]) / 16 < 18
    assert (counts["16 tensors"] - counts["no argument"]) / 16 < 80
