"""The functions that the kernel language has built in, but for atomics and those of warps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from podium_opencl.translation.atomics import call_atomic
from podium_opencl.translation.collectives import call_collective
from podium_opencl.translation.context import Context
from podium_opencl.translation.conversions import call_conversion
from podium_opencl.translation.halves import call_small
from podium_opencl.translation.mathematics import call_mathematics, call_minimum
from podium_opencl.translation.prelude import helper_text
from podium_opencl.translation.symbols import text_of
from podium_opencl.translation.types import (
    DOUBLE,
    INT,
    LONG,
    UINT,
    ULONG,
    VOID,
    promoted,
)
from podium_opencl.translation.values import Value, convert, loaded, named, widened

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["call_builtin"]

_FENCES = ("__threadfence", "__threadfence_block", "__threadfence_system")

Given = Union[Value, "Node"]


def call_builtin(body: Context, node: Node, name: str, given: Sequence[Given]) -> Value | None:
    """Translate a call of a function that is built in; None if there is none of that name. Raises `Refusal`."""
    if name == "printf":
        return _printf(body, node)
    values = []
    for each in given:
        if not isinstance(each, Value):
            raise body.refused(node, f"{name} takes no values in braces")
        values.append(loaded(each))
    for call in _CALLS:
        found = call(body, node, name, values)
        if found is not None:
            return found
    return None


def _integer(body: Context, node: Node, name: str, values: list[Value]) -> Value | None:
    counted = re.fullmatch(r"__(popc|clz|ffs|brev)(ll)?", name)
    if counted:
        body.expect(node, name, values, 1)
        kind = ULONG if counted[2] else UINT
        text = convert(values[0], kind).text
        if counted[1] == "popc":
            return Value(f"((int)popcount({text}))", INT)
        if counted[1] == "clz":
            return Value(f"((int)clz({text}))", INT)
        word = f"podium_{counted[1]}_{kind.name}"
        helper = body.whole.helper(word, helper_text(counted[1], type=kind.name, bits=8 * kind.size))
        return Value(f"{helper}({text})", kind if counted[1] == "brev" else INT)
    high = re.fullmatch(r"__(u?)mul(64)?hi", name)
    if high:
        body.expect(node, name, values, 2)
        kind = {("", None): INT, ("u", None): UINT, ("", "64"): LONG, ("u", "64"): ULONG}[high[1], high[2]]
        return Value(f"mul_hi({', '.join(convert(each, kind).text for each in values)})", kind)
    if name in ("__mul24", "__umul24"):
        body.expect(node, name, values, 2)
        # OpenCL's mul24 is for operands of 24 bits only; CUDA's takes no more than those.
        kind, cut = (INT, "({} << 8 >> 8)") if name == "__mul24" else (UINT, "({} & 0xffffffu)")
        return Value(f"({' * '.join(cut.format(convert(each, kind).text) for each in values)})", kind)
    return None


def _vector(body: Context, node: Node, name: str, values: list[Value]) -> Value | None:
    match = re.fullmatch(r"make_((?:u?char|u?short|u?int|u?long|u?longlong|float|double)[1-4])", name)
    if not match:
        return None
    kind = body.resolution.vector(match[1])
    if kind.members[0][1] == DOUBLE and "cl_khr_fp64" not in body.whole.extensions:
        raise body.refused(node, f"this OpenCL device has no double (cl_khr_fp64), which {match[1]} has")
    body.expect(node, name, values, len(kind.members))
    parts = [convert(value, member).text for value, (_, member) in zip(values, kind.members)]
    return Value(f"(({kind.name}){{{', '.join(parts)}}})", kind)


def _other(body: Context, node: Node, name: str, values: list[Value]) -> Value | None:
    if name in ("__stwb", "__stcg", "__stcs", "__stwt"):
        body.expect(node, name, values, 2)
        kind = values[0].type
        if kind.kind != "pointer" or kind.target.const or kind.target.kind == "pointer":
            raise body.refused(node, f"{name} takes a pointer to a number or a struct that is not const")
        return Value(f"(*{values[0].text} = {convert(values[1], kind.target).text})", VOID)
    if name in ("__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu", "__ldcv"):
        body.expect(node, name, values, 1)
        kind = values[0].type
        if kind.kind != "pointer":
            raise body.refused(node, f"{name} takes a pointer")
        target = kind.target
        return loaded(Value(f"(*{values[0].text})", target, None, True, kind.space or "?", target.kind == "pointer"))
    if name in _FENCES:
        body.expect(node, name, values, 0)
        return Value(f"{body.whole.helper('podium_fence', helper_text('fence'))}()", VOID)
    return None


def _printf(body: Context, node: Node) -> Value:
    arguments = node.child_by_field_name("arguments")
    nodes = arguments.named_children if arguments is not None else []
    if not nodes or nodes[0].type not in ("string_literal", "concatenated_string"):
        raise body.refused(node, "printf takes a string literal as its format")
    text = _directives(text_of(nodes[0]))
    parts = []
    for each in nodes[1:]:
        if each.type == "string_literal":
            parts.append(text_of(each))
            continue
        value = widened(body.rvalue(each))
        if value.type.kind == "struct":
            raise body.refused(each, f"printf of a {named(value.type)}")
        parts.append(convert(value, promoted(value.type)).text if value.type.is_number else f"(ulong)({value.text})")
    return Value(f"printf({', '.join([text, *parts])})", INT)


def _directives(text: str) -> str:
    """Write the directives of printf as OpenCL C has them, where long has 64 bits and no other length is longer."""
    return re.sub(r"%(%|[-+ #0-9.*]*)(ll|l|z|j|t|hh|h)?([diouxXcsfFeEgGaAp])?", _directive, text)


def _directive(match: re.Match[str]) -> str:
    flags, length, kind = match[1] or "", match[2] or "", match[3] or ""
    if flags == "%":
        return "%%"
    if kind == "p":
        return f"%{flags}lx"
    return f"%{flags}{'l' if length in ('ll', 'l', 'z', 'j', 't') and kind in 'diouxX' else ''}{kind}"


_CALLS = (
    call_collective,
    call_atomic,
    call_mathematics,
    call_minimum,
    call_conversion,
    call_small,
    _integer,
    _vector,
    _other,
)
