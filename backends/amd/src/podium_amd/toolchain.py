"""What compiles kernels, named for cache keys.

It stands apart from the compiling, since every process asks for the name and few compile: no library is opened, and
hip-python is not imported.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

from podium.errors import BackendError, ToolchainError

from podium_amd import rocm
from podium_amd._version import __version__

__all__ = ["INCLUDE", "hiprtc_path", "hiprtc_version", "toolchain"]

_FOLDER = os.path.dirname(os.path.abspath(__file__))

INCLUDE = os.path.join(_FOLDER, "include", "device")
"""The folder of headers for kernels: the names of CUDA's, and parts of the C++ library, which hipRTC has not."""

_known: dict[str, str] = {}  # what was found; failures are not kept


def toolchain(language: str) -> str:
    """Name the compiler for a language with its version, and the headers that it uses. Raises `ToolchainError`."""
    known = _known.get("toolchain")
    if known is None:
        library, folders = hiprtc_path(), rocm.include_folders(hiprtc_path())
        headers = f"headers in {', '.join(folders)}" if folders else "without the headers of ROCm"
        files = [library, *_compiler_behind(library), *folders]
        lines = [f"hipRTC {hiprtc_version()} ({library}), {headers}"]
        lines += [f"podium-amd {__version__}, {_own_files()}", *filter(None, map(_identity, files))]
        known = _known["toolchain"] = "\n".join(lines)
    return known


def hiprtc_path() -> str:
    """Return the file of the hipRTC that this process uses. Raises `ToolchainError` if there is none."""
    known = _known.get("hiprtc")
    if known is None:
        known = rocm.find_hiprtc(_runtime())
        if known is None:
            raise ToolchainError(
                "Kernels are compiled by hipRTC, and there is none. Install ROCm's hip-runtime-amd, Debian's "
                "libamdhip64-5 or libhiprtc6 or 7, or name the file by PODIUM_AMD_HIPRTC"
            )
        _known["hiprtc"] = known
    return known


def hiprtc_version() -> str:
    """Return the version of hipRTC as its file says it. Raises `ToolchainError`."""
    name = os.path.basename(os.path.realpath(hiprtc_path()))
    version = re.search(r"\.so\.(\d+(?:\.\d+)*)", name)
    return version[1] if version else name


def _runtime() -> str | None:
    """Return the file of the HIP runtime, if there is one: a machine that only compiles needs none."""
    with suppress(BackendError, OSError):
        from podium_amd import library

        return library.path()
    return None


def _compiler_behind(library: str) -> list[str]:
    """Return the files of the library that hipRTC calls to compile, where it lies beside it."""
    folder = os.path.dirname(os.path.realpath(library))
    with suppress(OSError):
        return sorted(os.path.join(folder, each) for each in os.listdir(folder) if each.startswith("libamd_comgr.so"))
    return []


def _own_files() -> str:
    """Name what this backend puts beside the user's text, and what chooses hipRTC's options, by size and date."""
    found = [os.stat(os.path.join(_FOLDER, name)) for name in ("compiler.py", "options.py", "arch.py")]
    for folder, _, names in os.walk(INCLUDE):
        found += [os.stat(os.path.join(folder, name)) for name in names]
    size, newest = sum(each.st_size for each in found), max(each.st_mtime_ns for each in found)
    return f"{size} bytes of {newest}"


def _identity(path: str) -> str:
    """Name a file by what changes when it is replaced."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{path} {status.st_size} {status.st_mtime_ns}"
