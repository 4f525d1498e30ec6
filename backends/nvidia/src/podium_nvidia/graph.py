"""Graphs: what a stream is given while it is captured, launched as one, with parameters that can be changed.

A capture is relaxed: what the thread does outside of the stream is allowed. In the other modes a finalizer that frees
memory or an event would end the capture, and the garbage collector runs finalizers whenever it likes.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from struct import Struct
from typing import Any

from podium.backend import LaunchConfig, Parameters
from podium.errors import CaptureError, PodiumError

from podium_nvidia import context
from podium_nvidia.api import driver
from podium_nvidia.function import hold, let_go
from podium_nvidia.status import (
    CAPTURE_IMPLICIT,
    CAPTURE_INVALIDATED,
    CAPTURE_UNJOINED,
    CAPTURE_UNSUPPORTED,
    ILLEGAL_STATE,
    NO_CONTEXT,
    cuda_version,
    describe,
    launch_error,
)

__all__ = ["begin_capture", "capture_state", "destroy_graph", "end_capture", "launch_graph", "takes", "update_node"]

_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_ACTIVE = 1  # CU_STREAM_CAPTURE_STATUS_ACTIVE
# CUgraphInstantiate_flags: memory that a launch leaves is freed by the next; kernels keep their streams' priorities
_AUTO_FREE, _NODE_PRIORITY, _HAS_PRIORITY = 1, 8, 11070

_WHY = {
    ILLEGAL_STATE: "the stream is being captured already",
    CAPTURE_UNSUPPORTED: "the legacy default stream cannot be captured; give capture() no stream, or one that was made",
    CAPTURE_INVALIDATED: "something was done meanwhile that no graph can hold, such as to wait for the stream, or, in "
    "any thread, for the whole device",
    CAPTURE_UNJOINED: "a stream that waits for an event of the capture has work in it that graph.stream does not wait "
    "for: graph.stream.wait(stream.record())",
}


# CUDA_KERNEL_NODE_PARAMS of CUDA 12: the function, what is changed, the kernel and the context
_SIZE, _CHANGED_AT = 72, 8
_CHANGED = Struct("=7I4xQQ")  # grid, block, shared memory, the addresses of the parameters, and nothing in `extra`


class _Graph:
    """A graph that can be launched, and the one that it was made of: their nodes have the same handles."""

    def __init__(self) -> None:
        self.source = 0
        self.code: list[Any] = []  # what is held of the kernels
        self.nodes: dict[int, Any] = {}  # what is known of those that were changed
        self.left_out: set[int] = set()

    def release(self) -> None:
        while self.code:
            let_go(self.code.pop())


_graphs: dict[int, _Graph] = {}
_captures: dict[int, _Graph] = {}  # by their numbers, while they go on
_numbers: dict[tuple[int, int], int] = {}  # of the captures that began on a device, in a stream


def begin_capture(device: int, stream: int) -> None:
    """Begin to capture a stream. Raises `CaptureError`."""
    with context.current(device):
        status = driver().cuStreamBeginCapture(stream, _RELAXED)
    if status:
        raise _error(status, f"Stream {stream:#x} cannot be captured")
    number, _ = capture_state(device, stream)
    _numbers[device, stream] = number
    _captures[number] = _Graph()


def takes(device: int, stream: int, function: int) -> bool:
    """Tell whether a stream is captured for podium; then the graph keeps the code of a kernel as long as it lives."""
    graph = _captures.get(capture_state(device, stream)[0]) if _captures else None
    if graph is None:
        return False
    loaded = hold(function)
    if loaded is not None:
        graph.code.append(loaded)
    return True


def capture_state(device: int, stream: int) -> tuple[int, int]:
    """Return the number of the capture that a stream takes part in, and the node that its next one will follow."""
    state, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    nodes, count = ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_size_t()
    places = (ctypes.byref(place) for place in (state, number, graph, nodes, count))
    with context.current(device):
        status = driver().cuStreamGetCaptureInfo(stream, *places)
    if status == CAPTURE_IMPLICIT:  # the legacy stream, while a stream that waits for it is captured
        return 0, 0
    if status:
        raise launch_error(status, f"asking for the capture of stream {stream:#x}", device)
    if state.value != _ACTIVE:
        return 0, 0
    return number.value, (nodes[0] or 0) if count.value else 0


def end_capture(device: int, stream: int) -> int:
    """End a capture and return a graph that can be launched. Raises `CaptureError`."""
    functions, source, made = driver(), ctypes.c_void_p(), ctypes.c_void_p()
    graph = _captures.pop(_numbers.pop((device, stream)))
    flags = _AUTO_FREE | (_NODE_PRIORITY if cuda_version() >= _HAS_PRIORITY else 0)
    with context.current(device), context.relaxed():
        status = functions.cuStreamEndCapture(stream, ctypes.byref(source))
        if status:
            graph.release()
            raise _error(status, f"The capture of stream {stream:#x} failed")
        status = functions.cuGraphInstantiateWithFlags(ctypes.byref(made), source, flags)
        if status:
            functions.cuGraphDestroy(source)
            graph.release()
            raise _error(status, "The graph cannot be launched")
    graph.source = source.value or 0
    _graphs[made.value or 0] = graph
    return made.value or 0


def launch_graph(graph: int, device: int, stream: int) -> int:
    """Launch a graph; return the status. In a stream that is captured the driver would refuse, and end the capture."""
    if context.current_device() == device:
        return _launch_graph(graph, stream)
    with context.current_primary(device):
        return _launch_graph(graph, stream)


def _launch_graph(graph: int, stream: int) -> int:
    functions, state, status = driver(), ctypes.c_int(), 0
    if stream:
        status = functions.cuStreamIsCapturing(stream, ctypes.byref(state))
    if not status:
        status = CAPTURE_UNSUPPORTED if state.value else functions.cuGraphLaunch(graph, stream)
    return status


def update_node(graph: int, node: int, function: int, config: LaunchConfig, device: int, parameters: Parameters) -> int:
    """Change the sizes and the parameters of a kernel, or leave it out of launches; return the status."""
    known = _graphs[graph]
    if not config.blocks:
        status: int = driver().cuGraphNodeSetEnabled(graph, node, 0)
        if not status:
            known.left_out.add(node)
        return status
    wanted = known.nodes.get(node)
    if wanted is None:
        wanted = known.nodes[node] = _parameters_of(node, device)
    # what the pointer leads to is copied before the call returns
    _CHANGED.pack_into(wanted, _CHANGED_AT, *config.grid, *config.block, config.shared, parameters.pointer, 0)
    status = driver().cuGraphExecKernelNodeSetParams(graph, node, wanted)
    if status in NO_CONTEXT:
        with context.current(device):
            status = driver().cuGraphExecKernelNodeSetParams(graph, node, wanted)
    if not status and node in known.left_out:
        status = driver().cuGraphNodeSetEnabled(graph, node, 1)
        known.left_out.discard(node)
    return status


def _parameters_of(node: int, device: int) -> Any:
    """Return the memory of what a kernel in a graph was captured with. Raises `LaunchError`."""
    memory = ctypes.create_string_buffer(_SIZE)
    with context.current(device):
        status = driver().cuGraphKernelNodeGetParams(node, memory)
    if status:
        raise launch_error(status, "asking for the parameters of a node", device)
    return memory


def destroy_graph(graph: int, device: int) -> None:
    """Give a graph back; the driver lets its launches end."""
    known = _graphs.pop(graph)
    with suppress(PodiumError), context.current(device), context.relaxed():
        driver().cuGraphExecDestroy(graph)
        driver().cuGraphDestroy(known.source)
    known.release()


def _error(status: int, what: str) -> CaptureError:
    name, text = describe(status)
    return CaptureError(
        f"{what}: {_WHY.get(status, text)} ({name}, status {status})", backend="nvidia", status=status, status_name=name
    )
