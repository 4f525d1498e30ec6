"""The examples: programs that run and print what they say."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.stem for program in PROGRAMS])
def test_a_program_prints_what_it_says(program: Path, tmp_path: Path) -> None:
    """An example runs on the CPU to its end, without a warning, and prints what its last lines say."""
    lines = program.read_text(encoding="utf-8").rstrip().splitlines()
    said = [line.removeprefix("#").removeprefix(" ") for line in lines[lines.index("# It prints:") + 1 :]]
    command = [sys.executable, "-W", "error", str(program)]
    variables = {**os.environ, "PODIUM_BACKEND": "cpu"}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    expected = "".join(f"{line}\n" for line in said)
    assert doctest.OutputChecker().check_output(expected, done.stdout, doctest.ELLIPSIS), done.stdout
