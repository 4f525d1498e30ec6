"""Graphs on a real NVIDIA GPU: what replays compute, with other arguments, on several streams and in many threads."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import pytest

import podium
from podium import LaunchConfig
from podium.errors import ArrayDeviceError, CaptureError

from podium_nvidia.api import bindings
from podium_nvidia.driver import NvidiaDriver

pytestmark = pytest.mark.gpu

KERNELS = Path(__file__).with_name("nvidia_gpu.cu")


@pytest.fixture
def kernels(gpu: NvidiaDriver, level: str) -> podium.Module:
    """The module of the kernels, at one level."""
    return podium.module(KERNELS)


def test_replays_and_updates(kernels: podium.Module) -> None:
    """A replay does what the launches would, also with arguments and grids that were changed, in any stream."""
    add, x, y = kernels["add"], podium.asarray([0] * 64), podium.asarray([0] * 64)
    add[1, 32](x, 0)
    with podium.capture() as graph:
        for step in range(20):
            add[1, 32](x, step)
    assert x.tolist() == [0] * 64
    graph.replay()
    graph()
    assert x.tolist() == [380] * 32 + [0] * 32
    graph.launches[0].update(a=1000)
    graph.launches[1].update(y, 1, grid=2)
    graph.launches[2].update(grid=0)
    stream = podium.Stream()
    for _ in range(3):
        graph.replay(stream=stream)
    stream.synchronize()
    assert x.tolist() == [380 + 3 * (190 + 1000 - 1 - 2)] * 32 + [0] * 32 and y.tolist() == [3] * 64
    graph.launches[2].update(grid=1)
    graph.replay()
    assert x.tolist()[0] == 380 + 3 * 1187 + 1189
    podium.synchronize()


def test_an_update_leaves_replays_under_way_alone(kernels: podium.Module) -> None:
    """A replay has the arguments of when it was made, though it runs later."""
    add, wait = kernels["add"], kernels["wait_for"]
    flag, out, x = podium.asarray([0]), podium.asarray([0]), podium.asarray([0] * 32)
    one = podium.asarray([1])
    add[1, 32](x, 0)
    wait.load()
    with podium.capture() as graph:
        wait[1, 1](flag, out)
        add[1, 32](x, 1)
    first, second, aside = podium.Stream(), podium.Stream(), podium.Stream()
    podium.synchronize()  # they do not wait for the default one
    graph.replay(stream=first)
    graph.launches[1].update(a=100)
    graph.replay(stream=second)
    flag.copy_from(one, stream=aside)
    podium.synchronize()
    assert x.tolist() == [101] * 32


def test_every_kind_of_launch_is_captured_and_changed(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """SCR-09: clusters, cooperative grids, attributes and shared memory stay what they are when arguments change."""
    shape, ring, fill = kernels["cluster_shape"], kernels["ring"], kernels["fill_shared"]
    out, values, sums = podium.asarray([0] * 48, "u32"), podium.asarray([0] * 8), podium.asarray([0] * 4, "u32")
    clustered = gpu.devices()[0].max_cluster > 1
    grid = LaunchConfig(4, 32, cluster=2) if clustered else LaunchConfig(4, 32)
    shape[grid](out)
    ring[LaunchConfig(4, 32, cooperative=True)](values, 0)
    fill[LaunchConfig(2, 32, shared=1024, attributes={"priority": 0})](sums, 0)
    podium.synchronize()
    with podium.capture() as graph:
        shape[grid](out)
        ring[LaunchConfig(4, 32, cooperative=True)](values, 3)
        fill[LaunchConfig(2, 32, shared=1024, attributes={"priority": 0})](sums, 256)
    graph.replay()
    size = 2 if clustered else 1
    assert values.tolist() == [3] * 4 + [0] * 4 and sums.tolist() == [32640] * 2 + [0] * 2
    assert out.tolist()[0::6] == [size] * 4 + [0] * 4
    out.copy_from([0] * 48)
    graph.launches[0].update(grid=8)
    graph.launches[1].update(rounds=5, grid=8)
    graph.launches[2].update(words=60_000 // 4, grid=4, shared=60_000)
    graph.replay()
    assert out.tolist()[0::6] == [size] * 8 and out.tolist()[3::6] == [block % size for block in range(8)]
    assert sums.tolist() == [15_000 * 14_999 // 2] * 4 and len(values.tolist()) == 8
    podium.synchronize()


def test_streams_are_forked_and_joined(kernels: podium.Module) -> None:
    """Work of two streams comes after what both wait for, and before what waits for both."""
    add, x, y = kernels["add"], podium.asarray([0] * 32), podium.asarray([0] * 32)
    add[1, 32](x, 0)
    other = podium.Stream()
    with podium.capture() as graph:
        add[1, 32](x, 1)
        other.wait(graph.stream.record())
        add[1, 32](x, 10)
        add[1, 32](y, 100, stream=other)
        graph.stream.wait(other.record())
        add[1, 32](y, 1000)
    for _ in range(50):
        graph.replay()
    assert x.tolist() == [550] * 32 and y.tolist() == [55_000] * 32


def test_scratch_memory_of_a_graph(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """SCR-01, SCR-06: scratch memory lives as long as the graph, and grows with the grid."""
    kernel = kernels["through_scratch"]
    source = type("Source", (), {"signature": {"out": "*i32"}})
    metadata = {"name": "s", "block": 1, "global_scratch_size": 64, "global_scratch_align": 128}
    metadata["profile_scratch_size"] = 0
    launcher = gpu.launcher_cls(source, metadata, gpu)
    function, out = kernel.load(), podium.asarray([0] * 4096)
    with podium.capture() as graph:
        launcher(8, 1, 1, None, function, out)
        launcher(8, 1, 1, graph.stream, function, out)
    del launcher
    gc.collect()
    others = [podium.asarray([7] * 4096) for _ in range(8)]  # they would get memory that was given back
    graph.replay()
    once = 120
    twice = 16 * once + 120
    assert out.tolist()[:8] == [twice] * 8 and out.tolist()[8] == 0
    out.copy_from([0] * 4096)
    graph.launches[0].update(grid=(4096, 1, 1))
    graph.replay()
    assert out.tolist() == [twice] * 8 + [once] * 4088
    assert all(other.tolist() == [7] * 4096 for other in others)


def test_failed_captures(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """What makes a capture fail is explained, and the next one works."""
    add, x, cuda = kernels["add"], podium.asarray([0] * 32), bindings()
    add[1, 32](x, 0)
    other = podium.Stream()

    def unjoined(graph: podium.Graph) -> None:
        other.wait(graph.stream.record())
        add[1, 32](x, 1, stream=other)

    problems = {
        "does not wait for": unjoined,
        "wait for the stream": lambda graph: cuda.cuStreamSynchronize(graph.stream.handle),
        "whole device": lambda graph: cuda.cuCtxSynchronize(),
    }
    for text, work in problems.items():
        with pytest.raises(CaptureError, match=text):
            _capture(add, x, work)
    with pytest.raises(CaptureError, match="legacy default stream"), podium.capture(stream=0):
        pass
    with podium.capture() as graph:
        add[1, 32](x, 1)
        for wait in (podium.synchronize, x.tolist, graph.stream.synchronize):
            with pytest.raises(CaptureError):
                wait()
        add[1, 32](x, 1)
    graph.replay()
    assert x.tolist() == [2] * 32
    other.synchronize()


def _capture(add: podium.Kernel, x: podium.Array, work: Any) -> podium.Graph:
    with podium.capture() as graph:
        add[1, 32](x, 1)
        work(graph)
    return graph


def test_sixteen_threads_replay_graphs_of_their_own(kernels: podium.Module) -> None:
    """CTX-01: threads capture, change and replay graphs, on streams of their own."""
    add = kernels["add"]
    add[1, 32](podium.asarray([0] * 32), 0)
    podium.synchronize()
    arrays = [podium.asarray([0] * 32) for _ in range(16)]
    errors: list[BaseException] = []

    def work(index: int) -> None:
        try:
            stream = podium.Stream()
            with podium.capture(stream=stream) as graph:
                for step in range(20):
                    add[1, 32](arrays[index], step)
            for round in range(50):
                graph.launches[0].update(a=round)
                graph.replay()
            stream.synchronize()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    assert all(array.tolist() == [50 * 190 + 1225] * 32 for array in arrays)


def test_tensors_of_torch_and_its_current_stream(kernels: podium.Module) -> None:
    """A replay goes to torch's current stream, and a graph keeps the tensors that it works on."""
    torch = pytest.importorskip("torch")
    add = kernels["add"]
    x = torch.zeros(64, dtype=torch.int32, device="cuda")
    add[2, 32](x, 0)
    with podium.capture() as graph:
        add[2, 32](x, 1)
        add[2, 32](torch.ones(64, dtype=torch.int32, device="cuda"), 1)
    side = torch.cuda.Stream()
    for stream in (torch.cuda.current_stream(), side):
        with torch.cuda.stream(stream):
            graph.replay()
            assert podium.recent_launches()[-1].stream == stream.cuda_stream
            x.mul_(2)
        torch.cuda.synchronize()
    assert x.tolist() == [6] * 64
    pointer = x.data_ptr()
    del x
    gc.collect()
    assert torch.zeros(64, dtype=torch.int32, device="cuda").data_ptr() != pointer
    y = torch.zeros(64, dtype=torch.int32, device="cuda")
    graph.launches[0].update(y, 5)
    graph.replay()
    assert y.tolist() == [5] * 64


def test_beside_the_graphs_of_torch(kernels: podium.Module) -> None:
    """A launch goes into torch's capture as ever; a replay there is refused, which leaves the capture whole."""
    torch = pytest.importorskip("torch")
    add = kernels["add"]
    x = torch.zeros(64, dtype=torch.int32, device="cuda")
    add[2, 32](x, 0)
    with podium.capture() as own:
        add[2, 32](x, 100)
    torch.cuda.synchronize()
    theirs = torch.cuda.CUDAGraph()
    with torch.cuda.graph(theirs):
        add[2, 32](x, 1)
        x.mul_(2)
        for _ in range(2):
            with pytest.raises(CaptureError, match="captured by somebody else"):
                own.replay()
    assert x.tolist() == [0] * 64
    theirs.replay()
    assert x.tolist() == [2] * 64
    own.replay()
    theirs.replay()
    assert x.tolist() == [206] * 64


def test_a_graph_of_two_devices(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """CTX-04: a stream of another device takes part by an event; a launch stays on the device that it was captured on."""
    if len(gpu.devices()) < 2:
        pytest.skip("there is one device here; this needs two")
    add = kernels["add"]
    x, y = podium.asarray([0] * 32, device=0), podium.asarray([0] * 32, device=1)
    add[1, 32](x, 0)
    add[1, 32](y, 0)
    other = podium.Stream(1)
    with podium.capture() as graph:
        add[1, 32](x, 1)
        with pytest.raises(CaptureError, match="the launch is on device 1"):
            add[1, 32](y, 1)
        other.wait(graph.stream.record())
        add[1, 32](y, 2, stream=other)
        graph.stream.wait(other.record())
    podium.synchronize(1)  # a replay comes after the default stream of its own device only
    graph.replay()
    graph.launches[1].update(a=20)
    graph.replay()
    podium.synchronize(0)
    podium.synchronize(1)
    assert x.tolist() == [2] * 32 and y.tolist() == [22] * 32
    with pytest.raises(ArrayDeviceError, match="captured on device 1"):
        graph.launches[1].update(x, 1)


def test_a_fault_in_a_replay_names_the_graph(gpu: NvidiaDriver) -> None:
    """With debugging on, the replay waits, and says which graph and which kernels were at fault."""
    from nvidia_gpu import python

    code = f"""
import podium
from podium.errors import LaunchError
podium.driver.set_active("nvidia")
module = podium.module({str(KERNELS)!r})
x = podium.asarray([0] * 32)
module["wild"][1, 32](x, 0)
with podium.capture() as graph:
    module["wild"][1, 32](x, 0)
graph.replay()
graph.launches[0].update(far=1 << 40)
with podium.debugging():
    try:
        graph.replay()
    except LaunchError as error:
        print(error)
"""
    process = python(code)
    assert process.returncode == 0, process.stderr
    assert process.stdout.startswith("graph of 1 launch (wild): CUDA_ERROR_ILLEGAL_ADDRESS"), process.stdout
