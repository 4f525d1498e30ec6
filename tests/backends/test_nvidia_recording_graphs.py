"""Graphs on the recording CUDA driver: what is captured, what a replay launches, and what is refused or fails."""

from __future__ import annotations

import ctypes
import gc
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest
from nvidia_recorded import at_level, kernels, told
from recording.cuda.library import Recording

import podium
from podium.errors import ArgumentTypeError, CaptureError, LaunchError, LoadError, OutOfResourcesError

CLUSTER, COOPERATIVE, PRIORITY = 4, 2, 8


def values(launch: Any) -> tuple[float, int]:
    """The two numbers of a launch of saxpy."""
    a, n = struct.unpack("<fi", b"".join(launch.parameters[2:]))
    return a, n


def test_a_graph_launches_what_was_captured(recording: Recording, level: str) -> None:
    """SCR-09: launches become nodes with their bytes; a replay launches them, in C from when there is a launcher."""
    kernel, x = kernels()["saxpy"], podium.empty(64, "fp32")
    kernel[2, 32](x, x, 0.0, 64)
    with podium.capture() as graph:
        for step in range(3):
            kernel[2, 32](x, x, float(step), 64)
    assert [launch.captured for launch in recording.launches()[-3:]] == [True] * 3
    for _ in range(2):
        launches = told(recording, graph.replay)
        assert [values(launch) for launch in launches] == [(0.0, 64), (1.0, 64), (2.0, 64)]
        assert all(launch.replayed and launch.stream == 0 and launch.grid == (2, 1, 1) for launch in launches)
    assert (type(graph.replay).__name__ == "Replay") == (level == "generated")
    stream = podium.Stream()
    again = told(recording, lambda: graph(stream=stream)) + told(recording, lambda: graph.replay(stream=stream))
    assert {launch.stream for launch in again} == {stream.handle}
    assert podium.recent_launches()[-1].kernel == "graph of 3 launches (saxpy, saxpy, saxpy)"
    assert recording.calls()["cuGraphLaunch"] == 4


def test_an_update_changes_parameters_and_sizes_and_nothing_else(recording: Recording) -> None:
    """A node keeps its attributes and its place; what is named is changed, by the conversions of a launch."""
    kernel, x, y = kernels()["saxpy"], podium.empty(64, "fp32"), podium.empty(64, "fp32")
    special = podium.LaunchConfig(4, 32, cluster=2, cooperative=True, attributes={"priority": -1})
    kernel[2, 32](x, x, 0.0, 64)
    with podium.capture() as graph:
        kernel[2, 32](x, x, 1.0, 64)
        kernel[special](x, x, 2.0, 64)
    first, second = graph.launches
    before = told(recording, graph.replay)
    first.update(n=32)
    second.update(y, x, 5, 16, grid=8, shared=512)
    one, two = told(recording, graph.replay)
    assert (values(one), values(two)) == ((1.0, 32), (5.0, 16))
    assert two.parameters[:2] == (y.ptr.to_bytes(8, "little"), x.ptr.to_bytes(8, "little"))
    assert (two.grid, two.block, two.shared, two.cluster) == ((8, 1, 1), (32, 1, 1), 512, (2, 1, 1))
    assert two.attributes == before[1].attributes and len(two.attributes) == 3
    assert (first.arguments[3], second.grid, second.shared) == (32, (8, 1, 1), 512)
    second.update(grid=0)
    assert [values(launch) for launch in told(recording, graph.replay)] == [(1.0, 32)]
    second.update(grid=2)
    assert told(recording, graph.replay)[1].grid == (2, 1, 1)


def test_an_update_that_cannot_be_changes_nothing(recording: Recording) -> None:
    """Arguments and sizes are checked as those of a launch; what the driver refuses is an error that names the kernel."""
    kernel, x = kernels()["saxpy"], podium.empty(64, "fp32")
    kernel[2, 32](x, x, 0.0, 64)
    with podium.capture() as graph:
        kernel[2, 32](x, x, 1.0, 64)
    (launch,) = graph.launches
    with pytest.raises(ArgumentTypeError, match=r"saxpy: argument 3 \('n'\) expects i32"):
        launch.update(n=1.5)
    with pytest.raises(OutOfResourcesError, match="saxpy"):
        launch.update(block=2048)
    recording.fail("cuGraphExecKernelNodeSetParams", 1)
    with pytest.raises(LaunchError, match="saxpy: CUDA_ERROR_INVALID_VALUE"):
        launch.update(n=3)
    (after,) = told(recording, graph.replay)
    assert values(after) == (1.0, 64) and launch.arguments[3] == 64


def test_streams_are_forked_and_joined_by_events(recording: Recording) -> None:
    """A stream that waits for an event of the capture takes part: its launches depend on those before the event."""
    kernel, x, other = kernels()["saxpy"], podium.empty(64, "fp32"), podium.Stream()
    kernel[2, 32](x, x, 0.0, 64)
    with podium.capture() as graph:
        kernel[2, 32](x, x, 1.0, 64)
        other.wait(graph.stream.record(timed=False))
        kernel[2, 32](x, x, 2.0, 64)
        kernel[2, 32](x, x, 3.0, 64, stream=other)
        graph.stream.wait(other.record(timed=False))
        kernel[2, 32](x, x, 4.0, 64)
    nodes = [launch.node for launch in graph.launches]
    assert len(set(nodes)) == 4

    def before(node: int) -> set[int]:
        found, count = (ctypes.c_void_p * 8)(), ctypes.c_size_t(8)
        ask = recording.function("cuGraphNodeGetDependencies")
        assert ask(ctypes.c_void_p(node), found, ctypes.byref(count)) == 0
        return {int(each or 0) for each in found[: count.value]}

    assert [before(node) for node in nodes] == [set(), {nodes[0]}, {nodes[0]}, {nodes[1], nodes[2]}]
    assert [values(launch)[0] for launch in told(recording, graph.replay)] == [1.0, 2.0, 3.0, 4.0]
    graph.launches[2].update(a=7.0)
    assert [values(launch)[0] for launch in told(recording, graph.replay)] == [1.0, 2.0, 7.0, 4.0]


def test_a_capture_that_fails_says_why_and_leaves_nothing(recording: Recording) -> None:
    """Unjoined work, waiting for the stream or the device behind podium's back, and the legacy stream are explained."""
    from cuda.bindings import driver as cuda

    kernel, x, other = kernels()["saxpy"], podium.empty(64, "fp32"), podium.Stream()
    kernel[2, 32](x, x, 0.0, 64)
    gc.collect()
    before = recording.counters()

    def captured(work: Callable[[podium.Graph], object]) -> None:
        with podium.capture() as graph:
            kernel[2, 32](x, x, 1.0, 64)
            graphs.append(graph)
            work(graph)

    def fork(graph: podium.Graph) -> None:
        other.wait(graph.stream.record(timed=False))
        kernel[2, 32](x, x, 3.0, 64, stream=other)

    graphs: list[podium.Graph] = []
    with pytest.raises(CaptureError, match=r"graph\.stream\.wait\(stream\.record\(\)\).*STREAM_CAPTURE_UNJOINED"):
        captured(fork)
    assert repr(graphs[0]) == "<podium graph whose capture failed on nvidia device 0>"
    waits = [lambda graph: cuda.cuStreamSynchronize(graph.stream.handle), lambda graph: cuda.cuCtxSynchronize()]
    for wait in waits:
        with pytest.raises(CaptureError, match="such as to wait for the stream") as caught:
            captured(wait)
        assert caught.value.status_name == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
        del caught
    with pytest.raises(CaptureError, match="the legacy default stream cannot be captured"), podium.capture(stream=0):
        pass
    with pytest.raises(ZeroDivisionError):
        captured(lambda graph: 1 // 0)
    with pytest.raises(CaptureError, match="its capture failed"):
        graphs[-1].replay()
    kernel[2, 32](x, x, 9.0, 64)
    assert values(recording.last())[0] == 9.0 and not recording.last().captured
    graphs.clear()
    gc.collect()
    assert recording.counters() == before


def test_what_podium_would_wait_for_leaves_the_capture_whole(recording: Recording) -> None:
    """SCR-07: waiting is refused before the driver is asked, in this thread and in others, and the capture goes on."""
    kernel, x = kernels()["saxpy"], podium.asarray([0.0] * 64)
    kernel[2, 32](x, x, 0.0, 64)
    refused: list[str] = []

    def elsewhere() -> None:
        try:
            podium.synchronize()
        except CaptureError as error:
            refused.append(str(error))

    with podium.capture() as graph:
        kernel[2, 32](x, x, 1.0, 64)
        for wait in (podium.synchronize, x.tolist, graph.stream.synchronize, graph.stream.record().synchronize):
            with pytest.raises(CaptureError):
                wait()
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        y = podium.asarray([1.0] * 64)
        del y
        gc.collect()  # memory and events are given back
        kernel[2, 32](x, x, 2.0, 64)
    assert len(refused) == 1 and "elsewhere" in refused[0]
    assert [values(launch)[0] for launch in told(recording, graph.replay)] == [1.0, 2.0]
    podium.synchronize()


def test_nothing_is_loaded_in_a_capture(recording: Recording) -> None:
    """SCR-08: a cold kernel is an error that says to load it before, and the capture goes on without it."""
    module, x = kernels(), podium.empty(64, "fp32")
    module["saxpy"][2, 32](x, x, 0.0, 64)
    with podium.capture() as graph:
        with pytest.raises(LoadError, match=r"Call kernel.load\(\)"):
            module["nothing"][1, 1]()
        module["saxpy"][2, 32](x, x, 1.0, 64)
    assert len(told(recording, graph.replay)) == 1


def test_scratch_memory_belongs_to_the_graph(recording: Recording) -> None:
    """SCR-05, SCR-06: it is no node, lives as long as the graph, and is made anew where an update needs more."""
    with podium.use("nvidia") as driver:
        source = type("Source", (), {"signature": {"x": "*fp32", "n": "i32"}})
        metadata = {"name": "shared", "block": 32, "global_scratch_size": 256, "global_scratch_align": 128}
        module = podium.module('extern "C" __global__ void shared(float *x, int n, void *scratch) {}')
        function, x = module.kernel("shared").load(), podium.empty(64, "fp32")
        launcher = driver.launcher_cls(source, metadata, driver)
        live = recording.counters()["bytes"]
        with podium.capture() as graph:
            launcher(4, 1, 1, None, function, x, 1)
            launcher(4, 1, 1, graph.stream, function, x, 2)
        one, two = told(recording, graph.replay)
        assert one.parameters[2] != two.parameters[2] and one.stale == two.stale == 0
        first = graph.launches[0]
        first.update(n=5)
        assert told(recording, graph.replay)[0].parameters[2] == one.parameters[2]
        first.update(grid=(64, 1, 1))
        after = told(recording, graph.replay)[0]
        assert after.parameters[2] != one.parameters[2] and after.grid == (64, 1, 1) and after.stale == 0
        assert "cuMemAllocAsync" not in recording.calls()
        del graph, first
        gc.collect()
        assert recording.counters()["bytes"] == live


def test_a_graph_keeps_its_arguments_and_its_code(recording: Recording) -> None:
    """LIF-04: arrays and kernels that were dropped are there in a replay; all of it goes with the graph, but the code."""
    module = kernels()
    module["saxpy"][2, 32](None, None, 0.0, 64)
    x = podium.empty(64, "fp32")
    with podium.capture() as graph:
        module["saxpy"][2, 32](x, podium.empty(64, "fp32"), 1.0, 64)
    module["saxpy"].unload()
    del x, module
    gc.collect()
    (launch,) = told(recording, graph.replay)
    assert launch.stale == 0 and values(launch) == (1.0, 64)
    graph.launches[0].update(a=2.0, grid=4)
    assert values(told(recording, graph.replay)[0]) == (2.0, 64)
    launches = graph.launches
    del graph
    gc.collect()
    launches[0].update(a=3.0)  # a launch keeps what it is a part of
    assert "cuGraphExecDestroy" not in recording.calls()
    del launches
    gc.collect()
    assert recording.calls()["cuGraphExecDestroy"] == recording.calls()["cuGraphDestroy"] == 1


def test_a_thread_without_a_context_replays(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """CTX-01: the device of the graph is made current for a replay where none is, or another."""
    kernel, x = at_level(monkeypatch, "generated")["saxpy"], podium.empty(64, "fp32", device=1)
    for _ in range(2):
        kernel[2, 32](x, x, 0.0, 64)
    with podium.capture(device=1) as graph:
        kernel[2, 32](x, x, 1.0, 64)
    found = told(recording, graph.replay)

    def elsewhere() -> None:
        found.extend(told(recording, graph))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(found) == 2 and {launch.device for launch in found} == {1}


def test_graphs_are_captured_side_by_side(recording: Recording) -> None:
    """CTX-01: threads capture and replay graphs of their own, and launches elsewhere are not captured."""
    kernel = kernels()["saxpy"]
    x = podium.empty(64, "fp32")
    kernel[2, 32](x, x, 0.0, 64)
    barrier, graphs = threading.Barrier(8), {}

    def work(index: int) -> None:
        barrier.wait(60)
        if index % 2:
            with podium.capture() as graph:
                for step in range(5):
                    kernel[2, 32](x, x, float(index), step)
            graphs[index] = graph
        else:
            for step in range(5):
                kernel[2, 32](x, x, float(index), step)
        barrier.wait(60)
        if index % 2:
            graph.replay(stream=graph.stream)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = [values(launch) for launch in recording.launches() if not launch.captured]
    wanted = [(float(index), step) for index in range(8) for step in range(5)]
    assert len(graphs) == 4 and sorted(done) == sorted([(0.0, 64), *wanted])


def test_a_podium_launch_in_a_capture_of_others_is_theirs(recording: Recording, level: str) -> None:
    """A stream that another library captures is launched into as ever; a replay there is refused, which breaks nothing."""
    from cuda.bindings import driver as cuda

    kernel, x, stream = kernels()["saxpy"], podium.empty(64, "fp32"), podium.Stream()
    kernel[2, 32](x, x, 0.0, 64)
    with podium.capture() as graph:
        kernel[2, 32](x, x, 1.0, 64)
    cuda.cuStreamBeginCapture(stream.handle, cuda.CUstreamCaptureMode(1))
    kernel[2, 32](x, x, 2.0, 64, stream=stream)
    assert recording.last().captured
    for _ in range(2):
        with pytest.raises(CaptureError, match="captured by somebody else"):
            graph.replay(stream=stream)
    assert int(cuda.cuStreamEndCapture(stream.handle)[0]) == 0
    assert len(told(recording, graph.replay)) == 1
