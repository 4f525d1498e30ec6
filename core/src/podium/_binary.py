"""Binaries that other tools made, before anything is known of what is in them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from podium._program import Entry
from podium.errors import LoadError

__all__ = ["find_symbols", "read_binary"]


def read_binary(source: str | Path | bytes) -> tuple[bytes, str]:
    """Return the bytes of a file, or bytes as they are, and what messages call them. Raises `LoadError`."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), "The binary"
    try:
        return Path(source).read_bytes(), os.fspath(source)
    except (OSError, ValueError) as error:  # a path that cannot be one is a ValueError
        raise LoadError(f"{os.fspath(source)} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def find_symbols(entries: Iterable[Entry], symbols: Iterable[str], label: str) -> dict[str, str]:
    """Return the symbols of entries that are named as in C++, as ``lib::saxpy``; others have their own name.

    They are mangled as the Itanium C++ ABI says. `label` is what messages call the binary. Raises `LoadError` for an
    entry that is not there, or that is there with several lists of parameters.
    """
    known = list(symbols)
    found = {}
    for entry in entries:
        if entry.name in known:
            continue
        parts = entry.name.split("::")
        nested = "".join(f"{len(part)}{part}" for part in parts)
        beginning = f"_Z{nested}" if len(parts) == 1 else f"_ZN{nested}E"
        fitting = [each for each in known if each.startswith(beginning)]
        if not fitting:
            names = ", ".join(known) or "none"
            raise LoadError(f"{label} has no kernel {entry.name!r}; it has: {names}", kernel=entry.name)
        if len(fitting) > 1:
            text = f"{label} has several kernels {entry.name!r}; name one by its symbol: {', '.join(fitting)}"
            raise LoadError(text, kernel=entry.name)
        found[entry.name] = fitting[0]
    return found
