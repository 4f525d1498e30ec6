"""The examples: programs that run and print what they say, and a backend that conforms."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))
BACKEND = EXAMPLES / "podium-serial"


def run(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder."""
    variables = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=variables, capture_output=True, text=True, timeout=1200
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.stem for program in PROGRAMS])
def test_a_program_prints_what_it_says(program: Path, tmp_path: Path) -> None:
    """An example runs on the CPU to its end, without a warning, and prints what its last lines say."""
    lines = program.read_text(encoding="utf-8").rstrip().splitlines()
    said = [line.removeprefix("#").removeprefix(" ") for line in lines[lines.index("# It prints:") + 1 :]]
    done = run(["-W", "error", str(program)], tmp_path, PODIUM_BACKEND="cpu")
    assert done.returncode == 0, done.stderr
    expected = "".join(f"{line}\n" for line in said)
    assert doctest.OutputChecker().check_output(expected, done.stdout, doctest.ELLIPSIS), done.stdout


def test_the_example_backend_is_never_chosen_by_itself(tmp_path: Path) -> None:
    """Where the example backend is registered, the one from before is still chosen; it runs when it is named."""
    code = (
        "import podium\n"
        "from podium_serial.plugin import PODIUM_API, podium_register_driver\n"
        "before = podium.driver.preferred()\n"
        "podium.driver.register(podium_register_driver())\n"
        "print(podium.driver.preferred() == before != 'serial', PODIUM_API)\n"
        "with podium.use('serial'):\n"
        "    x = podium.asarray([1, 2, 3])\n"
        "    podium.kernel('__global__ void twice(int* x) { x[threadIdx.x] *= 2; }')[1, 3](x)\n"
        "    print(x.tolist())\n"
    )
    done = run(["-W", "error", "-c", code], tmp_path, PYTHONPATH=str(BACKEND / "src"))
    assert (done.returncode, done.stdout) == (0, "True 1\n[2, 4, 6]\n"), done.stderr
