"""SHA-256, without the library that the module `hashlib` loads."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import hashlib

__all__ = ["sha256"]

_LARGE = 1 << 20

_own: Any = None
with suppress(ImportError):  # an interpreter may leave all of it to hashlib
    _own = import_module("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256


def sha256(*pieces: bytes) -> hashlib._Hash:
    """Return the SHA-256 digest of the pieces, one after the other, as hashlib would."""
    digest = _digest_for(sum(map(len, pieces)))
    for piece in pieces:
        digest.update(piece)
    return digest


def _digest_for(size: int) -> hashlib._Hash:
    # Loading hashlib loads a cryptographic library, which takes longer than the interpreter's own code needs for
    # anything but large data.
    if _own is not None and "hashlib" not in sys.modules and size < _LARGE:
        digest: hashlib._Hash = _own()
        return digest
    import hashlib

    return hashlib.sha256()
