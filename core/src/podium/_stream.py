"""Streams as plain integers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from podium._arguments import describe
from podium._limits import usable_device
from podium.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["check_stream", "device_for", "handle_on", "let_wait", "stream_handle"]


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
    """Return the index of the device that was given, or else of the stream, or else of the current device.

    Raises `LaunchConfigError` for a device that there is not, `ArgumentValueError` for a stream of another device or
    backend, as far as the driver tells whose it is.
    """
    own = _device_of(stream, stream_handle(stream, driver), driver)
    index = usable_device(taker, driver, own if device is None else device).index
    _check_device(taker, stream, own, index)
    return index


def handle_on(taker: str, driver: Driver, device: int, stream: Any) -> int | None:
    """Return the handle of a stream that is to be used on a device, as `stream_handle` does.

    Raises `ArgumentValueError` for a stream of another device, as far as the driver tells whose it is.
    """
    handle = stream_handle(stream, driver)
    _check_device(taker, stream, _device_of(stream, handle, driver), device)
    return handle


def check_stream(taker: str, driver: Driver, device: int, stream: int) -> None:
    """Raise `ArgumentValueError` for a stream of another device, as far as the driver tells whose it is."""
    _check_device(taker, stream, driver.stream_device(stream) if stream else None, device)


def _device_of(stream: Any, handle: int | None, driver: Driver) -> int | None:
    if hasattr(type(stream), "_podium_stream"):
        device: int = stream.device
        return device
    return driver.stream_device(handle) if handle else None


def _check_device(taker: str, stream: Any, own: int | None, device: int) -> None:
    if own is not None and own != device:
        is_own = hasattr(type(stream), "_podium_stream")
        name = repr(stream) if is_own else f"stream {stream:#x}" if isinstance(stream, int) else describe(stream)
        raise ArgumentValueError(
            f"{taker}: {name} is of device {own}, and not of device {device}. Take a stream of device {device}, which "
            f"may wait for an event of the other; to wait for the other, podium.synchronize(stream=...)",
            argument="stream",
            value=name,
        )


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
