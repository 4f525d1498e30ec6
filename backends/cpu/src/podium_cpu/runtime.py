"""The runtime that runs kernels, as Python sees it: waiting for streams, and holding on to what they still need.

Its code is in the folder ``runtime``, and a part of every library of kernels; the first one that is loaded serves all.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
from collections import deque
from collections.abc import Iterable
from typing import Any

from podium.backend import ForkSafeLock, SharedLibrary, environment_flag
from podium.errors import LoadError, SettingError

from podium_cpu.processor import usable_processors

__all__ = [
    "NOT_READY",
    "SLICE",
    "Runtime",
    "default_stream",
    "detail",
    "keep_alive",
    "runtimes",
    "serve",
    "thread_count",
    "wait",
]

NOT_READY = -1  # PODIUM_CPU_NOT_READY: the time was up
SLICE = 100  # milliseconds after which a wait looks for signals, such as Ctrl-C
_SILENT_SECONDS = 3.0

_lock = ForkSafeLock()


def thread_count() -> int:
    """Return how many threads run the blocks of one launch: PODIUM_CPU_THREADS, or one for each processor."""
    text = os.environ.get("PODIUM_CPU_THREADS", "").strip()
    if not text:
        return usable_processors()
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 1024:
        raise SettingError("PODIUM_CPU_THREADS", text, "a number of threads from 1 to 1024")
    return int(text)


@functools.lru_cache(maxsize=1)
def default_stream() -> int:
    """Return the stream of launches that name none: 0, the program's own order, or with PODIUM_CPU_ASYNC the queue 1.

    That is for programs that are to run on a GPU later: what they forget to wait for shows. It is read once, since all
    drivers and generated launchers of a process must agree. Raises `SettingError`.
    """
    return int(environment_flag("PODIUM_CPU_ASYNC"))


def serve(library: SharedLibrary) -> Runtime:
    """Have a library run its kernels where all others do: on the same threads, in the same streams; return where.

    Raises `LoadError` for one that podium-cpu has not compiled.
    """
    try:
        library.address("podium_cpu_attach")
    except LoadError:
        raise LoadError(
            "podium-cpu has not compiled this library, and runs no others: its threads, streams and errors are in what "
            "it compiles. A compiler that writes C or C++ hands over that text: podium.kernel(text)"
        ) from None
    with _lock:
        for runtime in _running:
            if runtime.attach(library):
                return runtime
        runtime = Runtime(library)
        _running.append(runtime)
        if len(_running) == 1:
            atexit.register(_at_exit)
        return runtime


def runtimes() -> tuple[Runtime, ...]:
    """Return the runtimes that there are by now: one, and one more for each kind of sanitizer."""
    return tuple(_running)


def wait(stream: int | None) -> int:
    """Wait for a stream, or for all; return the first status of its launches that tells of an error."""
    statuses = [runtime.wait(stream) for runtime in _running]
    return next(filter(None, statuses), 0)


def detail(status: int, first: Runtime | None) -> str:
    """Return what more there is to say of the last status that this thread was given; `first` is asked before others.

    Each knows the last one that it gave itself, which may be an older one of the same number.
    """
    asked = sorted(_running, key=lambda runtime: runtime is not first)
    return next(filter(None, (runtime.detail(status) for runtime in asked)), "")


def keep_alive(objects: Iterable[object], stream: int) -> None:
    """Hold on to objects until the launches have ended that a stream has by now."""
    held = [_held(each) for each in objects if each is not None and not isinstance(each, (int, float))]
    for runtime in _running:
        runtime.keep_alive(held, stream)


# What podium_cpu/runtime.h declares: the type of the result, and those of the arguments.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "attach": (ctypes.c_void_p, ctypes.c_void_p),
    "configure": (None, ctypes.c_uint32),
    "wait": (ctypes.c_int, ctypes.c_uint64, ctypes.c_int, ctypes.c_uint32),
    "progress": (None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p),
    "detail": (ctypes.c_char_p, ctypes.c_int),
    "abandon": (None,),
    "create_event": (ctypes.c_void_p,),
    "destroy_event": (None, ctypes.c_void_p),
    "place_event": (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int),
    "wait_for_event": (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32),
    "event_time": (ctypes.c_uint64, ctypes.c_void_p),
}


def _function(library: SharedLibrary, name: str) -> Any:
    return ctypes.CFUNCTYPE(*_FUNCTIONS[name])(library.address(f"podium_cpu_{name}"))


class Runtime:
    """The functions of the library whose runtime others use. Kernels built for a sanitizer have one of their own."""

    def __init__(self, library: SharedLibrary) -> None:
        self._library = library
        self._functions: dict[str, Any] = {}
        self._kept: dict[int, deque[tuple[int, list[object]]]] = {}
        self._table = _function(library, "attach")(None)
        _function(library, "configure")(thread_count())

    def call(self, name: str, *arguments: object) -> Any:
        """Call a function of the library. Each is made when it is first needed, and a first launch needs none."""
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = _function(self._library, name)
        return function(*arguments)

    def attach(self, library: SharedLibrary) -> bool:
        """Offer the runtime to a library; tell whether it takes it."""
        return bool(_function(library, "attach")(self._table) == self._table)

    def wait(self, stream: int | None) -> int:
        status: int = NOT_READY
        while status == NOT_READY:
            status = self.call("wait", stream or 0, stream is None, SLICE)
        self._release()
        return status

    def is_idle(self) -> bool:
        """Wait for a moment, and tell whether all streams have ended."""
        return bool(self.call("wait", 0, True, SLICE) != NOT_READY)

    def detail(self, status: int) -> str:
        text: bytes = self.call("detail", status)
        return text.decode("utf-8", "replace")

    def keep_alive(self, held: list[object], stream: int) -> None:
        newest, _ = self._tickets(stream)
        with _lock:
            self._kept.setdefault(stream, deque()).append((newest, held))
        self._release()

    def _release(self) -> None:
        freed = []
        with _lock:
            for stream in list(self._kept):
                _, ended = self._tickets(stream)
                entries = self._kept.get(stream, deque())
                while entries and entries[0][0] <= ended:
                    freed.append(entries.popleft())
                if not entries:
                    self._kept.pop(stream, None)
        freed.clear()  # outside of the lock, since this may run anything

    def _tickets(self, stream: int) -> tuple[int, int]:
        newest, ended = ctypes.c_uint64(), ctypes.c_uint64()
        self.call("progress", stream, ctypes.byref(newest), ctypes.byref(ended))
        return newest.value, ended.value


_running: list[Runtime] = []


def _at_exit() -> None:
    # What is queued works on memory that goes away with the interpreter.
    try:
        if not isinstance(getattr(sys, "last_value", None), KeyboardInterrupt):
            _wait_for_queues()
            return
    except KeyboardInterrupt:
        pass
    for runtime in _running:  # Ctrl-C has ended the program, or does now
        runtime.call("abandon")
    wait(None)


def _wait_for_queues() -> None:
    """Wait for all streams, and after a while say that this is what the end of the process waits for."""
    import time

    begin = time.monotonic()
    for runtime in _running:
        noticed = False
        while not runtime.is_idle():
            if not noticed and time.monotonic() - begin > _SILENT_SECONDS:
                noticed = True
                sys.stderr.write("podium: waiting for queued launches to end; Ctrl-C stops them\n")
                sys.stderr.flush()


def _held(value: object) -> object:
    """Hold an object such that its memory stays where it is: an exported buffer cannot be resized."""
    try:
        return memoryview(value)  # type: ignore[arg-type]  # whether it can is the question
    except (TypeError, ValueError, BufferError):
        return value
