"""Where the parts of ROCm are: hipRTC and the headers of HIP. Nothing is opened here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from podium.errors import SettingError

from podium_amd.library import COMPILER_VARIABLE

__all__ = ["INSTALLED", "LOADER_TABLE", "find_hiprtc", "include_folders", "roots"]

LOADER_TABLE = "/etc/ld.so.cache"
"""The dynamic loader's table of libraries."""

INSTALLED = "/opt/rocm"
"""Where ROCm is that no variable names."""

_FILES = ("libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so")
_WITH_HIPRTC = "libamdhip64.so.5"  # the last version whose runtime has hipRTC in it

# A header of HIP's by which its folder is known.
_HEADER = "hip/hip_cooperative_groups.h"


def find_hiprtc(runtime: str | None) -> str | None:
    """Return the file of hipRTC; None if there is none. Raises `SettingError`.

    It is the one that PODIUM_AMD_HIPRTC names, else the one beside `runtime`, the file of the HIP runtime, else what
    a wheel or an installation of ROCm has, else what the loader knows: of HIP 5 that is the runtime itself.
    """
    named = os.environ.get(COMPILER_VARIABLE)
    if named:
        if not os.path.isfile(named):
            raise SettingError(COMPILER_VARIABLE, named, "the file of libhiprtc.so, which there is not")
        return named
    folders = [os.path.dirname(os.path.realpath(runtime))] if runtime else []
    folders += [os.path.join(root, "lib") for root in roots()]
    folders += filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))
    for folder in folders:
        for name in _FILES:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return path
    for name in (*_FILES, _WITH_HIPRTC):
        found = _by_loader(name)
        if found is not None:
            return found
    return next(
        (each for each in (os.path.join(folder, _WITH_HIPRTC) for folder in folders) if os.path.isfile(each)), None
    )


def include_folders(library: str | None) -> list[str]:
    """Return the folder of HIP's headers, in a list that is empty if there is none.

    Few kernels need any: hipRTC has its own declarations. The headers beside `library`, the file of hipRTC, come first.
    """
    candidates = []
    if library:
        prefix = os.path.dirname(os.path.dirname(os.path.realpath(library)))
        candidates.append(os.path.join(prefix, "include"))
    candidates += [os.path.join(root, "include") for root in roots()]
    return [each for each in candidates if os.path.isfile(os.path.join(each, _HEADER))][:1]


def roots() -> Iterator[str]:
    """Give the folders where ROCm may be installed: what the variables name, and where it is by default."""
    for name in ("ROCM_PATH", "ROCM_HOME", "HIP_PATH"):
        value = os.environ.get(name)
        if value:
            yield value
    yield INSTALLED


def _by_loader(name: str) -> str | None:
    """Look into the dynamic loader's own table, which is a text of names and paths with zeros between them."""
    try:
        with open(LOADER_TABLE, "rb") as file:
            table = file.read()
    except OSError:
        return None
    match = re.search(rb"/[^\0]*/" + re.escape(name.encode()) + rb"\0", table)
    path = os.fsdecode(match[0][:-1]) if match else ""
    return path if os.path.isfile(path) else None
