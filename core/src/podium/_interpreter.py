"""Which of the interpreters of a process runs this code."""

from __future__ import annotations

__all__ = ["is_main_interpreter"]


def is_main_interpreter() -> bool:
    """Tell whether it is the main one. Others cannot end while a thread of theirs works, nor import every module."""
    import ctypes

    # Asked for by index, they are this function's own.
    current, main = ctypes.pythonapi["PyInterpreterState_Get"], ctypes.pythonapi["PyInterpreterState_Main"]
    current.restype = main.restype = ctypes.c_void_p
    return bool(current() == main())
