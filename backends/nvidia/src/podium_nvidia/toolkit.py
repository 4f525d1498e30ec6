"""Where the parts of the CUDA toolkit are: NVRTC, nvJitLink and the headers, in wheels or in an installed toolkit.

Nothing is opened here: every process asks which compiler would be used, and few compile.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator

from podium.errors import SettingError

__all__ = [
    "INSTALLED",
    "LOADER_TABLE",
    "NVRTC_VARIABLE",
    "find_library",
    "include_folders",
    "library_folders",
    "named_library",
    "places",
    "toolkit_root",
]

NVRTC_VARIABLE = "PODIUM_NVIDIA_NVRTC"
"""The variable that names the file of NVRTC, before anything else."""

_VARIABLES = {"nvrtc": NVRTC_VARIABLE, "nvJitLink": "PODIUM_NVIDIA_NVJITLINK"}

# As the wheels of CUDA 13 and those of CUDA 12 have them.
_WHEEL_FOLDERS = {
    "nvrtc": ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"),
    "nvJitLink": ("nvidia/cu13/lib", "nvidia/nvjitlink/lib"),
}
_WHEEL_HEADERS = (
    "nvidia/cu13/include",
    "nvidia/cu13/include/cccl",
    "nvidia/cuda_runtime/include",
    "nvidia/cuda_cccl/include",
    "nvidia/cuda_nvcc/include",
    "nvidia/curand/include",
)

# A header of each part of the toolkit: the runtime, CCCL with cuda/std and CUB, the compiler, cuRAND.
_PARTS = ("cuda_fp16.h", "cuda/std/version", "crt/mma.h", "curand_kernel.h")

_MAJORS = (13, 12)  # the newest first, as cuda-python looks for them

_TOOLKIT_FOLDERS = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")

LOADER_TABLE = "/etc/ld.so.cache"
"""The dynamic loader's table of libraries."""

INSTALLED = "/usr/local/cuda"
"""Where a toolkit is that no variable names."""


def find_library(name: str) -> str | None:
    """Return the file of a library, "nvrtc" or "nvJitLink"; None if there is none. Raises `SettingError`."""
    named = named_library(name)
    if named is not None:
        return named
    for folder in library_folders(name):
        for file in _file_names(name):
            path = os.path.join(folder, file)
            if os.path.isfile(path):
                return path
    return _by_loader(name)


def named_library(name: str) -> str | None:
    """Return the file that a library's variable names, if it does. Raises `SettingError` if there is no such file."""
    named = os.environ.get(_VARIABLES[name]) or None
    if named is not None and not os.path.isfile(named):
        raise SettingError(_VARIABLES[name], named, f"the file of lib{name}.so, which there is not")
    return named


def library_folders(name: str) -> Iterator[str]:
    """Give the folders where a library is looked for, in order: wheels, conda, the loader's variable, the toolkit."""
    for entry in _wheel_homes():
        yield from (os.path.join(entry, folder) for folder in _WHEEL_FOLDERS[name])
    conda = os.environ.get("CONDA_PREFIX")
    if conda:
        yield os.path.join(conda, "lib")
    yield from filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))
    for root in _roots():
        for folder in _TOOLKIT_FOLDERS:
            yield os.path.join(root, folder)


def places() -> list[str]:
    """Return what the places depend on where the toolkit's parts are looked for, beside files."""
    variables = ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "LD_LIBRARY_PATH", "PATH")
    return [*(str(each) for each in sys.path), *(os.environ.get(name, "") for name in variables)]


def include_folders(library: str | None) -> list[str]:
    """Return the folders of the toolkit's headers, for each part of it the first that there is.

    Wheels come first, unless `library`, the file of NVRTC, is from an installed toolkit, which has headers of its own
    version. What the one has not is taken from the next: conda, CUDA_PATH, CUDA_HOME, the nvcc on the path.
    """
    found: dict[str, None] = {}
    missing = list(_PARTS)
    for folder in _header_folders(library):
        there = [part for part in missing if os.path.isfile(f"{folder}/{part}")] if os.path.isdir(folder) else ()
        if there:
            found[folder] = None
            missing = [part for part in missing if part not in there]
            if not missing:
                break
    return list(found)


def _header_folders(library: str | None) -> Iterator[str]:
    root = toolkit_root(library) if library else None
    if root is not None:
        yield from _headers_of(root)
    entries = _wheel_homes()
    yield from (os.path.join(entry, folder) for folder in _WHEEL_HEADERS for entry in entries)
    for root in filter(None, (os.environ.get("CONDA_PREFIX"), *_roots())):
        yield from _headers_of(root)


def toolkit_root(library: str) -> str | None:
    """Return the folder of the installed toolkit that a library belongs to; None if it is from a wheel or alone."""
    folder = os.path.dirname(os.path.realpath(library))
    for each in _TOOLKIT_FOLDERS:
        if folder.endswith(os.sep + each):
            root = folder[: -len(each) - 1]
            above, name = os.path.split(root)
            is_wheel = os.path.basename(above) == "nvidia" and name.isidentifier()
            if not is_wheel and next(_headers_of(root), None):
                return root
    return None


def _headers_of(root: str) -> Iterator[str]:
    """Give the folders of headers in a toolkit; newer ones keep CCCL in one of its own."""
    for inner in ("include", "targets/x86_64-linux/include", "targets/sbsa-linux/include"):
        folder = os.path.join(root, inner)
        if os.path.isfile(os.path.join(folder, _PARTS[0])):
            yield folder
            yield os.path.join(folder, "cccl")
            return


def _wheel_homes() -> list[str]:
    """Return where wheels of NVIDIA's are: few of the folders that modules are imported from have any."""
    return [each for each in sys.path if each and os.path.isdir(f"{each}/nvidia")]


def _roots() -> Iterator[str]:
    for name in ("CUDA_PATH", "CUDA_HOME"):
        value = os.environ.get(name)
        if value:
            yield value
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        nvcc = os.path.join(folder, "nvcc")
        if folder and os.path.isfile(nvcc):
            yield os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
            break
    yield INSTALLED


def _file_names(name: str) -> Iterator[str]:
    for major in _MAJORS:
        yield f"lib{name}.so.{major}"


def _by_loader(name: str) -> str | None:
    """Look into the dynamic loader's own table, which is a text of names and paths with zeros between them."""
    try:
        with open(LOADER_TABLE, "rb") as file:
            table = file.read()
    except OSError:
        return None
    for each in _file_names(name):
        match = re.search(rb"/[^\0]*/" + re.escape(each.encode()) + rb"\0", table)
        if match:
            path = os.fsdecode(match[0][:-1])
            if os.path.isfile(path):
                return path
    return None
