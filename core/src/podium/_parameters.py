"""The bytes of a launch's parameters, as drivers take them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any

from podium._record import record
from podium._signature import MOST_ALIGNED, Signature

__all__ = ["LARGEST", "Parameters", "parameter_offsets"]

LARGEST = 1 << 16
"""The most bytes of parameters of any launch: they pass over the stack of the calling thread."""


@record(frozen=True)
class Parameters:
    """The bytes of a kernel's parameters: one after the other with their natural alignment, at `offsets`."""

    data: bytes
    offsets: tuple[int, ...]

    @staticmethod
    def lay_out(values: Sequence[bytes], offsets: tuple[int, ...]) -> Parameters:
        """Put each value at its offset."""
        data = b"".join(values)
        if offsets and len(data) != offsets[-1] + len(values[-1]):  # there is room between them
            pieces, position = [], 0
            for offset, value in zip(offsets, values):
                pieces += [bytes(offset - position), value]
                position = offset + len(value)
            data = b"".join(pieces)
        return Parameters(data, offsets)

    def addresses(self) -> ctypes.Array[ctypes.c_void_p]:
        """Return an array of the address of each parameter. The memory lives as long as the array."""
        memory_type, array_type, put, put_addresses, start = _memory(len(self.data), len(self.offsets))
        memory = memory_type()
        base = ctypes.addressof(memory) + start + MOST_ALIGNED - 1 & -MOST_ALIGNED
        put(memory, base - ctypes.addressof(memory), self.data)
        put_addresses(memory, 0, *[base + offset for offset in self.offsets])
        array: ctypes.Array[ctypes.c_void_p] = array_type.from_address(ctypes.addressof(memory))
        array.memory = memory  # type: ignore[attr-defined]  # keeps it alive
        return array


@lru_cache(maxsize=256)
def _memory(size: int, count: int) -> tuple[Any, Any, Callable[..., None], Callable[..., None], int]:
    """Return types for memory and for the addresses at its start, what writes both, and where the parameters begin."""
    start = 8 * max(1, count)
    memory_type = ctypes.c_char * (start + size + MOST_ALIGNED)
    array_type = ctypes.c_void_p * max(1, count)
    return memory_type, array_type, Struct(f"{size}s").pack_into, Struct(f"={count}Q").pack_into, start


def parameter_offsets(signature: Signature, scratch: int) -> tuple[int, ...]:
    """Return the offset of each parameter that the binary has, then of `scratch` hidden pointers."""
    offsets, position = [], 0
    sizes = [(parameter.type.size, parameter.type.alignment) for parameter in signature.passed] + [(8, 8)] * scratch
    for size, alignment in sizes:
        position = -(-position // alignment) * alignment
        offsets.append(position)
        position += size
    return tuple(offsets)
