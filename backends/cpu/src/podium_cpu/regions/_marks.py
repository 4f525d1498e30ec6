"""Marks for threads that run on stacks: which barrier is which, and which of them lie behind a thread that ends.

Barriers get numbers, since two may stand on one line. Those in the text of a kernel itself have numbers above zero,
which rise from line to line. Where a thread leaves the kernel, the number of the last barrier that it can no longer
come to is set: others that wait there wait in vain for it. In front of a barrier it may return.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from podium_cpu.regions._plan import BARRIERS
from podium_cpu.regions._syntax import Source, called_name, declared_name, find, is_loop, same, word

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["write_marks"]

_FUNCTIONS = ("function_definition", "lambda_expression")
_BLOCKS = ("thread_block", "cg::thread_block", "cooperative_groups::thread_block")


def write_marks(source: Source, kernels: Iterable[Node], written: list[tuple[int, int]]) -> list[tuple[int, int, str]]:
    """Return the changes that number barriers, and that have threads say how far they came where they leave a kernel.

    `kernels` are the functions whose end is that of their threads. What lies in `written` is left alone.
    """
    owners = {node.id: node for node in kernels if _is_clear(node)}
    changes: list[tuple[int, int, str]] = []
    own: dict[int, list[tuple[int, int]]] = {}  # the offset and the number of each barrier of an owner
    number = 0
    for call in find(source.root, "call_expression"):
        arguments = call.child_by_field_name("arguments")
        if arguments is None or any(start <= call.start_byte < end for start, end in written):
            continue
        function = _function(call)
        if not _is_barrier(call, arguments, function):
            continue
        number += 1
        mine = function is not None and function.id in owners
        if function is not None and mine:
            own.setdefault(function.id, []).append((call.start_byte, number))
        place = arguments.start_byte + 1
        more = ", " if arguments.named_child_count else ""
        changes.append((place, place, f"::podium_cpu::numbered{{{number if mine else -number}}}{more}"))
    for key, barriers in own.items():
        changes += _departures(source, owners[key], barriers)
    return changes


def _departures(source: Source, kernel: Node, barriers: list[tuple[int, int]]) -> list[tuple[int, int, str]]:
    body = kernel.child_by_field_name("body")
    if body is None:
        return []
    end = body.end_byte - 1
    changes = [(end, end, f" ::podium_cpu::past = {barriers[-1][1]};")]
    jumps = any(find(body, "goto_statement", "labeled_statement"))
    for each in find(body, "return_statement", within=_FUNCTIONS):
        start = _outermost(each, body).start_byte
        # With jumps, what stands behind a barrier may lie in front of it.
        past = 0 if jumps else max((number for place, number in barriers if place < start), default=0)
        text = source.text(each.start_byte, each.end_byte)
        changes.append((each.start_byte, each.end_byte, f"{{ ::podium_cpu::past = {past}; {text} }}"))
    return changes


def _outermost(statement: Node, body: Node) -> Node:
    """Return the outermost statement around one in which a barrier may be in front of it, and yet not be passed by.

    That is a loop, which may be in another turn, or one with several branches.
    """
    found = inner = statement
    while (around := inner.parent) is not None and not same(around, body):
        apart = around.type == "if_statement" and same(around.child_by_field_name("alternative"), inner)
        if apart or is_loop(around) or around.type in ("switch_statement", "try_statement"):
            found = around
        inner = around
    return found


def _is_clear(kernel: Node) -> bool:
    """Tell whether the ways out of a function are its returns and its closing brace."""
    body = kernel.child_by_field_name("body")
    if body is None or body.type != "compound_statement" or kernel.has_error:
        return False
    returns = find(body, "return_statement", within=_FUNCTIONS)
    return body.children[-1].type == "}" and not any(each.named_children for each in returns)


def _function(node: Node) -> Node | None:
    around = node.parent
    while around is not None and around.type not in _FUNCTIONS:
        around = around.parent
    return around


def _is_barrier(call: Node, arguments: Node, function: Node | None) -> bool:
    callee = call.child_by_field_name("function")
    if callee is None:
        return False
    if callee.type == "identifier" and word(callee) in BARRIERS:
        return True
    if called_name(call) != "sync":
        return False
    # Of a group, if it is surely the block.
    if callee.type == "field_expression":
        group = callee.child_by_field_name("argument")
        return arguments.named_child_count == 0 and _is_block(group, function)
    return arguments.named_child_count == 1 and _is_block(arguments.named_children[0], function)


def _is_block(group: Node | None, function: Node | None) -> bool:
    if group is None:
        return False
    if _makes_block(group):
        return True
    if group.type != "identifier" or function is None:
        return False
    for declaration in find(function, "declaration"):
        for declarator in declaration.children_by_field_name("declarator"):
            if word(declared_name(declarator)) == word(group):
                value = declarator.child_by_field_name("value")
                kind = word(declaration.child_by_field_name("type"))
                return kind in _BLOCKS or (kind == "auto" and _makes_block(value))
    return False


def _makes_block(node: Node | None) -> bool:
    return node is not None and node.type == "call_expression" and called_name(node) == "this_thread_block"
