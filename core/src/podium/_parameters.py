"""The bytes of a launch's parameters, as drivers take them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from struct import Struct

from podium._signature import MOST_ALIGNED, Signature, Type

__all__ = ["LARGEST", "Layout", "Parameters", "value_code"]

LARGEST = 1 << 16
"""The most bytes of parameters of any launch: they pass over the stack of the calling thread."""

# What struct packs as C does.
_CODES = {"i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
_CODES |= {"fp32": "f", "fp64": "d"}


def value_code(type: Type) -> str:
    """Return the letter by which `struct` packs values of a type; for what it does not know, that of as many bytes."""
    return "Q" if type.kind == "pointer" else _CODES.get(type.spelling) or f"{type.size}s"


class Parameters:
    """The bytes of a kernel's parameters: one after the other with their natural alignment, at `offsets`.

    `pointer` is the address of an array of the address of each parameter. Launches use the memory again: what
    `Driver.launch` is given says something else after it has returned.
    """

    __slots__ = ("_array", "_start", "memory", "offsets", "pointer", "size", "start")

    def __init__(self, data: bytes, offsets: tuple[int, ...]) -> None:
        self.offsets, self.size = offsets, len(data)
        count = max(1, len(offsets))
        self.memory = (ctypes.c_char * (8 * count + self.size + MOST_ALIGNED))()
        self.pointer = ctypes.addressof(self.memory)
        base = self.pointer + 8 * count + MOST_ALIGNED - 1 & -MOST_ALIGNED
        self.start = base - self.pointer
        ctypes.memmove(base, data, self.size)
        self._array: ctypes.Array[ctypes.c_void_p] = (ctypes.c_void_p * count).from_buffer(self.memory)
        for index, offset in enumerate(offsets):
            self._array[index] = base + offset

    @property
    def data(self) -> bytes:
        """The bytes; those between the parameters are 0."""
        return ctypes.string_at(self.pointer + self.start, self.size)

    def addresses(self) -> ctypes.Array[ctypes.c_void_p]:
        """Return the array of the address of each parameter. The memory lives as long as the array."""
        return self._array


class Layout:
    """Where the parameters of a kernel lie: those that the binary has, then `scratch` hidden pointers.

    It keeps the memory that launches are done with, for the next ones.
    """

    def __init__(self, signature: Signature, scratch: int) -> None:
        offsets, position, codes = [], 0, ["="]
        types = [(each.type.size, each.type.alignment, value_code(each.type)) for each in signature.passed]
        for size, alignment, code in types + [(8, 8, "Q")] * scratch:
            start = -(-position // alignment) * alignment
            codes += ["x" * (start - position), code]
            offsets.append(start)
            position = start + size
        self.offsets, self.size = tuple(offsets), position
        self._write = Struct("".join(codes)).pack_into
        self._free: list[Parameters] = []
        self.give_back = self._free.append
        """Keep the memory of a launch that the driver has returned from."""

    def lay_out(self, values: Sequence[object]) -> Parameters:
        """Put each value at its offset: numbers, and bytes where `value_code` says so.

        Launches in other threads, and those that interrupt this one, have memory of their own.
        """
        try:
            parameters = self._free.pop()
        except IndexError:
            parameters = Parameters(bytes(self.size), self.offsets)
        self._write(parameters.memory, parameters.start, *values)
        return parameters
