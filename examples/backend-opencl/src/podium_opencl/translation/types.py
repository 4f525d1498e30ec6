"""The types of the kernel language, how OpenCL C spells them, and how they lie in memory.

What is const is checked here and not written down in OpenCL C, whose compiler is never asked about it. A pointer that
lies in memory (in a struct, in an array, behind another pointer) is kept as its address, a ``ulong``: OpenCL C lets no
struct with pointers be a parameter, and such pointers are to global memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podium_opencl.translation.refusal import Refusal

__all__ = [
    "BOOL",
    "DOUBLE",
    "FLOAT",
    "INT",
    "LONG",
    "NULL",
    "SCALARS",
    "UINT",
    "ULONG",
    "VOID",
    "Type",
    "alignment_of",
    "common",
    "constant",
    "pointer",
    "promoted",
    "size_of",
    "spelled",
    "stored",
]


@dataclass(frozen=True)
class Type:
    """One type. `kind` is void, null, integer, real, small (a float of 16 bits), struct, pointer, array or reference.

    `name` is the spelling in OpenCL C, but for bool. `to` is what a pointer or reference points to or what an array
    has, `space` the address space of a pointer's or reference's target, where it is known.
    """

    kind: str
    name: str = ""
    size: int = 0
    signed: bool = False
    to: Type | None = None
    space: str | None = None
    count: int | None = None
    volatile: bool = False
    const: bool = field(default=False, compare=False)  # a const float is FLOAT, too
    members: tuple[tuple[str, Type], ...] = ()
    alignment: int = 0
    is_union: bool = False
    origin: Any = field(default=None, compare=False, repr=False)  # the scope of a struct, with its methods

    @property
    def is_number(self) -> bool:
        """Whether arithmetic can be done with it."""
        return self.kind in ("integer", "real", "small")

    @property
    def target(self) -> Type:
        """What it points to, refers to or is an array of."""
        assert self.to is not None
        return self.to

    def plain(self) -> Type:
        """Return the type of a value that is read from it: neither volatile nor const."""
        return replace(self, volatile=False, const=False) if self.volatile or self.const else self


VOID = Type("void", "void")
NULL = Type("null", "ulong", 8)
BOOL = Type("integer", "bool", 1)
INT = Type("integer", "int", 4, True)
UINT = Type("integer", "uint", 4)
LONG = Type("integer", "long", 8, True)
ULONG = Type("integer", "ulong", 8)
FLOAT = Type("real", "float", 4)
DOUBLE = Type("real", "double", 8)

SCALARS = {
    "void": VOID,
    "bool": BOOL,
    "char": Type("integer", "char", 1, True),
    "unsigned char": Type("integer", "uchar", 1),
    "short": Type("integer", "short", 2, True),
    "unsigned short": Type("integer", "ushort", 2),
    "int": INT,
    "unsigned int": UINT,
    "long": LONG,
    "unsigned long": ULONG,
    "float": FLOAT,
    "double": DOUBLE,
    "__half": Type("small", "podium_half", 2),
    "__nv_bfloat16": Type("small", "podium_bfloat", 2),
}


def pointer(to: Type, space: str | None) -> Type:
    """Make a pointer type."""
    return Type("pointer", to=to, space=space, size=8)


def constant(kind: Type, is_const: bool = True) -> Type:
    """Return a type as const, of an array its elements; the type itself if it is not to be const."""
    if not is_const or kind.const:
        return kind
    return replace(kind, const=True, to=constant(kind.target) if kind.kind == "array" else kind.to)


def stored(kind: Type) -> Type:
    """Return what a type is in memory: a pointer is its address there."""
    return ULONG if kind.kind == "pointer" else kind


def spelled(kind: Type, name: str = "") -> str:
    """Write a declaration of a name in OpenCL C, or the type alone. Raises `Refusal` for an unknown space."""
    if kind.kind in ("pointer", "reference"):
        if kind.space is None:
            raise Refusal(f"it is not clear which memory {name.rstrip('_') or 'a pointer'} points to")
        target = stored(kind.target)
        return f"__{kind.space} " + spelled(target, f"(*{name})" if target.kind == "array" else f"*{name}")
    if kind.kind == "array":
        if kind.count is None:
            raise Refusal(f"the array {name.rstrip('_')} has no size")
        return spelled(stored(kind.target), f"{name}[{kind.count}]")
    word = "uchar" if kind.name == "bool" else kind.name  # no bool can be a parameter of a kernel
    return ("volatile " if kind.volatile else "") + word + (f" {name}" if name else "")


def alignment_of(kind: Type) -> int:
    """Return the alignment of a type in bytes."""
    if kind.kind == "array":
        return alignment_of(kind.target)
    if kind.kind == "struct":
        return max([kind.alignment, 1, *(alignment_of(member) for _, member in kind.members)])
    return max(1, kind.size)


def size_of(kind: Type) -> int:
    """Return the size of a type in bytes, laid out as C does. Raises `Refusal` where there is none."""
    if kind.kind == "array":
        if kind.count is None:
            raise Refusal("the size of an array without a size")
        return kind.count * size_of(kind.target)
    if kind.kind == "struct":
        end = 0
        for _, member in kind.members:
            start = 0 if kind.is_union else -(-end // alignment_of(member)) * alignment_of(member)
            end = max(end, start + size_of(member))
        return max(1, -(-end // alignment_of(kind)) * alignment_of(kind))
    if not kind.size:
        raise Refusal("the size of a type that has none")
    return kind.size


def promoted(kind: Type) -> Type:
    """Return what a number becomes in arithmetic: integers below int become int."""
    return INT if kind.kind == "integer" and kind.size < 4 else kind.plain()


def common(kinds: Sequence[Type]) -> Type:
    """Return the type in which arithmetic on some numbers is done."""
    found = promoted(kinds[0])
    for each in map(promoted, kinds[1:]):
        if found.kind == "small" or each.kind == "small":
            found = found if found.name == each.name else (DOUBLE if DOUBLE in (found, each) else FLOAT)
        elif found.kind == "real" or each.kind == "real":
            found = max((found, each), key=lambda kind: (kind.kind == "real", kind.size))
        elif (each.size, not each.signed) > (found.size, not found.signed):
            found = each
    return found
