"""The CUDA driver library of this process: one copy of it, opened and never initialised.

It is looked for in this order: the variable PODIUM_NVIDIA_LIBCUDA; a copy that the process has
already, such as torch's; the name ``libcuda.so.1``, as the dynamic loader finds it; and the folders where
drivers are known to put it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from podium.errors import BackendError

__all__ = ["FOLDERS", "NAME", "VARIABLE", "Copy", "find", "library", "path", "tried"]

VARIABLE = "PODIUM_NVIDIA_LIBCUDA"
"""The variable that names the library's file, before anything else."""

NAME = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
"""The versioned name: the unversioned one is for linking, and may be a stub or another copy (LIB-01, LIB-04)."""

FOLDERS = (
    "usr/lib/wsl/lib",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu/nvidia",
    "usr/lib/aarch64-linux-gnu/tegra",
    "usr/lib64",
    "usr/lib",
    "usr/local/nvidia/lib64",
    "usr/local/nvidia/lib",
    "usr/lib64/nvidia",
    "usr/lib/nvidia",
    "run/opengl-driver/lib",
)
"""Where drivers put it: distributions, WSL, Jetson, hosted machines, NixOS."""


@dataclass(frozen=True)
class Copy:
    """A copy of the library that is open in this process; `place` says how it was found."""

    library: ctypes.CDLL
    path: str
    place: str


class _SymbolInfo(ctypes.Structure):
    """Dl_info of dlfcn.h."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


_lock = threading.Lock()
_found: Copy | None = None
_tried: list[str] = []


def library() -> ctypes.CDLL:
    """Return the library, opened; it stays open. Raises `BackendError`, which says what was tried."""
    return find().library


def path() -> str:
    """Return the file of the library that `library` returns."""
    return find().path


def tried() -> list[str]:
    """Return what the last search tried, with the loader's words on each; the last one is what was found, if any."""
    return list(_tried)


def find(root: str = "/") -> Copy:
    """Return the copy of this process, searching until there is one.

    With a `root` other than "/", only the variable and the folders below it are looked at, and nothing is kept.
    Raises `BackendError` if none can be opened, or if the variable names another one than the process has.
    """
    global _found
    if root == "/" and _found is not None:
        return _found
    with _lock:
        attempts: list[str] = []
        try:
            found = _search(root, attempts)
        finally:
            _tried[:] = attempts
        if root == "/":
            _found = found
        return found


def _search(root: str, attempts: list[str]) -> Copy:
    mapped = _mapped() if root == "/" else None
    named = os.environ.get(VARIABLE)
    if named:
        copy = _open(named, VARIABLE, attempts)
        if copy is None:
            raise BackendError(f"{VARIABLE} names a library that cannot be opened: {attempts[-1]}")
        if mapped is not None and not _same(mapped.path, copy.path):
            raise BackendError(
                f"{VARIABLE} names {copy.path}, but this process has {mapped.path} open already. A process can have "
                f"one CUDA driver library: set the variable before anything else opens one, or unset it"
            )
        return copy
    if mapped is not None:
        attempts.append(f"{mapped.path}: open in this process already")
        return mapped
    for place, name in _candidates(root):
        copy = _open(name, place, attempts)
        if copy is not None:
            return copy
    raise BackendError(f"{NAME} was not found. Tried: {'; '.join(attempts)}")


def _candidates(root: str) -> Iterator[tuple[str, str]]:
    if root == "/":
        yield "the loader", NAME
    for folder in FOLDERS:
        file = os.path.join(root, folder, NAME)
        if os.path.lexists(file):
            yield "a well-known folder", file


def _open(name: str, place: str, attempts: list[str]) -> Copy | None:
    try:
        opened = ctypes.CDLL(name)
    except OSError as error:
        words = str(error)
        attempts.append(words if words.startswith(name) else f"{name}: {words}")
        return None
    file = _file_of(opened) or name
    attempts.append(f"{name}: opened" + (f" as {file}" if file != name else ""))
    return Copy(opened, file, place)


def _mapped() -> Copy | None:
    """Return the copy that somebody has opened in this process."""
    if os.name == "nt":
        return None
    try:
        opened = ctypes.CDLL(NAME, mode=ctypes.DEFAULT_MODE | os.RTLD_NOLOAD)
    except OSError:
        return None
    return Copy(opened, _file_of(opened) or NAME, "this process")


def _file_of(opened: ctypes.CDLL) -> str | None:
    """Ask the loader which file a library is from."""
    try:
        symbol = ctypes.cast(opened.cuDriverGetVersion, ctypes.c_void_p)
        ask = ctypes.CDLL(None).dladdr
    except (AttributeError, TypeError, OSError):
        return None
    info = _SymbolInfo()
    ask.argtypes = (ctypes.c_void_p, ctypes.POINTER(_SymbolInfo))
    return os.fsdecode(info.file) if ask(symbol, info) and info.file else None


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return one == other
