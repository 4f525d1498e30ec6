"""What in a cubin points into it, and where to: the CUDA driver follows all of that without looking."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["flaw"]

_SYMTAB, _STRTAB, _RELA, _NOTE, _NO_BITS, _REL = 2, 3, 4, 7, 8, 9
_ENTRIES = {_SYMTAB: 24, _RELA: 24, _REL: 16}  # bytes of one
_KINDS = {".shstrtab": _STRTAB, ".strtab": _STRTAB, ".symtab": _SYMTAB}
_KINDS_OF_PREFIXES = {".rela.": _RELA, ".rel.": _REL, ".nv.info": 0x70000000, ".note.nv.": _NOTE}
_INDEX_IN_INFO = (".rela.", ".rel.", ".nv.info.", ".nv.shared.", ".nv.constant")  # of a section

_SIZED = 4  # a form of attributes; the others have two bytes
_OF_FUNCTIONS = {0x2F, 0x11, 0x12, 0x23}  # attributes that begin with the number of a symbol

_TOOLS = ".note.nv.tkinfo"
_TOOL_TEXTS = 4  # how many numbers, after two others, tell where texts begin


class _Section(NamedTuple):
    name: str
    kind: int
    offset: int
    size: int
    link: int
    info: int
    entry: int


class _Flaw(Exception):
    """What is wrong."""


def flaw(data: bytes) -> str | None:
    """Say what in a cubin leads out of it; None if nothing does. The bytes are as long as their headers say."""
    try:
        _check(data)
    except _Flaw as found:
        return str(found)
    except (struct.error, IndexError, ValueError):
        return "a table ends beyond its end"
    return None


def _check(data: bytes) -> None:
    sections = list(_sections(data))
    by_name = {each.name: each for each in sections}
    symbols, strings = by_name.get(".symtab"), by_name.get(".strtab")
    if symbols is None or strings is None:
        raise _Flaw("it has no symbols")
    count = symbols.size // 24
    for section in sections:
        _check_section(section, sections, count)
    for at in range(symbols.offset, symbols.offset + symbols.size, 24):
        name, _, _, index = struct.unpack_from("<IBBH", data, at)
        if name >= strings.size or len(sections) <= index < 0xFF00:
            raise _Flaw("a symbol leads out of it")
    for section in sections:
        if section.kind in (_RELA, _REL):
            _check_relocations(data, section, sections[section.info], count)
        elif section.name.startswith(".nv.info"):
            _check_attributes(data, section, count)
        elif section.kind == _NOTE:
            _check_note(data, section)


def _sections(data: bytes) -> Iterator[_Section]:
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * index) for index in range(count)]
    texts = headers[names]
    if size != 64 or texts[1] != _STRTAB or not texts[5] or data[texts[4] + texts[5] - 1]:
        raise _Flaw("the names of its sections are no texts")
    for name, kind, _, _, offset, length, link, info, _, entry in headers:
        if name >= texts[5]:
            raise _Flaw("a section's name leads out of it")
        text = data[texts[4] + name : data.index(b"\0", texts[4] + name)].decode("utf-8", "replace")
        yield _Section(text, kind, offset, length, link, info, entry)


def _check_section(section: _Section, sections: list[_Section], symbols: int) -> None:
    name, kind = section.name, section.kind
    expected = _KINDS.get(name) or next(
        (_KINDS_OF_PREFIXES[key] for key in _KINDS_OF_PREFIXES if name.startswith(key)), kind
    )
    linked = sections[section.link].kind
    wrong = kind != expected or section.entry != _ENTRIES.get(kind, section.entry) or section.entry > section.size > 0
    wrong = wrong or bool(section.entry and section.size % section.entry)
    if kind == _SYMTAB:  # the others' links differ among toolkits
        wrong = wrong or linked != _STRTAB or section.info > symbols
    if name.startswith(_INDEX_IN_INFO):
        wrong = wrong or section.info >= len(sections)
    if wrong:
        raise _Flaw(f"its section {name} is not what it is called")


def _check_relocations(data: bytes, section: _Section, target: _Section, symbols: int) -> None:
    for at in range(section.offset, section.offset + section.size, section.entry):
        place, _, symbol = struct.unpack_from("<QII", data, at)
        if symbol >= symbols or place >= target.size:
            raise _Flaw(f"an entry of {section.name} leads out of it")


def _check_attributes(data: bytes, section: _Section, symbols: int) -> None:
    at, end = section.offset, section.offset + section.size
    while at < end:
        form, attribute, length = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _SIZED:
            if attribute in _OF_FUNCTIONS and struct.unpack_from("<I", data, at)[0] >= symbols:
                raise _Flaw(f"an attribute in {section.name} is of no function")
            at += length
        elif not 1 <= form <= 3:
            break
    if at != end:
        raise _Flaw(f"the attributes in {section.name} do not end with it")


def _check_note(data: bytes, section: _Section) -> None:
    owner, size = struct.unpack_from("<II", data, section.offset)
    begin = section.offset + 12 + (owner + 3 & ~3)
    end = begin + size
    if end > section.offset + section.size:
        raise _Flaw(f"the note {section.name} does not end in it")
    if section.name == _TOOLS:
        places = struct.unpack_from(f"<{_TOOL_TEXTS}I", data, begin + 8)
        texts = begin + 8 + 4 * _TOOL_TEXTS
        if any(texts + place >= end or data.find(b"\0", texts + place, end) < 0 for place in places):
            raise _Flaw(f"a text of {section.name} leads out of it")
