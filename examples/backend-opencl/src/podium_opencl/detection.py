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
from importlib.util import find_spec
from pathlib import Path

__all__ = ["inactive_reason", "note_unusable", "platform_reason"]

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
    return platform_reason(package) or _unusable.get(os.getpid())


def _package() -> Path | None:
    """Return the folder of pyopencl, which is not imported: that would import numpy."""
    try:
        spec = find_spec("pyopencl")
    except (ImportError, ValueError):
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def platform_reason(package: Path) -> str | None:
    """Say why no OpenCL platform can be opened, where pyopencl is in a folder; None if one looks well.

    Its wheels look into a folder of their own beside the system's, for which two variables stand.
    """
    named = os.environ.get("OCL_ICD_VENDORS")
    if named and not os.path.exists(named):
        return f"OCL_ICD_VENDORS is {named!r}, and there is nothing of that name: correct it, or leave it out"
    places = [Path(named or os.environ.get("OPENCL_VENDOR_PATH") or _VENDORS), package / ".libs"]
    files = [file for place in places for file in _icd_files(place)]
    if not files:
        where = " and ".join(map(str, places))
        return f"no OpenCL platform is installed: no file .icd in {where}. Install your device's. {_POCL}"
    missing = []
    for file in files:
        library = _library_of(file)
        if library is not None and (not os.path.isabs(library) or os.path.exists(library)):
            return None
        missing.append(f"{file} names {library or 'no library'}")
    return f"no OpenCL platform can be opened: {'; '.join(missing)}, and there is no such file. {_POCL}"


def _icd_files(place: Path) -> list[Path]:
    try:
        # OCL_ICD_VENDORS may also name one file
        return sorted(place.glob("*.icd")) if place.is_dir() else [place] if place.is_file() else []
    except OSError:
        return []


def _library_of(file: Path) -> str | None:
    """Return the library that a file names: a path, or a name that the dynamic linker knows."""
    if file.suffix != ".icd":  # it is the library itself
        return str(file)
    try:
        lines = file.read_text("utf-8", "replace").split()
    except OSError:
        return None
    if not lines:
        return None
    beside = file.parent / lines[0]
    return str(beside) if beside.exists() else lines[0]
