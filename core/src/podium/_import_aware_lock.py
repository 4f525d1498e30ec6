"""A lock that is safe to hold while importing, and across a fork."""

from __future__ import annotations

import os
import sys
import time
from _thread import RLock, get_ident  # of `threading`, which choosing a driver does not need
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

from podium import _imports_at_fork

__all__ = ["ImportAwareLock", "modules_being_imported"]


def modules_being_imported() -> frozenset[str]:
    """Return the names of the modules that the calling thread is importing right now.

    The script that was started is not one of them: nobody else waits for it.
    """
    names = set()
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            name = frame.f_globals.get("__name__")
            if isinstance(name, str) and is_half_imported(name):
                names.add(name)
        frame = frame.f_back  # type: ignore[assignment]
    return frozenset(names)


def is_half_imported(name: str) -> bool:
    """Tell whether a module is there, but has not run to its end yet."""
    return bool(getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False))


class ImportAwareLock:
    """A re-entrant lock whose holder may import modules.

    A thread that is itself importing something may hold up the holder, since each module has a lock of its own. Such a
    thread does not wait: it goes on without the lock. So what the lock guards must stay right when two threads work at
    it, and the lock only saves them from doing the work twice.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        _locks.add(self)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the lock for the body, or go on without it where waiting could last for ever."""
        lock = self._lock
        taken = lock.acquire(blocking=False) or (not modules_being_imported() and lock.acquire())
        try:
            yield
        finally:
            if taken:
                lock.release()

    def _renew(self) -> None:
        self._lock = RLock()

    def _acquire_before(self, deadline: float) -> bool:
        return self._lock.acquire(timeout=max(0.0, deadline - time.monotonic()))

    def _release(self) -> None:
        self._lock.release()


_locks: WeakSet[ImportAwareLock] = WeakSet()
_held_for_fork: dict[int, list[ImportAwareLock]] = {}


def _before_fork() -> None:
    deadline = time.monotonic() + (0.0 if modules_being_imported() else _imports_at_fork.FORK_PATIENCE)
    held = [lock for lock in list(_locks) if lock._acquire_before(deadline)]
    _held_for_fork[get_ident()] = held


def _after_fork_in_parent() -> None:
    for lock in _held_for_fork.pop(get_ident(), ()):
        lock._release()


def _after_fork_in_child() -> None:
    held = _held_for_fork.pop(get_ident(), [])
    _held_for_fork.clear()
    for lock in held:
        lock._release()
    for lock in list(_locks):
        if lock not in held:
            lock._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
