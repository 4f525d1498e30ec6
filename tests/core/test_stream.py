"""The stream of a launch: the explicit one, else that of the arrays' library, else the driver's own."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fake_launching import ExchangeArray, exchange, exchange_type

import podium
from podium._stream import stream_handle
from podium.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, LaunchError
from podium.testing import FakeArray, FakeDriver


@pytest.fixture
def launch(fake: FakeDriver, level: str) -> Any:
    """A launch with three pointers, on its way at the level from the start."""
    launch = podium.kernel("__global__ void k(float* x, float* y, float* z) {}")[1, 1]
    launch(None, None, None)
    return launch


@pytest.fixture(autouse=True)
def library() -> Iterator[None]:
    exchange().set_stream(0, 900)
    yield
    exchange().set_stream(0, 0)


def stream_of(fake: FakeDriver) -> int:
    return fake.launches[-1].stream


def test_the_stream_of_the_library_is_asked_for_at_each_launch(fake: FakeDriver, launch: Any) -> None:
    """CTX-08: the current stream of the arrays' own library is used, and followed when it changes."""
    array = exchange_type()()
    launch(array, None, None)
    assert stream_of(fake) == 900
    exchange().set_stream(0, 2**62)
    launch(array, None, None)
    assert stream_of(fake) == 2**62
    launch(exchange_type()(device=1), None, None)
    assert stream_of(fake) == 2**62 + 1


def test_an_explicit_stream_wins(fake: FakeDriver, launch: Any) -> None:
    """CTX-08: stream= beats what the arrays say, and 0 is a stream as any other."""
    array = exchange_type()()
    for stream in (5, 0, SimpleNamespace(__cuda_stream__=lambda: (0, 6))):
        launch(array, array, None, stream=stream)
        assert stream_of(fake) == (6 if not isinstance(stream, int) else stream)


def test_the_first_array_that_has_a_stream_decides(fake: FakeDriver, launch: Any) -> None:
    """CTX-08: arrays whose library tells none are passed over; the order of the arguments decides among the others."""
    Streams, Silent = exchange_type(), exchange_type(1)
    launch(FakeArray(64), Silent(), Streams())
    assert stream_of(fake) == 900
    launch(FakeArray(64), Silent(), None)
    assert stream_of(fake) == 7000
    launch(FakeArray(64, 1), None, None)
    assert stream_of(fake) == 7001


class Told(FakeArray):
    """An array with a stream of its own, told by the slow way of podium's own arrays."""

    stream = 4444

    def _podium_location(self) -> Any:
        from podium._arrays import ArrayLocation

        return ArrayLocation(self.address, 12, self.device, "fp32", True, False, self, self.stream)


def test_streams_of_several_protocols(fake: FakeDriver, launch: Any) -> None:
    """CTX-10: a stream that came with the array itself counts like one of a library, in the order of the arguments."""
    Streams = exchange_type()
    launch(Told(64), Streams(), None)
    assert stream_of(fake) == 4444
    launch(Streams(), Told(64), None)
    assert stream_of(fake) == 900
    launch(None, Told(64), None)
    assert stream_of(fake) == 4444


def test_a_stream_of_another_device_is_not_taken(fake: FakeDriver, launch: Any) -> None:
    """CTX-04: a stream belongs to a device: that of an array within reach, on another one, is passed over."""
    fake.peers = True
    launch(FakeArray(64, 1), Told(64, 0), None)
    assert (fake.launches[-1].device, stream_of(fake)) == (1, 7001)
    launch(FakeArray(64, 1), exchange_type()(device=0), Told(64, 1))
    assert (fake.launches[-1].device, stream_of(fake)) == (1, 4444)


def test_pinned_memory_decides_nothing(fake: FakeDriver, launch: Any) -> None:
    """CTX-04: host memory that the device reaches says neither the device of a launch nor its stream."""
    pinned = exchange_type()(device_type=3)
    for _ in range(2):
        launch(pinned, FakeArray(64, 1), None)
        assert (fake.launches[-1].device, stream_of(fake)) == (1, 7001)
        launch(pinned, exchange_type()(device=1), None)
        assert (fake.launches[-1].device, stream_of(fake)) == (1, 901)
        launch(pinned, None, None)
        assert (fake.launches[-1].device, stream_of(fake)) == (0, 7000)


@pytest.mark.parametrize("outcome", [1, 2])
def test_a_library_that_cannot_tell_its_stream(fake: FakeDriver, launch: Any, outcome: int) -> None:
    """CTX-08: a failing question leads to the next array's stream, then the driver's; no error is left behind."""
    exchange().set_stream(outcome, 900)
    array = exchange_type()()
    launch(array, None, None)
    assert stream_of(fake) == 7000
    launch(array, Told(64), None)
    assert stream_of(fake) == 4444


def test_hooks_and_records_see_the_stream_that_was_used(fake: FakeDriver, launch: Any) -> None:
    """CTX-08: what was launched on is shown: in events and in the record of launches."""
    seen: list[int] = []
    podium.hooks.enter.add(lambda event: seen.append(event.stream))
    launch(exchange_type()(), None, None)
    assert seen == [900] and podium.recent_launches()[-1].stream == 900


def test_the_exchange_array_of_the_host_has_no_stream() -> None:
    """A host array's library is not asked for a stream: kernels on the host have those of their driver."""
    from podium._arrays import locate

    array = exchange_type()(device_type=1)
    assert isinstance(array, ExchangeArray)
    found = locate(array, False, {1})
    assert found is not None and found.stream is None


def test_handles() -> None:
    """None stays None; integers of 64 bits are handles; everything else says what a stream is."""
    assert stream_handle(None, FakeDriver()) is None
    assert stream_handle(2**64 - 1, FakeDriver()) == 2**64 - 1
    for bad, kind in (
        (2**64, ArgumentValueError),
        (-1, ArgumentValueError),
        (False, ArgumentTypeError),
        ("1", ArgumentTypeError),
    ):
        with pytest.raises(kind) as caught:
            stream_handle(bad, FakeDriver())
        assert isinstance(caught.value, ArgumentError) and caught.value.argument == "stream"


def test_a_stream_of_another_device_is_an_error_that_names_both(fake: FakeDriver) -> None:
    """CTX-06: copies, events and waiting take streams of their own device only, however the stream is given."""
    x, own = podium.asarray([1]), podium.Stream(0)
    there = podium.Stream(1)
    event = podium.Event(0)
    uses = {
        "copy_from": lambda stream: x.copy_from([2], stream=stream),
        "tobytes": lambda stream: x.tobytes(stream=stream),
        "numpy": lambda stream: x.numpy(stream=stream),
        "empty": lambda stream: podium.empty(1, stream=stream, device=0),
        "synchronize": lambda stream: podium.synchronize(0, stream),
        "Event.record": event.record,
    }
    foreign = SimpleNamespace(__cuda_stream__=there.__cuda_stream__)
    for what, use in uses.items():
        use(own.handle)
        for stream in (there, there.handle, foreign):
            with pytest.raises(
                ArgumentValueError, match=rf"^{what}: .* is of device 1, and not of device 0\. Take"
            ) as caught:
                use(stream)
            assert caught.value.argument == "stream"


def test_waiting_for_a_stream_goes_to_its_device(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """CTX-06: a stream tells where it is waited for and where memory is taken in its order, also as an integer."""
    there, waited = podium.Stream(1), []
    monkeypatch.setattr(fake, "synchronize", lambda *where: waited.append(where) or 0)
    podium.synchronize(stream=there.handle)
    there.synchronize()
    assert waited == [(1, there.handle)] * 2
    assert podium.empty(1, stream=there.handle).device == 1


def test_the_error_of_a_launch_names_the_device_of_its_stream(fake: FakeDriver, launch: Any) -> None:
    """CTX-06: a driver that refuses a launch for its stream says what is invalid; podium says whose stream it is."""
    there = podium.Stream(1)
    fake.next_status = 1
    with pytest.raises(LaunchError, match=rf"\nStream {there.handle:#x} is of device 1: take one of device 0"):
        launch(None, None, None, stream=there.handle)
