"""Whether the parameters of a compiled kernel are those of its signature."""

from __future__ import annotations

from podium.backend import Entry

from podium_nvidia.cubin import Cubin

__all__ = ["mismatch"]


def mismatch(cubin: Cubin, entry: Entry, symbol: str) -> str | None:
    """Compare number and sizes of a kernel's parameters with its signature; say what differs, or None."""
    kernel = cubin.kernel(symbol)
    if kernel is None:
        return None
    passed, found = entry.signature.passed, kernel.parameters
    if len(passed) != len(found):
        return f"kernel {entry.name!r}: its signature has {len(passed)} parameters, the code has {len(found)}"
    for number, (parameter, size) in enumerate(zip(passed, found), 1):
        kind = parameter.type
        if size != kind.size:
            return (
                f"kernel {entry.name!r}, parameter {parameter.name!r} (number {number}): the signature says {kind} "
                f"of {kind.size} bytes, the code has {size} bytes"
            )
    return None
