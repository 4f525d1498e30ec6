"""A fork waits for imports that other threads are making for podium.

A child has the locks of modules, but not the thread that holds them: it would wait for ever where it needs a module
that was being imported at the fork. podium imports most modules when they are first needed, so any first call may be in
the middle of that.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident

TYPE_CHECKING = False  # this comes with `import podium`
if TYPE_CHECKING:
    from types import FrameType

__all__ = ["FORK_PATIENCE", "wait_for_imports", "watch_forks"]

FORK_PATIENCE = 10.0
"""Seconds that a fork waits for imports: a child forked from the middle cannot finish them."""

_PAUSE = 0.001  # seconds
_MACHINERY = "<frozen importlib"


def watch_forks() -> None:
    """Have every fork of this process wait; where none can be made, do nothing."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=wait_for_imports)


def wait_for_imports() -> None:
    """Wait until no other thread is importing for podium, for `FORK_PATIENCE` at most."""
    me = get_ident()
    frames = sys._current_frames()
    mine = frames.pop(me)
    if not any(map(_runs_podium, frames.values())) or _imports(mine):
        return  # nobody could be in the middle, or one may wait for a module of this thread's
    deadline = time.monotonic() + FORK_PATIENCE
    pause = 0.0
    # Who has just been given the interpreter lock keeps it for long enough to fork.
    while time.monotonic() < deadline:
        time.sleep(pause)
        if not any(_imports(frame) for thread, frame in sys._current_frames().items() if thread != me):
            return
        pause = _PAUSE


def _imports(frame: FrameType | None) -> bool:
    """Tell whether a thread is importing something because podium needs it."""
    inside = False
    while frame is not None:
        if inside and _is_podium(frame):
            return True
        inside = inside or frame.f_code.co_filename.startswith(_MACHINERY)
        frame = frame.f_back
    return False


def _runs_podium(frame: FrameType | None) -> bool:
    while frame is not None:
        if _is_podium(frame):
            return True
        frame = frame.f_back
    return False


def _is_podium(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__")
    return name == "podium" or (isinstance(name, str) and name.startswith(("podium.", "podium_")))
