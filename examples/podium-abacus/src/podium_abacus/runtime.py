"""The vendor's library, by ctypes. Importing this module opens nothing; the first call of `library` does."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any

__all__ = ["LIBRARY", "library"]

LIBRARY = "libabacus.so.1"

_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "abacusVersion": (c_int, []),
    "abacusMemory": (c_uint64, []),
    "abacusErrorText": (c_char_p, [c_int]),
    "abacusMalloc": (c_int, [POINTER(c_void_p), c_uint64]),
    "abacusFree": (None, [c_void_p]),
    "abacusCopy": (c_int, [c_void_p, c_void_p, c_uint64]),
    "abacusLoad": (c_int, [POINTER(c_void_p), c_char_p, c_uint64]),
    "abacusUnload": (None, [c_void_p]),
    "abacusFind": (c_int, [POINTER(c_void_p), c_void_p, c_char_p]),
    "abacusLaunch": (c_int, [c_void_p, POINTER(c_uint32), POINTER(c_uint32), POINTER(c_void_p)]),
    "abacusWait": (c_int, []),
}


@cache
def library() -> ctypes.CDLL:
    """Open the library. Raises OSError if that is not possible; it is tried again then."""
    opened = ctypes.CDLL(LIBRARY)
    for name, (result, parameters) in _FUNCTIONS.items():
        function = getattr(opened, name)
        function.restype, function.argtypes = result, parameters
    return opened
