"""What compiles kernels: the host's C++ compiler and this backend's headers, named for cache keys.

It stands apart from the compiling, since every process that launches asks for the name, and few compile.
"""

from __future__ import annotations

import functools
import os

from podium.errors import ToolchainError

from podium_cpu._version import __version__

__all__ = ["INCLUDE", "RUNTIME", "check_unchanged", "headers_digest", "toolchain"]

_FOLDER = os.path.dirname(os.path.abspath(__file__))

INCLUDE = os.path.join(_FOLDER, "include")
"""The folder of this backend's headers."""

RUNTIME = os.path.join(_FOLDER, "runtime")
"""The folder of what runs kernels."""


def toolchain(language: str) -> str:
    """Name the compiler with its version, and this backend with its headers. Raises `ToolchainError`."""
    from podium.backend import compiler_identity

    return f"{compiler_identity('c++')}\npodium-cpu {__version__} {headers_digest()}"


@functools.lru_cache(maxsize=1)
def headers_digest() -> str:
    """Return a digest of all that is compiled beside the user's text, and of what rewrites it.

    A process takes it as it is at first. Raises `ToolchainError` if the files are gone.
    """
    return _digest()


def check_unchanged() -> None:
    """Raise `ToolchainError` if the files are others by now: their code would stand under a key that is not theirs."""
    if _digest() != headers_digest():
        raise ToolchainError(
            f"podium-cpu in {_FOLDER} was upgraded or changed since this process began to use it. Restart the process"
        )


def _digest() -> str:
    from podium.backend import folder_digest

    try:
        return folder_digest(_FOLDER)
    except OSError as error:
        raise ToolchainError(
            f"podium-cpu cannot be read ({error}): it was removed while this process runs. Install it again"
        ) from None
