"""Several real backends used by one program: the CPU's, third parties', and GPUs' on their recording drivers.

Of third parties there are podium-serial (tests/serial_backend), and where pyopencl and PoCL are installed podium-opencl, which
both run kernels.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import json
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from installed import ROOT
from markdown_page import all_pages
from recording.cuda.library import Recording
from recording.hip.compiling import MISSING, hiprtc
from recording.hip.library import Recording as HipRecording
from recording.hip.library import build as build_hip
from recording.hip.library import compiler_library

import podium
from podium.errors import (
    AmbiguousBackendError,
    ArgumentTypeError,
    ArgumentValueError,
    ArrayDeviceError,
    CaptureError,
    ForkedProcessError,
    InactiveBackendError,
)

pytestmark = pytest.mark.newest

SOURCE = """
extern "C" __global__ void add(float *y, const float *x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""
HAS_OPENCL = importlib.util.find_spec("pyopencl") is not None and (
    importlib.util.find_spec("pocl_binary_distribution") is not None or any(Path("/etc/OpenCL/vendors").glob("*.icd"))
)
THIRD = {"serial": "tests/serial_backend", **({"opencl": "examples/backend-opencl"} if HAS_OPENCL else {})}
NAMES = ("cpu", *THIRD, "nvidia")
RUNNING = NAMES[:-1]  # the recording driver runs no kernel


@pytest.fixture
def together(
    recording: Recording | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Recording | None]:
    """The recording CUDA driver in a process in which third parties' are installed as well, and no backend is named."""
    if recording is None:  # not in the child that runs the test
        yield None
        return
    for name in THIRD:
        metadata = tmp_path / f"podium_{name}-0.1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: podium-{name}\nVersion: 0.1.0\n")
        (metadata / "entry_points.txt").write_text(f"[podium]\n{name} = podium_{name}.plugin\n")
    sources = [str(ROOT / project / "src") for project in THIRD.values()]
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sources, *sys.path])
    monkeypatch.delenv("PODIUM_BACKEND", raising=False)
    podium.reset_active()
    podium.driver.rediscover()
    yield recording


def kernel() -> podium.Kernel:
    """A kernel object that nobody has used."""
    return podium.kernel(SOURCE)


def arrays(name: str, count: int = 3) -> tuple[podium.Array, podium.Array]:
    """Two arrays in the memory of a backend: of tens and of ones."""
    return podium.asarray([10.0] * count, driver=name), podium.asarray([1.0] * count, driver=name)


def told(recording: Recording, work: Callable[[], Any]) -> list[str]:
    """Return the kernels that something makes the CUDA driver launch."""
    before = recording.launch_count()
    work()
    return [launch.name for launch in recording.launches(before)]


# ---- Choosing ----


def test_the_choice_among_real_backends(together: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACT-03: priority, then the variable, then `set_active`, then `use`; each launch goes where it was chosen to go."""
    add, memory = kernel(), {name: arrays(name) for name in NAMES}

    def launched_on() -> str:
        name = podium.driver.resolve().name
        add[1, 32](*memory[name], 1.0, 3)
        assert podium.recent_launches()[-1].backend == name
        return name

    assert launched_on() == "nvidia"
    monkeypatch.setenv("PODIUM_BACKEND", "serial")
    assert launched_on() == "nvidia"
    podium.reset_active()
    assert launched_on() == "serial"
    podium.set_active("cpu")
    assert launched_on() == "cpu"
    with podium.use("nvidia"):
        assert launched_on() == "nvidia"
        with podium.use("serial"):
            assert launched_on() == "serial"
        assert launched_on() == "nvidia"
    assert launched_on() == "cpu"
    assert memory["cpu"][0].tolist() == memory["serial"][0].tolist() == [12.0] * 3 and together.launch_count() == 4


@pytest.mark.parametrize("chosen_by", ["PODIUM_BACKEND", "set_active", "podium.use"])
def test_a_named_one_is_never_replaced(
    together: Recording, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chosen_by: str
) -> None:
    """DISC-06: a GPU backend that was named and has no driver is an error, though three others could run the kernel."""
    add = kernel()
    monkeypatch.setenv("PODIUM_NVIDIA_LIBCUDA", str(tmp_path / "libcuda.so.1"))

    def choose() -> None:
        if chosen_by == "PODIUM_BACKEND":
            monkeypatch.setenv(chosen_by, "nvidia")
        elif chosen_by == "set_active":
            podium.set_active("nvidia")
        else:
            podium.use("nvidia").__enter__()
        add[1, 32](None, None, 1.0, 0)

    with pytest.raises(InactiveBackendError, match=f"'nvidia' was chosen by {chosen_by}.*libcuda.so.1"):
        choose()
    assert together.launch_count() == 0 and not podium.recent_launches()
    monkeypatch.delenv("PODIUM_BACKEND", raising=False)
    best = "opencl" if HAS_OPENCL else "cpu"
    add[1, 32](*arrays(best), 1.0, 3)
    assert podium.driver.active.name == best


def test_threads_tasks_and_generators_launch_where_they_chose(together: Recording, level: str) -> None:
    """ACT-03: threads, then tasks, that launch one kernel object by turns reach a device each, all the time."""
    add, memory = kernel(), {name: arrays(name) for name in NAMES}
    for name in NAMES:
        with podium.use(name):
            add.warm_up()
    before = together.launch_count()
    barrier = threading.Barrier(len(NAMES))

    def in_thread(name: str) -> None:
        with podium.use(name):
            barrier.wait()
            for _ in range(100):
                add[1, 32](*memory[name], 1.0, 3)

    threads = [threading.Thread(target=in_thread, args=(name,)) for name in NAMES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def in_task(name: str) -> None:
        with podium.use(name):
            for _ in range(50):
                add[1, 32](*memory[name], 1.0, 3)
                await asyncio.sleep(0)

    async def all_tasks() -> None:
        await asyncio.gather(*map(in_task, NAMES))

    asyncio.run(all_tasks())

    def steps(name: str) -> Iterator[None]:
        with podium.use(name):
            while True:
                add[1, 32](*memory[name], 1.0, 3)
                yield

    first, second = steps("cpu"), steps("serial")
    for _ in range(2):
        next(first)  # begun outside of the other one: that is in force between its steps, and in its next step
    next(second)
    first.close()
    add[1, 32](*memory["serial"], 1.0, 3)
    second.close()
    add[1, 32](*memory["nvidia"], 1.0, 3)
    for name in RUNNING:
        more = 0 if name == "opencl" else 2
        assert memory[name][0].tolist() == [10.0 + 150 + more] * 3
    assert together.launch_count() - before == 151


# ---- One program, several backends ----


def test_one_kernel_object_on_several_backends(together: Recording, level: str) -> None:
    """A kernel has code, launcher and level on each; a launch that is kept stays with the driver it was made on."""
    add, kept, memory = kernel(), {}, {}
    for name in NAMES:
        with podium.use(name):
            memory[name], kept[name] = arrays(name), add[1, 32]
            add[1, 32](*memory[name], 2.0, 3)
            add.warm_up()
            assert add.level == level
            assert add.binding().code(add.binding().driver.default_target()).target.backend == name
    for name in reversed(NAMES):
        with podium.use("cpu"):
            kept[name](*memory[name], 2.0, 3)
        with podium.use(name):
            add[1, 32](*memory[name], 2.0, 3)
    assert all(memory[name][0].tolist() == [16.0] * 3 for name in RUNNING)
    assert [launch.name for launch in together.launches()] == ["add"] * 3
    assert {launch.parameters[2] for launch in together.launches()} == {b"\0\0\0@"}
    assert {driver.name for driver in add.loaded} == set(NAMES)


def test_arrays_of_one_given_to_another(together: Recording, level: str) -> None:
    """ARG-02: memory that a backend does not reach is an error with both places; nothing is launched. Copies cross."""
    add, memory = kernel(), {name: arrays(name) for name in NAMES}
    for name in NAMES:
        with podium.use(name):
            add[1, 32](*memory[name], 0.0, 3)
    before = podium.recent_launches()[-1].number
    for name in ("cpu", "serial"):
        with podium.use(name), pytest.raises(ArrayDeviceError, match=f"'y'.*on '{name}'.*in cuda memory") as caught:
            add[1, 32](*memory["nvidia"], 1.0, 3)
        assert caught.value.kind == "device"
        with (
            podium.use("nvidia"),
            pytest.raises(ArrayDeviceError, match="'x'.*'nvidia'.*in host memory; copy") as caught,
        ):
            add[1, 32](memory["nvidia"][0], memory[name][1], 1.0, 3)
        assert caught.value.kind == "host"
    if HAS_OPENCL:
        for name, other, kind in (
            ("opencl", "cpu", "host"),
            ("opencl", "nvidia", "device"),
            ("nvidia", "opencl", "device"),
        ):
            with podium.use(name), pytest.raises(ArrayDeviceError, match=f"expects .* on '{name}'") as caught:
                add[1, 32](*memory[other], 1.0, 3)
            assert caught.value.kind == kind
    assert podium.recent_launches()[-1].number == before
    with podium.use("serial"):
        add[1, 32](*memory["cpu"], 1.0, 3)  # both have the host's memory
    assert memory["cpu"][0].tolist() == [11.0] * 3
    for source in NAMES:
        for target in NAMES:
            copy = podium.asarray(memory[source][0], driver=target)
            assert (copy.driver.name, copy.tolist()) == (target, memory[source][0].tolist())
    memory["nvidia"][0].copy_from(memory["cpu"][0])
    assert memory["nvidia"][0].tolist() == [11.0] * 3


def test_streams_and_events_of_another_backend(together: Recording, level: str) -> None:
    """STR-01: the number of a stream means another stream elsewhere, so one of another backend is refused everywhere."""
    add, streams = kernel(), {name: podium.Stream(driver=name) for name in ("cpu", "nvidia")}
    for name, other in (("cpu", "nvidia"), ("nvidia", "cpu"), ("serial", "cpu")):
        with podium.use(name):
            memory, event = arrays(name), streams[other].record()
            add[1, 32](*memory, 0.0, 3)
            takers: list[Callable[[Any], Any]] = [
                lambda stream, memory=memory: add[1, 32](*memory, 1.0, 3, stream=stream),
                lambda stream: podium.synchronize(stream=stream),
                lambda stream: podium.empty(3, stream=stream),
                lambda stream: podium.capture(stream=stream).__enter__(),
                lambda stream, memory=memory: memory[0].numpy(stream=stream),
            ]
            for taker in takers:
                with pytest.raises(
                    ArgumentValueError, match=f"stream 0x.*{other} device 0> is of another backend than"
                ):
                    taker(streams[other])
            if name in streams:
                with pytest.raises(ArgumentTypeError, match="waits for events of its own driver"):
                    streams[name].wait(event)
    with podium.use("cpu"):
        memory = arrays("cpu")
        add[1, 32](*memory, 1.0, 3, stream=streams["cpu"])
        streams["cpu"].synchronize()
        assert memory[0].tolist() == [11.0] * 3


def test_a_capture_takes_what_is_launched_on_its_own_driver(together: Recording, level: str) -> None:
    """SCR-09: inside a capture on one backend launches on another are made at once; a replay makes only its own."""
    add, memory = kernel(), {name: arrays(name) for name in NAMES}
    for name in NAMES:
        with podium.use(name):
            add[1, 32](*memory[name], 0.0, 3)
            add.warm_up()
    with podium.use("nvidia"), podium.capture() as of_gpu:
        add[1, 32](*memory["nvidia"], 1.0, 3)
        with podium.use("cpu"):
            add[1, 32](*memory["cpu"], 1.0, 3)
            assert memory["cpu"][0].tolist() == [11.0] * 3
            with pytest.raises(CaptureError, match="on nvidia goes on here already"), podium.capture():
                pass
    assert (len(of_gpu.launches), together.last().captured) == (1, True)
    with podium.capture(driver="cpu") as of_host:
        add[1, 32](*memory["nvidia"], 1.0, 3)
        with podium.use("cpu"):
            add[1, 32](*memory["cpu"], 1.0, 3)
    assert (together.last().captured, memory["cpu"][0].tolist()) == (False, [11.0] * 3)
    assert told(together, of_gpu.replay) == ["add"] and memory["cpu"][0].tolist() == [11.0] * 3
    assert told(together, of_host.replay) == [] and memory["cpu"][0].tolist() == [12.0] * 3


def test_hooks_and_traces_tell_the_backend(together: Recording, level: str, tmp_path: Path) -> None:
    """LIF-08: hooks, the trace and the record of launches see those of all backends in their order, each with its own."""
    add, memory, seen = kernel(), {name: arrays(name) for name in NAMES}, []
    podium.hooks.enter.add(lambda event: seen.append(event.backend))
    order = [*NAMES, *reversed(NAMES)]
    with podium.trace(tmp_path / "trace.json"):
        for name in order:
            with podium.use(name):
                add[1, 32](*memory[name], 1.0, 3)
    assert seen == order == [each.backend for each in podium.recent_launches()]
    assert all(
        f"add grid (1, 1, 1) block (32, 1, 1) on {each.backend} device 0" in str(each)
        for each in podium.recent_launches()
    )
    events = json.loads((tmp_path / "trace.json").read_text())
    assert [each["args"]["backend"] for each in events if each.get("cat") == "launch"] == order


def test_everything_goes_back_to_its_own_driver(together: Recording, level: str) -> None:
    """LIF-01: code, memory, streams and variables of the GPU go when they are dropped, the others' stay as they are."""
    add = podium.module('__device__ int count;\nextern "C" __global__ void k(int *x) { x[0] = ++count; }')
    x = {name: podium.asarray([0], driver=name) for name in ("cpu", "nvidia")}
    for name in ("cpu", "nvidia"):
        with podium.use(name):
            add["k"][1, 1](x[name])
            add.variable("count").copy_from(41)
    with podium.use("cpu"):
        add["k"][1, 1](x["cpu"])
    assert x["cpu"].tolist() == [42]
    with podium.use("nvidia"):
        assert add.variable("count").tolist() == 41
    add.unload()
    simple, memory = kernel(), {name: arrays(name) for name in NAMES}
    for name in NAMES:
        with podium.use(name):
            simple[1, 32](*memory[name], 1.0, 3)
    simple.unload()
    for name in RUNNING:
        with podium.use(name):
            simple[1, 32](*memory[name], 1.0, 3)
    assert all(memory[name][0].tolist() == [12.0] * 3 for name in RUNNING)
    live = together.counters()
    assert (live["libraries"], live["modules"], live["kernels"]) == (0, 0, 0) and live["allocations"] == 3
    stream = podium.Stream(driver="nvidia")
    made = podium.asarray([1.0, 2.0], stream=stream, driver="nvidia")
    assert made.tolist() == [1.0, 2.0] and together.calls()["cuMemAllocAsync"] == 1
    del stream
    gc.collect()
    assert together.counters()["streams"] == live["streams"] + 1
    del made, memory["nvidia"], x["nvidia"]
    gc.collect()
    assert together.calls()["cuMemFreeAsync"] == 1
    assert {name: together.counters()[name] for name in ("allocations", "streams")} == {
        "allocations": 0,
        "streams": live["streams"],
    }
    assert memory["cpu"][0].tolist() == [12.0] * 3


def test_the_page_about_several_backends(together: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/how-to/choose-a-backend.md shows with the CPU alone runs with three backends, and launches on each."""
    (page,) = (each for each in all_pages() if each.name == "docs/how-to/choose-a-backend.md")
    names: dict[str, Any] = {}
    monkeypatch.setenv("PODIUM_BACKEND", "cpu")
    exec("\n".join(fence.text for fence in page.fences if fence.language == "python" and not fence.mark), names)
    assert names["active"] == sorted(NAMES)
    assert together.launch_count() == 3
    assert [each.backend for each in podium.recent_launches()].count("serial") == 3


# ---- Processes ----


def launch_everywhere(add: podium.Kernel, names: tuple[str, ...]) -> dict[str, object]:
    """Launch a kernel on backends in this process; return what it computes, or the error."""
    done: dict[str, object] = {}
    for name in names:
        try:
            with podium.use(name):
                memory = arrays(name)
                for _ in range(3):
                    add[1, 32](*memory, 1.0, 3)
                done[name] = memory[0].tolist()
        except ForkedProcessError as error:
            done[name] = str(error)
    return done


def test_a_fork_after_several_were_used(together: Recording, level: str) -> None:
    """ACT-06: in a forked child the hosts' backends go on, and the GPU's is refused by name; the parent sees nothing."""
    add = kernel()
    launch_everywhere(add, NAMES)
    kept = arrays("nvidia")
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer: object = launch_everywhere(add, ("nvidia", *NAMES))
        except BaseException as error:
            answer = repr(error)
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        answer = json.loads(file.read())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert answer["cpu"] == answer["serial"] == [13.0] * 3, answer
    for name in {*NAMES} - {"cpu", "serial"}:
        assert answer[name].startswith(f"Backend '{name}' was initialised in process {os.getpid()}"), answer
    assert told(together, lambda: add[1, 32](*kept, 1.0, 3)) == ["add"] and kept[0].tolist() == [10.0] * 3


def test_a_child_that_is_spawned(together: Recording) -> None:
    """ACT-06: a spawned child gets a kernel that was used here by pickle, and uses all backends, the GPU's as well."""
    add = kernel()
    launch_everywhere(add, NAMES)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        answer = pool.apply(launch_everywhere, (add, NAMES))
    assert answer == {**dict.fromkeys(RUNNING, [13.0] * 3), "nvidia": [10.0] * 3}
    assert launch_everywhere(add, NAMES) == answer


# ---- Two GPUs' ----


@pytest.fixture
def both(together: Recording | None, monkeypatch: pytest.MonkeyPatch) -> HipRecording | None:
    """The recording HIP runtime beside the recording CUDA driver: devices of both vendors in one process."""
    if together is None:
        return None
    if "amd" not in (backend.name for backend in podium.driver.backends()) or importlib.util.find_spec("hip") is None:
        pytest.skip("podium-amd or hip-python is not installed")
    compile_for_amd = hiprtc()
    if compile_for_amd is None:
        pytest.skip(MISSING)
    monkeypatch.setenv("RECORDING_HIPRTC", compile_for_amd)
    monkeypatch.setenv("PODIUM_AMD_LIBHIP", str(build_hip()))
    monkeypatch.setenv("PODIUM_AMD_HIPRTC", str(compiler_library()))
    return HipRecording()


def test_gpus_of_two_vendors(together: Recording, both: HipRecording, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACT-03: two equally good backends are an error that names both; with a choice, one program uses both at once."""
    add = kernel()
    with pytest.raises(
        AmbiguousBackendError, match="'amd' and 'nvidia' are all active with priority 100.*PODIUM_BACKEND"
    ):
        add[1, 32](None, None, 1.0, 0)
    assert podium.driver.preferred() is None
    monkeypatch.setenv("PODIUM_BACKEND", "amd")
    memory = {name: arrays(name) for name in ("amd", "nvidia")}
    add[1, 32](*memory["amd"], 1.0, 3)
    with podium.use("nvidia"):
        add[1, 32](*memory["nvidia"], 1.0, 3)
        with pytest.raises(ArrayDeviceError, match="'nvidia'.*it is in rocm memory"):
            add[1, 32](*memory["amd"], 1.0, 3)
        with pytest.raises(ArgumentValueError, match="is of another backend than 'nvidia'"):
            add[1, 32](*memory["nvidia"], 1.0, 3, stream=podium.Stream(driver="amd"))
    with pytest.raises(ArrayDeviceError, match="'amd'.*it is in cuda memory"):
        add[1, 32](*memory["nvidia"], 1.0, 3)
    assert [each.backend for each in podium.recent_launches()] == ["amd", "nvidia"]
    assert [launch.name for launch in both.launches()] == ["add"] == [launch.name for launch in together.launches()]
    assert podium.asarray(memory["amd"][0], driver="nvidia").tolist() == [10.0] * 3
    del memory["amd"]
    gc.collect()
    assert (both.calls()["hipFree"], "cuMemFree" in together.calls()) == (2, True)
    assert together.counters()["allocations"] == 2
