"""Streams, graphs, contexts, threads and devices of a real NVIDIA GPU."""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nvidia_gpu import Captured, checked, needs, python

import podium
from podium import LaunchConfig
from podium.errors import ArrayDeviceError, LoadError

from podium_nvidia.api import bindings
from podium_nvidia.driver import NvidiaDriver

pytestmark = pytest.mark.gpu

KERNELS = Path(__file__).with_name("nvidia_gpu.cu")


@pytest.fixture
def kernels(gpu: NvidiaDriver, level: str) -> podium.Module:
    """The module of the kernels, at one level."""
    return podium.module(KERNELS)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run threads that begin together; what one of them raises is raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(count)

    def run(index: int) -> None:
        try:
            barrier.wait(60)
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


# ---- contexts and threads ----


def test_sixteen_threads_on_sixteen_streams(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """CTX-01: each thread launches on a stream of its own, without a context of its own, and keeps its order."""
    kernel = kernels["add"]
    streams = [gpu.create_stream(0, 0) for _ in range(16)]
    arrays = [podium.asarray([0] * 256) for _ in range(16)]

    def work(index: int) -> None:
        for step in range(200):
            kernel[2, 128](arrays[index], step % 7, stream=streams[index])
        assert gpu.synchronize(0, streams[index]) == 0

    in_threads(16, work)
    expected = sum(step % 7 for step in range(200))
    assert all(array.tolist() == [expected] * 256 for array in arrays)
    for stream in streams:
        gpu.destroy_stream(stream, 0)


def test_the_first_launch_of_a_process_has_no_arrays(gpu: NvidiaDriver, level: str) -> None:
    """CTX-03: a kernel without arguments is the first thing that a process, and a thread of it, does with the GPU."""
    code = """
import threading, podium
podium.driver.set_active("nvidia")
kernel = podium.kernel('extern "C" __global__ void nothing() {}')
thread = threading.Thread(target=lambda: kernel[1, 1]())
thread.start(); thread.join()
kernel[1, 1]()
podium.synchronize()
print("done")
"""
    process = python(code, PODIUM_LAUNCHER=level)
    assert (process.returncode, process.stdout.strip()) == (0, "done"), process.stderr


def test_a_context_of_the_callers_is_used_and_kept(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """CTX-11: a kernel is launched in the context that is current, and that is current afterwards."""
    cuda, kernel = bindings(), kernels["add"]
    kernel[1, 1](podium.asarray([1]), 1)
    primary = checked(cuda.cuCtxGetCurrent())
    own = _make_context(cuda)
    try:
        x = podium.asarray([1] * 32)
        kernel[1, 32](x, 5)
        assert x.tolist() == [6] * 32
        kernels["fill_shared"][1, 32](podium.asarray([0], "u32"), 8, shared=64)
        podium.synchronize()
        assert int(checked(cuda.cuCtxGetCurrent())) == int(own)
        del x
        gc.collect()
    finally:
        checked(cuda.cuCtxPopCurrent())
        checked(cuda.cuCtxDestroy(own))
    assert int(checked(cuda.cuCtxGetCurrent())) == int(primary)
    x = podium.asarray([1])
    kernel[1, 1](x, 1)
    assert x.tolist() == [2]


def _make_context(cuda: Any) -> Any:
    try:
        return checked(cuda.cuCtxCreate(None, 0, 0))
    except TypeError:  # cuda-python 12
        return checked(cuda.cuCtxCreate(0, 0))


# ---- two devices ----


@pytest.fixture
def two(gpu: NvidiaDriver) -> NvidiaDriver:
    """The driver, where there are two devices."""
    if len(gpu.devices()) < 2:
        pytest.skip("there is one device here; this needs two")
    return gpu


def test_two_devices_in_one_process(two: NvidiaDriver, kernels: podium.Module) -> None:
    """CTX-04: launches go to the arrays' device, from whichever is current, and leave that as it was."""
    kernel, cuda = kernels["add"], bindings()
    arrays = [podium.asarray([1] * 64, device=device) for device in (0, 1)]
    for step in range(6):
        kernel[1, 64](arrays[step % 2], step)
    assert arrays[0].tolist() == [1 + 0 + 2 + 4] * 64 and arrays[1].tolist() == [1 + 1 + 3 + 5] * 64
    second = checked(cuda.cuDevicePrimaryCtxRetain(1))
    checked(cuda.cuCtxPushCurrent(second))
    try:
        assert two.current_device() == 1
        kernel[1, 64](arrays[0], 1)
        kernel[1, 64](arrays[1].ptr, 1)  # an address tells no device: the current one
        assert int(checked(cuda.cuCtxGetDevice())) == 1
    finally:
        checked(cuda.cuCtxPopCurrent())
        checked(cuda.cuDevicePrimaryCtxRelease(1))
    assert arrays[0].tolist() == [8] * 64 and arrays[1].tolist() == [11] * 64


def test_threads_on_two_devices(two: NvidiaDriver, kernels: podium.Module) -> None:
    """CTX-07: threads use both devices at the same time."""
    kernel = kernels["add"]
    arrays = [podium.asarray([0] * 64, device=index % 2) for index in range(8)]

    def work(index: int) -> None:
        for step in range(100):
            kernel[1, 64](arrays[index], step % 5)
            kernel[1, 64](arrays[index], 1)

    in_threads(8, work)
    assert all(array.tolist() == [300] * 64 for array in arrays)


def test_memory_of_a_peer(two: NvidiaDriver, kernels: podium.Module) -> None:
    """ARG-11: an array of another device is reached if there is peer access; without, the error says so."""
    x, y = podium.asarray([1.0] * 32, device=0), podium.asarray([2.0] * 32, device=1)
    kernel = kernels["add_floats"]
    if not two.can_access(0, 1):
        with pytest.raises(ArrayDeviceError, match="no peer access"):
            kernel[1, 32](x, y, 32)
        return
    kernel[1, 32](x, y, 32)
    assert x.tolist() == [3.0] * 32
    assert two.pointer_device(y.ptr) == (2, 1)


# ---- graphs ----


def test_every_kind_of_launch_is_captured(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """SCR-09: plain, cluster, cooperative, dependent and attributed launches are captured and replayed."""
    x = podium.asarray([0] * 64)
    add, ring = kernels["add"], kernels["ring"]
    configs = [LaunchConfig(2, 32), LaunchConfig(2, 32, attributes={"priority": 0})]
    if gpu.devices()[0].max_cluster > 1:
        configs += [LaunchConfig(2, 32, cluster=2), LaunchConfig(2, 32, dependent=True)]
    values = podium.asarray([0] * 4)
    for config in configs:
        add[config](x, 0)
    ring[LaunchConfig(4, 32, cooperative=True)](values, 0)
    podium.synchronize()
    with Captured(gpu) as captured:
        for config in configs:
            add[config](x, 1, stream=captured.stream)
        ring[LaunchConfig(4, 32, cooperative=True)](values, 3, stream=captured.stream)
        add[2, 32](x, 5, stream=captured.stream, shared=1024)
    assert x.tolist() == [0] * 64
    captured.replay(3)
    assert x.tolist() == [3 * (len(configs) + 5)] * 64
    assert values.tolist() == [9] * 4


def test_a_first_launch_in_a_capture_says_so(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """SCR-08: nothing is loaded in a capture; the error says to warm up, and the capture is whole."""
    warm, cold = kernels["add"], kernels["fill_shared"]
    x = podium.asarray([1] * 32)
    warm[1, 32](x, 1)
    with Captured(gpu) as captured:
        with pytest.raises(LoadError, match="captured"):
            cold[1, 32](x.ptr, 0, stream=captured.stream)
        warm[1, 32](x, 1, stream=captured.stream)
    captured.replay()
    assert x.tolist() == [3] * 32


def test_a_replay_comes_after_launches_of_other_streams(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """`Captured.replay`, by which these tests look at results, does not overlap what a test has launched before."""
    slow, add, x = kernels["add_slowly"], kernels["add"], podium.asarray([1] * 32)
    slow.load()
    add[1, 32](x, 0)
    with Captured(gpu) as captured:
        add[1, 32](x, 10, stream=captured.stream)
    slow[1, 32](x, 100, 50_000_000)
    captured.replay()
    assert x.tolist() == [111] * 32


def test_loading_beside_a_capture(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """SCR-07: while another thread captures in global mode, kernels are loaded and memory allocated all the same."""
    warm, x = kernels["add"], podium.asarray([1] * 32)
    warm[1, 32](x, 1)
    results: list[Any] = []

    def other() -> None:
        stream = gpu.create_stream(0, 0)
        out = podium.empty(1, "u32")
        kernels["fill_shared"][1, 32](out, 8, shared=64, stream=stream)
        results.append((gpu.synchronize(0, stream), out))

    with Captured(gpu) as captured:
        warm[1, 32](x, 1, stream=captured.stream)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        warm[1, 32](x, 1, stream=captured.stream)
    captured.replay(2)
    assert x.tolist() == [6] * 32
    ((status, out),) = results
    assert status == 0 and out.tolist() == [28]


def test_scratch_in_a_capture(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """SCR-01, SCR-09: scratch memory is a part of the graph, which can be replayed after the launcher has gone."""
    kernel = kernels["through_scratch"]
    source = type("Source", (), {"signature": {"out": "*i32"}})
    metadata = {
        "name": "s",
        "block": 1,
        "global_scratch_size": 64,
        "global_scratch_align": 128,
        "profile_scratch_size": 0,
    }
    launcher = gpu.launcher_cls(source, metadata, gpu)
    function, out = kernel.load(), podium.asarray([0] * 8)
    launcher(8, 1, 1, 0, function, out)
    assert out.tolist() == [120] * 8
    with Captured(gpu) as captured:
        launcher(8, 1, 1, captured.stream, function, out)
        launcher(8, 1, 1, captured.stream, function, out)
    kinds = [int(checked(captured.cuda.cuGraphNodeGetType(node))) for node in captured.nodes()]
    assert kinds.count(10) == 2, "an allocation for each launch is in the graph"
    assert kinds.count(11) == 2, "and so is its end"
    del launcher
    gc.collect()
    captured.replay(2)
    expected = 120
    for _ in range(4):
        expected = (16 * expected + 120) % (1 << 32)
        expected -= (expected >> 31) << 32
    assert out.tolist() == [expected] * 8


def test_a_graph_keeps_the_code_that_it_launches(gpu: NvidiaDriver, level: str) -> None:
    """LIF-04: a kernel that was dropped after a capture is still there when the graph is replayed."""
    x = podium.asarray([1] * 32)
    kernel = podium.module(KERNELS).kernel("add")
    kernel[1, 32](x, 1)
    with Captured(gpu) as captured:
        kernel[1, 32](x, 1, stream=captured.stream)
    kernel.unload()
    del kernel
    gc.collect()
    others = [podium.module(KERNELS).kernel("add") for _ in range(5)]
    for other in others:
        other[1, 32](x, 0)
    captured.replay(2)
    assert x.tolist() == [4] * 32


def test_the_legacy_stream_beside_a_capture(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """A stream that waits for the legacy one is captured: the legacy one says that it cannot be used."""
    cuda = bindings()
    kernels["add"][1, 1](podium.asarray([1]), 1)  # which leaves a context current
    podium.synchronize()
    blocking = int(checked(cuda.cuStreamCreate(0)))
    assert not gpu.capturing(0, blocking) and not gpu.capturing(0, 0)
    checked(cuda.cuStreamBeginCapture(blocking, cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    assert gpu.capturing(0, blocking) and gpu.capturing(0, 0)
    checked(cuda.cuStreamEndCapture(blocking))
    assert not gpu.capturing(0, 0)
    checked(cuda.cuStreamDestroy(blocking))


# ---- the default stream ----


def test_the_per_thread_default_stream(gpu: NvidiaDriver, level: str) -> None:
    """`default_stream="per-thread"`: a launch that names no stream does not wait for one of another thread."""
    with podium.use("nvidia", default_stream="per-thread") as driver:
        assert driver.current_stream(0) == 2
        module = podium.module(KERNELS)
        flag, out, x = podium.asarray([0]), podium.asarray([0]), podium.asarray([1] * 32)
        module["wait_for"].load()
        module["add"].load()
        module["add"][1, 32](x, 0)
        driver.synchronize(0)
        stopped = gpu.create_stream(0, 0)
        module["wait_for"][1, 1](flag, out, stream=stopped)
        thread = threading.Thread(target=_launch_and_wait, args=(module, x))
        thread.start()
        thread.join()
        _set(driver, flag)
        driver.synchronize(0)
        assert out.tolist() == [1] and x.tolist() == [6] * 32
        gpu.destroy_stream(stopped, 0)


def _launch_and_wait(module: podium.Module, x: Any) -> None:
    with podium.use("nvidia", default_stream="per-thread") as driver:
        module["add"][1, 32](x, 5)
        assert driver.synchronize(0, 2) == 0


def _set(driver: Any, flag: Any) -> None:
    """Write a flag that a running kernel waits for, on a stream beside its own."""
    stream, one = driver.create_stream(0, 0), ctypes.c_int(1)
    driver.copy(flag.ptr, ctypes.addressof(one), 4, 0, stream)
    driver.destroy_stream(stream, 0)


# ---- events, memory, occupancy ----


def test_events_measure_and_order(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """Events tell the time between two places, and let one stream wait for another."""
    kernel, x = kernels["add"], podium.asarray([0] * 32)
    kernel[1, 32](x, 0)
    podium.synchronize()  # the streams do not wait for the default one
    one, two = gpu.create_stream(0, 0), gpu.create_stream(0, 0)
    start, end = gpu.create_event(0, True), gpu.create_event(0, True)
    assert gpu.record_event(start, 0, one) == 0
    for _ in range(50):
        kernel[1, 32](x, 1, stream=one)
    assert gpu.record_event(end, 0, one) == 0
    assert gpu.wait_event(0, two, end) == 0
    kernel[1, 32](x, 100, stream=two)
    assert gpu.synchronize_event(end, 0) == 0 and gpu.event_done(end, 0)
    assert 0 < gpu.elapsed(start, end, 0) < 60
    assert gpu.synchronize(0, two) == 0
    assert x.tolist() == [150] * 32
    for event in (start, end):
        gpu.destroy_event(event, 0)
    for stream in (one, two):
        gpu.destroy_stream(stream, 0)


def test_pointers_tell_what_they_are(gpu: NvidiaDriver) -> None:
    """CTX-02: memory of the device, pinned memory and the host's are told apart, in a thread without a context too."""
    device, pinned = gpu.allocate(100, 256, 0, None), gpu.allocate_pinned(100, 64, 0)
    host = ctypes.create_string_buffer(100)
    places = (device.ptr, pinned.ptr, ctypes.addressof(host))
    assert [gpu.pointer_device(place) for place in places] == [(2, 0), (3, 0), (1, 0)]
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(map(gpu.pointer_device, places)))
    thread.start()
    thread.join()
    assert found == [(2, 0), (3, 0), (1, 0)]


def test_occupancy_and_the_suggested_block(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """Occupancy is that of the driver: blocks of a multiprocessor, clusters at once, and a block that fills it."""
    function = kernels["fill_shared"].binding(gpu).load(0)
    full = gpu.occupancy(function, 0, LaunchConfig(1, 1024))
    assert 1 <= full.blocks_per_multiprocessor <= 2
    assert full.max_active_blocks == full.blocks_per_multiprocessor * full.multiprocessors
    most = gpu.devices()[0].max_shared
    assert gpu.occupancy(function, 0, LaunchConfig(1, 32, shared=most)).blocks_per_multiprocessor == 1
    block, grid = gpu.suggested_block(function, 0, 0)
    assert block % 32 == 0 and 32 <= block <= 1024 and grid >= full.multiprocessors
    needs(gpu, 90, "cluster")
    clustered = gpu.occupancy(function, 0, LaunchConfig(8, 32, cluster=4))
    assert clustered.max_active_clusters is not None and clustered.max_active_clusters > 0


def test_what_is_known_of_a_kernel(gpu: NvidiaDriver, kernels: podium.Module) -> None:
    """Registers, shared and local memory, limits and versions are in the attributes of a loaded kernel."""
    function = kernels["fill_both"].binding(gpu).load(0)
    known = function.attributes
    assert known["shared"] == 1024 and known["registers"] > 0 and known["local"] >= 0
    assert known["max_dynamic_shared"] == gpu.devices()[0].max_shared - 1024
    assert function.max_threads == known["max_threads"] > 0
    assert known["binary_version"] >= 50


# ---- leaks ----


def test_nothing_leaks(gpu: NvidiaDriver, level: str) -> None:
    """LIF-04: loading, launching, allocating and dropping leave the memory of the device and the host as it was."""
    cuda = bindings()
    x = podium.asarray([0] * 256)
    kernel = podium.module(KERNELS).kernel("add")

    def work(launches: int) -> None:
        launch = kernel[2, 128]
        for _ in range(launches):
            launch(x, 1)
        for _ in range(20):
            other = podium.module(KERNELS).kernel("add")
            other[2, 128](x, 1)
            stream, event = gpu.create_stream(0, 0), gpu.create_event(0, True)
            scratch = gpu.allocate(1 << 20, 256, 0, stream)
            podium.asarray([0] * 10000)
            del scratch, other
            gpu.destroy_event(event, 0)
            gpu.destroy_stream(stream, 0)
        gc.collect()
        podium.synchronize()

    work(1000)
    work(1000)
    before, resident = checked(cuda.cuMemGetInfo())[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(5):
        work(20_000)
    after, grown = checked(cuda.cuMemGetInfo())[0], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert grown - resident <= 16 << 10  # KiB
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("other processes use the device, and its free memory tells nothing of this one's")
    assert before - after <= 4 << 20
