"""Which line of the source a place in compiled code comes from: the line tables of DWARF, version 4, in an ELF file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["SourcePlace", "find_line"]


@dataclass(frozen=True)
class SourcePlace:
    """A place in a source; a column that the compiler does not tell is 0."""

    file: str
    line: int
    column: int


def find_line(elf: bytes, address: int) -> SourcePlace | None:
    """Return the place in the source of an address of a library, counted from where the library lies in memory."""
    table = _section(elf, b".debug_line")
    position = 0
    while position + 4 <= len(table):
        length = int.from_bytes(table[position : position + 4], "little")
        version = int.from_bytes(table[position + 4 : position + 6], "little")
        if 2 <= version <= 4 and (found := _in_unit(table[position + 4 : position + 4 + length], address)) is not None:
            return found
        position += 4 + length
    return None


def _section(elf: bytes, name: bytes) -> bytes:
    """Return the contents of a section; nothing if there is none, or if the file is of another kind."""
    if elf[:6] != b"\x7fELF\x02\x01":
        return b""
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + index * size) for index in range(count)]
    for offset, _, flags, _, start, length in headers:
        begin = headers[names][4] + offset
        if elf[begin : elf.index(b"\0", begin)] == name and not flags & 0x800:  # not compressed
            return elf[start : start + length]
    return b""


class _Reader:
    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data, self.position = data, position

    def number(self, size: int) -> int:
        self.position += size
        return int.from_bytes(self.data[self.position - size : self.position], "little")

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        begin = self.position
        value = self.unsigned()
        bits = 7 * (self.position - begin)
        return value - (1 << bits) if value >> bits - 1 & 1 else value

    def text(self) -> str:
        end = self.data.index(b"\0", self.position)
        text = self.data[self.position : end].decode("utf-8", "surrogateescape")
        self.position = end + 1
        return text


def _in_unit(unit: bytes, address: int) -> SourcePlace | None:
    reader = _Reader(unit, 2)
    program = reader.number(4) + reader.position
    least = reader.number(1)
    if int.from_bytes(unit[:2], "little") >= 4:
        reader.number(1)  # operations in an instruction, which are one on the processors that there are
    reader.number(1)
    line_base = struct.unpack("b", unit[reader.position : reader.position + 1])[0]
    reader.position += 1
    line_range, opcode_base = reader.number(1), reader.number(1)
    lengths = [reader.number(1) for _ in range(opcode_base - 1)]
    folders = []
    while unit[reader.position]:
        folders.append(reader.text())
    reader.position += 1
    files = []
    while unit[reader.position]:
        name, folder = reader.text(), reader.unsigned()
        files.append(f"{folders[folder - 1]}/{name}" if 0 < folder <= len(folders) else name)
        reader.unsigned()
        reader.unsigned()
    reader.position = program
    before = None
    for row in _rows(reader, least, line_base, line_range, opcode_base, lengths):
        if before is not None and before[0] <= address < row[0]:
            file = files[before[1] - 1] if 0 < before[1] <= len(files) else "?"
            return SourcePlace(file, before[2], before[3])
        before = None if row[4] else row
    return None


def _rows(
    reader: _Reader, least: int, line_base: int, line_range: int, opcode_base: int, lengths: list[int]
) -> Iterator[tuple[int, int, int, int, bool]]:
    """Run the program of a unit: give address, file, line, column, and whether a sequence ends there."""
    address, file, line, column = 0, 1, 1, 0
    while reader.position < len(reader.data):
        code = reader.number(1)
        if code >= opcode_base:
            address += (code - opcode_base) // line_range * least
            line += line_base + (code - opcode_base) % line_range
            yield address, file, line, column, False
        elif code == 0:
            length = reader.unsigned()
            end = reader.position + length
            extended = reader.number(1)
            if extended == 1:
                yield address, file, line, column, True
                address, file, line, column = 0, 1, 1, 0
            elif extended == 2:
                address = reader.number(length - 1)
            reader.position = end
        elif code == 1:
            yield address, file, line, column, False
        elif code == 2:
            address += reader.unsigned() * least
        elif code == 3:
            line += reader.signed()
        elif code == 4:
            file = reader.unsigned()
        elif code == 5:
            column = reader.unsigned()
        elif code == 8:
            address += (255 - opcode_base) // line_range * least
        elif code == 9:
            address += reader.number(2)
        else:
            for _ in range(lengths[code - 1]):
                reader.unsigned()
