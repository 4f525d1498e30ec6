"""Streams and events of podium's own: handles that are given back, order, statuses, and what is refused."""

from __future__ import annotations

import copy
import gc
import os
import pickle
from dataclasses import replace
from types import SimpleNamespace

import pytest

import podium
from podium.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ForkedProcessError,
    LaunchConfigError,
    LaunchError,
    UnsupportedError,
)
from podium.testing import FakeDriver

SOURCE = "__global__ void k(float* x) {}"


def test_handles_are_given_back_with_their_objects(fake: FakeDriver) -> None:
    """A stream and an event live as long as their objects, on the device that they were made for."""
    stream, event = podium.Stream(1, -3), podium.Event(1)
    assert fake.streams == {stream.handle: -3} and set(fake.events) == {event.handle}
    assert (stream.device, stream.priority, event.device, event.timed) == (1, -3, 1, True)
    assert repr(stream) == f"<podium stream {stream.handle:#x} on fake device 1>"
    assert repr(event) == f"<podium event {event.handle:#x} on fake device 1>"
    del stream, event
    gc.collect()
    assert fake.streams == {} and fake.events == {}


def test_launches_take_a_stream(fake: FakeDriver, level: str) -> None:
    """CTX-08: a stream is taken by launches, at both levels, and by whatever else takes one."""
    kernel, stream = podium.kernel(SOURCE), podium.Stream()
    for _ in range(3):
        kernel[1, 1](None, stream=stream)
    assert [launch.stream for launch in fake.launches] == [stream.handle] * 3 and kernel.level == level
    podium.synchronize(stream=stream)
    podium.asarray([1.0]).copy_from([2.0], stream=stream)


def test_a_stream_of_another_backend_is_refused(fake: FakeDriver, level: str) -> None:
    """CTX-08: its handle would be a stranger's; one of the same backend with other options will do, at both levels."""

    class Stranger(FakeDriver):
        name = "stranger"

    kernel, array = podium.kernel(SOURCE), podium.asarray([1.0])
    own, other, foreign = podium.Stream(), podium.Stream(driver=FakeDriver()), podium.Stream(driver=Stranger())
    for _ in range(2):  # from then on the generated launch reads streams itself
        kernel[1, 1](None)
    fake.launches.clear()
    for stream in (own, other, own, SimpleNamespace(__cuda_stream__=lambda: (0, 17)), own):
        kernel[1, 1](None, stream=stream)
    assert [launch.stream for launch in fake.launches] == [each.handle for each in (own, other, own)] + [17, own.handle]
    for take in (
        lambda: kernel[1, 1](None, stream=foreign),
        lambda: kernel.run(1, 1, 1, foreign, kernel.function, None),
        lambda: podium.synchronize(stream=foreign),
        lambda: podium.Event().record(foreign),
        lambda: array.copy_from([2.0], stream=foreign),
        lambda: array.tobytes(stream=foreign),
    ):
        with pytest.raises(
            ArgumentValueError, match="<podium stream .* on stranger device 0> is of another backend than"
        ):
            take()
    assert len(fake.launches) == 5 and kernel.level == level


def test_the_order_of_streams(fake: FakeDriver) -> None:
    """Events are recorded in the stream that is given, else in the driver's current one, and waited for in others."""
    first, second = podium.Stream(), podium.Stream()
    event = first.record()
    second.wait(event)
    event.record()
    event.record(17)
    event.record(SimpleNamespace(__cuda_stream__=(0, 18)))
    handle = event.handle
    assert fake.order == [
        ("record", handle, first.handle),
        ("wait", handle, second.handle),
        ("record", handle, 7000),
        ("record", handle, 17),
        ("record", handle, 18),
    ]
    assert first.record(timed=False).timed is False


def test_elapsed_waits_for_both(fake: FakeDriver) -> None:
    """The time is that between the two recordings, in seconds; a status of what was waited for is an error."""
    kernel, start, end = podium.kernel(SOURCE), podium.Event(), podium.Event()
    start.record()
    for _ in range(5):
        kernel[1, 1](None)
    end.record()
    assert start.elapsed(end) == pytest.approx(5e-9)
    fake.sync_status = 4
    with pytest.raises(LaunchError, match=r"Event\.synchronize: FAKE_ERROR_4"):
        start.elapsed(end)


def test_what_takes_no_time(fake: FakeDriver) -> None:
    """An event of another device, one that is not timed and one that was not recorded are told apart."""
    start, other = podium.Event(), podium.Event(1)
    start.record()
    other.record()
    with pytest.raises(ArgumentValueError, match="different devices"):
        start.elapsed(other)
    with pytest.raises(ArgumentValueError, match="was not recorded"):
        start.elapsed(podium.Event())
    untimed = podium.Event(timed=False)
    untimed.record()
    with pytest.raises(ArgumentValueError, match="timed=False"):
        untimed.elapsed(start)


def test_statuses_are_errors(fake: FakeDriver) -> None:
    """What the driver refuses is a LaunchError that says what was asked for, and of which device."""
    stream = podium.Stream(1)
    event = podium.Event(1)
    for ask, what in (
        (lambda: event.record(stream), "Event.record"),
        (lambda: stream.wait(event), "Stream.wait"),
    ):
        fake.next_status = 9
        with pytest.raises(LaunchError, match="FAKE_ERROR_9") as caught:
            ask()
        assert (caught.value.kernel, caught.value.device, caught.value.status) == (what, 1, 9)
    fake.sync_status = 3
    with pytest.raises(LaunchError, match="FAKE_ERROR_3"):
        stream.synchronize()


def test_an_event_that_was_not_recorded_is_done(fake: FakeDriver) -> None:
    """Nothing has to be waited for, and the driver is not asked."""
    event = podium.Event()
    fake.sync_status = 5
    assert event.done
    event.synchronize()
    assert fake.sync_status == 5
    with pytest.raises(LaunchError):
        podium.synchronize()


def test_what_is_no_event_or_device(fake: FakeDriver) -> None:
    """Other objects, events of other drivers and devices that are not there are refused by name."""
    stream = podium.Stream()
    other = podium.Event(driver=FakeDriver())
    for wrong in (None, 4, stream):
        with pytest.raises(ArgumentTypeError, match="A stream waits for an event, not for"):
            stream.wait(wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match=r"its own driver, and <podium event .* with driver=stream\.driver"):
        stream.wait(other)
    with pytest.raises(ArgumentTypeError):
        podium.Event().elapsed(stream)  # type: ignore[arg-type]
    for make in (podium.Stream, podium.Event):
        for device, shown in ((2, "2"), ("0", r"'0' \(str\)"), (1.0, r"1.0 \(float\)")):
            with pytest.raises(LaunchConfigError, match=f"there is no device {shown}; backend 'fake' has 2"):
                make(device)
    for priority in (None, "high", 0.0):
        with pytest.raises(ArgumentTypeError, match="Stream: priority is an integer, not"):
            podium.Stream(priority=priority)  # type: ignore[arg-type]
    with pytest.raises(ArgumentValueError, match="more than 32 bits"):
        podium.Stream(priority=1 << 31)


def test_handles_have_one_owner(fake: FakeDriver) -> None:
    """LIF-02: a copy, or a pickle in another process, would go on with a handle that is given back, or is nobody's."""
    for each in (podium.Stream(), podium.Event()):
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=r"<podium (stream|event) .* cannot be copied or pickled"):
                make(each)


def test_a_backend_without_them() -> None:
    """A driver that leaves the methods out refuses them with the backend's name and that of the feature."""
    from podium.backend import Driver

    methods = {
        "streams": ("create_stream",),
        "events": ("create_event",),
        "pinned": ("allocate_pinned",),
        "occupancy": ("occupancy", "suggested_block"),
    }
    body = {name: getattr(Driver, name) for names in methods.values() for name in names}
    lacking = type("Lacking", (FakeDriver,), {**body, "features": frozenset()})()
    kernel = podium.kernel(SOURCE)
    with podium.use(lacking):
        for feature, ask in (
            ("streams", podium.Stream),
            ("events", podium.Event),
            ("pinned", lambda: podium.empty(3, pinned=True)),
            ("occupancy", lambda: kernel.occupancy(1, 1)),
            ("occupancy", kernel.suggested_block),
        ):
            with pytest.raises(UnsupportedError, match=f"Backend 'fake' has no {feature}") as caught:
                ask()
            assert isinstance(caught.value, NotImplementedError)
    gc.collect()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork(fake: FakeDriver) -> None:
    """FRK-01: in a forked child streams, events and memory of the parent's driver are refused, and none is given back."""
    stream, event = podium.Stream(), podium.Event()
    event.record()
    asks = (stream.synchronize, stream.record, event.record, event.synchronize, podium.Stream, lambda: podium.empty(1))
    child = os.fork()
    if child == 0:
        refused = 0
        for ask in asks:
            try:
                ask()
            except ForkedProcessError:
                refused += 1
        handles = stream.handle, event.handle
        del stream, event, asks, ask
        gc.collect()
        kept = handles[0] in fake.streams and handles[1] in fake.events
        os._exit(refused if kept else 100)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(asks)
    stream.synchronize()


def test_what_is_known_of_a_kernel(fake: FakeDriver) -> None:
    """Attributes, occupancy and a suggested block come from the driver, after the checks of a launch."""
    kernel = podium.kernel(SOURCE)
    assert kernel.attributes() == {"max_threads": 1024, "registers": 32, "shared": 0, "local": 0}
    small = podium.kernel("__global__ void small_blocks(float* x) {}")
    assert small.attributes(1)["max_threads"] == 512 and small.suggested_block() == (512, 8)
    for shared, message in ((-1, "cannot be negative"), (0.5, "a number of bytes"), (1 << 64, "the limit is 100000")):
        with pytest.raises(LaunchConfigError, match=f"small_blocks: .*{message}"):
            small.suggested_block(shared=shared)  # type: ignore[arg-type]
    found = kernel.occupancy(10, 256, shared=20_000)
    assert (found.blocks_per_multiprocessor, found.max_active_blocks, found.max_active_clusters) == (5, 20, None)
    assert kernel.occupancy(8, 256, cluster=4, device=1).max_active_clusters == 8
    with pytest.raises(LaunchConfigError, match="an empty grid"):
        kernel.occupancy(0, 32)
    with pytest.raises(LaunchConfigError, match="k: .*-1"):
        kernel.occupancy(-1, 32)
    with pytest.raises(LaunchConfigError, match="limit is 512"):
        small.occupancy(1, 513)
    with pytest.raises(LaunchConfigError, match="no launch feature 'carveout'"):
        kernel.occupancy(1, 32, attributes={"carveout": 1})
    assert fake.launches == []


def test_failures_tell_versions_and_architectures(level: str) -> None:
    """LIF-09: where a driver knows versions, errors have them with the architecture of the device and of the binary."""

    class Versioned(FakeDriver):
        def versions(self) -> dict[str, str]:
            return {"driver": "580.95", "toolkit": "13.0"}

    driver = Versioned()
    kernel = podium.kernel(SOURCE)
    launch = kernel.binding(driver).get((1, 1))
    launch(None)
    driver.next_status = 7
    with pytest.raises(LaunchError) as caught:
        launch(None)
    about = "device 0 is fake device 0, fake:fake_1:32; the binary is for fake:fake_1:32; driver 580.95; toolkit 13.0"
    assert about in str(caught.value)
    assert (caught.value.binary, caught.value.versions) == ("fake:fake_1:32", dict(driver.versions()))
    with podium.use(driver), pytest.raises(podium.errors.LoadError) as refused:
        podium.kernel(replace(kernel.compile(), code=b"broken")).load()
    assert about in str(refused.value) and refused.value.versions == {"driver": "580.95", "toolkit": "13.0"}
    driver.sync_status = 2
    with pytest.raises(LaunchError, match=r"synchronize: .*\n.*driver 580.95"):
        podium.synchronize(driver=driver)
