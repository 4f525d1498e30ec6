"""hip-python, on the libraries that podium has chosen.

hip-python looks for a library when its first function is called, by names that distributions do not ship, and opens it
beside one that the process may have already. So it is told which files to open; `steer` is the only place where that
is done, since it rests on a function of hip-python's that its manual does not have.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from podium.errors import BackendError, PodiumError, ToolchainError

from podium_amd import library

__all__ = ["FAILURES", "INSTALL", "hip", "hiprtc", "own_path", "steer"]

INSTALL = "pip install 'hip-python>=10.0.0.0.1.2,<11'"

FAILURES = (ImportError, OSError, RuntimeError, AttributeError, LookupError, SyntaxError, TypeError, ValueError)
"""What importing hip-python raises where it is missing, incomplete, or not made for this Python."""

_chosen: dict[str, Callable[[], str]] = {}


@cache
def hip() -> Any:
    """Return ``rocm.bindings.hip`` on the library of `podium_amd.library`. Raises `BackendError`."""
    path = library.path()
    try:
        steer("amdhip64", library.path)
        from rocm.bindings import hip
    except FAILURES as error:
        raise BackendError(
            f"Launches of the interpreted level need hip-python, which cannot be imported here: "
            f"{type(error).__name__}: {error}. Install it: {INSTALL}"
        ) from error
    hip.has_symbol("hipModuleLaunchKernel")  # opens it
    if len(library.mapped()) > 1:  # hip-python had been used before podium was
        raise BackendError(f"hip-python has another copy of the HIP runtime open than podium, {path}")
    return hip


@cache
def hiprtc() -> Any:
    """Return ``rocm.bindings.hiprtc`` on the file of `podium_amd.toolchain`. Raises `ToolchainError`."""
    from podium_amd.toolchain import hiprtc_path

    hiprtc_path()
    try:
        steer("hiprtc", hiprtc_path)
        from rocm.bindings import hiprtc
    except FAILURES as error:
        raise ToolchainError(
            f"hipRTC is called through hip-python, which cannot be imported: {type(error).__name__}: {error}. Install "
            f"it: {INSTALL}"
        ) from error
    return hiprtc


def steer(name: str, path: Callable[[], str]) -> None:
    """Let hip-python open, for a library such as "amdhip64", the file that `path` gives.

    It asks once, in its first call of a function of that library. Raises ImportError without hip-python.
    """
    from rocm.bindings.util import paths

    _chosen[name] = path
    before = paths.get_library_path
    if getattr(before, "_is_podium", False):
        return

    def get_library_path(shortname: str, *args: Any, **keywords: Any) -> bytes:
        chosen = _chosen.get(shortname)
        return os.fsencode(chosen()) if chosen is not None else before(shortname, *args, **keywords)

    get_library_path._is_podium = True  # type: ignore[attr-defined]
    get_library_path._before = before  # type: ignore[attr-defined]
    paths.get_library_path = get_library_path


def own_path(name: str) -> str | None:
    """Return what hip-python would open of its own accord: a file, or a name for the loader; None without it."""
    try:
        from rocm.bindings.util import paths
    except FAILURES:  # what needs hip-python says so
        return None
    ask = getattr(paths.get_library_path, "_before", paths.get_library_path)
    try:
        return os.fsdecode(ask(name))
    except (OSError, RuntimeError, PodiumError):
        return None
