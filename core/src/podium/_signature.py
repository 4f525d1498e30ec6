"""Types, parameters and signatures, spelled the way Triton spells them.

A type is one of

=====================  =======================================================================
``i1``                 a boolean, one byte
``i8 i16 i32 i64``     signed integers, ``u8 u16 u32 u64`` unsigned ones
``fp16 bf16``          half-precision floats, ``fp32 fp64`` single and double
``*fp32``              a pointer, ``*kfp32`` a pointer to const, ``*void`` untyped, ``**i8`` nested
``{fp32,i32}``         a struct by value with C layout; ``[4xfp32]`` an array inside one;
                       ``{fp32,fp32}@8`` with an alignment of its own
``opaque[128,64]``     a struct by value of which only size and alignment are known
``constexpr``          a parameter folded away by the compiler: in the call, not in the binary
=====================  =======================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from podium._record import field, record
from podium.errors import SignatureError

__all__ = ["MOST_ALIGNED", "Parameter", "Signature", "SignatureLike", "Type"]

MOST_ALIGNED = 128
"""The largest alignment of a parameter in bytes; tensor maps, the most demanding ones known, ask for 64."""
_DEEPEST = 64  # of pointers, structs and arrays in one another

# kind and size in bytes; the alignment of a scalar is its size on every platform podium runs on
_SCALARS = {
    "i1": ("boolean", 1),
    **{f"i{8 * size}": ("signed", size) for size in (1, 2, 4, 8)},
    **{f"u{8 * size}": ("unsigned", size) for size in (1, 2, 4, 8)},
    "fp16": ("float", 2),
    "bf16": ("float", 2),
    "fp32": ("float", 4),
    "fp64": ("float", 8),
}

# Types that only stand behind a pointer; the floats of eight bits keep Triton's names.
_POINTEES = {
    "void": 0,
    "fp8e4nv": 1,
    "fp8e4b8": 1,
    "fp8e4b15": 1,
    "fp8e5": 1,
    "fp8e5b16": 1,
    "c64": 8,
    "c128": 16,
}

_IN_NAMES = "abcdefghijklmnopqrstuvwxyz0123456789"


@record(frozen=True)
class Type:
    """One parameter type. Sizes and alignments are in bytes; make one with `Type.parse`."""

    spelling: str
    kind: str = field(repr=False)  # boolean, signed, unsigned, float, pointer, struct, array, constexpr, pointee
    size: int = field(repr=False)
    alignment: int = field(repr=False)
    const: bool = field(default=False, repr=False)
    pointee: Type | None = field(default=None, repr=False)
    members: tuple[Type, ...] = field(default=(), repr=False)

    @staticmethod
    def parse(spelling: str) -> Type:
        """Read a spelling such as ``*fp32``. Raises `SignatureError` if it is not one."""
        if not isinstance(spelling, str):
            raise SignatureError(f"A type is a string such as '*fp32', not {spelling!r}", spelling=repr(spelling))
        parsed = _parse("".join(spelling.split()))
        if parsed.kind in ("pointee", "array"):
            raise SignatureError(
                f"{spelling!r} cannot be a parameter by itself; "
                + ("pass a pointer to it" if parsed.kind == "pointee" else "wrap it in a struct: {" + spelling + "}"),
                spelling=spelling,
            )
        return parsed

    @property
    def shape(self) -> str:
        """What a launcher needs to know of the type: types with one shape share their launcher."""
        if self.kind == "pointer":
            return "K" if self.const else "P"
        if self.kind == "struct":
            return f"S{self.size}a{self.alignment}"
        return "X" if self.kind == "constexpr" else self.spelling

    def __str__(self) -> str:
        return self.spelling


@lru_cache(maxsize=4096)
def _parse(text: str) -> Type:
    parsed, rest = _parse_prefix(text, text)
    if rest:
        raise _malformed(text, f"unexpected {rest!r}")
    return parsed


def _parse_prefix(text: str, whole: str, depth: int = 0) -> tuple[Type, str]:
    """Read one type off the front of `text`; return it and what follows."""
    if depth > _DEEPEST:
        raise _malformed(whole, f"more than {_DEEPEST} pointers, structs and arrays are inside one another")
    if text.startswith("*"):
        const = _is_const(text[1:])
        pointee, rest = _parse_prefix(text[2:] if const else text[1:], whole, depth + 1)
        spelling = text[: len(text) - len(rest)]
        return Type(spelling, "pointer", 8, 8, const=const, pointee=pointee), rest
    if text.startswith("{"):
        return _parse_struct(text, whole, depth)
    # To compile an expression takes longer than to read a signature, so most types come without one.
    if text.startswith("[") and (match := re.match(r"\[(\d{1,9})x", text)):
        element, rest = _parse_prefix(text[match.end() :], whole, depth + 1)
        if not rest.startswith("]"):
            raise _malformed(whole, "an array is spelled [4xfp32]")
        _require_member(element, whole)
        count = int(match[1])
        spelling = text[: len(text) - len(rest) + 1]
        return Type(
            spelling, "array", count * element.size, element.alignment, members=(element,) * min(count, 1)
        ), rest[1:]
    if text.startswith("opaque[") and (match := re.match(r"opaque\[(\d{1,9}),(\d{1,4})\]", text)):
        size, alignment = int(match[1]), int(match[2])
        if size == 0 or size % _checked_alignment(alignment, whole):
            raise _malformed(whole, "opaque[size,alignment] needs a size that is a multiple of the alignment")
        return Type(match[0], "struct", size, alignment), text[match.end() :]
    name = text[: len(text) - len(text.lstrip(_IN_NAMES))]
    if name in _SCALARS:
        kind, size = _SCALARS[name]
        return Type(name, kind, size, size), text[len(name) :]
    if name in _POINTEES:
        return Type(name, "pointee", _POINTEES[name], max(1, _POINTEES[name])), text[len(name) :]
    if name == "constexpr":
        return Type(name, "constexpr", 0, 1), text[len(name) :]
    known = " ".join(_SCALARS)
    raise _malformed(whole, f"unknown type {name or text!r}; the scalars are {known}, a pointer is *fp32")


def _is_const(text: str) -> bool:
    """Tell the k of ``*kfp32`` from the start of a type name; no type name starts with k."""
    return text.startswith("k")


def _parse_struct(text: str, whole: str, depth: int) -> tuple[Type, str]:
    members: list[Type] = []
    rest = text[1:]
    while not rest.startswith("}"):
        member, rest = _parse_prefix(rest, whole, depth + 1)
        _require_member(member, whole)
        members.append(member)
        if rest.startswith(","):
            rest = rest[1:]
        elif not rest.startswith("}"):
            raise _malformed(whole, "a struct is spelled {fp32,i32}")
    rest = rest[1:]
    if not members:
        raise _malformed(whole, "a struct needs a member")
    alignment = max(member.alignment for member in members)
    if rest.startswith("@") and (match := re.match(r"@(\d{1,4})", rest)):
        alignment, rest = max(alignment, _checked_alignment(int(match[1]), whole)), rest[match.end() :]
    offset = 0
    for member in members:
        offset = _round_up(offset, member.alignment) + member.size
    spelling = text[: len(text) - len(rest)]
    return Type(spelling, "struct", _round_up(offset, alignment), alignment, members=tuple(members)), rest


def _checked_alignment(alignment: int, whole: str) -> int:
    if not 0 < alignment <= MOST_ALIGNED or alignment & (alignment - 1):
        raise _malformed(whole, f"an alignment is a power of two and at most {MOST_ALIGNED}")
    return alignment


def _require_member(member: Type, whole: str) -> None:
    if member.kind in ("pointee", "constexpr"):
        raise _malformed(whole, f"{member.spelling!r} cannot be inside a struct or an array")


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _malformed(spelling: str, why: str) -> SignatureError:
    shown = spelling if len(spelling) <= 200 else spelling[:200] + "..."
    return SignatureError(f"{shown!r} is not a type: {why}", spelling=spelling)


@record(frozen=True)
class Parameter:
    """A parameter of a kernel: its name, and its type."""

    name: str
    type: Type

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@record(frozen=True)
class Signature:
    """The ordered parameters of a kernel. Hashable; `str` gives a text that `parse` reads back."""

    parameters: tuple[Parameter, ...]

    @staticmethod
    def parse(signature: SignatureLike) -> Signature:
        """Make a signature from text, a mapping of names to types, or a sequence of types.

        A tuple in place of a type stands for a tuple argument, and is flattened: the members of ``t`` are named
        ``t.0``, ``t.1`` and so on. Raises `SignatureError`.
        """
        if isinstance(signature, Signature):
            return signature
        if isinstance(signature, str):
            pairs: Iterable[tuple[str, object]] = _split(signature)
        elif isinstance(signature, Mapping):
            pairs = [(str(name), spelling) for name, spelling in signature.items()]
        elif isinstance(signature, Iterable):
            pairs = [
                (each.name, each.type.spelling) if isinstance(each, Parameter) else (f"arg{index}", each)
                for index, each in enumerate(signature)
            ]
        else:
            raise SignatureError(f"A signature is text, a mapping or a sequence of types, not {signature!r}")
        parameters = tuple(leaf for name, spelling in pairs for leaf in _flatten(name, spelling))
        names = [parameter.name for parameter in parameters]
        for name in names:
            if not _is_name(name):
                raise SignatureError(f"{name!r} is not a parameter name", spelling=name)
            if names.count(name) > 1:
                raise SignatureError(f"The parameter name {name!r} stands twice", spelling=name)
        return Signature(parameters)

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of the parameters, in order."""
        return tuple(parameter.type for parameter in self.parameters)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def shape(self) -> str:
        """The text that two signatures share exactly if one launcher serves both."""
        return ",".join(parameter.type.shape for parameter in self.parameters)

    @property
    def passed(self) -> tuple[Parameter, ...]:
        """The parameters that the binary has: all but the ``constexpr`` ones."""
        return tuple(each for each in self.parameters if each.type.kind != "constexpr")

    def __len__(self) -> int:
        return len(self.parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters)

    def __str__(self) -> str:
        return ", ".join(map(str, self.parameters))


# What users may write for a signature: Signature itself, "*fp32, n: i32", {"a": "*fp32"}, ["*fp32", "i32"].
SignatureLike = Signature | str | Mapping[str, object] | Iterable[object]


def _is_name(text: str) -> bool:
    """Tell whether a parameter can be called so: a name of C, or that of a member of a tuple, such as ``t.0``."""
    name, *path = text.split(".")
    return text.isascii() and name.isidentifier() and all(map(str.isdigit, path))


def _flatten(name: str, spelling: object) -> Iterator[Parameter]:
    if isinstance(spelling, Type):
        yield Parameter(name, spelling)
    elif isinstance(spelling, (tuple, list)):
        for index, each in enumerate(spelling):
            yield from _flatten(f"{name}.{index}", each)
    else:
        yield Parameter(name, Type.parse(spelling))  # type: ignore[arg-type]


def _split(text: str) -> list[tuple[str, object]]:
    """Split ``*fp32, n: i32`` at the commas that are not inside braces."""
    pieces, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "{[") - (character in "}]")
        if character == "," and depth == 0:
            pieces.append(text[start:position])
            start = position + 1
    pieces.append(text[start:])
    if not text.strip():
        return []
    pairs: list[tuple[str, object]] = []
    for index, piece in enumerate(pieces):
        name, colon, spelling = piece.rpartition(":")
        pairs.append((name.strip() if colon else f"arg{index}", spelling.strip()))
    return pairs
