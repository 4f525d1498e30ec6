"""Generated C under the address and undefined-behaviour sanitizers, and under valgrind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from podium.testing import FakeDriver

EXERCISE = Path(__file__).parent / "exercise.py"
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g"


def sanitizer_library(name: str) -> Path:
    """Find a run-time library of gcc's sanitizers, or skip."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed, whose sanitizers this needs")
    path = Path(
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
    )
    if not path.is_absolute():
        pytest.skip(f"gcc has no {name}")
    return path


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which launchers are built with the sanitizers and run with them."""
    libraries = [str(sanitizer_library(name)) for name in ("libasan.so", "libubsan.so")]
    folder = tmp_path_factory.mktemp("sanitized")
    compiler = folder / "sanitizing-gcc"
    compiler.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec gcc {SANITIZE} "$@"\n')
    compiler.chmod(0o755)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("PODIUM_")},
        "CC": str(compiler),
        "PODIUM_CACHE_DIR": str(folder / "cache"),
        "LD_PRELOAD": " ".join(libraries),
        "PYTHONMALLOC": "malloc",  # each object in a block of its own, so that a use after its end is seen
        # CPython frees little of what it has at exit, so what is left then says nothing about launchers; their leaks
        # are looked for in test_references.py
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:exitcode=97:detect_stack_use_after_return=1:strict_string_checks=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXERCISE), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)


def test_launchers_are_clean_under_the_sanitizers(sanitized: dict[str, str]) -> None:
    """Thousands of launches of every type, with all error paths, touch no memory that is not theirs."""
    result = run(sanitized, "4")
    assert result.returncode == 0, result.stdout + result.stderr[-6000:]
    match = re.fullmatch(r"(\d+) launches, (\d+) failures\n", result.stdout)
    assert match and int(match[1]) > 1000 and int(match[2]) > 1500
    assert "Sanitizer" not in result.stderr and "runtime error" not in result.stderr


BUGS = {
    # a write behind the array of addresses, on the stack of the launcher
    "stack": ("parameters[PODIUM_PARAMETERS + 1] = 0;", "stack-buffer-overflow|insufficient space"),
    # a read of memory that has been freed
    "freed": (
        "{ int *volatile p = __builtin_malloc(4); __builtin_free(p); if (*p == 5) return 1; }",
        "heap-use-after-free",
    ),
    # a write behind an object of Python
    "object": (
        "((char *)__builtin_malloc(3))[*(volatile int *)parameters[2]] = 1;",
        "heap-buffer-overflow|insufficient space",
    ),
    # undefined arithmetic
    "overflow": (
        "{ volatile int big = 2147483647; big += *(volatile int *)parameters[0]; }",
        "signed integer overflow",
    ),
    "shift": ("{ volatile int bits = 40; if (1 << bits == 3) return 1; }", "shift exponent"),
}


def changed_template(folder: Path, code: str) -> str:
    """Write the fake driver's template with some C in front of its driver call, and return its path."""
    text = FakeDriver.launcher_cls.template.read_text()
    call = "fake_recorder recorder ="
    assert call in text
    template = folder / "launch.c.in"
    template.write_text(text.replace(call, f"{code}\n    {call}"))
    return str(template)


@pytest.mark.newest
def test_a_changed_template_without_a_bug_survives(sanitized: dict[str, str], tmp_path: Path) -> None:
    """What the tests below do to the template is no mistake in itself."""
    result = run(sanitized, "0", changed_template(tmp_path, "/* nothing */"))
    assert result.returncode == 0 and result.stdout.endswith("survived\n"), result.stderr[-3000:]


@pytest.mark.newest
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_in_a_template_would_be_caught(sanitized: dict[str, str], bug: str, tmp_path: Path) -> None:
    """The proof that the test above can fail: each kind of mistake in a template ends the program, by name."""
    code, name = BUGS[bug]
    result = run(sanitized, "0", changed_template(tmp_path, code))
    assert result.returncode != 0
    assert re.search(name, result.stderr)


@pytest.mark.newest  # on the oldest valgrind takes twice the time
def test_launchers_are_clean_under_valgrind(tmp_path: Path) -> None:
    """No launch reads memory that was never written, or that is not there; and one that does is seen.

    The proof that the test can fail, a decision on memory that nobody has written, comes last in the same process.
    """
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    code = "{ int *p = __builtin_malloc(64); if (p[7] == 5) return 1; __builtin_free(p); }"
    # without -leak-check: see ASAN_OPTIONS above
    tool = ["valgrind", "--quiet", "--error-exitcode=98", "--leak-check=no", "--num-callers=30"]
    command = [*tool, sys.executable, str(EXERCISE), "1", changed_template(tmp_path, code)]
    settings = {"PODIUM_CACHE_DIR": str(tmp_path / "cache"), "PYTHONMALLOC": "malloc", "CC": "gcc -g"}
    result = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=900)
    clean, mark, proof = result.stderr.partition("the template\n")
    assert (clean, mark != "") == ("", True) and "failures\nsurvived" in result.stdout, result.stdout + clean[-6000:]
    assert result.returncode == 98 and "uninitialised" in proof and "podium_driver_launch" in proof
