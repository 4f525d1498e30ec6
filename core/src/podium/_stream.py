"""Streams as plain integers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from podium._arguments import describe
from podium._limits import usable_device
from podium.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["device_for", "let_wait", "stream_handle"]


def stream_handle(stream: Any, driver: Driver) -> int | None:
    """Return the handle of a driver's stream: None stays None, an int is one, others speak ``__cuda_stream__``.

    The protocol: the method, or attribute, gives a pair of its version, 0, and the handle.
    Raises `ArgumentTypeError` or `ArgumentValueError`.
    """
    if stream is None:
        return None
    if isinstance(stream, int) and not isinstance(stream, bool):
        return _checked(stream)
    if hasattr(type(stream), "_podium_stream") and stream.driver.name != driver.name:
        raise ArgumentValueError(
            f"{stream!r} is of another backend than {driver.name!r}; make a stream of that: podium.Stream(driver=...)",
            argument="stream",
            value=repr(stream),
        )
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is None:
        raise ArgumentTypeError(
            f"A stream is None, an integer handle, or an object with __cuda_stream__, not {describe(stream)}",
            argument="stream",
            value=describe(stream),
        )
    pair = protocol() if callable(protocol) else protocol
    if not isinstance(pair, tuple) or len(pair) != 2 or not all(isinstance(each, int) for each in pair):
        raise ArgumentTypeError(
            f"__cuda_stream__ of {describe(stream)} must give a version and a handle, not {describe(pair)}",
            argument="stream",
            value=describe(stream),
        )
    version, handle = pair
    if version != 0:
        raise ArgumentValueError(
            f"{describe(stream)} speaks version {version} of __cuda_stream__; podium speaks version 0",
            argument="stream",
            value=describe(stream),
        )
    return _checked(handle)


def device_for(taker: str, driver: Driver, device: int | None, stream: Any) -> int:
    """Return the index of the device that was given, or else of a podium stream, or else of the current device.

    Raises `LaunchConfigError` for a device that there is not, `ArgumentValueError` for a podium stream of another
    device or backend; other streams do not tell whose they are.
    """
    own: int | None = stream.device if hasattr(type(stream), "_podium_stream") else None
    if own is not None:
        stream_handle(stream, driver)
    index = usable_device(taker, driver, own if device is None else device).index
    if own is not None and own != index:
        raise ArgumentValueError(
            f"{taker}: {stream!r} is of another device than {index}; leave out the device, or take a stream of that",
            argument="stream",
            value=repr(stream),
        )
    return index


def let_wait(kernel: str, driver: Driver, device: int, stream: int | None, others: Iterable[tuple[int, int]]) -> None:
    """Let the stream of a launch wait for the work that is in other streams, each given with its device.

    A device of -1 is the launch's, or the current one; no stream is the driver's default. A stream that is captured
    waits for nothing: its work comes when the graph is replayed. Raises `LaunchError`.
    """
    device = driver.current_device() if device < 0 else device
    stream = driver.current_stream(device) if stream is None else stream
    for place, other in dict.fromkeys(others):
        if driver.dlpack_stream(other) == driver.dlpack_stream(stream) or driver.capturing(device, stream):
            continue
        status = _wait_for(driver, device, stream, device if place < 0 else place, other)
        if status:
            from podium._status import status_error

            raise status_error(driver, status, kernel, device, (0, 0, 0), (0, 0, 0), other)


def _wait_for(driver: Driver, device: int, stream: int, place: int, other: int) -> int:
    if "events" not in driver.features:
        return driver.synchronize(place, other)
    event = driver.create_event(place, False)
    try:
        return driver.record_event(event, place, other) or driver.wait_event(device, stream, event)
    finally:
        driver.destroy_event(event, place)


def _checked(handle: int) -> int:
    if not 0 <= handle < 1 << 64:
        raise ArgumentValueError(
            f"A stream handle has 64 bits and no sign, not {describe(handle)}",
            argument="stream",
            value=describe(handle),
        )
    return handle
