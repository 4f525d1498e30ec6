"""What all threads of a block do together: barriers, and the warp functions, which exchange through local memory.

OpenCL 1.2 has no warps. A warp is 32 threads that follow one another; what they exchange lies in local memory between
two barriers, which every thread of the block has to reach. `masked.py` sees to that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium_opencl.translation.context import Context
from podium_opencl.translation.prelude import helper_text
from podium_opencl.translation.symbols import text_of
from podium_opencl.translation.types import INT, UINT, VOID, Type, spelled
from podium_opencl.translation.values import Value, convert, named, truth

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["COLLECTIVE", "call_collective", "called_name", "collective_names", "exchange"]

COLLECTIVE = re.compile(
    r"__syncthreads(_count|_and|_or)?|__syncwarp|__(shfl)(_up|_down|_xor)?_sync|__(any|all|ballot|match_any)_sync"
    r"|__activemask|__reduce_(add|min|max|and|or|xor)_sync"
)
_WAYS = {None: 0, "_up": 1, "_down": 2, "_xor": 3}
_OLD = re.compile(r"__(shfl|shfl_up|shfl_down|shfl_xor|any|all|ballot)")


def collective_names(root: Node) -> frozenset[str]:
    """Find the names of all functions with a barrier or a warp function in them, or in what they call."""
    calls: dict[str, set[str]] = {}
    _gather(root, "", calls)
    found = {name for called in calls.values() for name in called if COLLECTIVE.fullmatch(name)}
    while True:
        more = {name for name, called in calls.items() if name and called & found} - found
        if not more:
            return frozenset(found)
        found |= more


def _gather(node: Node, inside: str, calls: dict[str, set[str]]) -> None:
    if node.type == "function_definition":
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type.endswith("declarator"):
            declarator = declarator.child_by_field_name("declarator")
        if declarator is not None and declarator.type == "template_function":
            declarator = declarator.child_by_field_name("name")
        inside = text_of(declarator).replace(" ", "")
    elif node.type == "call_expression":
        calls.setdefault(inside, set()).add(called_name(node))
    for each in node.named_children:
        _gather(each, inside, calls)


def called_name(call: Node) -> str:
    """Return the last word of the name of what is called."""
    found = call.child_by_field_name("function")
    while found is not None:
        inner = found.child_by_field_name("field" if found.type == "field_expression" else "name")
        if inner is None:
            break
        found = inner
    return text_of(found)


def exchange(body: Context) -> str:
    """Have the local memory through which threads exchange values; return its name."""
    body.whole.helper("podium_thread", helper_text("thread"))
    return body.need("podium_exchange", "__local ulong *podium_exchange")


def call_collective(body: Context, node: Node, name: str, values: Sequence[Value]) -> Value | None:
    """Translate a barrier or a warp function; None if the name is none. Raises `Refusal`."""
    if _OLD.fullmatch(name):
        raise body.refused(node, f"{name} has no mask: use {name}_sync, which CUDA has since 9.0")
    if not COLLECTIVE.fullmatch(name):
        return None
    if not body.may_hoist:
        raise body.refused(
            node,
            f"podium-opencl can do {name} only in a statement of its own, not behind &&, || or ?:, nor in the head of "
            "a for loop: put its result into a variable first",
        )
    if name == "__syncthreads":
        body.hoisted.append("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")
        return Value("", VOID)
    if name == "__syncwarp":
        # A barrier of the block is one of its warps, too; the threads that do not take part pass it as well.
        body.hoisted.append("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")
        return Value("", VOID)
    if name.startswith("__syncthreads"):
        return _counted(body, node, name, values)
    if name.startswith("__shfl"):
        return _shuffled(body, node, name, values)
    return _voted(body, node, name, values)


def _result(body: Context, kind: Type, text: str) -> Value:
    name = body.fresh("result")
    body.hoisted.append(f"const {spelled(kind, name)} = {text};")
    return Value(name, kind)


def _active(body: Context) -> str:
    return f"(uchar)({body.condition()})"


def _counted(body: Context, node: Node, name: str, values: Sequence[Value]) -> Value:
    body.expect(node, name, values, 1)
    own, memory = body.temporary(truth(values[0])), exchange(body)
    active = _active(body)
    if name.endswith("_and"):
        missing = _result(body, INT, f"podium_any({active} && !{own}, {memory})")
        return Value(f"((int)({missing.text} == 0))", INT)
    word = "any" if name.endswith("_or") else "count"
    return _result(body, INT, f"podium_{word}({active} && {own}, {memory})")


def _shuffled(body: Context, node: Node, name: str, values: Sequence[Value]) -> Value:
    if len(values) not in (3, 4):
        raise body.refused(node, f"{name} takes 3 or 4 arguments, not {len(values)}")
    kind = values[1].type
    if not kind.is_number:
        raise body.refused(node, f"{name} exchanges numbers, not a {named(kind)}")
    way = _WAYS[name.removeprefix("__shfl").removesuffix("_sync") or None]
    memory = exchange(body)
    own = body.temporary(values[1])
    operand = body.temporary(convert(values[2], INT))
    width = body.temporary(convert(values[3], INT)) if len(values) == 4 else "32"
    unsigned = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}[kind.size]
    there = f"as_{unsigned}({own})" if kind.kind == "real" else own
    if kind.kind == "small":
        there = f"{kind.name}_bits({own})"
    text = f"podium_exchanged((ulong)({unsigned})({there}), podium_source({way}, {operand}, {width}), {memory})"
    back = f"({unsigned})({text})"
    if kind.kind == "real":
        back = f"as_{kind.name}({back})"
    elif kind.kind == "small":
        back = f"(({kind.name}){{{back}}})"
    return _result(body, kind, back)


def _voted(body: Context, node: Node, name: str, values: Sequence[Value]) -> Value:
    body.expect(node, name, values, 0 if name == "__activemask" else 2)
    memory = exchange(body)
    active = _active(body)
    if name == "__activemask":
        return _result(body, UINT, f"podium_ballot({active}, {memory})")
    mask = body.temporary(convert(values[0], UINT))
    if name.startswith("__reduce"):
        raise body.refused(node, f"podium-opencl does not have {name}: use __shfl_xor_sync in a loop")
    if name == "__match_any_sync":
        body.whole.helper("podium_match", helper_text("match"))
        kind = values[1].type
        unsigned = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}[kind.size]
        own = body.temporary(values[1])
        there = f"as_{unsigned}({own})" if kind.kind == "real" else own
        return _result(body, UINT, f"podium_match((ulong)({unsigned})({there}), {active}, {memory}) & {mask}")
    own = body.temporary(truth(values[1]))
    if name == "__all_sync":
        missing = _result(body, UINT, f"podium_ballot({active} && !{own}, {memory}) & {mask}")
        return Value(f"((int)({missing.text} == 0))", INT)
    found = _result(body, UINT, f"podium_ballot({active} && {own}, {memory}) & {mask}")
    return Value(f"((int)({found.text} != 0))", INT) if name == "__any_sync" else found
