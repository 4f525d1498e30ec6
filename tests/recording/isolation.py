"""Tests on recording drivers run in processes of their own, each on a driver that nobody has used yet.

A test that asks for the fixture `recording` is not called where pytest collects it: that process may use a real GPU, or
have another driver library open. A server, which is a second pytest, opens the recording library and collects the same
files; for each test it forks a child, which runs it. So a test can leave the driver in any state, fork, or crash.

The fixture is that of the recording CUDA driver; `hip`, in hip/isolation.py, works in the same way.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from recording.cuda.library import Recording, build, compiler

TESTS = Path(__file__).parents[1]
LIBRARY = "RECORDING_LIBRARY"  # what the server has opened; set in it and in its children
CACHE = "RECORDING_CACHE"  # the cache folder of the session, for children
_PRELOADED = ("cuda.bindings.driver", "numpy", "podium.testing", "podium_nvidia.driver")


class Server:
    """The process that has a library open and forks a child for each test."""

    def __init__(
        self, request: pytest.FixtureRequest, fixture: str, command: Sequence[str], variables: Mapping[str, str]
    ) -> None:
        """Start it by a command, with the files of the tests of this session that ask for a fixture."""
        path = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
        files = {str(item.path) for item in request.session.items if fixture in getattr(item, "fixturenames", ())}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        settings = {**os.environ, **variables, "PYTHONPATH": path}
        line = [*command, *sorted(files)]
        self._process = subprocess.Popen(line, env=settings, cwd=request.config.rootpath, **pipes)

    def run(self, test: str) -> tuple[str, str]:
        """Run a test in a child, and return "passed", "failed" or "skipped", and why."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{test}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            return "failed", f"the server of the recording library has ended ({self._process.wait()})"
        outcome, text = json.loads(answer)
        return str(outcome), str(text)

    def close(self) -> None:
        """End it."""
        self._process.communicate()


class Loop:
    """A pytest plug-in for the server: in place of its own tests it runs those that it is asked for."""

    def __init__(self, answers: int, folder: Path) -> None:
        self._answers, self._folder = answers, folder

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        for line in sys.stdin:
            answer = self._run(items[line.rstrip("\n")])
            os.write(self._answers, f"{json.dumps(answer)}\n".encode())
        return True

    def _run(self, item: pytest.Item) -> tuple[str, str]:
        result, printed = self._folder / "result", self._folder / "printed"
        result.unlink(missing_ok=True)
        child = os.fork()
        if not child:
            output = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for descriptor in (1, 2):
                os.dup2(output, descriptor)
            try:
                answer = _outcome(runtestprotocol(item, log=False))
            except BaseException:
                answer = "failed", traceback.format_exc()
            result.write_text(json.dumps(answer))
            sys.stdout.flush()
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        try:
            outcome, text = json.loads(result.read_text())
        except (OSError, ValueError):
            outcome, text = "failed", f"the test's process ended with {status}"
        return outcome, f"{text}\n{printed.read_text(errors='replace')}" if outcome == "failed" else text


def _outcome(reports: list[pytest.TestReport]) -> tuple[str, str]:
    for outcome in ("failed", "skipped"):
        for report in reports:
            if report.outcome == outcome:
                reason = report.longrepr
                return outcome, str(reason[2] if isinstance(reason, tuple) else reason)
    return "passed", ""


@pytest.fixture(scope="session")
def recording_server(
    request: pytest.FixtureRequest, session_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server | None]:
    """Start the server when the first test needs it; in a child, do nothing."""
    if LIBRARY in os.environ:
        yield None
        return
    if not sys.platform.startswith("linux"):
        pytest.skip("the recording library is for Linux")
    if compiler() is None:
        pytest.skip("there is no C compiler for the recording library")
    if importlib.util.find_spec("cuda") is None or importlib.util.find_spec("podium_nvidia") is None:
        pytest.skip("podium-nvidia or cuda-python is not installed")
    command = [sys.executable, "-m", "recording.isolation", str(tmp_path_factory.mktemp("recording"))]
    server = Server(request, "recording", command, {CACHE: str(session_cache), LIBRARY: str(build())})
    yield server
    server.close()


@pytest.fixture
def recording(recording_server: Server | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recording | None]:
    """Give the recording library in a process where podium's NVIDIA backend runs on it; see the head of this file."""
    if recording_server is not None:
        yield None
        return
    library = Recording(os.environ[LIBRARY])
    monkeypatch.setenv("PODIUM_NVIDIA_LIBCUDA", library.path)
    monkeypatch.setenv("PODIUM_BACKEND", "nvidia")
    yield library


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test with the fixture `recording`, or `hip`, in a child of its server."""
    for fixture, of_server in (("recording", "recording_server"), ("hip", "hip_server")):
        if fixture in pyfuncitem.fixturenames:
            server: Server | None = pyfuncitem._request.getfixturevalue(of_server)
            break
    else:
        return None
    if server is None:
        return None
    outcome, text = server.run(pyfuncitem.nodeid)
    if outcome == "skipped":
        pytest.skip(text.removeprefix("Skipped: "))
    if outcome != "passed":
        pytest.fail(text, pytrace=False)
    return True


def serve(folder: Path, *files: str) -> int:
    """Answer, in a process of a server, for the tests in files; a folder is for what is written meanwhile."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what pytest prints must not get among the answers
    arguments = ["-q", "-q", "-s", "-p", "no:cacheprovider", f"--basetemp={folder / 'children'}", *files]
    arguments += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of plug-ins that are imported already
    return int(pytest.main(arguments, plugins=[Loop(answers, folder)]))


if __name__ == "__main__":
    for name in _PRELOADED:
        importlib.import_module(name)
    Recording(os.environ[LIBRARY])
    sys.exit(serve(Path(sys.argv[1]), *sys.argv[2:]))
