"""Values of expressions, written in OpenCL C, and their conversions from one type to another."""

from __future__ import annotations

from dataclasses import dataclass, replace

from podium_opencl.translation.refusal import Refusal
from podium_opencl.translation.types import BOOL, FLOAT, Type, pointer, spelled

__all__ = ["Value", "convert", "identity", "literal", "loaded", "named", "qualified", "truth", "widened", "wrapped"]


@dataclass(frozen=True)
class Value:
    """An expression: its text, which binds tighter than any operator, its type, and what is known of it.

    `space` is where an lvalue lies, `in_memory` tells that a pointer lies there as its address, and `key` is the place
    of the declaration of a pointer variable whose space may still be learned.
    """

    text: str
    type: Type
    constant: int | float | None = None
    is_lvalue: bool = False
    space: str = "private"
    in_memory: bool = False
    key: int = -1


def identity(kind: Type) -> str:
    """Return a text that is equal for equal types, whatever address spaces are in them and whatever is const."""
    if kind.kind in ("pointer", "reference", "array"):
        return f"{kind.kind}{kind.count or ''}({identity(kind.target)})"
    return kind.name


def qualified(kind: Type) -> str:
    """Return a text that is equal for equal types in which the same is const."""
    word = "const " if kind.const else ""
    if kind.kind in ("pointer", "reference", "array"):
        return f"{word}{kind.kind}{kind.count or ''}({qualified(kind.target)})"
    return word + kind.name


def named(kind: Type) -> str:
    """Return the name of a type as the user knows it."""
    if kind.const:
        name = named(replace(kind, const=False))
        return f"{name} const" if kind.kind == "pointer" else f"const {name}"
    if kind.kind == "pointer":
        return f"{named(kind.target)}*"
    if kind.kind == "array":
        return f"{named(kind.target)}[]"
    if kind.kind == "struct" and kind.name.startswith("podium_"):
        return kind.name.removeprefix("podium_")
    names = {"uchar": "unsigned char", "ushort": "unsigned short", "uint": "unsigned int", "ulong": "unsigned long"}
    names |= {"podium_half": "__half", "podium_bfloat": "__nv_bfloat16"}
    return names.get(kind.name, kind.name.partition("_")[0] if kind.kind == "struct" else kind.name)


def wrapped(value: int | float, kind: Type) -> int | float:
    """Return what a constant becomes as a value of a type."""
    if kind.name == "bool":
        return int(bool(value))
    if kind.kind != "integer":
        return float(value)
    bits = 8 * kind.size
    whole = int(value) & ((1 << bits) - 1)
    return whole - (1 << bits) if kind.signed and whole >> (bits - 1) else whole


def literal(value: int, kind: Type) -> str:
    """Write an integer constant of a type."""
    if value == -(1 << 63):
        return "(-9223372036854775807L - 1)"
    suffix = ("" if kind.signed or kind.size < 4 else "u") + ("L" if kind.size == 8 else "")
    text = f"{value}{suffix}"
    return f"({spelled(kind)})({text})" if kind.size < 4 else f"({text})" if value < 0 else text


def loaded(value: Value) -> Value:
    """Read an lvalue: an array becomes a pointer, the address of a pointer in memory a pointer."""
    if value.type.kind == "array":
        return Value(value.text, pointer(value.type.target, value.space))
    if value.type.kind == "pointer" and value.in_memory:
        kind = replace(value.type.plain(), space="global")
        return Value(f"(({spelled(kind)})({value.text}))", kind)
    if value.type.kind == "struct":
        return value  # an operator that the user has defined may need its address
    return replace(value, type=value.type.plain(), is_lvalue=False)


def widened(value: Value) -> Value:
    """Turn a float of 16 bits into one of 32."""
    if value.type.kind != "small":
        return value
    return Value(f"{value.type.name}_widen({value.text})", FLOAT)


def truth(value: Value) -> Value:
    """Turn a value into one that is true or false."""
    if value.type.name == "bool":
        return value
    if value.type.kind in ("struct", "void"):
        raise Refusal(f"a {named(value.type)} is neither true nor false")
    constant = None if value.constant is None else int(bool(value.constant))
    return Value(f"({widened(value).text} != 0)", BOOL, constant)


def convert(value: Value, kind: Type, explicit: bool = False) -> Value:
    """Convert a value that was read to a type; `explicit` is what a cast allows. Raises `Refusal`."""
    source = value.type
    if kind.kind != "struct":
        kind = kind.plain()
    if kind.kind == "void" and explicit:
        return Value(f"((void)({value.text}))", kind)
    if kind.name == "bool":
        return truth(value)
    if kind.is_number and source.is_number:
        return _number(value, kind)
    if kind.kind == "pointer":
        return _address(value, kind, explicit)
    if kind.kind == "integer" and source.kind == "pointer" and explicit:
        return Value(f"(({kind.name})(ulong)({value.text}))", kind)
    if kind.kind == "struct" and identity(kind) == identity(source):
        return value
    raise Refusal(f"no conversion from {named(source)} to {named(kind)}")


def _number(value: Value, kind: Type) -> Value:
    source = value.type
    if source.name == kind.name:
        return value
    known = value.constant is not None and -(2.0**63) < value.constant < 2.0**64
    constant = wrapped(value.constant, kind) if known and value.constant is not None else None
    if isinstance(constant, int) and kind.kind == "integer":
        return Value(literal(constant, kind), kind, constant)
    if source.kind == "small":
        value = widened(value)
    if kind.kind == "small":
        return Value(f"{kind.name}_narrow((float)({value.text}))", kind)
    return Value(f"(({kind.name})({value.text}))", kind.plain(), constant)


def _address(value: Value, kind: Type, explicit: bool) -> Value:
    source = value.type
    if source.kind == "null" or (source.kind == "integer" and (value.constant == 0 or explicit)):
        result = replace(kind, space=kind.space or "global")
        text = "0" if value.constant == 0 or source.kind == "null" else f"(ulong)({value.text})"
        return Value(f"(({spelled(result)})({text}))", result)
    if source.kind != "pointer":
        raise Refusal(f"no conversion from {named(source)} to {named(kind)}")
    if kind.space not in (None, "?") and source.space not in (None, "?", kind.space):
        raise Refusal(
            f"a pointer to {_MEMORY[source.space or '?']} cannot become one to {_MEMORY[kind.space or '?']}: "
            "podium-opencl gives each pointer one address space"
        )
    if source.target.const and not (kind.target.const or explicit):
        raise Refusal(f"no conversion from {named(source)} to {named(kind)}: what it points to is const")
    result = replace(kind, space=source.space)
    if identity(kind) == identity(source) and kind.target.volatile == source.target.volatile:
        return Value(value.text, result)
    if not (explicit or kind.target.kind == "void" or identity(kind) == identity(source)):
        raise Refusal(f"no conversion from {named(source)} to {named(kind)} without a cast")
    return Value(f"(({spelled(result)})({value.text}))", result)


_MEMORY = {
    "global": "global memory",
    "local": "shared memory",
    "private": "the thread's own memory",
    "constant": "constants",
    "?": "memory",
}
