"""pyopencl, imported when OpenCL is first used, and the functions of the very OpenCL library that it uses.

pyopencl's wheels bring a loader of OpenCL platforms along; others use the system's. Handles of the one mean nothing to
the other, so the generated C must call the one that pyopencl calls. The names are therefore looked up from pyopencl's
own extension module: the dynamic linker then searches what that one was linked with, and nothing else.
"""

from __future__ import annotations

import ctypes
from functools import cache
from types import ModuleType
from typing import Any

from podium.errors import BackendError

from podium_opencl.detection import note_unusable

__all__ = ["address", "function", "opencl"]


@cache
def opencl() -> Any:
    """Return the module pyopencl. It takes a quarter of a second to import. Raises `BackendError`."""
    try:
        import pyopencl
    except Exception as error:  # whatever a broken installation raises
        reason = f"pyopencl cannot be imported: {type(error).__name__}: {error}. Install it again: pip install pyopencl"
        note_unusable(reason)
        raise BackendError(reason) from error
    module: ModuleType = pyopencl
    return module


@cache
def _library() -> ctypes.CDLL:
    file = opencl()._cl.__file__
    return ctypes.CDLL(file)


def function(name: str, result: Any, *arguments: Any) -> Any:
    """Return a function of the OpenCL library; calls let go of the interpreter lock."""
    prototype = ctypes.CFUNCTYPE(result, *arguments)
    return prototype((name, _library()))


@cache
def address(name: str) -> int:
    """Return the address of a function of the OpenCL library."""
    return ctypes.cast(getattr(_library(), name), ctypes.c_void_p).value or 0
