"""Calls in a thread of their own, beside work that leaves Python idle; and imports of what will surely be needed.

A fork waits for them: a child would have locks and half-made modules of a thread that it does not have.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Generic, TypeVar

from podium import _imports_at_fork
from podium._interpreter import is_main_interpreter
from podium.errors import PodiumError

__all__ = ["BackgroundCall", "import_early"]

T = TypeVar("T")

# What launches need of podium itself, and what the compilation of a kernel does. By their names, since they stand above
# this module.
_OF_LAUNCHES = ("podium._module", "podium._binding", "podium._compile", "podium._packing", "podium._generated")
_OF_COMPILING = ("tree_sitter", "tree_sitter_cuda", "podium._source._parse")

# What a module raises that is missing, incomplete, or not made for this machine.
_FAILURES = (
    ImportError,
    OSError,
    EOFError,
    RuntimeError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    SyntaxError,
    TypeError,
    ValueError,
)

_running: set[threading.Thread] = set()


class BackgroundCall(Generic[T]):
    """A function that is being called in a thread. It pays where the function lets go of the interpreter lock."""

    def __init__(self, function: Callable[[], T]) -> None:
        """Begin. A function that fails with an `OSError` is called once more by `result`, where it is raised."""
        self._function = function
        self._values: list[T] = []
        self._thread = threading.Thread(target=self._run, name="podium-background")
        _running.add(self._thread)
        try:
            self._thread.start()
        except RuntimeError:  # the interpreter is ending, or the system is out of threads
            _running.discard(self._thread)

    def result(self) -> T:
        """Wait for the end, and return what the function returned; where there was no success, call it here."""
        if self._thread.ident is not None:
            self._thread.join()
        if not self._values:
            self._values.append(self._function())
        return self._values[0]

    def _run(self) -> None:
        try:
            with suppress(OSError):
                self._values.append(self._function())
        finally:
            _running.discard(self._thread)


def import_early(
    launching: Iterable[str],
    compiling: Iterable[str],
    prepare: Callable[[], object] | None = None,
    open_compiler: Callable[[], object] | None = None,
) -> None:
    """Begin to import modules in a thread that are sure to be needed soon, and return at once.

    For drivers whose initialisation takes long and leaves Python idle. `launching` is what any launch needs of the
    backend. `compiling` is what a kernel needs that is compiled, and then launched from Python; it is imported if no
    kernel has ever been compiled with this cache. What launches and compilations need of podium is added. `prepare`
    is called as soon as what launches need is there, to find out what a first launch asks and the process keeps
    (`foresee_launchers`). `open_compiler` is called after it, in a thread of its own, if `compiling` is imported: to
    load a large library, which needs no Python and so goes on beside the imports.

    What goes wrong is not said here: whoever imports the module in earnest is told.
    """
    from podium._cache import default_cache

    later = () if default_cache().has("kernel") else (*compiling, *_OF_COMPILING)
    first = (*launching, *_OF_LAUNCHES)
    if is_main_interpreter() and not all(each in sys.modules for each in (*first, *later)):
        BackgroundCall(lambda: _import(first, prepare, later, open_compiler if later else None))


def _import(
    first: Iterable[str],
    prepare: Callable[[], object] | None,
    later: Iterable[str],
    open_compiler: Callable[[], object] | None,
) -> None:
    for each in first:
        _attempt(__import__, each)
    if prepare is not None:
        _attempt(prepare)
    if open_compiler is not None:
        BackgroundCall(lambda: _attempt(open_compiler))
    for each in later:
        _attempt(__import__, each)


def _attempt(step: Callable[..., object], *arguments: str) -> None:
    with suppress(PodiumError, *_FAILURES):  # nobody has asked for it yet
        step(*arguments)


def _before_fork() -> None:
    for _ in range(2):  # one of them may begin another one
        for thread in list(_running):
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join(_imports_at_fork.FORK_PATIENCE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_running.clear)
