"""The CUDA driver library of this process: one copy of it, opened and never initialised.

It is looked for in this order: the variable PODIUM_NVIDIA_LIBCUDA; a copy that the process has already, such as
torch's; the name ``libcuda.so.1``, as the dynamic loader finds it; and the folders where drivers are known to put it.
Nothing but ``cuDriverGetVersion`` is called here, which needs no initialisation and reads no mask.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator

from podium.backend import ForkSafeLock
from podium.errors import BackendError

__all__ = ["FOLDERS", "NAME", "VARIABLE", "Copy", "find", "library", "path", "tried", "version"]

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
    "usr/lib64/nvidia",
    "usr/lib/nvidia",
    "usr/local/nvidia/lib64",
    "usr/local/nvidia/lib",
    "run/opengl-driver/lib",
)
"""Where drivers put it: distributions, WSL, Jetson, hosted machines, NixOS."""

_STUB = 34  # CUDA_ERROR_STUB_LIBRARY


class Copy:
    """A copy of the library that is open in this process.

    `version` is what it says of itself, 12040 for CUDA 12.4; None if it is a stub, which is there for linking only.
    """

    __slots__ = ("library", "path", "version")

    def __init__(self, library: ctypes.CDLL, path: str, version: int | None) -> None:
        self.library, self.path, self.version = library, path, version


class _SymbolInfo(ctypes.Structure):
    """Dl_info of dlfcn.h."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


_lock = ForkSafeLock()
_found: tuple[str | None, Copy] | None = None  # with the value that the variable had
_tried: tuple[str, ...] = ()


def library() -> ctypes.CDLL:
    """Return the library, opened; it stays open. Raises `BackendError`, which says what was tried."""
    return find().library


def path() -> str:
    """Return the file of the library that `library` returns."""
    return find().path


def version() -> int:
    """Return the newest CUDA version that the driver can serve, 12040 for 12.4. Raises `BackendError`."""
    return find().version or 0


def tried() -> list[str]:
    """Return what the last search tried, with the loader's words on each; the last one is what was found, if any."""
    return list(_tried)


def find(root: str = "/") -> Copy:
    """Return this process's copy. One that was found is kept; a search that found nothing is made anew each time.

    With a `root` other than "/", which stands for another file system, only the variable and the folders below it are
    looked at, and nothing is kept. Raises `BackendError` if there is none, if the only one is a stub, or if the
    variable names another one than the process has.
    """
    global _found, _tried
    named = os.environ.get(VARIABLE) or None
    known = _found
    if root == "/" and known is not None and known[0] == named:
        return known[1]
    with _lock:
        attempts: list[str] = []
        try:
            found = _search(root, named, attempts)
        finally:
            _tried = tuple(attempts)
        if root == "/" and found.version:  # one that could not say its version is asked again
            _found = named, found
        return found


def _search(root: str, named: str | None, attempts: list[str]) -> Copy:
    mapped = _mapped() if root == "/" else None
    if named is not None:
        return _named(named, mapped, attempts)
    if mapped is not None and mapped.version is not None:
        attempts.append(f"{mapped.path}: open in this process already")
        return mapped
    stub = mapped
    for name in _candidates(root):
        copy = _open(name, attempts)
        if copy is not None and copy.version is not None:
            return copy
        stub = stub or copy
    if stub is not None:
        raise BackendError(
            f"{stub.path} is the stub that programs are linked with, and not a driver: take its folder out of "
            f"LD_LIBRARY_PATH, so that the driver's own {NAME} is found. Tried: {'; '.join(attempts)}"
        )
    raise BackendError(f"{NAME} was not found. Tried: {'; '.join(attempts)}")


def _named(named: str, mapped: Copy | None, attempts: list[str]) -> Copy:
    """Open the copy that the variable names, which must be the only one."""
    if mapped is not None:
        if not _same(mapped.path, named):
            raise BackendError(
                f"{VARIABLE} names {named}, but this process has {mapped.path} open already, and can have but one. "
                f"Set the variable before anything else opens the library, or unset it"
            )
        attempts.append(f"{mapped.path}: named by {VARIABLE}, open in this process already")
        return mapped
    copy = _open(named, attempts)
    if copy is None:
        raise BackendError(f"{VARIABLE} names what cannot be used: {attempts[-1]}. Correct the variable, or unset it")
    if copy.version is None:
        raise BackendError(
            f"{VARIABLE} names {copy.path}, the stub that programs are linked with, and not a driver. "
            f"Correct the variable, or unset it"
        )
    if os.name != "nt" and not _has_the_name(copy):
        raise BackendError(
            f"{VARIABLE} names {copy.path}, whose SONAME is not {NAME}: other libraries would open another copy beside "
            f"it. Give it that SONAME, or unset the variable"
        )
    return copy


def _candidates(root: str) -> Iterator[str]:
    if root == "/":
        yield NAME
    for folder in FOLDERS if os.name != "nt" else ():
        file = os.path.join(root, folder, NAME)
        if os.path.lexists(file):
            yield file


def _open(name: str, attempts: list[str]) -> Copy | None:
    try:
        opened = ctypes.CDLL(name)
    except (OSError, UnicodeError) as error:  # the loader's words have the name in them, which may be no UTF-8
        words = str(error)
        attempts.append(words if name in words else f"{name}: {words}")
        return None
    copy = _described(opened, name)
    if copy is None:
        attempts.append(f"{name}: has no cuDriverGetVersion, so it is not the CUDA driver library")
    elif copy.version is None:
        attempts.append(f"{name}: a stub" + (f", {copy.path}" if copy.path != name else ""))
        _close(opened)  # or whoever opens the library by its name would get this one
    else:
        attempts.append(f"{name}: opened" + (f", {copy.path}" if copy.path != name else ""))
    return copy


def _mapped() -> Copy | None:
    """Return the copy that somebody has opened in this process, if there is one."""
    if os.name == "nt":
        return None
    try:
        opened = ctypes.CDLL(NAME, mode=ctypes.DEFAULT_MODE | os.RTLD_NOLOAD)
    except OSError:
        return None
    return _described(opened, NAME)


def _described(opened: ctypes.CDLL, name: str) -> Copy | None:
    try:
        ask = opened.cuDriverGetVersion
    except AttributeError:
        return None
    number = ctypes.c_int()
    status = ask(ctypes.byref(number))
    file = _file_of(ctypes.cast(ask, ctypes.c_void_p).value) or name
    stub = status == _STUB or os.path.basename(os.path.dirname(os.path.realpath(file))) == "stubs"
    return Copy(opened, file, None if stub else number.value)


def _file_of(address: int | None) -> str | None:
    """Ask the loader from which file the code at an address is."""
    if os.name == "nt":
        return None
    try:
        ask = ctypes.CDLL(None).dladdr
    except AttributeError:
        return None
    info = _SymbolInfo()
    found = ask(ctypes.c_void_p(address), ctypes.byref(info))
    return os.fsdecode(info.file) if found and info.file else None


def _has_the_name(copy: Copy) -> bool:
    """Tell whether opening the library by its versioned name gives this very copy."""
    by_name = _mapped()
    return by_name is not None and by_name.library._handle == copy.library._handle


def _close(opened: ctypes.CDLL) -> None:
    if os.name != "nt":
        from _ctypes import dlclose

        dlclose(opened._handle)


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return one == other
