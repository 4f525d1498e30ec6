"""What runs kernels on the CPU: all processors, streams, faults, Ctrl-C, forks, and the end of the process."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cpu_kernels import host_compiler

import podium
from podium.errors import LaunchError, SettingError

np = pytest.importorskip("numpy", reason="numpy is not installed")
runtime = pytest.importorskip("podium_cpu.runtime", reason="the CPU backend is not installed")

SOURCE = r"""
#include <cooperative_groups.h>
#include <pthread.h>
#include <stdio.h>

__global__ void endless(volatile int *p) { for (;;) p[0] = 1; }
__global__ void endless_print(volatile int *p) { for (;;) { p[0] = 1; if (!p[0]) printf("-"); else printf("%s", ""); } }
__global__ void endless_heap(volatile int *p) { for (;;) { int *q = new int(1); p[0] = *q; delete q; } }
__global__ void endless_barrier(volatile int *p) { for (;;) { __syncthreads(); p[0] = 1; } }
__global__ void endless_later(volatile int *p) { while (blockIdx.x > 0) p[0] = 1; }

__global__ void null(int *p) { int *q = reinterpret_cast<int *>(p[0]); if (blockIdx.x + 1 == gridDim.x) *q = 1; }
__global__ void divide(int *p) { p[1] = 7 / p[0]; }
__device__ int deeper(volatile int *p, int n) { volatile int pad[256]; pad[n & 255] = n; return deeper(p, n + 1) + pad[0]; }
__global__ void recurse(int *p) { p[1] = deeper(p, 0); }
__global__ void recurse_behind_barrier(int *p) { __syncthreads(); if (threadIdx.x == 40) p[1] = deeper(p, 0); }
__global__ void trap(int *p) { if (p[0] == 0) __builtin_trap(); }
__global__ void divergent(int *p) {
  if (threadIdx.x < 5)
    __syncthreads();
  else
    __shfl_sync(~0u, 1, 0);
  p[1] = 1;
}
__global__ void index(int *p) { p[blockIdx.x] = blockIdx.x; }
__global__ void local_memory(int *p) { int big[1 << 20]; for (int i = 0; i < 1 << 20; ++i) big[i] = i + p[0]; p[1] = big[p[0] + 77]; }

__global__ void wait_for(volatile int *flag, int value, int *out, int result) {
  while (*flag != value) __nanosleep(100);
  *out = result;
}
__global__ void append(int *p, int digit) { *p = *p * 10 + digit; }
__global__ void threads_of(unsigned long long *ids, volatile int *p) {
  ids[blockIdx.x] = (unsigned long long)pthread_self();
  for (int i = 0; i < 300000; ++i) p[blockIdx.x] = i;
}
__global__ void grid_sums(int *values, int *sums, int rounds) {
  auto grid = cooperative_groups::this_grid();
  int at = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  for (int r = 0; r < rounds; ++r) {
    int sum = values[at] + values[(at + blockDim.x) % n];
    grid.sync();
    values[at] = sum;
    grid.sync();
  }
  if (blockIdx.x == 0) return;
  grid.sync();
  sums[at] = values[at];
}
"""

FAULTS = {
    "null": "accessed the address",
    "divide": "divided an integer by zero",
    "recurse": "stack is full",
    "recurse_behind_barrier": "stack is full",
    "trap": "illegal instruction",
}


@pytest.fixture(scope="module", autouse=True)
def compiler() -> None:
    host_compiler()


@pytest.fixture
def module() -> Iterator[podium.Module]:
    with podium.use("cpu"):
        yield podium.module(SOURCE)
        podium.synchronize()


def zeros(count: int) -> np.ndarray:  # type: ignore[type-arg, name-defined, unused-ignore]
    return np.zeros(count, np.int32)


def run_script(text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program whose `module` has the kernels above."""
    program = "import numpy as np, os, signal, sys, threading, podium\nfrom podium.errors import LaunchError\n"
    program += "podium.set_active('cpu')\n"
    program += f"module = podium.module({SOURCE!r})\nzeros = lambda count: np.zeros(count, np.int32)\n"
    return subprocess.run(
        [sys.executable, "-c", program + textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **variables},
    )


INTERRUPTED = """
def interrupt_when_running(p):
    while p[0] == 0:
        pass
    os.kill(os.getpid(), signal.SIGINT)

def interrupted(name, grid, block):
    module[name].load()
    p = zeros(8)
    thread = threading.Thread(target=interrupt_when_running, args=(p,))
    thread.start()
    try:
        module[name][grid, block](p)
    except BaseException as error:
        print(name, grid, type(error).__name__, getattr(error, "status", ""), flush=True)
    thread.join()
"""


def test_ctrl_c_ends_a_kernel_that_would_not() -> None:
    """Ctrl-C ends an endless launch: in one block and in many, at a barrier, and inside functions of the C library."""
    kernels = ["endless", "endless_print", "endless_heap", "endless_barrier"]
    script = (
        INTERRUPTED
        + f"""
for name in {kernels}:
    interrupted(name, 1, 8)
interrupted("endless_later", 64, 1)
p = zeros(1000)
module["index"][1000, 1](p)
print((p == np.arange(1000)).all())
"""
    )
    for launcher in ("generated", "interpreted"):
        ran = run_script(script, PODIUM_LAUNCHER=launcher, PODIUM_CPU_THREADS="2")
        expected = [f"{name} 1 KeyboardInterrupt" for name in kernels] + ["endless_later 64 KeyboardInterrupt", "True"]
        assert [line.strip() for line in ran.stdout.splitlines()] == expected, ran.stderr


def test_ctrl_c_with_a_handler_of_the_program() -> None:
    """A handler that raises nothing leaves an error that says what happened; one that was set later counts as well."""
    script = (
        INTERRUPTED
        + """
interrupted("endless", 1, 8)
start = time.monotonic()
signal.signal(signal.SIGINT, lambda *_: print("handled", flush=True))
while not podium_time_has_passed():
    pass
interrupted("endless", 1, 8)
"""
    )
    wait = "import time\npodium_time_has_passed = lambda: time.monotonic() - start > 0.2\n"
    ran = run_script(wait + script)
    lines = [line.strip() for line in ran.stdout.splitlines()]
    assert lines == ["endless 1 KeyboardInterrupt", "handled", "endless 1 LaunchError 7"], ran.stderr


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_kernel_is_an_error(module: podium.Module, level: str, name: str) -> None:
    """A fault in a kernel ends the launch with an error that says what the kernel did, and the process goes on."""
    for grid in (1, 2000):
        p = zeros(8)
        with pytest.raises(LaunchError, match=FAULTS[name]) as caught:
            module[name][grid, 64](p)
        assert caught.value.status_name == "PODIUM_CPU_ERROR_FAULT"
        assert 'podium.use("cpu", sanitize="address,undefined")' in str(caught.value)
        # On the host's own order the launch is the one at fault.
        assert "The last launches" not in str(caught.value)
    p = zeros(2000)
    module["index"][2000, 1](p)
    assert (p == np.arange(2000)).all()


def test_a_fault_outside_of_kernels_is_left_alone() -> None:
    """A fault that no kernel has caused ends the process, as without podium; and other handlers still get theirs."""
    script = """
    import ctypes, faulthandler
    p = zeros(8)
    module["index"][8, 1](p)
    faulthandler.enable()
    try:
        module["null"][1, 1](zeros(8))
    except LaunchError as error:
        print("error", flush=True)
    ctypes.memset(0, 0, 1)
    """
    ran = run_script(script)
    assert ran.returncode == -signal.SIGSEGV
    assert ran.stdout == "error\n" and "Segmentation fault" in ran.stderr


def test_a_deadlock_names_its_barriers(module: podium.Module, level: str) -> None:
    """Threads that wait for each other are an error with the lines they wait at, and how many wait where."""
    line = 1 + SOURCE[: SOURCE.index("    __syncthreads();\n  else")].count("\n")
    with pytest.raises(LaunchError) as caught:
        module["divergent"][1, 64](zeros(8))
    text = str(caught.value)
    assert f"5 wait at __syncthreads() (<podium source>:{line}), such as thread (0,0,0)" in text
    assert f"27 wait at __shfl_sync() (<podium source>:{line + 2}), such as thread (5,0,0)" in text


def test_local_memory_of_megabytes(module: podium.Module) -> None:
    """A thread may have four megabytes of local memory."""
    p = zeros(2)
    module["local_memory"][1, 2](p)
    assert p[1] == 77


def test_a_stream_is_a_queue(module: podium.Module, level: str) -> None:
    """A launch on a stream returns before it has run, launches of one stream run in order, and others go on beside."""
    flag, out, text = zeros(1), zeros(1), zeros(1)
    module["wait_for"][1, 1](flag, 1, out, 5, stream=11)
    for digit in (1, 2, 3, 4):
        module["append"][1, 1](text, digit, stream=11)
    assert out[0] == 0 and text[0] == 0  # they wait for the flag
    module["append"][1, 1](out, 9)  # the host's own order does not wait for it
    assert out[0] == 9
    flag[0] = 1
    podium.synchronize(stream=11)
    assert out[0] == 5 and text[0] == 1234


def test_streams_run_beside_each_other() -> None:
    """A launch in one stream can wait for one in another."""
    script = """
    flag, out = zeros(1), zeros(1)
    module["wait_for"][1, 1](flag, 1, out, 5, stream=1)
    module["append"][1, 1](flag, 1, stream=2)
    podium.synchronize()
    print(out[0])
    """
    ran = run_script(script, PODIUM_CPU_THREADS="2")
    assert ran.stdout == "5\n", ran.stderr


def test_a_queue_waits_for_an_event_of_another(module: podium.Module) -> None:
    """An event passes after the launches before it, and what comes after `wait` in another queue comes after that."""
    first, second, third = podium.Stream(), podium.Stream(), podium.Stream()
    flag, out, text = zeros(1), zeros(1), zeros(1)
    start = podium.Event()
    start.record()
    module["wait_for"][1, 1](flag, 1, out, 5, stream=first)
    module["append"][1, 1](text, 1, stream=first)
    event = first.record()
    for stream in (second, third):
        stream.wait(event)
    module["append"][1, 1](text, 2, stream=second)
    later = second.record()
    third.wait(later)
    module["append"][1, 1](text, 3, stream=third)
    assert start.done and not event.done and not later.done and text[0] == 0
    flag[0] = 1
    third.synchronize()
    assert event.done and later.done and text[0] == 123
    assert 0 <= start.elapsed(event) <= start.elapsed(later)


def test_an_event_that_is_recorded_anew(module: podium.Module) -> None:
    """An event stands for where it was recorded last; who waited before waits for what it stood for then."""
    slow, fast, waiting = podium.Stream(), podium.Stream(), podium.Stream()
    flag, out, text = zeros(1), zeros(1), zeros(1)
    module["wait_for"][1, 1](flag, 1, out, 5, stream=slow)
    event = slow.record()
    waiting.wait(event)
    module["append"][1, 1](text, 1, stream=waiting)
    event.record(fast)
    event.synchronize()
    assert event.done
    flag[0] = 1
    waiting.synchronize()
    assert text[0] == 1 and out[0] == 5
    slow.synchronize()
    assert event.done


def test_an_event_tells_what_went_wrong_before_it(module: podium.Module) -> None:
    """Waiting for an event behind a launch that failed is an error that names the launch."""
    stream, flag, out = podium.Stream(), zeros(1), zeros(1)
    module["wait_for"][1, 1](flag, 1, out, 5, stream=stream)
    module["null"][1, 1](zeros(2), stream=stream)
    event = stream.record()
    flag[0] = 1
    with pytest.raises(LaunchError, match="in null, launched with grid"):
        event.synchronize()
    with pytest.raises(LaunchError, match="in null"):
        stream.synchronize()
    assert event.done


def test_many_events_are_forgotten(module: podium.Module) -> None:
    """Queues and events that have come to their end leave nothing; a dropped event is waited for all the same."""
    text = zeros(1)
    for _ in range(300):
        first, second = podium.Stream(), podium.Stream()
        module["append"][1, 1](text, 0, stream=first)
        second.wait(first.record())
        module["append"][1, 1](text, 0, stream=second)
    podium.synchronize()  # the pairs of streams do not wait for each other
    module["append"][1, 1](text, 7, stream=second)
    podium.synchronize()
    assert text[0] == 7


def test_a_copy_waits_for_its_stream(module: podium.Module) -> None:
    """Bytes are copied when the launches before them in the stream have run."""
    flag, out = zeros(1), zeros(1)
    module["wait_for"][1, 1](flag, 0, out, 5, stream=12)
    copied = zeros(1)
    driver = podium.driver.active
    driver.copy(copied.ctypes.data, out.ctypes.data, 4, 0, 12)
    assert copied[0] == 5


def test_arguments_live_until_the_launch_has_run(module: podium.Module, level: str) -> None:
    """ARG-27: what a queued launch works on stays where it is, though nobody else refers to it any more."""

    class Owner(np.ndarray):  # type: ignore[misc, name-defined, unused-ignore]
        pass

    flag, data = zeros(1), bytearray(8)
    owned = np.zeros(1 << 18, np.int32).view(Owner)
    alive = weakref.ref(owned)
    module["wait_for"][1, 1](flag, 1, owned, 5, stream=13)
    module["append"][1, 1](data, 7, stream=13)
    del owned
    assert alive() is not None
    with pytest.raises(BufferError):
        data.extend(bytes(100))
    flag[0] = 1
    podium.synchronize()
    assert alive() is None
    data.extend(bytes(100))
    assert data[0] == 7


def test_an_error_in_a_queue_comes_with_synchronize(module: podium.Module, level: str) -> None:
    """The status of a queued launch that fails comes once, with the next wait, and tells what happened."""
    module["null"][1, 1](zeros(2), stream=14)
    module["append"][1, 1](zeros(1), 1, stream=15)
    podium.synchronize(stream=15)
    with pytest.raises(LaunchError, match="accessed the address") as caught:
        podium.synchronize()
    assert "in null, launched with grid (1,1,1) and block (1,1,1) on stream 0xe" in str(caught.value)
    assert "null grid" in str(caught.value)  # among the last launches
    podium.synchronize()


def test_debugging_waits_for_each_launch(module: podium.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """With PODIUM_DEBUG a queued launch that fails is an error where it was made."""
    with podium.debugging(), pytest.raises(LaunchError, match="null"):
        module["null"][1, 1](zeros(2), stream=16)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_streams_and_threads_after_a_fork() -> None:
    """FRK-01: a forked child has empty streams and threads of its own, while the parent's go on."""
    script = """
    import warnings
    warnings.simplefilter("ignore")
    flag, out, text = zeros(1), zeros(1), zeros(1)
    module["wait_for"][1, 1](flag, 1, out, 5, stream=1)
    behind = podium.Event()
    behind.record(1)
    p = zeros(4000)
    child = os.fork()
    if child == 0:
        podium.synchronize()  # what the parent has queued is not here
        behind.synchronize()
        module["index"][4000, 1](p)
        ids = np.zeros(64, np.uint64)
        module["threads_of"][64, 1](ids, p)
        module["append"][1, 1](text, 3, stream=1)
        podium.synchronize()
        try:
            module["null"][1, 1](zeros(8))
        except LaunchError:
            os._exit(40 + len(set(ids.tolist())) if text[0] == 3 and out[0] == 0 else 1)
        os._exit(2)
    status = os.waitpid(child, 0)[1]
    flag[0] = 1
    podium.synchronize()
    print(os.WEXITSTATUS(status), out[0])
    """
    ran = run_script(script, PODIUM_CPU_THREADS="2")
    assert ran.stdout == "42 5\n", (ran.stdout, ran.stderr)


def test_queues_are_finished_at_the_end_of_the_process(tmp_path: Path) -> None:
    """What is queued when a program ends has run when it is gone."""
    path = tmp_path / "numbers"
    path.write_bytes(bytes(4 * 20000))
    script = f"""
    numbers = np.memmap({str(path)!r}, np.int32, "r+")
    ids = np.zeros(200, np.uint64)
    module["threads_of"][200, 1](ids, zeros(200), stream=1)
    module["index"][20000, 1](numbers, stream=1)
    """
    ran = run_script(script)
    assert ran.returncode == 0, ran.stderr
    assert (np.fromfile(path, np.int32) == np.arange(20000)).all()


def test_ctrl_c_ends_a_wait_and_the_process() -> None:
    """Ctrl-C while waiting for an endless queue is a KeyboardInterrupt, and at its end such a process waits no longer."""
    script = """
    p, started = zeros(8), threading.Event()
    def interrupt():
        started.wait()
        while p[0] == 0:
            pass
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    module["endless"].load()
    launch = module["endless"][1, 1]
    try:
        started.set()
        launch(p, stream=1)
        podium.synchronize()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    raise KeyboardInterrupt
    """
    ran = run_script(script)
    assert ran.stdout == "interrupted\n" and ran.returncode != 0, ran.stderr
    assert ran.stderr.rstrip().endswith("KeyboardInterrupt")


def test_ctrl_c_at_the_end_of_a_process() -> None:
    """A process that ends waits for its queues, and no longer when Ctrl-C is pressed."""
    script = r"""
    import atexit, subprocess
    p = zeros(8)
    module["endless"][1, 1](p, stream=1)
    press = "import os, sys, time\nsys.stdin.read()\nwhile True: os.kill(int(sys.argv[1]), 2); time.sleep(0.1)"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    presser = subprocess.Popen([sys.executable, "-c", press, str(os.getpid())], **pipes)
    atexit.register(presser.stdin.close)  # runs before podium's own
    print("end", flush=True)
    """
    ran = run_script(script)
    assert ran.stdout == "end\n", ran.stderr


@pytest.mark.parametrize("count", [1, 4])
def test_blocks_run_on_as_many_threads_as_asked_for(count: int) -> None:
    """PODIUM_CPU_THREADS bounds the threads that run the blocks of a launch."""
    script = """
    ids = np.zeros(200, np.uint64)
    module["threads_of"][200, 1](ids, zeros(200))
    print(len(set(ids.tolist())))
    """
    ran = run_script(script, PODIUM_CPU_THREADS=str(count))
    assert (int(ran.stdout) == 1) if count == 1 else (2 <= int(ran.stdout) <= count), ran.stderr


@pytest.mark.parametrize("text", ["0", "many", "-1", "1025", "\u0664"])
def test_a_bad_number_of_threads(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number of threads that cannot be is an error that names the variable."""
    monkeypatch.setenv("PODIUM_CPU_THREADS", text)
    with pytest.raises(SettingError, match="PODIUM_CPU_THREADS"):
        runtime.thread_count()


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="only Linux lists the threads of a process")
def test_small_launches_stay_on_their_thread() -> None:
    """A launch that takes less time than waking a thread starts none."""
    script = """
    p = zeros(1000)
    module["index"].load()
    before = len(os.listdir("/proc/self/task"))
    module["index"][1, 1](p)
    print(len(os.listdir("/proc/self/task")) - before, end=" ")
    module["threads_of"][200, 1](np.zeros(200, np.uint64), p)
    print(len(os.listdir("/proc/self/task")) - before)
    """
    ran = run_script(script, PODIUM_LAUNCHER="interpreted", PODIUM_CPU_THREADS="3")
    assert ran.stdout == "0 3\n", ran.stderr


@pytest.mark.parametrize(("launcher", "value"), [("interpreted", "1"), ("generated", "1"), ("generated", " True")])
def test_the_default_stream_can_be_a_queue(launcher: str, value: str) -> None:
    """With PODIUM_CPU_ASYNC=1, what a program forgets to wait for shows: launches return before they have run."""
    script = """
    flag, out = zeros(1), zeros(1)
    module["wait_for"][1, 1](flag, 1, out, 5)
    print(out[0])
    flag[0] = 1
    podium.synchronize()
    print(out[0])
    """
    ran = run_script(script, PODIUM_CPU_ASYNC=value, PODIUM_LAUNCHER=launcher)
    assert ran.stdout == "0\n5\n", ran.stderr


@pytest.mark.parametrize("choice", ["podium.driver.resolve()", "podium.set_active('cpu')", "podium.driver.get('cpu')"])
@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [("PODIUM_CPU_ASYNC", "maybe", "0 or 1"), ("PODIUM_CPU_SANITIZE", "memory", "address, undefined, or both")],
)
def test_a_bad_setting_is_no_broken_backend(choice: str, variable: str, value: str, allowed: str) -> None:
    """However the backend was chosen by default, its settings are told by name, with the value and what is allowed."""
    script = f"import podium\ntry:\n    {choice}\nexcept podium.errors.SettingError as error:\n    print(error)\n"
    ran = subprocess.run(
        [sys.executable, "-c", "import podium.errors\n" + script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PODIUM_BACKEND": "", "PODIUM_DISABLED_PLUGINS": "fake", variable: value},
    )
    assert ran.stdout.startswith(f"{variable}={value!r} is not valid: expected {allowed}"), ran.stdout + ran.stderr


def test_cooperative_blocks_wait_for_each_other(module: podium.Module, level: str) -> None:
    """The blocks of a cooperative launch run at the same time; one that has returned is not waited for."""
    for blocks in (1, 7, 128):
        values = np.arange(blocks * 32, dtype=np.int32)
        sums, expected = zeros(blocks * 32), values.copy()
        module["grid_sums"][podium.LaunchConfig(blocks, 32, cooperative=True)](values, sums, 3)
        for _ in range(3):
            expected = expected + np.roll(expected, -32)
        assert (values == expected).all()
        assert (sums[32:] == expected[32:]).all() and (sums[:32] == 0).all()


def test_grids_that_cannot_wait(module: podium.Module, level: str) -> None:
    """A grid beyond the limit is refused with the limit, and a barrier of the grid needs a cooperative launch."""
    with pytest.raises(LaunchError, match="at most 128 blocks here, not 129"):
        module["grid_sums"][podium.LaunchConfig(129, 32, cooperative=True)](zeros(129 * 32), zeros(129 * 32), 1)
    with pytest.raises(LaunchError, match="only the blocks of a cooperative launch") as caught:
        module["grid_sums"][2, 32](zeros(64), zeros(64), 1)
    assert caught.value.status_name == "PODIUM_CPU_ERROR_GRID_BARRIER"


def test_a_thousand_kernels(module: podium.Module) -> None:
    """LIF-04: a thousand libraries of kernels can be loaded and run in one process."""
    index = module["index"]
    index.load()
    driver = podium.driver.active
    assert isinstance(driver, podium.backend.Driver)
    code = driver.compile(index.declaration.program, driver.default_target())
    p = zeros(4)
    for number in range(1000):
        # The loader does not look behind the last section, so these are as many different libraries.
        varied = dataclasses.replace(code, code=code.code + number.to_bytes(4, "little"))
        kernel = podium.module(varied).kernel()
        p[:] = -1
        kernel[4, 1](p)
        assert (p == np.arange(4)).all()


def test_the_runtime_is_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count_runs: Callable[[], list[str]]
) -> None:
    """What runs kernels is compiled with the first kernel, at the same time, and linked with all others from the cache."""
    from podium._cache import reset_cache

    monkeypatch.setenv("PODIUM_CACHE_DIR", str(tmp_path / "cache"))
    reset_cache()
    with podium.use("cpu"):
        for number in range(3):
            podium.kernel(f"__global__ void k{number}(int *p) {{ p[0] = {number}; }}").load()
    reset_cache()
    runs = count_runs()
    assert sum("runtime.cpp" in run for run in runs) == 1
    assert sum("kernel.cpp" in run for run in runs) == 3
    assert sum("kernel.o" in run for run in runs) == 1


@pytest.fixture
def count_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Have each run of the C++ compiler noted in a file."""
    log, wrapper = tmp_path / "runs", tmp_path / "noted"
    wrapper.write_text(f'#!/bin/sh\necho "$*" >>{log}\nexec "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", f"{wrapper} {host_compiler().command[0]}")
    return lambda: log.read_text().splitlines()
