"""What tests on a real NVIDIA GPU use: graphs, processes, and devices that can do something."""

from __future__ import annotations

import os
import subprocess
import sys
from types import TracebackType
from typing import Any

import pytest

from podium_nvidia.api import bindings
from podium_nvidia.driver import NvidiaDriver

__all__ = ["Captured", "checked", "needs", "python"]


def needs(gpu: NvidiaDriver, capability: int, what: str) -> None:
    """Skip the test on devices below a compute capability."""
    arch = int("".join(filter(str.isdigit, gpu.default_target().arch)))
    if arch < capability:
        pytest.skip(f"{what} comes with compute capability {capability // 10}.{capability % 10}; this is sm_{arch}")


def checked(result: tuple[Any, ...]) -> Any:
    """Return what a call of cuda-python gave beside its status, which must be success."""
    status, *values = result
    assert int(status) == 0, status
    return values[0] if len(values) == 1 else values


class Captured:
    """A stream that is captured into a graph inside the ``with`` block; `replay` launches what was captured."""

    def __init__(self, gpu: NvidiaDriver, device: int = 0, mode: str = "GLOBAL") -> None:
        self.cuda, self.gpu, self.device = bindings(), gpu, device
        self.mode = getattr(self.cuda.CUstreamCaptureMode, f"CU_STREAM_CAPTURE_MODE_{mode}")
        self.stream = gpu.create_stream(device, 0)

    def __enter__(self) -> Captured:
        checked(self.cuda.cuStreamBeginCapture(self.stream, self.mode))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        status, graph = self.cuda.cuStreamEndCapture(self.stream)
        if kind is None:
            assert int(status) == 0, status
            self.graph = graph
            self.executable = checked(self.cuda.cuGraphInstantiate(graph, 0))

    def replay(self, times: int = 1) -> None:
        """Launch the graph after all that is under way on the device, and wait for it."""
        assert self.gpu.synchronize(self.device) == 0  # its stream does not wait for the default one
        for _ in range(times):
            checked(self.cuda.cuGraphLaunch(self.executable, self.stream))
        assert self.gpu.synchronize(self.device, self.stream) == 0

    def nodes(self) -> list[Any]:
        """Return the nodes of the graph."""
        _, count = checked(self.cuda.cuGraphGetNodes(self.graph, 0))
        nodes, _ = checked(self.cuda.cuGraphGetNodes(self.graph, count))
        return list(nodes)

    def attribute(self, key: int) -> int:
        """Return the first word of an attribute of the one kernel in the graph."""
        (node,) = self.nodes()
        value = checked(self.cuda.cuGraphKernelNodeGetAttribute(node, self.cuda.CUlaunchAttributeID(key)))
        return int.from_bytes(value.pad[:4], "little", signed=True)


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, on this one's import path."""
    variables = {name: value for name, value in os.environ.items() if name != "PODIUM_DEBUG"}
    variables |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=240, check=False
    )
