"""Compiling in a new process, for a child that was forked from one that used OpenCL.

The compiler is a part of the platform, and its threads and its device stayed in the parent. A new process has its own.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING

from podium.errors import PodiumError, ToolchainError

if TYPE_CHECKING:
    from podium.backend import ObjectCode, Program, Target

__all__ = ["compile_elsewhere", "main"]

_PROGRAM = "from podium_opencl.elsewhere import main; main()"


def compile_elsewhere(program: Program, target: Target) -> ObjectCode:
    """Compile in a process of its own. Raises as `compile_program` does."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        input=pickle.dumps((program, target)),
        capture_output=True,
        env=environment,
        check=False,
    )
    try:
        answer: ObjectCode | PodiumError = pickle.loads(done.stdout)
    except (pickle.UnpicklingError, EOFError):
        raise ToolchainError(
            f"The process that was to compile {program.label} ended with status {done.returncode}",
            log=done.stderr.decode("utf-8", "replace"),
            program=program.label,
            target=str(target),
        ) from None
    if isinstance(answer, PodiumError):
        raise answer
    return answer


def main() -> None:
    """Compile what the standard input has, and write the code or the error to the standard output, both pickled."""
    from podium_opencl.compiler import compile_program

    # What platforms print themselves is not for the reader of the answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        answer: ObjectCode | PodiumError = compile_program(*pickle.load(sys.stdin.buffer))
    except PodiumError as error:
        answer = error
    with answers:
        pickle.dump(answer, answers)
