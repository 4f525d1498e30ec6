"""Streams as plain integers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium._arguments import describe
from podium._limits import usable_device
from podium.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["device_for", "stream_handle"]


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


def _checked(handle: int) -> int:
    if not 0 <= handle < 1 << 64:
        raise ArgumentValueError(
            f"A stream handle has 64 bits and no sign, not {describe(handle)}",
            argument="stream",
            value=describe(handle),
        )
    return handle
