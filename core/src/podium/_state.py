"""The few words of process state that generated C reads and writes: is anybody watching launches, and the last ones.

The layout is that of ``struct podium_state`` in ``podium_launch.h``. All access is under the interpreter lock.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from struct import Struct

from podium import _record

__all__ = [
    "ATTENDED",
    "CAPTURES",
    "DEBUG",
    "FORKED",
    "HOOKS",
    "RECENT_SIZE",
    "RecentLaunch",
    "address",
    "attend",
    "attended",
    "choose",
    "forked_from",
    "launches_of",
    "new_id",
    "recent_launches",
    "record",
    "suspicion",
    "used",
    "words",
]

RECENT_SIZE = 64
_SHOWN = 8  # of them, in the message of an error

HOOKS, DEBUG, FORKED, CAPTURES = 1, 2, 4, 8
"""Reasons to take a launch out of the fast path: bits of the word that it looks at."""


class _Launch(ctypes.Structure):
    _fields_ = [
        ("kernel", ctypes.c_uint64),
        ("stream", ctypes.c_uint64),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("device", ctypes.c_int64),
    ]


class _State(ctypes.Structure):
    _fields_ = [
        ("attended", ctypes.c_uint64),
        ("choices", ctypes.c_uint64),
        ("used", ctypes.c_uint64),
        ("launches", ctypes.c_uint64),
        ("recent", _Launch * RECENT_SIZE),
        ("turn", ctypes.c_uint64),
        ("alone", ctypes.c_uint64),
    ]


_state = _State()
_bytes = memoryview(_state).cast("B")
words = _bytes.cast("Q")
"""The state as words: in a launch, a member of a structure takes as long as all else that is done with it."""

ATTENDED = _State.attended.offset // 8
"""Where among the words are the reasons that are on."""

_CHOICES, _USED, _LAUNCHES = (getattr(_State, name).offset // 8 for name in ("choices", "used", "launches"))

_LAUNCH, _RECENT = Struct("=QQ24sq"), _State.recent.offset
_put = _LAUNCH.pack_into
_PLACES = tuple(range(_RECENT, _RECENT + RECENT_SIZE * _LAUNCH.size, _LAUNCH.size))

ctypes.pythonapi.Py_IncRef(ctypes.py_object(_state))  # C reads it until the process ends, longer than this module lives
_ids = itertools.count(1)
_launched: dict[int, tuple[str, str]] = {}  # by number: the kernel and the backend


@_record.record(frozen=True)
class RecentLaunch:
    """One of the last launches of the process, in any thread; `number` counts from 0."""

    number: int
    kernel: str
    backend: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    device: int
    stream: int

    def __str__(self) -> str:
        where = f"on {self.backend} device {self.device} stream {self.stream:#x}"
        return f"#{self.number} {self.kernel} grid {self.grid} block {self.block} {where}"


def address() -> int:
    """Return where the state is, for generated C."""
    return ctypes.addressof(_state)


def new_id(kernel: str, backend: str) -> int:
    """Give a kernel on a backend the number by which the record of launches knows it."""
    number = next(_ids)
    _launched[number] = kernel, backend
    return number


def attend(reason: int, wanted: bool) -> None:
    """Switch one reason to take launches out of the fast path on or off."""
    _state.attended = _state.attended | reason if wanted else _state.attended & ~reason


def attended() -> int:
    """Return the reasons that are on."""
    return int(_state.attended)


def choose(used: bool, astray: bool) -> None:
    """Note that another driver may be the active one, and whether there has been a `use`: then threads may differ.

    Where a block is `astray`, only Python knows whether it holds.
    """
    words[_USED] = used | astray << 1
    words[_CHOICES] += 1


def record(kernel: int, sizes: bytes, device: int, stream: int) -> None:
    """Note a launch; the sizes are those of `LaunchConfig`."""
    launches = words[_LAUNCHES]
    _put(_bytes, _PLACES[launches % RECENT_SIZE], kernel, stream, sizes, device)
    words[_LAUNCHES] = launches + 1


def recent_launches() -> list[RecentLaunch]:
    """Return the last launches of this process, oldest first."""
    total = int(_state.launches)
    return [
        RecentLaunch(
            number,
            *_launched.get(slot.kernel, ("?", "?")),
            grid=tuple(slot.grid),
            block=tuple(slot.block),
            device=slot.device,
            stream=slot.stream,
        )
        for number in range(max(0, total - RECENT_SIZE), total)
        for slot in [_state.recent[number % RECENT_SIZE]]
    ]


def launches_of(backend: str) -> list[str]:
    """Return the last launches of a backend, as errors list them."""
    return [str(each) for each in recent_launches() if each.backend == backend][-_SHOWN:]


def suspicion(launches: list[str]) -> str:
    """Say of launches that one of them may be at fault, and how to find out; empty while debugging, which finds out."""
    if not launches or attended() & DEBUG:
        return ""
    return (
        "\nIf the device runs asynchronously, an earlier launch may be at fault; PODIUM_DEBUG=1 finds out which. The "
        "last launches:\n  " + "\n  ".join(launches)
    )


_unsafe: dict[str, int] = {}


def used(backend: str) -> None:
    """Note that a driver which does not survive a fork was used in this process."""
    _unsafe.setdefault(backend, os.getpid())


def forked_from(backend: str) -> int | None:
    """Return the process that used the backend before this one was forked from it; None if all is well."""
    process = _unsafe.get(backend)
    return process if process is not None and process != os.getpid() else None


if hasattr(os, "register_at_fork"):
    # the fast path of a child must not use handles of its parent: it asks the slow path, which asks forked_from
    os.register_at_fork(after_in_child=lambda: attend(FORKED, bool(_unsafe)))
