"""Compiled bytes, mapped into this process: shared libraries and Python extension modules; and whether they are whole.

The dynamic loader wants a file, so the bytes are written to a folder on this machine that only this process uses, are
mapped, and the file is removed again. They are never unloaded: objects and pointers from them may live on unseen.
"""

from __future__ import annotations

import itertools
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from podium._library_folder import library_bases, mounted_noexec, remove_library, write_library
from podium.errors import LoadError

if TYPE_CHECKING:
    import ctypes
    from types import ModuleType

__all__ = ["SharedLibrary", "is_whole", "load_extension"]

_Loaded = TypeVar("_Loaded")

# What loaders say of a good file that must not be executed where it lies.
_FORBIDDEN = ("failed to map segment", "operation not permitted", "permission denied")

_ELF_HEADER = 64  # bytes
_NO_BITS = 8  # SHT_NOBITS: a section that takes no room in the file

_serial = itertools.count()
_forbidding: dict[str, str] = {}


class SharedLibrary:
    """A shared library in this process, for as long as the process lives. Make one with `from_bytes`.

    `path` is where its file was when it was mapped.
    """

    def __init__(self, name: str, path: Path, library: ctypes.CDLL) -> None:
        self.name = name
        self.path = path
        self._library = library

    @classmethod
    def from_bytes(cls, name: str, data: bytes, keep_file: bool = False) -> SharedLibrary:
        """Load a shared library from its bytes.

        `name` is what debuggers and messages show: letters, digits and underscores. With `keep_file` the file stays
        until the process ends, for debuggers to read. Raises `LoadError` with the loader's own words, and ValueError
        for a bad name.
        """

        def load(path: str) -> SharedLibrary:
            import ctypes

            return cls(name, Path(path), ctypes.CDLL(path))

        return _map(name, ".dll" if os.name == "nt" else ".so", data, load, keep_file=keep_file)

    def address(self, symbol: str) -> int:
        """Return the address of a function or a variable. Raises `LoadError` if the library has no such symbol."""
        import ctypes

        try:
            if "\0" in symbol:
                raise ValueError("embedded null character")
            return ctypes.cast(self._library[symbol], ctypes.c_void_p).value or 0
        except (AttributeError, ValueError) as error:
            raise LoadError(f"The library {self.name} has no symbol {symbol!r}: {error}") from None

    def __repr__(self) -> str:
        return f"<SharedLibrary {self.name}>"


def is_whole(code: bytes) -> bool:
    """Tell whether a 64-bit ELF file is as long as its headers say, which loaders and drivers read without asking.

    False for an ELF file of 32 bits, which no device of today has. Other bytes are whoever loads them to look at.
    """
    if not code.startswith(b"\x7fELF"):
        return True
    if code[4:5] != b"\2" or len(code) < _ELF_HEADER:
        return False
    order = ">" if code[5:6] == b"\2" else "<"
    segments, sections = struct.unpack_from(f"{order}QQ", code, 32)
    segment_size, segment_count, section_size, section_count = struct.unpack_from(f"{order}4H", code, 54)
    table = sections + section_size * section_count
    if max(table, segments + segment_size * segment_count) > len(code) or (section_count and section_size < 40):
        return False
    for place in range(sections, table, section_size or 1):
        (kind,) = struct.unpack_from(f"{order}I", code, place + 4)
        offset, size = struct.unpack_from(f"{order}QQ", code, place + 24)
        if kind != _NO_BITS and offset + size > len(code):
            return False
    return True


def load_extension(name: str, data: bytes, *, in_background: bool = False) -> ModuleType:
    """Import a Python extension module from its bytes; it is not entered in ``sys.modules``.

    `name` is the module's name. What is done in the background keeps others from the interpreter lock only for a part
    of the time. Raises `LoadError` with the loader's own words, and ValueError for a bad name.
    """

    def load(path: str) -> ModuleType:
        from importlib.machinery import ExtensionFileLoader, ModuleSpec

        if in_background:
            _map_without_lock(path)
        loader = ExtensionFileLoader(name, path)
        before = sys.modules.get(name)
        spec = ModuleSpec(name, loader, origin=path)
        module = loader.create_module(spec)
        # As importlib.util does; importing that takes as long as loading the library.
        module.__spec__, module.__loader__, module.__file__ = spec, loader, path
        loader.exec_module(module)
        # Modules that initialise in one phase enter themselves.
        if sys.modules.get(name) is module and module is not before:
            del sys.modules[name]
            if before is not None:
                sys.modules[name] = before
        return module

    return _map(name, ".pyd" if os.name == "nt" else ".so", data, load, keep_file=False)


def _map_without_lock(path: str) -> None:
    """Let the dynamic loader have the file already; Python's import keeps the interpreter lock while it loads."""
    import ctypes

    try:
        load = ctypes.CDLL(None).dlopen
    except (AttributeError, OSError, TypeError):  # a system without it, or where it is not to be found
        return
    load.restype = ctypes.c_void_p
    load(os.fsencode(path), os.RTLD_NOW)  # if it cannot, the import says why


def _map(name: str, suffix: str, data: bytes, load: Callable[[str], _Loaded], *, keep_file: bool) -> _Loaded:
    """Call `load` with a file that holds `data`, in the first place that can be written and executed from."""
    if not isinstance(name, str) or not f"_{name}".isidentifier() or not name.isascii() or not 1 <= len(name) <= 128:
        raise ValueError(f"{name!r} is not a name for a library: use letters, digits and underscores, at most 128")
    # Never one path twice: loaders take a path that they know for the library that it was.
    file_name = f"{name}-{next(_serial)}{suffix}"
    tried = dict(_forbidding)
    forbidding: dict[str, str] = {}
    for base in library_bases():
        if base in _forbidding:
            continue
        # Asked first, since a loader that fails may leave parts of the file mapped.
        if mounted_noexec(base):
            tried[base] = "its mount forbids execution (noexec)"
            continue
        try:
            path = write_library(base, file_name, data, keep=keep_file)
        except OSError as error:
            tried[base] = error.strerror or str(error)
            continue
        try:
            loaded = _load_file(path, load, keep_file=keep_file)
        except (OSError, ImportError, SystemError) as error:
            if not _is_forbidden(error):
                raise _refused(name, error) from None
            tried[base] = forbidding[base] = str(error)
        else:
            # Only now is it known that the place was at fault and not the library.
            _forbidding.update(forbidding)
            return loaded
    loaded = _map_from_memory(name, data, load, tried)
    _forbidding.update(forbidding)
    return loaded


def _load_file(path: str, load: Callable[[str], _Loaded], *, keep_file: bool) -> _Loaded:
    keep = False
    try:
        loaded = load(path)
        keep = keep_file
        return loaded
    finally:
        if not keep:
            remove_library(path)


def _map_from_memory(name: str, data: bytes, load: Callable[[str], _Loaded], tried: dict[str, str]) -> _Loaded:
    try:
        descriptor = os.memfd_create(name)
    except (AttributeError, OSError) as error:
        raise _nowhere(name, {**tried, "memfd_create": str(error)}) from None
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        loaded = load(f"/proc/self/fd/{descriptor}")
    except (OSError, ImportError, SystemError) as error:
        os.close(descriptor)
        if not _is_forbidden(error):
            raise _refused(name, error) from None
        raise _nowhere(name, {**tried, "memfd_create": str(error)}) from None
    # The descriptor stays open: its number is the path by which the loader knows the library.
    return loaded


def _is_forbidden(error: Exception) -> bool:
    text = str(error).lower()
    return any(words in text for words in _FORBIDDEN)


def _refused(name: str, error: Exception) -> LoadError:
    return LoadError(f"The library {name} could not be loaded: {error}")


def _nowhere(name: str, tried: dict[str, str]) -> LoadError:
    places = "".join(f"\n  {place}: {why}" for place, why in tried.items())
    return LoadError(
        f"The library {name} could not be loaded: no place was found that can be written and allows execution. "
        f"Tried:{places}\nSet TMPDIR to a folder of yours on a mount without the option noexec"
    )
