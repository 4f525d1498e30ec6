"""Locks that a forked child does not inherit in a locked state."""

from __future__ import annotations

import contextlib
import os
import weakref
from _thread import RLock  # of `threading`, which choosing a driver does not need
from types import TracebackType

__all__ = ["ForkSafeLock"]

_locks: weakref.WeakSet[ForkSafeLock] = weakref.WeakSet()


class ForkSafeLock:
    """A re-entrant lock; in a forked child it is new and free, since the thread that held it is not there.

    What it protects must be usable at any moment of a change: assign complete objects, and assign them last.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(RuntimeError):  # this thread forked inside the block: the child's lock is a new one
            self._lock.release()


def _renew() -> None:
    for lock in list(_locks):
        lock._lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
