"""Every call of the CUDA driver that podium makes fails once: an error says so, nothing leaks, and podium goes on."""

from __future__ import annotations

import gc
import json
import os
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from nvidia_recorded import everything, kernels
from recording.cuda.library import Recording

import podium
from podium.errors import LaunchError, OutOfResourcesError, PodiumError

from podium_nvidia.launcher import _FUNCTIONS

UNKNOWN = 999  # CUDA_ERROR_UNKNOWN, which nothing reacts to in a way of its own


def in_child(work: Callable[[], Any]) -> Any:
    """Run something in a child of this process, and return what it returned."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            result = [True, work()]
        except BaseException:
            result = [False, traceback.format_exc()]
        with os.fdopen(writing, "w") as pipe:
            json.dump(result, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    assert text, "the child has crashed"
    fine, result = json.loads(text)
    assert fine, result
    return result


def settled(recording: Recording) -> dict[str, int]:
    """What there is when everything has been given back."""
    gc.collect()
    return {**recording.counters(), "context depth": recording.context_depth()}


# Calls whose failure nobody need be told of, and why.
SILENT = {
    "cuGetExportTable": "NVRTC's own",
    "cuMemFreeAsync": "the memory is freed by cuMemFree",
    "cuMemFree": "a finalizer",
    "cuMemFreeHost": "a finalizer",
    "cuEventDestroy": "a finalizer",
    "cuStreamDestroy": "a finalizer",
    "cuGraphExecDestroy": "a finalizer",
    "cuGraphDestroy": "a finalizer",
    "cuLibraryUnload": "a finalizer",
    "cuLibraryLoadData": "what may be damaged in the cache is compiled anew, once",
    "cuLibraryGetKernel": "the same",
    "cuKernelGetFunction": "the same",
    "cuKernelGetAttribute": "the same",
    "cuKernelGetParamInfo": "the same",
    "cuKernelSetAttribute": "the same",
}
# What a test cannot have given back, since the call that does it was made to do nothing.
KEPT = {
    "cuMemFree": {"allocations", "bytes"},
    "cuMemFreeHost": {"allocations", "bytes"},
    "cuEventDestroy": {"events"},
    "cuStreamDestroy": {"streams"},
    "cuGraphExecDestroy": {"graph_execs", "graphs", "nodes"},
    "cuGraphDestroy": {"graphs", "nodes"},
    "cuLibraryUnload": {"libraries", "modules", "kernels", "functions", "allocations", "bytes"},
    "cuCtxPopCurrent": {"context depth", "allocations", "bytes"},
}


def undisturbed(recording: Recording) -> tuple[dict[str, int], dict[str, int]]:
    """How often each entry is called if all goes well, and what there is at the end."""

    def work() -> Any:
        everything()
        first = settled(recording)
        everything()
        assert settled(recording) == first  # using everything twice leaves nothing more than once
        return [recording.calls(), first]

    calls, state = in_child(work)
    return calls, state


def disturbed(recording: Recording, name: str, nth: int = 1) -> tuple[str, str, dict[str, int]]:
    """Let a call fail in the first use of everything in a process; return the error, and what there is at the end."""

    def work() -> Any:
        recording.fail(name, UNKNOWN, nth)
        said = ["", ""]
        try:
            everything()
        except PodiumError as error:
            said = [type(error).__name__, str(error)]
        recording.fail(name, 0, 0)
        everything()
        return [*said, settled(recording)]

    kind, text, state = in_child(work)
    return kind, text, state


def check(recording: Recording, names: Iterable[str], usual: dict[str, int]) -> None:
    """Let each of the calls fail, and look at what is said and what is left."""
    wrong = {}
    for name in names:
        kind, text, state = disturbed(recording, name)
        if name in SILENT:
            fine = not kind
        elif name == "cuDriverGetVersion":
            fine = "the driver is too old" in text
        else:
            fine = "CUDA_ERROR_UNKNOWN" in text and kind in (
                "LaunchError",
                "LoadError",
                "BackendError",
                "CaptureError",
            )
        changed = {key for key, value in state.items() if value != usual[key]}
        if not fine or not changed <= KEPT.get(name, set()):
            wrong[name] = (kind, text, changed)
    assert not wrong


def test_every_call_fails_once(recording: Recording) -> None:
    """Each entry that podium calls gives CUDA_ERROR_UNKNOWN once: the error has that name, and the next use works."""
    calls, usual = undisturbed(recording)
    assert len(calls) > 40
    assert usual["context depth"] == 1 and usual["retained"] == 1
    assert not any(usual[name] for name in ("modules", "libraries", "events", "allocations", "graphs"))
    del calls["cuGetProcAddress"]  # a function that is not there never will be
    check(recording, sorted(calls), usual)


def test_every_call_of_generated_launchers_fails_once(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for what generated C calls, whose first launch already goes through it."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
    calls, usual = undisturbed(recording)
    check(recording, [name for name in _FUNCTIONS if name in calls], usual)


@pytest.mark.parametrize("status", [1, 2, 201, 400, 701, 719, 720, 900])
def test_statuses_of_launches(recording: Recording, level: str, status: int) -> None:
    """A launch that the driver refuses raises LaunchError with status, name, text, kernel and shape; the next one works."""
    from cuda.bindings import driver

    kernel = kernels()["nothing"]
    launch = kernel[(2, 3), (4, 5)]
    launch()
    recording.fail("cuLaunchKernel", status)
    with pytest.raises(LaunchError) as caught:
        launch()
    error = caught.value
    assert error.status == status and error.status_name == driver.CUresult(status).name and error.status_text
    assert (error.kernel, error.grid, error.block, error.device) == ("nothing", (2, 3, 1), (4, 5, 1), 0)
    assert error.status_name in str(error) and "nothing" in str(error)
    count = recording.launch_count()
    launch()
    assert recording.launch_count() == count + 1


def test_a_fault_is_told_at_the_next_wait_and_names_the_last_launches(recording: Recording, level: str) -> None:
    """What a kernel does wrong comes up later: the error says so, and lists what was launched before it."""
    kernel = kernels()["nothing"]
    kernel[1, 1]()
    recording.fault(700)
    kernel[7, 1]()
    with pytest.raises(LaunchError, match="CUDA_ERROR_ILLEGAL_ADDRESS") as caught:
        podium.synchronize()
    assert "nothing" in str(caught.value)
    with pytest.raises(LaunchError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        kernel[1, 1]()


def test_the_debug_switch_names_the_launch_at_fault(recording: Recording, level: str) -> None:
    """With debugging on, the launch that faults is the one that raises."""
    kernel = kernels()["nothing"]
    kernel[1, 1]()
    with podium.debugging():
        recording.fault(719)
        with pytest.raises(LaunchError, match="CUDA_ERROR_LAUNCH_FAILED") as caught:
            kernel[7, 1]()
    assert caught.value.grid == (7, 1, 1)


def test_no_memory_left(recording: Recording) -> None:
    """An array that does not fit says how much is free, and one that does can still be had."""
    recording.set_memory(1 << 20)
    x = podium.empty(1 << 17, "fp32")
    with pytest.raises(OutOfResourcesError, match=str(1 << 22)):
        podium.empty(1 << 20, "fp32")
    del x
    assert podium.empty(1 << 18, "fp32").size == 1 << 18
