"""Calls of a vendor's library that what a user gave could end: in another process, or with more room on the stack.

What ends the other process is an exception here. It costs the start of a Python, so it is for what is rare or slow.
"""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

from podium._fork import ForkSafeLock
from podium.errors import PodiumError

__all__ = ["ProcessEnded", "call_apart", "call_on_large_stack", "can_call_apart", "serve"]

T = TypeVar("T")

# Compilers take up to eight kilobytes of stack for a character that opens something, and programs of up to 64 kilobytes
# of text are compiled here. It is an address range, and costs no memory before it is used.
_STACK = 512 << 20

_INTERPRETER = re.compile(r"python|pypy", re.IGNORECASE)  # and no program that has one inside
_SHOWN = 2000  # characters of what the process printed last

_lock = ForkSafeLock()  # of the size of stacks, which is the process's


class ProcessEnded(Exception):
    """The other process ended before there was an answer.

    `how` says by what, such as "signal SIGSEGV"; `output` is what it printed last.
    """

    def __init__(self, how: str, output: str) -> None:
        super().__init__(how, output)
        self.how, self.output = how, output

    def __str__(self) -> str:
        return f"{self.how}; {self.output}" if self.output else self.how


def can_call_apart() -> bool:
    """Tell whether this program can start another Python: one that is frozen or embedded has none to start."""
    return bool(_INTERPRETER.search(os.path.basename(sys.executable or ""))) and not getattr(sys, "frozen", False)


def call_apart(function: str, *arguments: Any, patience: float | None = None) -> Any:
    """Call a function, given as "module:name", in another process of this Python, and return what it returns.

    The process imports what this one does, and nothing from the folder where it happens to run; it does not import the
    program's main module. Arguments and results are pickled and go through pipes, so they may be large. What is printed
    there is kept for errors. Ctrl-C, and an answer that takes more than `patience` in seconds, end the process. A
    `PodiumError` of the function is raised here. Raises `ProcessEnded` if there was no answer.
    """
    flags = ["-I"] if sys.flags.isolated else ["-E"] if sys.flags.ignore_environment else []
    paths = [each or os.getcwd() for each in sys.path]
    program = f"import sys; sys.path[:] = {paths!a}; from {__name__} import serve; serve()"
    request = pickle.dumps((function, arguments), protocol=pickle.HIGHEST_PROTOCOL)
    try:
        command = [sys.executable, *flags, "-c", program]
        done = subprocess.run(command, input=request, capture_output=True, timeout=patience)
    except subprocess.TimeoutExpired:
        raise ProcessEnded(f"it did not end within {patience:.0f} seconds", "") from None
    except OSError as error:
        raise ProcessEnded(f"it could not be started: {error}", "") from None
    try:
        answer = pickle.loads(done.stdout)
    except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError, ValueError):
        raise ProcessEnded(_how(done.returncode), done.stderr.decode("utf-8", "replace").strip()[-_SHOWN:]) from None
    if isinstance(answer, PodiumError):
        raise answer
    return answer


def serve() -> None:
    """Answer the one request that `call_apart` writes to the standard input, and end."""
    output = os.dup(1)
    os.dup2(2, 1)  # what libraries print must not get into the answer
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # whoever asked is told how it ended
    function, arguments = pickle.load(sys.stdin.buffer)
    module, _, name = function.partition(":")
    try:
        answer = getattr(import_module(module), name)(*arguments)
    except PodiumError as error:
        answer = error
    with os.fdopen(output, "wb") as file:
        pickle.dump(answer, file, protocol=pickle.HIGHEST_PROTOCOL)
    os._exit(0)  # a library that has read what is damaged may not survive its own end


def call_on_large_stack(function: Callable[[], T]) -> T:
    """Call a function in a thread whose stack has 512 megabytes, and wait for it.

    Compilers go down by what is nested in a text. Where the system gives no such thread, and where the function raises,
    it is called here, so it must be one that can be called again. Ctrl-C counts when the function has returned.
    """
    values: list[T] = []

    def run() -> None:
        with suppress(RuntimeError, OSError):
            values.append(function())

    thread = threading.Thread(target=run, name="podium-compiler")
    with _lock:
        before = threading.stack_size(_STACK)
        try:
            thread.start()
        except RuntimeError:  # no room for such a stack, or the interpreter is ending
            return function()
        finally:
            threading.stack_size(before)
    _wait(thread)
    return values[0] if values else function()


def _wait(thread: threading.Thread) -> None:
    try:
        thread.join()
    finally:
        if thread.is_alive():  # what it works on is the caller's
            _wait(thread)


def _how(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"
