"""The NVIDIA backend's generated C on the recording driver, under sanitizers and valgrind; no GPU is needed."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from recording.cuda.library import build, compiler, environment
from test_sanitizers import SANITIZE, sanitized

__all__ = ["sanitized"]  # a fixture

EXERCISE = Path(__file__).parent / "nvidia_exercise.py"

pytestmark = [
    pytest.mark.skipif(compiler() is None, reason="there is no C compiler for the recording library"),
    pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda-python is not installed"),
]


def run(library: Path, rounds: int, cache: Path, tool: Sequence[str] = (), **settings: str) -> str:
    """Run the exercise on a copy of the recording library, and return what it printed."""
    variables = environment(library, PODIUM_CACHE_DIR=str(cache), **settings)
    variables["PYTHONPATH"] = os.pathsep.join([variables["PYTHONPATH"], *filter(None, sys.path)])
    command = [*tool, sys.executable, str(EXERCISE), str(rounds)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that has the kernels already: NVRTC itself is not what is looked at."""
    folder = tmp_path_factory.mktemp("warm") / "cache"
    run(build(), 1, folder)
    return folder


def test_launchers_are_clean_under_the_sanitizers(sanitized: dict[str, str], warm_cache: Path) -> None:
    """Launches of every kind, and every way in which the driver refuses them, touch no memory that is not theirs."""
    names = ("CC", "LD_PRELOAD", "PYTHONMALLOC", "ASAN_OPTIONS", "UBSAN_OPTIONS")
    settings = {name: sanitized[name] for name in names}
    library = build(flags=tuple(SANITIZE.split()))
    printed = run(library, 4, warm_cache, **settings)
    match = re.fullmatch(r"(\d+) launches, (\d+) failures\n", printed)
    assert match and int(match[1]) > 400 and int(match[2]) > 400


def test_launchers_are_clean_under_valgrind(warm_cache: Path) -> None:
    """No launch reads memory that was never written: not in its parameters, and not in its attributes."""
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    tool = ["valgrind", "--quiet", "--error-exitcode=98", "--leak-check=no", "--num-callers=30"]
    printed = run(build(), 1, warm_cache, tool, PYTHONMALLOC="malloc", CC="gcc -g")
    assert printed.endswith("failures\n")
