"""Export of memory as a DLPack capsule, by a small C module that is built on first use."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any

from podium._element_types import ElementType
from podium._extension import INCLUDE_DIR, Extension
from podium.errors import CompileError

__all__ = ["export", "exporter"]


def exporter() -> Extension:
    """Return the C module, built or not."""
    file = INCLUDE_DIR / "podium_dlpack.c"
    return Extension("dlpack", "podium_dlpack", lambda: file.read_text(encoding="utf-8"), files=(file,))


@lru_cache(maxsize=1)
def _module() -> ModuleType:
    return exporter().build()


def export(
    owner: object,
    address: int,
    device: tuple[int, int],
    element: ElementType,
    shape: tuple[int, ...],
    max_version: tuple[int, int] | None,
) -> Any:
    """Return a capsule for C-contiguous memory; `owner` lives until the consumer is done with it.

    Raises BufferError if there is no C compiler to build the exporter with.
    """
    try:
        module = _module()
    except CompileError as error:
        raise BufferError(f"Exporting an array through DLPack needs a C compiler once: {error}") from error
    versioned = max_version is not None and max_version[0] >= 1
    # an address is handed over as the signed number with the same bits
    signed = address - (1 << 64) if address >= 1 << 63 else address
    return module.export(owner, (signed, *device, element.code, element.bits, int(versioned)), shape)
