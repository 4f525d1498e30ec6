"""Memory, streams, events, contexts and devices of the NVIDIA backend, on the recording CUDA driver."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recording.cuda.library import Recording

import podium
from podium.errors import BackendError, ForkedProcessError, LaunchError, OutOfResourcesError, SettingError

from podium_nvidia import context, launch, status, versions
from podium_nvidia.driver import NvidiaDriver
from podium_nvidia.load_error import load_error
from podium_nvidia.stream import dlpack_stream

ADD = 'extern "C" __global__ void add(int* x, int a) { x[threadIdx.x] += a; }'


def driver() -> NvidiaDriver:
    """Return the driver, which the fixture `recording` has made the one to use."""
    found = podium.driver.resolve()
    assert isinstance(found, NvidiaDriver)
    return found


# ---- memory ----


def test_memory_for_any_stream_and_in_the_order_of_one(recording: Recording) -> None:
    """Without a stream it comes from cuMemAlloc, with one from the pool; each is freed in the same way."""
    free, ordered = driver().allocate(1000, 256, 0, None), driver().allocate(1000, 64, 0, 0)
    assert recording.calls()["cuMemAlloc"] == recording.calls()["cuMemAllocAsync"] == 1
    assert free.ptr % 256 == 0 and ordered.size == 1000
    del free, ordered
    assert recording.calls()["cuMemFree"] == recording.calls()["cuMemFreeAsync"] == 1
    assert recording.counters()["allocations"] == 0


@pytest.mark.parametrize("alignment", [1, 256, 512, 4096, 1 << 20])
def test_memory_is_aligned(recording: Recording, alignment: int) -> None:
    """Any power of two is kept, on the device and pinned, also above what the driver keeps by itself."""
    for buffer in (
        driver().allocate(100, alignment, 0, None),
        driver().allocate(0, alignment, 1, 0),
        driver().allocate_pinned(100, alignment, 0),
    ):
        assert buffer.ptr > 0 and buffer.ptr % alignment == 0
    del buffer
    with pytest.raises(ValueError, match="power of two"):
        driver().allocate(1, 3, 0, None)
    with pytest.raises(ValueError, match="cannot be"):
        driver().allocate(-1, 1, 0, None)
    gc.collect()
    assert recording.counters()["allocations"] == 0


def test_a_device_without_pools_has_scratch_memory_too(recording: Recording) -> None:
    """SCR-01: where the driver has no stream-ordered memory, scratch is allocated, and freed, for all streams."""
    recording.set_attributes({115: 0})
    del_me = driver().allocate(100, 256, 0, 0)
    assert "cuMemAllocAsync" not in recording.calls() and recording.calls()["cuMemAlloc"] == 1
    del del_me
    assert recording.calls()["cuMemFree"] == 1


def test_too_much_memory(recording: Recording) -> None:
    """What there is not is an error with what there is, for each kind of memory; nothing of it stays."""
    recording.set_memory(1 << 20)
    for allocate in (
        lambda: driver().allocate(1 << 21, 256, 0, None),
        lambda: driver().allocate(1 << 21, 256, 0, 0),
    ):
        with pytest.raises(OutOfResourcesError) as caught:
            allocate()
        assert caught.value.required == 1 << 21 and 0 < caught.value.limit <= 1 << 20
    with recording.failing("cuMemHostAlloc", 2), pytest.raises(OutOfResourcesError, match="pinned memory") as caught:
        driver().allocate_pinned(64, 256, 0)
    assert 0 < caught.value.limit <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with recording.failing("cuMemAlloc", 700), pytest.raises(LaunchError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        driver().allocate(8, 256, 0, None)
    gc.collect()
    assert recording.counters()["allocations"] == 0


def test_a_buffer_that_never_was(recording: Recording) -> None:
    """A failure before the allocation is the one error that is told: the finalizer has nothing to free."""
    with recording.failing("cuInit", 999), pytest.raises(BackendError, match="cannot be initialised"):
        driver().allocate(100, 256, 0, 0)
    gc.collect()
    assert "cuMemFree" not in recording.calls()


def test_freeing_never_raises(recording: Recording) -> None:
    """LIF-02: a buffer that goes when its stream, or the whole context, is lost says nothing."""
    stream = driver().create_stream(0, 0)
    one = driver().allocate(100, 256, 0, stream)
    driver().destroy_stream(stream, 0)
    with recording.failing("cuMemFreeAsync", 400):
        del one
    assert recording.counters()["allocations"] == 0, "a lost stream does not keep the memory"
    two = driver().allocate(100, 256, 0, None)
    with recording.failing("cuCtxGetDevice", 700), recording.failing("cuCtxPushCurrent", 700):
        del two


def test_copies_go_everywhere(recording: Recording) -> None:
    """Copies are made behind the stream's work, and done when they return; a failure names itself."""
    data = bytes(range(200))
    source, result = ctypes.create_string_buffer(data, 200), ctypes.create_string_buffer(200)
    first, second = driver().allocate(200, 256, 0, None), driver().allocate(200, 256, 1, None)
    driver().copy(first.ptr, ctypes.addressof(source), 200, 0, 0)
    driver().copy(second.ptr, first.ptr, 200, 1, 0)
    driver().copy(ctypes.addressof(result), second.ptr, 200, 1, 0)
    assert result.raw == data
    with recording.failing("cuMemcpyAsync", 1), pytest.raises(LaunchError, match="copying 5 bytes: CUDA_ERROR_INVALID"):
        driver().copy(first.ptr, second.ptr, 5, 0, 0)
    with recording.failing("cuStreamSynchronize", 719), pytest.raises(LaunchError, match="CUDA_ERROR_LAUNCH_FAILED"):
        driver().copy(first.ptr, second.ptr, 5, 0, 0)


def in_a_thread(work: Callable[[], Any]) -> Any:
    """Return what a function gives in a new thread, which has no context."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def test_what_memory_an_address_is(recording: Recording) -> None:
    """CTX-02: device, pinned and plain memory are told apart, with and without a context; a failure is no answer."""
    device, pinned = driver().allocate(100, 256, 1, None), driver().allocate_pinned(100, 64, 0)
    host = ctypes.create_string_buffer(100)
    places = (device.ptr, device.ptr + 99, pinned.ptr, ctypes.addressof(host))
    expected = [(2, 1), (2, 1), (3, 0), (1, 0)]
    assert [driver().pointer_device(place) for place in places] == expected
    assert in_a_thread(lambda: [driver().pointer_device(place) for place in places]) == expected
    for failure in (201, 700):
        recording.fail("cuPointerGetAttributes", failure)
        if failure == 201:
            assert driver().pointer_device(device.ptr) == (2, 1), "no context says nothing of the address"
            continue
        with pytest.raises(BackendError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
            driver().pointer_device(device.ptr)


# ---- contexts and devices ----


def test_contexts_are_left_as_they_were(recording: Recording) -> None:
    """CTX-06, LIF-06: each method of the driver works in a thread without a context, and for another device, and
    leaves the thread's contexts alone.
    """
    kernel = podium.kernel(ADD)
    code = kernel.compile(driver().default_target())

    def use(device: int) -> tuple[int, int | None]:
        own = driver()
        stream, event = own.create_stream(device, -1), own.create_event(device, True)
        own.record_event(event, device, stream)
        own.wait_event(device, stream, event)
        own.synchronize_event(event, device)
        own.event_done(event, device)
        own.destroy_event(event, device)
        own.destroy_stream(stream, device)
        own.allocate(10, 1, device, None)
        own.allocate_pinned(10, 1, device)
        own.unload(own.load(code, "add", device), device)
        own.capturing(device, 0)
        own.synchronize(device)
        own.synchronize(device, 0)
        return recording.context_depth(), context.current_device()

    for device in (0, 1):
        assert in_a_thread(lambda device=device: use(device)) == (0, None)  # type: ignore[misc]

    def beside() -> Any:
        with context.current_primary(0):
            return use(1), use(0)

    assert in_a_thread(beside) == ((1, 0), (1, 0))
    assert recording.counters()["retained"] == 2, "each primary context is retained once"


def test_the_current_device_makes_no_context(recording: Recording) -> None:
    """It is the device of the context that is current, or 0, also before the driver is initialised."""
    assert NvidiaDriver().current_device() == 0
    assert recording.counters()["contexts"] == 0
    with context.current_primary(1):
        assert driver().current_device() == 1
        assert driver().default_target() == driver().devices()[1].target
    assert driver().current_device() == 0


def test_access_to_a_peer(recording: Recording) -> None:
    """ARG-11: access is enabled where it is first needed, once; who enabled it before does not matter."""
    assert driver().can_access(0, 0) and "cuDeviceCanAccessPeer" not in recording.calls()
    recording.set_peer(0, 1, False)
    assert not driver().can_access(0, 1)
    recording.set_peer(0, 1, True)
    with recording.failing("cuCtxEnablePeerAccess", 704):
        assert driver().can_access(0, 1)
    recording.set_peer(1, 0, True)
    assert driver().can_access(1, 0) and driver().can_access(1, 0)
    assert recording.calls()["cuCtxEnablePeerAccess"] == 2


@pytest.mark.parametrize(
    ("entry", "failure", "message"),
    [
        ("cuInit", 100, "no GPU is visible; look at CUDA_VISIBLE_DEVICES"),
        ("cuInit", 803, "restart the machine"),
        ("cuInit", 999, "CUDA_ERROR_UNKNOWN"),
        ("cuDeviceGetCount", 3, "CUDA_ERROR_NOT_INITIALIZED"),
        ("cuDeviceGetName", 101, "device 0"),
        ("cuDeviceTotalMem", 46, "CUDA_ERROR_DEVICE_UNAVAILABLE"),
        ("cuDeviceGetAttribute", 101, "attribute"),
    ],
)
def test_what_fails_at_the_start(recording: Recording, entry: str, failure: int, message: str) -> None:
    """A driver that cannot be initialised, or asked, says why; when it can, the same process goes on."""
    with recording.failing(entry, failure), pytest.raises(BackendError, match=message):
        driver().devices()
    assert len(driver().devices()) == 2


def test_a_forked_child_is_told(recording: Recording) -> None:
    """ACT-06: the driver is not usable behind a fork, and says so instead of failing strangely; nothing is freed."""
    x = podium.asarray([1, 2, 3])
    child = os.fork()
    if child == 0:
        outcome = 1
        try:
            driver().allocate(8, 8, 0, None)
        except ForkedProcessError:
            del x
            gc.collect()
            outcome = 0
        finally:
            os._exit(outcome)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert x.tolist() == [1, 2, 3]


# ---- streams and events ----


def test_streams_and_events(recording: Recording) -> None:
    """A stream has the priority that was asked for; events are timed or not; what lives is given back."""
    own = driver()
    stream = own.create_stream(1, -5)
    start, end, untimed = (own.create_event(1, timed) for timed in (True, True, False))
    assert own.record_event(start, 1, stream) == own.record_event(end, 1, stream) == 0
    assert own.wait_event(1, stream, end) == 0 and own.synchronize_event(end, 1) == 0
    assert own.event_done(end, 1) is True
    recording.set_busy()
    own.record_event(end, 1, stream)
    assert own.event_done(end, 1) is False
    own.synchronize(1, stream)
    assert 0 < own.elapsed(start, end, 1) < 1
    assert own.record_event(untimed, 1, stream) == 0
    with pytest.raises(LaunchError, match="the time between two events"):
        own.elapsed(start, untimed, 1)
    with recording.failing("cuEventQuery", 700), pytest.raises(LaunchError, match="are lost to this process"):
        own.event_done(end, 1)
    with recording.failing("cuStreamCreateWithPriority", 2), pytest.raises(LaunchError, match="making a stream"):
        own.create_stream(0, 0)
    with recording.failing("cuEventCreate", 2), pytest.raises(LaunchError, match="making an event"):
        own.create_event(0, False)
    for event in (start, end, untimed):
        own.destroy_event(event, 1)
    own.destroy_stream(stream, 1)
    with recording.failing("cuStreamDestroy", 700), recording.failing("cuEventDestroy", 700):
        own.destroy_stream(own.create_stream(0, 0), 0)
        own.destroy_event(own.create_event(0, False), 0)


def test_streams_in_dlpacks_numbering(recording: Recording) -> None:
    """CTX-09: 0, which the standard forbids for CUDA, is its 1; the per-thread stream is 2, others are their handles."""
    assert [dlpack_stream(stream) for stream in (0, 1, 2, 12345)] == [1, 1, 2, 12345]
    assert driver().dlpack_stream(driver().current_stream(0)) == 1


def test_capture_of_another_stream(recording: Recording) -> None:
    """SCR-08: a captured stream is known as one, and the legacy stream as unusable beside one that waits for it."""
    from cuda.bindings import driver as cuda

    own = driver()
    own.allocate(8, 8, 0, None)
    with context.current(0):
        _, blocking = cuda.cuStreamCreate(0)
        assert not own.capturing(0, int(blocking)) and not own.capturing(0, 0)
        cuda.cuStreamBeginCapture(blocking, cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
        assert own.capturing(0, int(blocking)) and own.capturing(0, 0) and not own.capturing(1, 0)
        cuda.cuStreamEndCapture(blocking)
        assert not own.capturing(0, 0)
    with recording.failing("cuStreamIsCapturing", 400), pytest.raises(LaunchError, match="state of stream 0x0"):
        own.capturing(0, 0)


# ---- the default stream ----


def test_the_default_stream(recording: Recording, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches that name no stream go to the legacy one, or by an option or the variable to the thread's own."""
    kernel, x = podium.kernel(ADD), podium.asarray([1])
    kernel[1, 1](x, 1)
    assert recording.last().stream == 0
    for stream in (0, 2):
        name = {0: "legacy", 2: "per-thread"}[stream]
        with podium.use("nvidia", default_stream=name) as own:
            for _ in range(2):
                kernel[1, 1](x.ptr, 1)
                assert recording.last().stream == stream == own.current_stream(0)
            if level == "generated":
                assert kernel.level == "generated"
    monkeypatch.setenv("PODIUM_NVIDIA_STREAM", "per-thread")
    assert NvidiaDriver().current_stream(0) == 2
    monkeypatch.setenv("PODIUM_NVIDIA_STREAM", "both")
    with pytest.raises(SettingError, match="legacy or per-thread"):
        NvidiaDriver()
    with pytest.raises(ValueError, match="'legacy' or 'per-thread'"):
        NvidiaDriver(default_stream="none")


def test_stream_0_is_the_legacy_one_whatever_cuda_python_takes_it_for(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cuda-python's own variable makes its stream 0 another one; then the handle is given that never is."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "interpreted")
    kernel, x = podium.kernel(ADD), podium.asarray([1])
    kernel[1, 1](x, 1)
    assert recording.last().stream == 0
    monkeypatch.setenv("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", "1")
    launch._cuda.cache_clear()
    kernel[1, 1](x, 1)
    assert recording.last().stream == 1


# ---- statuses and versions ----


def test_statuses_say_what_to_do(recording: Recording) -> None:
    """LIF-08, LIF-09: each status has the driver's name and text, and, where it is known, the next step."""
    assert driver().describe_status(0) == ("CUDA_SUCCESS", "no error")
    assert driver().describe_status(400)[0] == "CUDA_ERROR_INVALID_HANDLE"
    for lost in (700, 716, 719):
        name, text = driver().describe_status(lost)
        assert name.startswith("CUDA_ERROR_") and "are lost to this process" in text
    assert driver().describe_status(123456)[0] == "CUDA_ERROR_123456"


def test_a_call_that_fails_for_an_earlier_launch_says_how_to_find_it(recording: Recording) -> None:
    """LIF-08: not where debugging has found it, nor where the status is the call's own."""
    podium.kernel(ADD)[3, 1](podium.asarray([1]), 1)
    error = status.launch_error(700, "copying 8 bytes", 0)
    assert "PODIUM_DEBUG=1 finds out which" in str(error) and "add grid (3, 1, 1)" in error.recent[-1]
    refused = load_error(700, "", podium.kernel(ADD).compile(), "add", 0)
    assert "DEBUG=1" in str(refused) and "add grid (3, 1, 1)" in str(refused)
    own = status.launch_error(400, "copying 8 bytes", 0)
    with podium.debugging():
        found = status.launch_error(700, "copying 8 bytes", 0)
    assert own.recent == () and found.recent == error.recent
    assert "DEBUG" not in f"{own} {found}"


def test_the_versions_are_known(recording: Recording, tmp_path: Path) -> None:
    """The driver's own version comes from the kernel's file, where there is one, with the CUDA version it speaks."""
    file = tmp_path / "version"
    file.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 UTC 2025\n")
    assert status.driver_version(file) == "580.95.05 (CUDA 13.0)"
    assert status.driver_version(tmp_path / "none") == "CUDA 13.0"
    assert status.spell_version(12080) == "12.8"
    assert "CUDA 13.0" in versions.versions()["driver"]
    assert driver().versions() == versions.versions()
