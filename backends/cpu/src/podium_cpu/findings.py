"""What the sanitizers have found in a kernel, in words: where in the source, in which thread, and beside what."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from typing import ClassVar

from podium_cpu.arena import arena
from podium_cpu.line_table import SourcePlace, find_line

__all__ = ["Finding"]

_MOST_DYNAMIC = 227 << 10  # PODIUM_CPU_MAX_SHARED


class Finding(ctypes.Structure):
    """``finding`` of runtime/sanitizer.h."""

    _fields_: ClassVar = [
        ("image", ctypes.c_uint64),
        ("code", ctypes.c_uint64),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_uint64),
        ("column", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("is_store", ctypes.c_uint64),
        ("frame", ctypes.c_uint64),
        ("locals", ctypes.c_char_p),
        ("dynamic", ctypes.c_uint64),
        ("global_name", ctypes.c_char_p),
        ("global_address", ctypes.c_uint64),
        ("global_size", ctypes.c_uint64),
        ("place", ctypes.c_uint64 * 6),
        ("text", ctypes.c_char * 320),
    ]

    def describe(self, codes: Mapping[int, bytes], dynamic: int, names: Mapping[int, str]) -> str:
        """Say what was found. `codes` are the libraries by where they lie, `dynamic` the launch's dynamic shared bytes.

        `names` are what the launch calls arrays, by where they lie in the arena.
        """
        place = self._source_place(codes)
        where = f"{place.file}:{place.line}:{place.column}: " if place is not None else ""
        block, thread = tuple(self.place[:3]), tuple(self.place[3:])
        what = _decode(self.text) or self._access(dynamic, names)
        return f"{where}{what}, in thread {_triple(thread)} of block {_triple(block)}"

    def _source_place(self, codes: Mapping[int, bytes]) -> SourcePlace | None:
        if self.file:
            return SourcePlace(_decode(self.file), self.line, self.column)
        if self.image not in codes:
            return None
        return find_line(codes[self.image], self.code - 1 - self.image)  # of the call, not of what follows it

    def _access(self, dynamic: int, names: Mapping[int, str]) -> str:
        act = "writes" if self.is_store else "reads"
        return f"the kernel {act} {_bytes(self.size)} {self._beside(dynamic, names)}"

    def _beside(self, dynamic: int, names: Mapping[int, str]) -> str:
        near = arena().nearest(self.address)
        if near is not None:
            name = names.get(near.start, near.name)
            return _position(self.address, self.size, near.start, near.size, name)
        if arena().has(self.address):
            return "in memory that no array has any more"
        if self.global_name:
            name = f"the variable {_plain_name(_decode(self.global_name))!r}"
            return _position(self.address, self.size, self.global_address, self.global_size, name)
        if self.locals:
            variables = _variables(_decode(self.locals))
            start, size, name = min(
                ((self.frame + offset, size, name) for offset, size, name in variables),
                key=lambda each: max(each[0] - self.address, self.address - each[0] - each[1]),
                default=(self.address, 0, "a local variable"),
            )
            if start <= self.address and self.address + self.size <= start + size:
                return f"of the local variable {name!r}, whose scope has ended"
            return _position(self.address, self.size, start, size, f"the local variable {name!r}")
        if self.dynamic <= self.address < self.dynamic + _MOST_DYNAMIC:
            return f"outside of the dynamic shared memory, of which the launch has asked for {_bytes(dynamic)}"
        return f"at {self.address:#x}, where no variable is"


def _position(address: int, size: int, start: int, length: int, name: str) -> str:
    whole = f"{name}, which has {_bytes(length)}"
    if address >= start + length:
        distance = address - start - length
        return f"{_bytes(distance)} behind the end of {whole}" if distance else f"right behind the end of {whole}"
    if address + size > start + length:
        return f"across the end of {whole}"
    return f"{_bytes(start - address)} before the beginning of {whole}"


def _variables(description: str) -> list[tuple[int, int, str]]:
    """Read what compilers say of a frame: a count, then offset, size, length of the name, and name[:line] of each."""
    fields = description.split(" ", 1)
    rest, found = fields[1] if len(fields) > 1 else "", []
    while match := re.match(r"(\d+) (\d+) (\d+) ", rest):
        end = match.end() + int(match[3])
        name = re.sub(r"(?:\.i\d*)?(?::\d+)?$", "", rest[match.end() : end])
        found.append((int(match[1]), int(match[2]), name))
        rest = rest[end:].lstrip(" ")
    return found


def _plain_name(name: str) -> str:
    """Take the last part of a mangled name of a variable in a function, such as tile of _ZZ6kernelE4tile."""
    match = re.search(r"E(\d+)([A-Za-z_]\w*?)(?:_\d+)?$", name)
    if name.startswith("_Z") and match and len(match[2]) >= int(match[1]):
        return match[2][: int(match[1])]
    return name.lstrip("*").split("::")[-1]


def _bytes(count: int) -> str:
    return f"{count} byte{'s' * (count != 1)}"


def _triple(values: tuple[int, ...]) -> str:
    return f"({','.join(map(str, values))})"


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")
