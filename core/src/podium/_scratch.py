"""Scratch memory: what a compiler asked for beside the arguments, allocated anew for each launch.

The allocator is a function of size, alignment and stream that returns a buffer: an int address, or an object with
``ptr`` or ``data_ptr()``. It stays referenced until the launch has been issued. Without one, the driver allocates.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

from podium.errors import ScratchError

__all__ = ["Allocator", "allocate", "set_allocator", "use_allocator"]

Allocator = Callable[[int, int, int], Any]

_default: Allocator | None = None
_scoped: contextvars.ContextVar[Allocator | None] = contextvars.ContextVar("podium_allocator", default=None)


def set_allocator(allocator: Allocator | None) -> None:
    """Set the allocator of scratch memory for the whole process; None gives it back to the driver.

    For applications. A library uses `use_allocator`, which nobody else notices.
    """
    global _default
    _default = _check(allocator)


@contextlib.contextmanager
def use_allocator(allocator: Allocator) -> Iterator[None]:
    """Use an allocator for the launches inside the ``with`` block, in this thread or task only."""
    token = _scoped.set(_check(allocator))
    try:
        yield
    finally:
        _scoped.reset(token)


def _check(allocator: Allocator | None) -> Allocator | None:
    if allocator is not None and not callable(allocator):
        raise TypeError(f"An allocator is a function of size, alignment and stream, not {allocator!r}")
    return allocator


def allocate(kernel: str, size: int, alignment: int, stream: int, driver_allocate: Allocator) -> tuple[int, object]:
    """Allocate scratch memory; return its address and the object that owns it. Raises `ScratchError`."""
    allocator = _scoped.get() or _default or driver_allocate
    buffer = allocator(size, alignment, stream)
    address: Any = buffer if isinstance(buffer, int) else getattr(buffer, "ptr", None)
    if address is None and callable(getattr(buffer, "data_ptr", None)):
        address = buffer.data_ptr()
    problem = None
    if not isinstance(address, int) or isinstance(address, bool) or not 0 <= address < 1 << 64:
        problem = f"returned {type(buffer).__name__}, which is no address and has neither ptr nor data_ptr()"
    elif address == 0:
        problem = "returned a null pointer"
    elif address % alignment:
        problem = f"returned {address:#x}, which is not aligned to {alignment}"
    if problem is not None:
        raise ScratchError(
            f"{kernel} needs {size} bytes of scratch memory aligned to {alignment}, but the allocator {problem}",
            kernel=kernel,
            size=size,
            alignment=alignment,
        )
    return address, buffer
