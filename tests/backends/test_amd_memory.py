"""Memory, streams, events and devices of the AMD backend, on the stand-in of each version of HIP."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from typing import TYPE_CHECKING

import pytest
from recording.hip.isolation import STAND_INS
from recording.hip.machine import StandIn

import podium
from podium.errors import (
    ArgumentValueError,
    BackendError,
    ForkedProcessError,
    LaunchError,
    OutOfResourcesError,
    SettingError,
)

pytest.importorskip("podium_amd", reason="podium-amd is not installed")
pytest.importorskip("rocm.bindings.hip", reason="hip-python is not installed")

if TYPE_CHECKING:
    from podium_amd.driver import AmdDriver


@pytest.fixture(params=STAND_INS)
def hip_machine(request: pytest.FixtureRequest) -> str:
    """The stand-ins alone: a modelled device runs no copies."""
    name: str = request.param
    return name


def driver() -> AmdDriver:
    """Return the driver, which the fixture `hip` has made the one to use."""
    from podium_amd.driver import AmdDriver

    found = podium.driver.resolve()
    assert isinstance(found, AmdDriver)
    return found


def test_memory_of_each_kind(hip: StandIn) -> None:
    """For any stream, in the order of one, or pinned: it is aligned as asked, and freed in the way that it was made."""
    counted = hip.recording
    for alignment in (1, 256, 4096, 1 << 20):
        for buffer in (
            driver().allocate(100, alignment, 0, None),
            driver().allocate(0, alignment, 1, 0),
            driver().allocate_pinned(100, alignment, 0),
        ):
            assert buffer.ptr > 0 and buffer.ptr % alignment == 0
    del buffer
    calls = counted.calls()
    ordered = 4 if hip.major > 5 else 0  # in HIP 5 the device says that it has no pools
    assert calls["hipMalloc"] == calls["hipFree"] == 8 - ordered
    assert calls.get("hipMallocAsync", 0) == calls.get("hipFreeAsync", 0) == ordered
    assert calls["hipHostMalloc"] == calls["hipHostFree"] == 4
    with pytest.raises(ValueError, match="power of two"):
        driver().allocate(1, 3, 0, None)
    gc.collect()
    assert counted.counters()["allocations"] == 0 and driver().current_device() == 0


def test_what_cannot_be_given_back_leaves_no_error(hip: StandIn) -> None:
    """ERR-01: nobody is told when an object cannot be freed, so HIP keeps no error of it for others to find."""
    driver = podium.driver.get("amd")
    for entry, make in (
        ("hipFree", lambda: driver.allocate(64, 64, 0, None)),
        ("hipHostFree", lambda: driver.allocate_pinned(64, 64, 0)),
        ("hipStreamDestroy", podium.Stream),
        ("hipEventDestroy", lambda: podium.Stream().record()),
    ):
        made = make()
        with hip.recording.failing(entry, 719):
            del made
            gc.collect()
        assert hip.runtime.hipPeekAtLastError() == 0, entry


def test_too_much_memory(hip: StandIn) -> None:
    """What there is not is an error with what there is; nothing of it stays, and HIP keeps no error of it."""
    hip.recording.set_memory(1 << 20)
    for stream in (None, 0):
        with pytest.raises(OutOfResourcesError) as caught:
            driver().allocate(1 << 21, 256, 0, stream)
        assert (caught.value.required, 0 < caught.value.limit <= 1 << 20) == (1 << 21, True)
        assert hip.runtime.hipPeekAtLastError() == 0
    hip.recording.fail("hipMalloc", 719)
    with pytest.raises(LaunchError, match="allocating 8 bytes: hipErrorLaunchFailure"):
        driver().allocate(8, 256, 0, None)
    assert hip.runtime.hipPeekAtLastError() == 0


def test_copies_go_in_every_direction(hip: StandIn) -> None:
    """A copy is done when it returns, after what is in its stream; an error of it says how much was to be copied."""
    x = podium.asarray([1.0, 2.0, 3.0])
    y = podium.empty(3, "fp32", device=1)
    y.copy_from(x)
    assert y.tolist() == [1.0, 2.0, 3.0]
    stream = podium.Stream()
    x.copy_from([4.0, 5.0, 6.0], stream=stream)
    assert x.tolist() == [4.0, 5.0, 6.0]
    hip.recording.fail("hipMemcpyAsync", 1)
    with pytest.raises(LaunchError, match="copying 12 bytes: hipErrorInvalidValue"):
        x.tolist()


def test_what_memory_an_address_is(hip: StandIn) -> None:
    """Memory of a device, pinned memory and the host's are told apart, by the numbers of each version of HIP."""
    place = ctypes.c_void_p()
    there, pinned = driver().allocate(64, 256, 1, None), driver().allocate_pinned(64, 64, 0)
    assert driver().pointer_device(there.ptr) == (10, 1)
    assert driver().pointer_device(there.ptr + 63) == (10, 1)
    assert driver().pointer_device(pinned.ptr) == (11, 0)
    assert driver().pointer_device(id(place)) == (1, 0)
    assert hip.runtime.hipPeekAtLastError() == 0
    assert hip.runtime.hipMallocManaged(ctypes.byref(place), 64, 1) == 0
    assert driver().pointer_device(place.value or 0) == (10, 0)


def test_peers_are_let_in_once(hip: StandIn) -> None:
    """ARG-12: access to a peer is enabled where it is first needed, on the device that needs it, and can be missing."""
    assert driver().can_access(0, 1) and driver().can_access(0, 1) and driver().can_access(1, 1)
    assert hip.recording.calls()["hipDeviceEnablePeerAccess"] == 1
    hip.recording.set_peer(1, 0, False)
    assert not driver().can_access(1, 0)
    assert driver().current_device() == 0


def test_streams_and_events(hip: StandIn) -> None:
    """Streams wait for no other, events tell when work has ended and how long it took; all of them are given back."""
    stream, other = podium.Stream(device=1, priority=-1), podium.Stream(device=1)
    start, end = stream.record(), stream.record()
    other.wait(start)
    hip.recording.set_busy()
    assert not end.done
    assert hip.runtime.hipPeekAtLastError() == 0  # that it is not ready is no error
    end.synchronize()
    assert end.done and start.elapsed(end) >= 0
    assert hip.recording.counters()["streams"] == 2
    del start, end, stream, other
    gc.collect()
    assert (hip.recording.counters()["streams"], hip.recording.counters()["events"]) == (0, 0)
    assert driver().current_device() == 0
    with pytest.raises(LaunchError, match="the time between two events"):
        driver().elapsed(0, 0, 0)


def test_a_stream_tells_its_device(hip: StandIn) -> None:
    """CTX-06: since HIP 6 a stream of another device is refused by name; before, nobody can tell."""
    there, x = podium.Stream(device=1), podium.empty(4)
    known = driver().stream_device(there.handle)
    assert known == (1 if hasattr(hip.runtime.library, "hipStreamGetDevice") else None)
    with pytest.raises(ArgumentValueError, match="is of device 1, and not of device 0"):
        x.tobytes(stream=there)
    if known is not None:
        with pytest.raises(ArgumentValueError, match=f"stream {there.handle:#x} is of device 1, and not of device 0"):
            podium.synchronize(0, there.handle)
    assert [driver().stream_device(each) for each in (0, 1, 2)] == [None] * 3
    assert hip.runtime.hipPeekAtLastError() == 0


def test_devices_are_what_hip_says(hip: StandIn) -> None:
    """Name, full architecture, threads of a warp and limits come from HIP, in whatever layout a version has them."""
    first, second = driver().devices()
    assert (first.index, first.target.arch, first.target.warp_size) == (0, "gfx90a:sramecc+:xnack-", 64)
    assert first.name and first.max_threads == 1024 and first.max_shared == 65536 and first.max_block[2] >= 64
    assert first.max_grid[0] == (1 << 31) - 1 and second.index == 1
    assert driver().versions()["driver"].startswith(f"HIP {hip.major}.")
    hip.recording.set_arch("gfx1100", 1)
    from podium_amd import device

    for known in (device.target, device.attribute):
        known.cache_clear()
    assert device.devices()[1].target == podium.Target("amd", "gfx1100", 32)


def test_no_device_at_all(hip: StandIn) -> None:
    """ACT-10: what detection cannot see the first use says: HIP finds no device; a later one may succeed."""
    hip.recording.set_device_count(0)
    with pytest.raises(BackendError, match=r"finds no device: hipError\w+: .*; no GPU is visible.*look at HIP_VISIBLE"):
        driver().devices()
    hip.recording.set_device_count(1)
    assert len(driver().devices()) == 1


def test_the_current_device_is_that_of_the_thread(hip: StandIn) -> None:
    """CTX-03: what a thread has made current is where launches without arrays go, and other threads have their own."""
    assert driver().current_device() == 0
    assert hip.runtime.hipSetDevice(1) == 0
    assert driver().current_device() == 1 and driver().default_target().arch.startswith("gfx90a")
    told: list[int] = []
    thread = threading.Thread(target=lambda: told.append(driver().current_device()))
    thread.start()
    thread.join()
    assert told == [0]


def test_a_forked_child_cannot_use_hip(hip: StandIn) -> None:
    """FRK-01: a child of a process that used HIP is refused by name, before HIP is called."""
    driver().devices()
    child = os.fork()
    if not child:
        try:
            podium.empty(4)
        except ForkedProcessError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_the_default_stream_is_a_choice(hip: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable and the option name the stream of launches that name none; another word is an error."""
    from podium_amd.driver import AmdDriver

    assert AmdDriver(default_stream="per-thread").current_stream(0) == 2
    monkeypatch.setenv("PODIUM_AMD_STREAM", "per-thread")
    assert AmdDriver().current_stream(0) == 2
    monkeypatch.setenv("PODIUM_AMD_STREAM", "mine")
    with pytest.raises(SettingError, match="legacy or per-thread"):
        AmdDriver()
    with pytest.raises(ValueError, match="'legacy' or 'per-thread'"):
        AmdDriver(default_stream="mine")


def test_every_status_has_a_name(hip: StandIn) -> None:
    """ERR-02: a status has HIP's name and text, with what to do where that is known; an unknown one has its number."""
    name, text = driver().describe_status(209)
    assert name == "hipErrorNoBinaryForGpu" and text
    assert "no GPU is visible" in driver().describe_status(100)[1]
    name, text = driver().describe_status(4711)
    assert name and text
