"""Which of the interpreters of a process runs this code."""

from __future__ import annotations

__all__ = ["is_main_interpreter"]


def is_main_interpreter() -> bool:
    """Tell whether it is the main one. Others cannot end while a thread of theirs works, nor import every module."""
    import ctypes

    function = ctypes.PYFUNCTYPE(ctypes.c_void_p)
    current, main = (
        function((f"PyInterpreterState_{which}", ctypes.pythonapi))()  # type: ignore[call-overload, unused-ignore]
        for which in ("Get", "Main")
    )
    return bool(current == main)
