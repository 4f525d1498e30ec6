"""What compiles kernels: the host's C++ compiler and this backend's headers, named for cache keys.

It stands apart from the compiling, since every process that launches asks for the name, and few compile.
"""

from __future__ import annotations

import functools
import os

from podium_cpu._version import __version__

__all__ = ["INCLUDE", "RUNTIME", "headers_digest", "toolchain"]

_FOLDER = os.path.dirname(os.path.abspath(__file__))

INCLUDE = os.path.join(_FOLDER, "include")
"""The folder of this backend's headers."""

RUNTIME = os.path.join(_FOLDER, "runtime")
"""The folder of what runs kernels."""


def toolchain(language: str) -> str:
    """Name the compiler with its version, and this backend with its headers. Raises `ToolchainError`."""
    from podium.backend import compiler_identity

    return f"podium-cpu {__version__} {headers_digest()}\n{compiler_identity('c++')}"


@functools.lru_cache(maxsize=1)
def headers_digest() -> str:
    """Return a digest of all that is compiled beside the user's text, and of what rewrites it."""
    from podium.backend import folder_digest

    return folder_digest(_FOLDER)
