"""Programs that run in processes of their own and print the seconds of their steps, in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

__all__ = ["STEPS", "Steps", "add_steps", "run_steps", "whole_process"]

Steps = dict[str, float]

STEPS = """
import json, sys, time
steps, last = {}, time.perf_counter()
def mark(name):
    global last
    steps[name] = time.perf_counter() - last
    last = time.perf_counter()
"""
"""What such a program begins with; it ends with printing `steps` as JSON."""

_UNWANTED = ("PYTHONDONTWRITEBYTECODE", "PODIUM_LAUNCHER")  # users have neither


def run_steps(program: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Steps:
    """Run a program and return what it printed. Raises RuntimeError with its last words if it fails."""
    done = _run(program, arguments, environment)
    steps: Steps = json.loads(done.stdout)
    return steps


def whole_process(program: str, environment: Mapping[str, str] | None = None) -> float:
    """Run a program and return the seconds from its start to its end."""
    start = time.perf_counter()
    _run(program, (), environment)
    return time.perf_counter() - start


def add_steps(samples: dict[str, list[float]], steps: Mapping[str, float]) -> None:
    """Put the steps of one process beside those of others."""
    for name, seconds in steps.items():
        samples.setdefault(name, []).append(seconds)


def _run(
    program: str, arguments: Sequence[str], environment: Mapping[str, str] | None
) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
    variables.update(environment or {})
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"a process that was to be measured failed:\n{done.stderr.strip()[-2000:]}")
    return done
