"""Tests with the fixture `hip` run in processes of their own, once on each machine with HIP; see ../isolation.py.

A server for the stand-in has no library open, and its children open one of a version each. Another one, for AMD's own
runtime on a modelled device, is a Python that runs on the C library which came with that runtime.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from recording.hip.compiling import hiprtc
from recording.hip.library import MAJORS, build, compiler, compiler_library
from recording.hip.machine import RUNTIME, Machine, Modelled, StandIn, build_model, interpreter, why_no_model
from recording.hip.model.topology import GPUS
from recording.isolation import CACHE, Server, serve

SERVED = "RECORDING_HIP_SERVED"  # in a server: "stand-in" or "model"
MODEL = "RECORDING_HIP_MODEL"  # in a server for models: the file of the model
_PRELOADED = ("numpy", "podium.testing", "podium_amd.driver", "rocm.bindings.hip")

STAND_INS = [f"hip{major}" for major in MAJORS]
MODELS = [f"model-{arch}" for arch in GPUS]
MACHINES = [*STAND_INS, *(pytest.param(name, marks=pytest.mark.amd_model) for name in MODELS)]


class Servers:
    """The servers of this session, each started when the first test needs it."""

    def __init__(self, request: pytest.FixtureRequest, cache: Path, folder: Path) -> None:
        """Start none yet."""
        self._request, self._cache, self._folder = request, cache, folder
        self._started: dict[str, Server] = {}

    def get(self, machine: str) -> Server:
        """Return the server for a machine."""
        kind = "model" if machine in MODELS else "stand-in"
        if kind not in self._started:
            self._started[kind] = self._start(kind)
        return self._started[kind]

    def _start(self, kind: str) -> Server:
        folder = self._folder / kind
        folder.mkdir()
        variables = {CACHE: str(self._cache), SERVED: kind}
        command = [sys.executable]
        if kind == "model":
            model, clearing = build_model(folder)
            command = interpreter(Path(os.environ[RUNTIME]).resolve(), sys.executable, clearing)
            variables[MODEL] = str(model)
        else:
            variables |= {f"{SERVED}_{major}": f"{build(major)}:{compiler_library(major)}" for major in MAJORS}
            variables["RECORDING_HIPRTC"] = hiprtc() or ""
        return Server(self._request, "hip", [*command, "-m", "recording.hip.isolation", str(folder)], variables)

    def close(self) -> None:
        """End them."""
        for server in self._started.values():
            server.close()


@pytest.fixture(scope="session")
def hip_servers(
    request: pytest.FixtureRequest, session_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Servers | None]:
    """Keep the servers; in a child of one there are none."""
    if SERVED in os.environ:
        yield None
        return
    servers = Servers(request, session_cache, tmp_path_factory.mktemp("recording-hip"))
    yield servers
    servers.close()


@pytest.fixture
def hip_server(hip_servers: Servers | None, request: pytest.FixtureRequest) -> Server | None:
    """Return the server for the machine of this test; None in its child."""
    if hip_servers is None:
        return None
    machine: str = request.getfixturevalue("hip_machine")
    if not sys.platform.startswith("linux"):
        pytest.skip("the recording HIP runtime is for Linux")
    if compiler() is None:
        pytest.skip("there is no C compiler for the recording HIP runtime")
    if machine in MODELS and (reason := why_no_model()):
        pytest.skip(reason)
    return hip_servers.get(machine)


@pytest.fixture(params=MACHINES)
def hip_machine(request: pytest.FixtureRequest) -> str:
    """Name the machine: "hip5", "hip6", "hip7", or "model-" and an architecture."""
    name: str = request.param
    return name


@pytest.fixture
def hip(hip_server: Server | None, hip_machine: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine | None]:
    """Give the machine in a process where HIP, and podium's AMD backend, is on it; see the head of this file."""
    if hip_server is not None:
        yield None
        return
    machine: Machine
    if hip_machine in MODELS:
        machine = Modelled(Path(os.environ[RUNTIME]), Path(os.environ[MODEL]), hip_machine.partition("-")[2])
    else:
        library, hiprtc = os.environ[f"{SERVED}_{hip_machine[-1]}"].split(":")
        machine = StandIn(library, hiprtc)
    monkeypatch.setenv("PODIUM_AMD_LIBHIP", machine.library)
    monkeypatch.setenv("PODIUM_AMD_HIPRTC", machine.compiler)
    monkeypatch.setenv("PODIUM_BACKEND", "amd")
    yield machine


if __name__ == "__main__":
    for name in _PRELOADED:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    sys.exit(serve(Path(sys.argv[1]), *sys.argv[2:]))
