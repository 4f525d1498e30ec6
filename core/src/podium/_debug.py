"""The debug switch: synchronise after each launch, name the kernel at fault, check the element types of arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from podium import _settings, _state

__all__ = ["debugging", "enabled", "set_debug"]


def enabled() -> bool:
    """Tell whether debugging is on."""
    return bool(_state.attended() & _state.DEBUG)


def set_debug(on: bool) -> None:
    """Switch debugging on or off for the whole process; PODIUM_DEBUG=1 starts with it on."""
    _state.attend(_state.DEBUG, on)


@contextlib.contextmanager
def debugging() -> Iterator[None]:
    """Debug the launches inside the ``with`` block, of all threads; the state before comes back at its end."""
    before = enabled()
    set_debug(True)
    try:
        yield
    finally:
        set_debug(before)


set_debug(_settings.debug())
