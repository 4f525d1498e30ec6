"""How many instructions a launch takes in C, up to the driver call: figures that no clock and no other program disturbs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LAUNCHES = 1000  # of each kind

BUDGETS = {
    "no argument": 240,
    "16 ints": 560,
    "3 tensors and an int": 610,
    "16 tensors": 2000,
    "3 tensors and an int, in a stream": 660,
    "3 arrays of podium and an int": 1500,
    "kernel[grid, block] of the last launch": 750,
}
"""The most instructions for each kind: a tenth above what gcc 12 makes for CPython 3.13, more where Python is called.

Whoever makes launches cheaper lowers them; whoever has to raise one says why.
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """The instructions of one launch of each kind, as callgrind counts them in the functions that Python calls."""
    for program in ("valgrind", "gcc"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    folder = tmp_path_factory.mktemp("counts")
    command = [
        "valgrind",
        "--tool=callgrind",
        f"--callgrind-out-file={folder / 'counts'}",
        "--toggle-collect=podium_launch_call",
        "--toggle-collect=podium_subscript",
        "--dump-before=podium_launcher_forget",
        sys.executable,
        str(Path(__file__).with_name("counted.py")),
        str(LAUNCHES),
    ]
    environment = {**os.environ, "PODIUM_CACHE_DIR": str(folder / "cache"), "CC": "gcc", "PODIUM_LAUNCHER": "generated"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr[-4000:]
    found = {}
    for number, kind in enumerate(run.stdout.splitlines(), 2):  # the first part has what was before
        totals = re.search(r"^totals: (\d+)$", (folder / f"counts.{number}").read_text(), re.MULTILINE)
        assert totals is not None
        found[kind] = int(totals[1]) / LAUNCHES
    return found


def test_launches_keep_to_their_budgets(counts: dict[str, float]) -> None:
    """No kind of launch takes more instructions than its budget allows; and the budgets are not idle."""
    assert counts.keys() == BUDGETS.keys()
    assert {kind: count for kind, count in counts.items() if count > BUDGETS[kind]} == {}
    assert {kind: count for kind, count in counts.items() if count < BUDGETS[kind] / 3} == {}


def test_arguments_cost_the_same_however_many(counts: dict[str, float]) -> None:
    """A further int takes some twenty instructions, a further array with an exchange table a hundred."""
    assert (counts["16 ints"] - counts["no argument"]) / 16 < 22
    assert (counts["16 tensors"] - counts["no argument"]) / 16 < 115
