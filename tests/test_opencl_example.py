"""examples/backend-opencl, the backend that a third party might have made, with its own tests."""

from __future__ import annotations

import subprocess
import sys

import pytest
from markdown_page import ROOT


def test_the_opencl_backend_passes_its_tests(capsys: pytest.CaptureFixture[str]) -> None:
    """The third party's backend conforms, and what it skips is shown with what is skipped here.

    In a process of their own: PoCL and AMD's compiler each bring an LLVM, and two of them end the process. PYTEST_ADDOPTS
    says there, too, which tests this Python has.
    """
    tests = str(ROOT / "examples" / "backend-opencl" / "tests")
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr
    lines = done.stdout.splitlines()
    shown = [line for line in lines if line.startswith("SKIPPED ")]
    with capsys.disabled():
        sys.stdout.write("\n".join(["", "podium-opencl: " + lines[-1].strip("= "), *shown, ""]))
