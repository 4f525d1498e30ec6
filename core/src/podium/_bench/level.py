"""The launcher level of kernels, pinned for a while."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["pinned_level"]

_VARIABLE = "PODIUM_LAUNCHER"


@contextmanager
def pinned_level(level: str) -> Iterator[None]:
    """Pin the level of the launchers that are made inside: "interpreted" or "generated"."""
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = level
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
