"""Atomic functions: those that OpenCL C has, and the others as loops that compare and swap."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium_opencl.translation.context import Context
from podium_opencl.translation.prelude import helper_text
from podium_opencl.translation.types import Type
from podium_opencl.translation.values import Value, convert, named

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["call_atomic"]

_OPERATIONS = {
    "Add": ("add", "old + value"),
    "Sub": ("sub", "old - value"),
    "Exch": ("xchg", "value"),
    "Min": ("min", "value < old ? value : old"),
    "Max": ("max", "value > old ? value : old"),
    "And": ("and", "old & value"),
    "Or": ("or", "old | value"),
    "Xor": ("xor", "old ^ value"),
    "Inc": ("", "old >= value ? 0 : old + 1"),
    "Dec": ("", "old == 0 || old > value ? value : old - 1"),
    "CAS": ("cmpxchg", ""),
}


def call_atomic(body: Context, node: Node, name: str, values: Sequence[Value]) -> Value | None:
    """Translate an atomic function; None if the name is none. Raises `Refusal`."""
    match = re.fullmatch(r"atomic(Add|Sub|Exch|Min|Max|And|Or|Xor|Inc|Dec|CAS)(?:_block|_system)?", name)
    if not match:
        return None
    body.expect(node, name, values, 3 if match[1] == "CAS" else 2)
    target = values[0].type
    if target.kind != "pointer" or not target.target.is_number or target.space not in ("global", "local"):
        where = "" if target.kind != "pointer" else f" in {target.space} memory"
        raise body.refused(
            node, f"{name} takes a pointer to a number in global or shared memory, not a {named(target)}{where}"
        )
    if target.target.const:
        raise body.refused(node, f"{name} changes what it is given, and {named(target)} points to what is const")
    kind = target.target.plain()
    if kind.kind != "integer" and match[1] not in ("Add", "Exch"):
        raise body.refused(node, f"{name} is for integers, not for a {named(kind)}")
    if kind.size not in (4, 8):
        raise body.refused(node, f"OpenCL has no atomics on a {named(kind)}: use one of 32 bits")
    if kind.size == 8:
        _need(body, node, name, ("cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"))
    helper = f"podium_atomic_{match[1].lower()}_{target.space}_{kind.name}"
    operands = [convert(each, kind).text for each in values[1:]]
    return Value(
        f"{body.whole.helper(helper, _text(helper, match[1], kind, str(target.space)))}"
        f"((volatile __{target.space} {kind.name} *)({values[0].text}), {', '.join(operands)})",
        kind,
    )


def _need(body: Context, node: Node, name: str, extensions: Sequence[str]) -> None:
    missing = [each for each in extensions if each not in body.whole.extensions]
    if missing:
        raise body.refused(
            node, f"this OpenCL device has no atomics on 64 bits ({missing[0]}), which {name} needs here"
        )


def _text(helper: str, operation: str, kind: Type, space: str) -> str:
    prefix = "atomic_" if kind.size == 4 else "atom_"
    word, expression = _OPERATIONS[operation]
    whole = {4: "uint", 8: "ulong"}[kind.size]
    if operation == "CAS":
        return helper_text("compare", helper=helper, space=space, type=kind.name, whole=whole, prefix=prefix)
    direct = word and (kind.kind == "integer" or (operation == "Exch" and kind.name == "float"))
    form = "direct" if direct else "loop"
    return helper_text(
        form, helper=helper, space=space, type=kind.name, whole=whole, prefix=prefix, word=word, expression=expression
    )
