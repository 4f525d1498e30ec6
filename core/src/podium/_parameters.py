"""The bytes of a launch's parameters, as drivers take them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

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
        data = bytearray()
        for offset, value in zip(offsets, values):
            data += bytes(offset - len(data)) + value
        return Parameters(bytes(data), offsets)

    def addresses(self) -> ctypes.Array[ctypes.c_void_p]:
        """Return an array of the address of each parameter. The memory lives as long as the array."""
        storage = ctypes.create_string_buffer(len(self.data) + MOST_ALIGNED)
        base = -(-ctypes.addressof(storage) // MOST_ALIGNED) * MOST_ALIGNED
        ctypes.memmove(base, self.data, len(self.data))
        array = (ctypes.c_void_p * max(1, len(self.offsets)))(*(base + offset for offset in self.offsets))
        array.storage = storage  # type: ignore[attr-defined]  # keeps the memory alive
        return array


def parameter_offsets(signature: Signature, scratch: int) -> tuple[int, ...]:
    """Return the offset of each parameter that the binary has, then of `scratch` hidden pointers."""
    offsets, position = [], 0
    sizes = [(parameter.type.size, parameter.type.alignment) for parameter in signature.passed] + [(8, 8)] * scratch
    for size, alignment in sizes:
        position = -(-position // alignment) * alignment
        offsets.append(position)
        position += size
    return tuple(offsets)
