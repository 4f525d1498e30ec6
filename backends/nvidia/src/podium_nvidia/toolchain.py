"""What compiles kernels, named for cache keys.

It stands apart from the compiling, since every process asks for the name and few compile: no library is opened for it,
and neither cuda-python nor its pathfinder is imported.
"""

from __future__ import annotations

import ctypes
import os
import re

from podium.errors import ToolchainError

from podium_nvidia import toolkit
from podium_nvidia._version import __version__

__all__ = ["INCLUDE", "foresee", "nvrtc_path", "nvrtc_version", "open_foreseen", "toolchain"]

_FOLDER = os.path.dirname(os.path.abspath(__file__))

INCLUDE = os.path.join(_FOLDER, "include", "device")
"""The folder of headers for kernels: parts of the C++ library, which NVRTC has not, and the names of HIP's headers."""

_known: dict[str, str] = {}  # what was found, by language and by name of library; failures are not kept
_foreseen: dict[tuple[str, ...], str] = {}  # by NVRTC, and by the places where headers are looked for


def toolchain(language: str) -> str:
    """Name the compiler for a language with its version, and the headers that it uses. Raises `ToolchainError`."""
    known = _known.get(language)
    if known is None:
        known = _known[language] = _describe(language)
    return known


def nvrtc_path() -> str:
    """Return the file of the NVRTC that this process uses. Raises `ToolchainError` if there is none."""
    known = _known.get("nvrtc")
    if known is None:
        known = _known["nvrtc"] = _find_nvrtc()
    return known


def nvrtc_version() -> str:
    """Return the version of NVRTC as its files say it, such as 13.0. Raises `ToolchainError`."""
    library = nvrtc_path()
    return _version_of((_builtins(library) or [library])[-1])


def _describe(language: str) -> str:
    if language != "cuda":
        linker = toolkit.find_library("nvJitLink")
        if linker is None:  # and what it then makes of the code is not kept by podium
            return f"the NVIDIA driver\npodium-nvidia {__version__}"
        return f"nvJitLink {_version_of(linker)} ({linker})\npodium-nvidia {__version__}\n{_identity(linker)}"
    library = nvrtc_path()
    return _foreseen.get((library, *toolkit.places())) or _describe_nvrtc(library)


def foresee() -> None:
    """Find out what `toolchain` will say of CUDA C++; it looks again if the process has another NVRTC by then."""
    library = _find_nvrtc()
    place = library, *toolkit.places()
    _foreseen[place] = _describe_nvrtc(library)


def open_foreseen() -> None:
    """Open the NVRTC that was found by `foresee`, which takes a fifth of the time of a first compilation."""
    for library, *_ in list(_foreseen):
        ctypes.CDLL(library)


def _describe_nvrtc(library: str) -> str:
    builtins = _builtins(library)
    title = f"NVRTC {_version_of((builtins or [library])[-1])} ({library})"
    lines = [f"podium-nvidia {__version__}, {_own_files()}", *filter(None, map(_identity, [library, *builtins]))]
    folders = []
    for folder in toolkit.include_folders(library):
        found = [name for marker in _HEADER_MARKERS if (name := _identity(os.path.join(folder, marker)))]
        if found:
            folders.append(folder)
            lines += found
    headers = f"headers in {', '.join(folders)}" if folders else "without the headers of CUDA"
    return "\n".join([f"{title}, {headers}", *lines])


def _builtins(library: str) -> list[str]:
    """Return the files beside NVRTC that it opens itself; their names have the version that its own may lack."""
    folder = os.path.dirname(library)
    try:
        names = sorted(each for each in os.listdir(folder) if each.startswith("libnvrtc-builtins.so"))
    except OSError:
        return []
    return [os.path.join(folder, each) for each in names]


def _version_of(library: str) -> str:
    """Return the version in the name of a library's file."""
    name = os.path.basename(os.path.realpath(library))
    version = re.search(r"\.so\.(\d+(?:\.\d+)*)", name)
    return version[1] if version else name


# Headers that another version of the toolkit or of CCCL has in another form.
_HEADER_MARKERS = (
    "cuda_runtime_api.h",
    "cuda_fp16.h",
    "cooperative_groups.h",
    "cuda/std/__cccl/version.h",
    "crt/mma.h",
)


def _own_files() -> str:
    """Name what this backend puts beside the user's text, and what chooses NVRTC's options, by size and date.

    `folder_digest` would read the cache for it, which takes longer than all the rest of the name.
    """
    folders = [INCLUDE, os.path.join(INCLUDE, "cub"), os.path.join(INCLUDE, "hip")]
    found = [each.stat() for folder in folders for each in os.scandir(folder)]
    found += [os.stat(os.path.join(_FOLDER, name)) for name in ("compiler.py", "options.py", "arch.py")]
    size, newest = sum(each.st_size for each in found), max(each.st_mtime_ns for each in found)
    return f"{size} bytes of {newest}"


def _identity(path: str) -> str:
    """Name a file by what changes when it is replaced."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def _find_nvrtc() -> str:
    named = toolkit.named_library("nvrtc")
    if named is not None:
        _check_alone(named)
        return named
    # cuda-python takes the copy that the process has, if there is one of a version that it knows: so does this.
    found = _mapped("libnvrtc.so.13") or toolkit.find_library("nvrtc")
    if found is None:
        found = _mapped("libnvrtc.so.12")
    elif _soname(found) == "libnvrtc.so.12":
        found = _mapped("libnvrtc.so.12") or found
    if found is None:
        raise ToolchainError(
            "CUDA C++ is compiled by NVRTC, and there is none. Install it: pip install 'podium-nvidia[nvrtc]'; or set "
            "CUDA_HOME to a CUDA toolkit"
        )
    return found


def _check_alone(named: str) -> None:
    """Raise `ToolchainError` if cuda-python would take a copy that is open in place of the one that is named."""
    mapped = _mapped("libnvrtc.so.13")
    if mapped is None and _soname(os.path.realpath(named)) != "libnvrtc.so.13":
        mapped = _mapped("libnvrtc.so.12")
    if mapped is not None and not os.path.samefile(mapped, named):
        raise ToolchainError(
            f"{toolkit.NVRTC_VARIABLE} names {named}, but this process has {mapped} open already, which cuda-python "
            f"uses then. Import podium's kernels before the library that brings it, or unset the variable"
        )


def _soname(path: str) -> str:
    return ".".join(os.path.basename(path).split(".")[:3])


def _mapped(soname: str) -> str | None:
    """Return the file of a library that the process has opened already."""
    try:
        ctypes.CDLL(soname, mode=ctypes.DEFAULT_MODE | os.RTLD_NOLOAD)
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
            paths = (line.split(None, 5)[-1].rstrip("\n") for line in file if f"/{soname}" in line)
            return next((path for path in paths if _soname(path) == soname), None)
    except OSError:
        return None
