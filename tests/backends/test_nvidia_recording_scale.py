"""Many launches, threads and processes on the recording CUDA driver: memory stays flat and nothing gets mixed up."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import threading
from collections import deque
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from nvidia_recorded import kernels
from recording.cuda.library import Recording, environment

import podium
from podium.errors import ForkedProcessError

MILLION = 1_000_000


def resident() -> int:
    """The memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_ten_million_launches_leave_memory_flat(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scale: after ten million generated launches the process has the memory and the driver the objects of the first."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
    x = podium.empty(64, "fp32")
    kernel = kernels()["saxpy"]
    kernel[2, 32](x, x, 2.0, 64)
    launch = kernel[2, 32]

    def work(times: int) -> None:
        deque(map(launch, repeat(x.ptr, times), repeat(x.ptr), repeat(2.0), repeat(64)), maxlen=0)

    work(MILLION)
    gc.collect()
    before, counters = resident(), recording.counters()
    work(9 * MILLION)
    gc.collect()
    assert recording.launch_count() == 10 * MILLION + 1
    assert recording.counters() == counters
    assert resident() - before < 256 << 10
    assert recording.last().parameters[3] == (64).to_bytes(4, "little") and recording.last().stale == 0


def test_launches_with_everything_leave_memory_flat(recording: Recording, level: str) -> None:
    """Scale: streams, attributes, first launches of new grids, scratch and refused launches leave nothing either."""
    x, stream = podium.empty(64, "fp32"), podium.Stream()
    kernel = kernels()["saxpy"]
    config = podium.LaunchConfig(4, 32, cluster=2, attributes={"priority": -1})
    with podium.use("nvidia") as driver:

        def work(times: int) -> None:
            for index in range(times):
                kernel[index % 50 + 1, 32](x, x, index, index, stream=stream)
                kernel[config](x, x, 0.5, index)
                driver.allocate(100, 256, 0, stream.handle)
                recording.fail("cuLaunchKernel", 1)
                with pytest.raises(podium.errors.LaunchError):  # type: ignore[attr-defined]
                    kernel[1, 32](x, x, 0.5, index)
                stream.record().synchronize()

        work(500)
        gc.collect()
        before, counters = resident(), recording.counters()
        work(1000)
        gc.collect()
    assert recording.counters() == counters
    assert resident() - before < 512 << 10


def test_sixteen_threads_on_sixteen_streams(recording: Recording, level: str) -> None:
    """Launches of many threads on two devices reach the driver whole: each in its stream, in its order, with its values."""
    threads, launches = 16, 500
    recording.keep(threads * launches)
    module = kernels()
    arrays = [podium.empty(64, "fp32", device=index % 2) for index in range(threads)]
    streams = [podium.Stream(device=index % 2) for index in range(threads)]
    begin, problems = threading.Barrier(threads), list[BaseException]()

    def work(index: int) -> None:
        try:
            begin.wait()
            for number in range(launches):
                module["saxpy"][index + 1, 32](arrays[index], arrays[index], index, number, stream=streams[index])
        except BaseException as error:
            problems.append(error)

    workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert problems == []
    by_stream: dict[int, list[Any]] = {}
    for launch in recording.launches():
        by_stream.setdefault(launch.stream, []).append(launch)
    assert {stream.handle for stream in streams} == set(by_stream)
    for index, stream in enumerate(streams):
        told = by_stream[stream.handle]
        assert [int.from_bytes(each.parameters[3], "little") for each in told] == list(range(launches))
        assert {each.grid for each in told} == {(index + 1, 1, 1)} and {each.device for each in told} == {index % 2}
        assert {each.parameters[0] for each in told} == {arrays[index].ptr.to_bytes(8, "little")}
        assert len({each.thread for each in told}) == 1


def test_a_thread_that_comes_first_loads_for_all(recording: Recording, level: str) -> None:
    """Threads that race for the first launch load the code once for each device."""
    module, threads = kernels(), 8
    begin = threading.Barrier(threads)
    x = podium.empty(64, "fp32")
    libraries = recording.created()["libraries"]

    def work() -> None:
        begin.wait()
        module["saxpy"][1, 32](x, x, 1.0, 64)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert recording.launch_count() == threads
    assert recording.created()["libraries"] == libraries + 1
    assert recording.counters()["retained"] == 1


_RACER = """
import sys
from recording.cuda.library import Recording
recording = Recording()
import podium
kernel = podium.kernel('extern "C" __global__ void raced(int *x, int n) { x[n] = n; }')
sys.stdin.readline()
kernel[3, 32](None, 7)
kernel.binding().launcher.wait()
kernel[3, 32](None, 7)
assert kernel.binding().launcher.level == "generated"
for launch in recording.launches():
    assert (launch.name, launch.grid, launch.parameters[1]) == ("raced", (3, 1, 1), (7).to_bytes(4, "little"))
assert recording.launch_count() == 2
"""


def test_processes_racing_for_one_cache(recording: Recording, tmp_path: Path) -> None:
    """Four processes compile, build and launch the same kernel at once on an empty cache: all of them get it right."""
    variables = environment(Path(recording.path), PODIUM_CACHE_DIR=str(tmp_path), PODIUM_BACKEND="nvidia")
    variables["PYTHONPATH"] = os.pathsep.join([variables["PYTHONPATH"], *filter(None, sys.path)])
    command = [sys.executable, "-c", _RACER]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen(command, env=variables, **pipes) for _ in range(4)]
    answers = []
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        _, errors = racer.communicate()
        answers.append((racer.returncode, errors))
    assert answers == [(0, "")] * 4


def test_a_forked_child_is_refused_and_the_parent_goes_on(recording: Recording, level: str) -> None:
    """A child of a process that has launched raises ForkedProcessError; the driver is asked for its device at most."""
    kernel = kernels()["nothing"]
    kernel[1, 1]()
    calls = {name: count for name, count in recording.calls().items() if name != "cuCtxGetDevice"}
    child = os.fork()
    if not child:
        code = 1
        try:
            kernel[1, 1]()
        except ForkedProcessError:
            with contextlib.suppress(ForkedProcessError):
                kernels()["scalars"][1, 1](*[0] * 8, 0.0, 0.0, False)  # whose launcher is not loaded yet
                os._exit(3)
            now = {name: count for name, count in recording.calls().items() if name != "cuCtxGetDevice"}
            code = 0 if now == calls else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    kernel[1, 1]()
    assert recording.launch_count() == 2
