"""Whether the bytes of code are whole: the CUDA driver reads beyond the end of an ELF file that was cut."""

from __future__ import annotations

import struct

__all__ = ["is_whole"]

_ELF, _FATBIN = b"\x7fELF", struct.pack("<I", 0xBA55ED50)
_NO_BITS = 8  # SHT_NOBITS: a section that takes no room in the file


def is_whole(code: bytes) -> bool:
    """Tell whether an ELF file or a fatbin is as long as its headers say; other bytes the driver itself looks at."""
    try:
        if code[:4] == _ELF:
            return all(end <= len(code) for end in _ends(code))
        if code[:4] == _FATBIN:
            header, size = struct.unpack_from("<HQ", code, 6)
            return bool(header + size <= len(code))
    except struct.error:  # shorter than its first header
        return False
    return True


def _ends(code: bytes) -> list[int]:
    """Return where the tables and the sections of a 64-bit ELF file end."""
    if code[4:5] == b"\1":  # of 32 bits, which no device of today has
        return [len(code) + 1]
    segments, sections = struct.unpack_from("<QQ", code, 32)
    segment_size, segment_count, section_size, section_count = struct.unpack_from("<4H", code, 54)
    table = sections + section_size * section_count
    ends = [table, segments + segment_size * segment_count]
    if table > len(code) or (section_count and section_size < 40):
        return [len(code) + 1]
    for place in range(sections, table, section_size or 1):
        kind, offset, size = (*struct.unpack_from("<I", code, place + 4), *struct.unpack_from("<QQ", code, place + 24))
        if kind != _NO_BITS:
            ends.append(offset + size)
    return ends
