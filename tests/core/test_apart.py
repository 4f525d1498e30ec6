"""Calls in another process, and in a thread with a large stack."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from podium import _apart
from podium.errors import LoadError
from podium.parts import ProcessEnded, call_apart, call_on_large_stack, can_call_apart

pytestmark = pytest.mark.newest


def test_results_errors_and_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the function returns is returned, however large; an error of podium's is raised; what it prints is neither."""
    (tmp_path / "pickle.py").write_text("raise RuntimeError('a file that lies about')\n")
    monkeypatch.chdir(tmp_path)
    data = os.urandom(3 << 20)
    assert call_apart("operator:add", data, b"end") == data + b"end"
    assert call_apart("builtins:print", "not an answer") is None
    with pytest.raises(LoadError, match="no such file"):
        call_apart("podium._binary:read_binary", "/no such file")


def test_a_process_that_ends_is_an_error() -> None:
    """A signal, an exception, and a function that takes too long: each is said, and this process goes on."""
    assert can_call_apart()
    with pytest.raises(ProcessEnded, match="signal SIGKILL") as caught:
        call_apart("signal:raise_signal", int(signal.SIGKILL))
    assert caught.value.how == "signal SIGKILL"
    with pytest.raises(
        ProcessEnded, match="exit status 1; (?s:.*)ValueError: math domain error|expected a nonnegative"
    ):
        call_apart("math:sqrt", -1)
    with pytest.raises(ProcessEnded, match="did not end within 1 seconds"):
        call_apart("time:sleep", 600, patience=1)


@pytest.mark.parametrize("executable", ["", "/usr/bin/blender", None])
def test_a_program_without_a_python_calls_nothing_apart(
    monkeypatch: pytest.MonkeyPatch, executable: str | None
) -> None:
    """Programs that are frozen, or that have an interpreter inside, cannot start another one, and it is known."""
    monkeypatch.setattr(sys, "executable", sys.executable if executable is None else executable)
    monkeypatch.setattr(sys, "frozen", executable is None, raising=False)
    assert not can_call_apart()


def test_a_large_stack_is_for_one_thread() -> None:
    """The function has the stack, other threads have what they had; one that fails is called where it is waited for."""
    before = threading.stack_size()
    assert call_on_large_stack(threading.current_thread) is not threading.current_thread()
    assert threading.stack_size() == before
    where = []

    def fails() -> None:
        where.append(threading.current_thread())
        raise OSError("twice")

    with pytest.raises(OSError, match="twice"):
        call_on_large_stack(fails)
    assert where[1] is threading.current_thread() is not where[0]


def test_without_room_for_a_large_stack_the_function_is_called_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that gives no such thread leaves the caller's own."""
    monkeypatch.setattr(_apart, "_STACK", 1 << 46)
    assert call_on_large_stack(threading.current_thread) is threading.current_thread()
