"""What a driver keeps for kernels that are built for the sanitizers, and the reading of what they find."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from podium.backend import ForkSafeLock, SharedLibrary

from podium_cpu.arena import arena
from podium_cpu.findings import Finding
from podium_cpu.sanitizers import Sanitizers

__all__ = ["Checks"]

_FOUND = 10  # PODIUM_CPU_ERROR_SANITIZER

# One launch at a time in the process: there is one place for what is found, and one of each shared variable.
_turn = ForkSafeLock()

# The function that gives what was found: in the first library, whose runtime the others use.
_find: Callable[[], int] | None = None


class Checks:
    """The sanitizers of a driver, the libraries that are built for them, and the last thing found in each thread."""

    def __init__(self, sanitizers: Sanitizers) -> None:
        self.sanitizers = sanitizers
        self._codes: dict[int, bytes] = {}
        self._thread = threading.local()

    def prepare(self) -> None:
        """Do what must be done before a library is mapped. Raises `LoadError` if there is no room for the shadow."""
        arena()  # the runtime writes to the shadow for either sanitizer

    def watch(self, library: SharedLibrary, code: bytes) -> None:
        """Remember where a library lies, to know its lines."""
        global _find
        if _find is None:
            _find = ctypes.CFUNCTYPE(ctypes.c_void_p)(library.address("podium_cpu_finding"))
        image = ctypes.CFUNCTYPE(ctypes.c_void_p)(library.address("podium_cpu_image"))()
        self._codes[image or 0] = code

    @contextmanager
    def naming(self, names: Mapping[int, str]) -> Iterator[None]:
        """Call arrays, by where they lie in the arena, by these names in what is found by this thread meanwhile."""
        self._thread.names = names
        try:
            yield
        finally:
            self._thread.names = {}

    def launch(self, run: Callable[[], int], dynamic: int) -> int:
        """Run a launch when no other one runs, and keep what it finds; `dynamic` are its dynamic shared bytes."""
        with _turn:
            status = run()
            if status == _FOUND and _find is not None:
                finding = Finding.from_address(_find())
                names = getattr(self._thread, "names", {})
                self._thread.detail = finding.describe(self._codes, dynamic, names)
        return status

    @property
    def detail(self) -> str:
        """What this thread's last launch found that found something."""
        return getattr(self._thread, "detail", "")
