"""Whether OpenCL can be used here, found out without a call of it.

Each call of OpenCL starts all platforms, which open their devices and start threads: after that a fork is broken. The
OpenCL library itself is not opened either: that of pyopencl's wheels asks, as soon as it is loaded, where pyopencl is,
and finds no platform there if pyopencl has not said so by then. So what is looked at is what installations leave:
pyopencl, files that name the libraries of platforms, and those libraries.
Whether a platform has a device with shared virtual memory is seen only when OpenCL is used; if it has none, that is
the reason from then on, for as long as the process lives.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

__all__ = ["inactive_reason", "note_unusable"]

_VENDORS = "/etc/OpenCL/vendors"
_POCL = "PoCL runs on every processor: pip install podium-opencl[pocl], or install pocl-opencl-icd"

_unusable: dict[int, str] = {}  # by process, since a forked child may try again


def note_unusable(reason: str) -> None:
    """Note why OpenCL turned out not to be usable when it was used."""
    _unusable[os.getpid()] = reason


def inactive_reason() -> str | None:
    """Say why no OpenCL device can be used, and what to do; None if there is no reason against it."""
    package = _package()
    if package is None:
        return "pyopencl is not installed: pip install pyopencl"
    return _platform_reason(package) or _unusable.get(os.getpid())


def _package() -> Path | None:
    """Return the folder of pyopencl, which is not imported: that would import numpy."""
    try:
        spec = find_spec("pyopencl")
    except (ImportError, ValueError):
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _platform_reason(package: Path) -> str | None:
    files = list(_icd_files(package))
    if not files:
        where = " and ".join(map(str, dict.fromkeys(_icd_folders(package))))
        return f"no OpenCL platform is installed: no file .icd in {where}. Install your device's. {_POCL}"
    missing = []
    for file in files:
        library = _library_of(file)
        if library is not None and (not os.path.isabs(library) or os.path.exists(library)):
            return None
        missing.append(f"{file} names {library or 'no library'}")
    return (
        f"no OpenCL platform can be opened: {'; '.join(missing)}, and there is no such file. Install it again. {_POCL}"
    )


def _icd_folders(package: Path) -> list[Path]:
    """Return where platforms are looked for: variables stand for the system's folder; wheels have one beside them."""
    named = os.environ.get("OCL_ICD_VENDORS") or os.environ.get("OPENCL_VENDOR_PATH") or _VENDORS
    return [Path(named), package / ".libs"]


def _icd_files(package: Path) -> Iterator[Path]:
    for place in _icd_folders(package):
        try:
            # OCL_ICD_VENDORS may also name one file
            yield from sorted(place.glob("*.icd")) if place.is_dir() else [place] if place.is_file() else []
        except OSError:
            continue


def _library_of(file: Path) -> str | None:
    if file.suffix != ".icd":  # the variable names the library itself
        return str(file)
    try:
        text = file.read_text("utf-8", "replace").strip()
    except OSError:
        return None
    if not text:
        return None
    name = text.splitlines()[0].strip()
    beside = file.parent / name
    return str(beside) if beside.exists() else name
