"""The HIP runtime library of this process: one copy of it, opened and never initialised.

It is looked for in this order: the variable PODIUM_AMD_LIBHIP; a copy that the process has already, such as torch's;
the one that hip-python would open; and the versioned names 7, 6 and 5, as the dynamic loader finds them. Nothing of it
is called here: every function of HIP but those that give texts initialises it.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from podium.backend import ForkSafeLock
from podium.errors import BackendError

__all__ = [
    "COMPILER_VARIABLE",
    "NAMES",
    "VARIABLE",
    "Copy",
    "abi",
    "find",
    "library",
    "mapped",
    "note_compiler",
    "path",
    "taking_along",
    "tried",
]

VARIABLE = "PODIUM_AMD_LIBHIP"
"""The variable that names the library's file, before anything else."""

COMPILER_VARIABLE = "PODIUM_AMD_HIPRTC"
"""The variable that names the file of hipRTC, which in HIP 5 is a runtime library as well."""

NAMES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5")
"""The versioned names, the newest first: distributions ship the plain one with what programs are linked with, only."""

# Wheels may put a hash into the names of the libraries that they bring.
_FILE = re.compile(r"libamdhip64(?:-[0-9a-f]+)?\.so[.\d]*")


class Copy(NamedTuple):
    """A copy of the library that is open in this process.

    `abi` is the major version of HIP whose structures and numbers it has: 5, 6 or 7.
    """

    library: ctypes.CDLL
    path: str
    abi: int


_lock = ForkSafeLock()
_found: tuple[str | None, Copy] | None = None  # with the value that the variable had
_tried: tuple[str, ...] = ()
_aside: set[str] = set()  # copies that are there to compile, or are another library's own affair


def library() -> ctypes.CDLL:
    """Return the library, opened; it stays open. Raises `BackendError`, which says what was tried."""
    return find().library


def path() -> str:
    """Return the file of the library that `library` returns."""
    return find().path


def abi() -> int:
    """Return the major version of HIP whose structures and numbers the library has: 5, 6 or 7."""
    return find().abi


def tried() -> list[str]:
    """Return what the last search tried, with the loader's words on each; the last one is what was found, if any."""
    return list(_tried)


def find() -> Copy:
    """Return this process's copy. One that was found is kept; a search that found nothing is made anew each time.

    Raises `BackendError` if there is none, if the variable names another one than the process has, or if the process
    has two of them.
    """
    global _found, _tried
    named = os.environ.get(VARIABLE) or None
    known = _found
    if known is not None and known[0] == named:
        return known[1]
    with _lock:
        attempts: list[str] = []
        try:
            copy = _search(named, attempts)
        finally:
            _tried = tuple(attempts)
        _found = named, copy
        return copy


def mapped() -> list[str]:
    """Return the files of all copies that this process has open. Raises `BackendError` if they are more than one.

    One that is there to compile, since hipRTC was in the runtime before HIP 6, or that a library has opened of its own
    accord, is none of them, unless it is the one that podium uses as the runtime.
    """
    runtime = _found[1].path if _found is not None else ""
    aside = {*_aside, os.environ.get(COMPILER_VARIABLE) or ""}
    found = [file for file in _files() if _same(file, runtime) or not any(_same(file, each) for each in aside)]
    if runtime and not any(_same(file, runtime) for file in found):
        found.append(runtime)  # the variable may name a file that is called otherwise
    if len(found) > 1:
        raise BackendError(
            f"This process has {len(found)} copies of the HIP runtime open, {' and '.join(sorted(found))}, and memory "
            f"and streams of the one are nothing to the other. Let all libraries use one: import the library that "
            f"brings its own copy before podium is used, or name that copy by {VARIABLE}"
        )
    return found


def note_compiler(file: str) -> None:
    """Note that a file is opened to compile, which may be a runtime library as well."""
    _aside.add(file)


@contextmanager
def taking_along() -> Iterator[None]:
    """Note which copies libraries open of their own accord meanwhile: hipRTC does, and launches nothing there."""
    before = _files()
    try:
        yield
    finally:
        _aside.update(file for file in _files() if file not in before)


def _files() -> list[str]:
    """Return the files of all copies that this process has open."""
    files: dict[tuple[str, str], str] = {}
    if sys.platform.startswith("linux"):
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                if "libamdhip64" in line:
                    _, _, _, device, number, file = line.rstrip("\n").split(None, 5)
                    files.setdefault((device, number), file.removesuffix(" (deleted)"))
    return [file for file in files.values() if _FILE.fullmatch(os.path.basename(file))]


def _search(named: str | None, attempts: list[str]) -> Copy:
    present = mapped()
    if named is not None:
        return _named(named, present, attempts)
    if present:
        copy = _open(present[0], attempts)
        if copy is not None:
            return copy
    for name in _candidates():
        copy = _open(name, attempts)
        if copy is not None:
            mapped()
            return copy
    raise BackendError(f"{NAMES[0]} was not found, nor an older one. Tried: {'; '.join(attempts)}")


def _named(named: str, present: list[str], attempts: list[str]) -> Copy:
    """Open the copy that the variable names, which must be the only one."""
    if present and not _same(present[0], _mapped_as(named) or named):
        raise BackendError(
            f"{VARIABLE} names {named}, but this process has {present[0]} open already, and can have but one. "
            f"Set the variable before anything else opens the library, or unset it"
        )
    copy = _open(named, attempts)
    if copy is None:
        raise BackendError(f"{VARIABLE} names what cannot be used: {attempts[-1]}. Correct the variable, or unset it")
    return copy


def _mapped_as(name: str) -> str | None:
    """Return the file that the loader has open under a name, such as a bare "libamdhip64.so.6"; opens nothing."""
    try:
        opened = ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        return _file_of(ctypes.cast(opened.hipModuleLaunchKernel, ctypes.c_void_p).value)
    except (OSError, UnicodeError, AttributeError):
        return None


def _candidates() -> Iterator[str]:
    from podium_amd.bindings import own_path

    own = own_path("amdhip64")
    if own is not None:
        yield own
    yield from NAMES


def _open(name: str, attempts: list[str]) -> Copy | None:
    try:
        with taking_along():
            opened = ctypes.CDLL(name)
    except (OSError, UnicodeError) as error:  # the loader's words have the name in them, which may be no UTF-8
        words = str(error)
        attempts.append(words if name in words else f"{name}: {words}")
        return None
    try:
        function = opened.hipModuleLaunchKernel
    except AttributeError:
        attempts.append(f"{name}: has no hipModuleLaunchKernel, so it is not the HIP runtime library")
        return None
    file = _file_of(ctypes.cast(function, ctypes.c_void_p).value) or name
    _aside.difference_update([each for each in _aside if _same(each, file)])
    attempts.append(f"{name}: opened" + (f", {file}" if file != name else ""))
    return Copy(opened, file, _abi(opened))


def _abi(opened: ctypes.CDLL) -> int:
    """Tell the version by what came with it, since the file may have any name, and to ask HIP initialises it."""
    if hasattr(opened, "hipDrvLaunchKernelEx"):
        return 7
    return 6 if hasattr(opened, "hipGetDevicePropertiesR0600") else 5


class _SymbolInfo(ctypes.Structure):
    """Dl_info of dlfcn.h."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _file_of(address: int | None) -> str | None:
    """Ask the loader from which file the code at an address is."""
    try:
        ask = ctypes.CDLL(None).dladdr
    except (AttributeError, OSError, TypeError):
        return None
    info = _SymbolInfo()
    found = ask(ctypes.c_void_p(address), ctypes.byref(info))
    return os.fsdecode(info.file) if found and info.file else None


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return one == other
