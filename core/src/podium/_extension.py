"""Extension modules that podium builds on the user's machine: from C, through the cache, for this interpreter."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from errno import ENOENT
from functools import lru_cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from podium._cache import cache_key, default_cache
from podium._compiler_identity import identify, search_inputs
from podium._file_stamps import Statuses, read_files, recall, remember
from podium._library import load_extension
from podium.errors import CompileError, LoadError, ToolchainError

if TYPE_CHECKING:
    from podium._build import HostCompiler

__all__ = ["INCLUDE_DIR", "Extension"]

INCLUDE_DIR = Path(__file__).parent / "include"

_FLAGS = ("-std=c11", "-O2", "-fvisibility=hidden", "-Wall", "-Wextra")

# The interpreters whose layouts include/podium_python.h declares; others compile with their own headers.
_DECLARED_VERSIONS = ((3, 10), (3, 13))


class Extension:
    """An extension module of a C source.

    `kind` is the cache's word for such things, `name` the module's. Headers are looked for in `folders` and in podium's
    own. `common` gives the source of a part that many modules have: it is compiled once, and kept. Sources that are
    given by functions are not asked for where the module is in the cache; `files` and `origin` are what they come from.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        source: str | Callable[[], str],
        *,
        origin: str = "",
        files: tuple[Path, ...] = (),
        folders: tuple[Path, ...] = (),
        common: Callable[[], str] | None = None,
    ) -> None:
        self._kind, self._name, self._source, self._common = kind, name, source, common
        self._origin = origin if callable(source) else source
        self._folders, self._files = (INCLUDE_DIR, *folders), files

    def recall(self) -> ModuleType | None:
        """Return the module if it can be had without running a compiler. Raises `ToolchainError` if there is none."""
        surroundings = _foreseen.get(_surroundings_key(*self._places())) or _recall_surroundings(*self._places())
        if surroundings is None:
            # The first is not needed, but it is quicker, and true of the first launch with an empty cache.
            if not default_cache().has(self._kind) or not _compiler().is_identified:
                return None
            surroundings = _surroundings(*self._places())
        return self._recall(self._key(surroundings))

    def foresee(self) -> None:
        """Find out what such modules are valid for, so that `recall` need not, neither of this one nor of others."""
        known = _recall_surroundings(*self._places())
        if known is not None:
            _foreseen[_surroundings_key(*self._places())] = known

    def build(self) -> ModuleType:
        """Return the module, from the cache if it is there. Raises `ToolchainError`, `CompileError` or `LoadError`.

        What is compiled must be what the process has found at first. A package that is upgraded under it is an error.
        """
        surroundings = _surroundings(*self._places())
        key = self._key(surroundings)
        module = self._recall(key)
        if module is not None:
            return module
        self._check_unchanged(surroundings)
        compiler, main = _compiler(), f"{self._kind}.c"
        source = self._source if isinstance(self._source, str) else self._source()
        objects = {} if self._common is None else {"common.o": self._compile_common(compiler, self._common())}
        library = compiler.compile({main: source}, main, self._flags(), objects=objects)
        self._check_unchanged(surroundings)
        default_cache().put(key, library)
        return load_extension(self._name, library, in_background=True)

    def _check_unchanged(self, surroundings: str) -> None:
        """Raise `CompileError` if the files are not those that a key was made of: it must not stand for other code."""
        digest, _ = _read_now(*self._places())
        if not surroundings.startswith(digest.decode("ascii")):
            raise CompileError(
                f"the files that launchers are made of have changed since this process began to use them: a package "
                f"was upgraded or removed, one of {', '.join(map(str, self._folders))}. Restart the process"
            )

    def _compile_common(self, compiler: HostCompiler, source: str) -> bytes:
        flags = [*self._flags(), *(["-fPIC"] if os.name != "nt" else []), "-c"]
        arguments = {"common.c": source}, "common.c", flags, _surroundings(self._places()[0], ()) + _ABI
        data = compiler.recall(*arguments)
        return compiler.run_cached(*arguments) if data is None else data

    def _flags(self) -> list[str]:
        return [*_FLAGS, *_python_flags(), *(f"-I{folder}" for folder in self._folders)]

    def _recall(self, key: str) -> ModuleType | None:
        library = default_cache().get(key)
        if library is None:
            return None
        try:
            return load_extension(self._name, library)
        except (LoadError, ImportError) as error:
            # built by another compiler or for another system: rebuilt exactly once
            default_cache().quarantine(key, str(error))
            return None

    def _places(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(map(str, self._folders)), tuple(map(str, self._files))

    def _key(self, surroundings: str) -> str:
        return cache_key(self._kind, self._origin, surroundings, repr((_FLAGS, _python_flags())), _ABI)


def _compiler() -> HostCompiler:
    from podium._build import HostCompiler

    return HostCompiler.find("c")


# The suffixes name the interpreter with its version, its kind of build, and mostly the system and the processor.
_ABI = f"{EXTENSION_SUFFIXES} {sys.platform} {os.uname().machine if hasattr(os, 'uname') else os.name}"


def _python_flags() -> tuple[str, ...]:
    """Return what the compiler needs to see of this Python: nothing, for those that are declared by hand."""
    if _is_declared():
        return (f"-DPODIUM_PYTHON_MINOR={sys.version_info.minor}",)
    import sysconfig  # not needed where all is declared

    folder = Path(sysconfig.get_path("include"))
    for name in ("Python.h", "pyconfig.h"):
        if not (folder / name).is_file():
            raise ToolchainError(
                f"This Python ({sys.version.split()[0]}, {EXTENSION_SUFFIXES[0]}) needs its own headers to "
                f"build launchers, and {folder} has no {name}. Install them (Debian, Ubuntu: python3-dev; "
                f"Fedora: python3-devel)"
            )
    return ("-DPODIUM_USE_PYTHON_H", f"-I{folder}")


def _is_declared() -> bool:
    minor = sys.version_info.minor
    return (
        sys.implementation.name == "cpython"
        and _DECLARED_VERSIONS[0] <= sys.version_info[:2] <= _DECLARED_VERSIONS[1]
        and sys.maxsize > 1 << 32
        and sys.int_info.bits_per_digit == 30
        and not EXTENSION_SUFFIXES[0].startswith((f".cpython-3{minor}t", f".cp3{minor}t"))  # free-threaded
        and not hasattr(sys, "getobjects")  # Py_TRACE_REFS puts two words before every object
    )


# By the key of `_surroundings_key`. Modules that are built are built from what there is then.
_foreseen: dict[str | None, str] = {}

# What an extension is made with: the compiler's identity, and a digest of files and of the headers in folders.


def _surroundings(folders: tuple[str, ...], files: tuple[str, ...]) -> str:
    """Return them, and keep them for other processes. Raises `ToolchainError`."""
    known = _recall_surroundings(folders, files)
    if known is not None:
        return known
    digest, read, now = _read_files(folders, files)
    identity, searched = identify("c")
    found = f"{digest.decode('ascii')}\n{identity}"
    key = _surroundings_key(folders, files)
    if key is not None and searched is not None:
        remember(key, found.encode("utf-8", "surrogateescape"), read | searched, now)
    return found


def _recall_surroundings(folders: tuple[str, ...], files: tuple[str, ...]) -> str | None:
    """Return them if no file need be read and no compiler looked for."""
    key = _surroundings_key(folders, files)
    kept = recall(key) if key is not None else None
    return None if kept is None else kept.decode("utf-8", "surrogateescape")


def _surroundings_key(folders: tuple[str, ...], files: tuple[str, ...]) -> str | None:
    inputs = search_inputs("c")
    return None if inputs is None else cache_key("surroundings", repr((folders, files)), *inputs)


@lru_cache(maxsize=64)
def _read_files(folders: tuple[str, ...], files: tuple[str, ...]) -> tuple[bytes, Statuses, int]:
    """Read files of this package and of a backend, which a process takes as they are at first; also tell since when."""
    now = time.time_ns()
    return *_read_now(folders, files), now


def _read_now(folders: tuple[str, ...], files: tuple[str, ...]) -> tuple[bytes, Statuses]:
    """Read them anew. Raises `CompileError` if one of the files is not there."""
    try:
        digest, statuses = read_files(folders, files, ".h")
        for name in files:
            if statuses[os.fsencode(name)] is None:
                raise FileNotFoundError(ENOENT, os.strerror(ENOENT), name)
    except OSError as error:
        raise CompileError(
            f"what launchers are made of cannot be read ({error}): the package that it belongs to was removed, or is "
            f"not whole. Install it again"
        ) from None
    return digest, statuses
