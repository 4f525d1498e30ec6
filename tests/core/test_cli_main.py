"""The command line as a whole: its commands, its exit codes, and how errors and interrupts are told."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import podium
from podium._cli import cache, main
from podium.errors import CompileError, Diagnostic, PodiumError, PodiumWarning

COMMANDS = ("doctor", "demo", "run", "compile", "cache")


def command(*words: str, environment: dict[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run ``python -m podium`` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "podium", *words],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


def replaced(monkeypatch: pytest.MonkeyPatch, action: Callable[[], int]) -> None:
    """Put an action in place of ``podium cache info``."""
    monkeypatch.setattr(cache, "run", lambda options: action())


def raising(error: BaseException) -> Callable[[], int]:
    def action() -> int:
        raise error

    return action


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """--version prints the version and succeeds."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"podium {podium.__version__}\n"


def test_version_is_light() -> None:
    """PRF-03: asking for the version starts no process and imports nothing that a launch or a table would need."""
    code = (
        "import json, sys\n"
        "from podium._cli import main\n"
        "main(['--version'])\n"
        "heavy = {'rich', 'pluggy', 'ctypes', 'subprocess', 'platformdirs', 'tree_sitter', 'numpy', 'dataclasses',\n"
        "         'podium.backend', 'podium._plugins', 'podium._active', 'podium._cache', 'importlib.metadata'}\n"
        "print(json.dumps(sorted(heavy & set(sys.modules))))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(out.splitlines()[-1]) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_rich_is_for_tables_on_terminals(name: str) -> None:
    """Looking at a command's help imports neither rich nor any backend."""
    code = (
        "import sys\n"
        "from podium._cli import main\n"
        f"assert main([{name!r}, '--help']) == 0\n"
        "assert not {'rich', 'pluggy', 'podium_cpu'} & set(sys.modules), set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_module_and_script_are_the_same(tmp_path: Path) -> None:
    """``python -m podium`` is the command line, and calls itself podium."""
    done = command("cache", "nothing")
    assert done.returncode == 2
    assert "usage: podium cache" in done.stderr


@pytest.mark.parametrize("name", [None, *COMMANDS])
def test_help(name: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command explains itself, and the whole lists them all."""
    assert main(["--help"] if name is None else [name, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: podium")
    assert "--traceback" in out
    if name is None:
        assert all(each in out for each in COMMANDS)


@pytest.mark.parametrize(
    "words",
    [
        ["unknown"],
        ["doctor", "--unknown"],
        ["run"],
        ["run", "k.cu", "--grid", "1,2,3,4"],
        ["run", "k.cu", "--block", "-1"],
        ["run", "k.cu", "--repeat", "0"],
        ["run", "k.cu", "--arg", "zeros:f32"],
        ["run", "k.cu", "--arg", "word"],
        ["run", "k.cu", "--save", "name"],
        ["run", "k.cu", "--define", "1X=2"],
        ["run", "k.cu", "--signature", "*fp33"],
        ["compile", "k.cu", "--target", "cpu"],
        ["compile", "k.cu", "--emit", "ptx"],
        ["compile", "k.cu", "--target", "cpu:x:1", "--backend", "cpu"],
        ["cache"],
        ["cache", "burn"],
    ],
)
def test_wrong_use(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong use is told on standard error, with exit code 2 and nothing on standard output."""
    assert main(words) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert "podium" in streams.err
    assert "Traceback" not in streams.err


def test_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command the commands are listed, as a wrong use."""
    assert main([]) == 2
    assert "doctor" in capsys.readouterr().err


def test_an_error_is_one_message(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An error of podium is its text on standard error, and exit code 1."""
    replaced(monkeypatch, raising(PodiumError("the flux is low; raise it")))
    assert main(["cache", "info"]) == 1
    assert capsys.readouterr().err == "podium cache: the flux is low; raise it\n"


@pytest.mark.parametrize("words", [["cache", "info", "--traceback"], ["--traceback", "cache", "info"]])
def test_traceback_on_request(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """--traceback, before or after the command, lets the error through with its traceback."""
    replaced(monkeypatch, raising(PodiumError("the flux is low")))
    with pytest.raises(PodiumError, match="flux"):
        main(words)


def test_traceback_while_debugging(monkeypatch: pytest.MonkeyPatch) -> None:
    """PODIUM_DEBUG=1 lets errors through, too; a value that means nothing does not hide the error."""
    replaced(monkeypatch, raising(PodiumError("the flux is low")))
    monkeypatch.setenv("PODIUM_DEBUG", "perhaps")
    assert main(["cache", "info"]) == 1
    monkeypatch.setenv("PODIUM_DEBUG", "1")
    with pytest.raises(PodiumError, match="flux"):
        main(["cache", "info"])


def test_a_bug_shows_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no error of podium, the system or the user is a bug, and is not put into a message."""
    replaced(monkeypatch, raising(ZeroDivisionError("bug")))
    with pytest.raises(ZeroDivisionError):
        main(["cache", "info"])


def test_a_file_error_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A source that is not there is named, with the system's words."""
    assert main(["compile", str(tmp_path / "gone.cu")]) == 1
    assert capsys.readouterr().err == f"podium compile: {tmp_path / 'gone.cu'}: No such file or directory\n"


def test_a_source_that_is_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A binary file in place of source is an error and no crash."""
    (tmp_path / "binary.cu").write_bytes(b"\xff\xfe\x00kernel")
    assert main(["compile", str(tmp_path / "binary.cu")]) == 1
    assert "byte 0xff in line 1 is not UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (CompileError("it broke", log="line 3: bad\n"), "it broke\nline 3: bad"),
        (CompileError("it broke", log=""), "it broke"),
        (CompileError("it broke: bad", log="bad"), "it broke: bad"),
        (
            CompileError("k.cu:3: bad", log="much", diagnostics=[Diagnostic("k.cu", 3, 1, "error", "bad")]),
            "k.cu:3: bad",
        ),
    ],
)
def test_the_log_of_a_compiler(
    error: CompileError, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log is shown where the message does not quote from it already."""
    replaced(monkeypatch, raising(error))
    assert main(["cache", "info"]) == 1
    assert capsys.readouterr().err == f"podium cache: {shown}\n"


def test_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C ends a command with exit code 130 and no traceback."""
    for interrupt, shown in ((KeyboardInterrupt(), ""), (KeyboardInterrupt("while it hung"), " while it hung")):
        replaced(monkeypatch, raising(interrupt))
        assert main(["cache", "info"]) == 130
        assert capsys.readouterr().err == f"\npodium: interrupted{shown}\n"


def test_interrupt_of_a_process(tmp_path: Path) -> None:
    """A real SIGINT in the middle of a compile ends the process with exit code 130, quietly."""
    compiler = tmp_path / "slow-compiler"
    ready = tmp_path / "ready"
    compiler.write_text(f"#!/bin/sh\n: > {ready}\nexec sleep 60\n")
    compiler.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "podium", "doctor"],
        env={**os.environ, "CC": str(compiler), "CXX": str(compiler), "PODIUM_DISABLED_PLUGINS": "cpu"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not ready.exists() and process.poll() is None:
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err == "\npodium: interrupted\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["cache", "info"], ["doctor", "--json"], ["run", "--help"]])
def test_broken_pipe_is_quiet(words: list[str], unbuffered: str) -> None:
    """A reader that goes away, as head does, ends the command without a word."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "podium", *words],
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(write)
    # argparse itself says nothing of a help that nobody reads
    assert done.returncode == 141 or words[1] == "--help"
    assert done.stderr == ""


def test_streams_that_are_closed() -> None:
    """A command whose output is closed, as by >&-, does its work and ends as it would."""
    command = f"{shlex.quote(sys.executable)} -W error -m podium"
    script = f"{command} cache info >&- && {command} --version >&- && {command} cache info 2>&- >&- && {command} x 2>&-"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


@pytest.mark.filterwarnings("default::podium.errors.PodiumWarning")
def test_warnings_are_plain_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A warning of podium is a line on standard error without a place in podium's code."""

    def action() -> int:
        import warnings

        warnings.warn("the disk is slow", PodiumWarning, stacklevel=1)
        return 0

    replaced(monkeypatch, action)
    assert main(["cache", "info"]) == 0
    assert capsys.readouterr().err == "podium: warning: the disk is slow\n"


def test_warnings_as_errors(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Under -W error a warning of podium ends the command as an error does."""
    replaced(monkeypatch, raising(PodiumWarning("the disk is slow")))
    assert main(["cache", "info"]) == 1
    assert capsys.readouterr().err == "podium cache: the disk is slow\n"


def test_characters_that_the_terminal_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A character that the output cannot encode is escaped and ends nothing."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", errors="strict"))

    def action() -> int:
        sys.stdout.write("Gerät\n")
        return 0

    replaced(monkeypatch, action)
    assert main(["cache", "info"]) == 0
    assert raw.getvalue() == b"Ger\\xe4t\n"
