"""The kernels of a source that can be taken apart into regions."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from podium_cpu.regions._classes import read_classes
from podium_cpu.regions._groups import write_groups
from podium_cpu.regions._marks import write_marks
from podium_cpu.regions._pieces import Barrier, RowLoop, Strided, all_pieces
from podium_cpu.regions._plan import BARRIERS, Plan
from podium_cpu.regions._syntax import NAMES, Source, called_name, declared_name, find, word
from podium_cpu.regions._text import Writer
from podium_cpu.regions._variables import Facts, Unsupported, Variables, is_number

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["rewrite_regions"]

# Ways to wait for other threads that only stacks of their own can serve.
_WAITS = re.compile(
    r"__(?:shfl|any|all|ballot|match|reduce|activemask|syncwarp|nanosleep)\w*|this_thread_block|this_grid"
    r"|tiled_partition|coalesced_threads|sync|grid_barrier|grid_sync"
)
_REFUSED = (
    "goto_statement",
    "labeled_statement",
    "gnu_asm_expression",
    "co_await_expression",
    "co_return_statement",
    "try_statement",
    "ERROR",
)


def rewrite_regions(text: str, *, independent: bool = False, loops: bool = True) -> tuple[str, dict[str, str]]:
    """Do what `podium_cpu.regions.rewrite_regions` says."""
    source = Source(write_groups(text) if loops else text)
    functions = [(name, node) for node in find(source.root, "function_definition") if (name := _name(node))]
    kernels = [node for _, node in functions if b"__global__" in source.plain[node.start_byte : _body(node).start_byte]]
    if not kernels:
        return text, {}
    facts = _facts(source)
    stand_ins = _stand_ins(source, functions, kernels, facts)
    waiting = _waiting(functions)
    unseen = _why_none(source, functions, waiting)
    why = unseen or ("" if loops else "its threads are to run by themselves")
    taken = [(node.start_byte, node.end_byte) for node in (*kernels, *stand_ins)]
    # In functions, operators, lambdas of the namespace, default arguments and values of members.
    index = any(
        word(each) == "threadIdx" and not any(start <= each.start_byte < end for start, end in taken)
        for each in find(source.root, "identifier")
    )
    changes: list[tuple[int, int, str]] = []
    reasons: dict[str, str] = {}
    for node in (*kernels, *stand_ins):
        name = _name(node)
        try:
            if why:
                raise Unsupported(why)
            new = _rewrite(source, node, facts, waiting, independent, index)
        except Unsupported as reason:
            reasons[name] = str(reason)
            continue
        body = _body(node)
        changes.append((body.start_byte, body.end_byte, new))
        reasons.update(dict.fromkeys(stand_ins.get(node, [name]), ""))
    # The end of a function that a kernel calls once, and that nobody else calls, is the end of the kernel.
    once = () if unseen else (each for each in stand_ins if _name(each) not in _words(_body(each)))
    changes += write_marks(source, (*kernels, *once), [(start, end) for start, end, _ in changes])
    pieces, position = [], 0
    for start, end, new in sorted(changes):
        pieces += [source.text(position, start), new]
        position = end
    return "".join(pieces) + source.text(position, len(source.data)), reasons


def _why_none(source: Source, functions: list[tuple[str, Node]], waiting: frozenset[str]) -> str:
    """Say why no kernel of a source can be taken apart, or nothing."""
    bodies = [(_body(node).start_byte, _body(node).end_byte) for _, node in functions]
    for each in find(source.root, *NAMES, within=("using_declaration",)):
        hidden = not any(start <= each.start_byte < end for start, end in bodies)
        if hidden and (word(each) in BARRIERS or _WAITS.fullmatch(word(each))):
            return "threads wait in what is no function"
    return "threads may wait where no kernel shows it" if _waits_unseen(source, waiting) else ""


def _rewrite(source: Source, node: Node, facts: Facts, waiting: frozenset[str], independent: bool, index: bool) -> str:
    body = _body(node)
    if node.has_error:
        raise Unsupported("it has not been understood")
    for refused in find(node, *_REFUSED):
        raise Unsupported(f"it has a {refused.type.replace('_', ' ')}")
    for name in find(body, *NAMES, within=("using_declaration",)):
        if word(name) in waiting or _WAITS.fullmatch(word(name)) or word(name).startswith("podium_t"):
            raise Unsupported(f"{word(name)} may wait for other threads")
    if re.search(
        rb"::\s*(?:thread|block)Idx|::\s*(?:block|grid)Dim|\bvolatile\b", source.plain[node.start_byte : node.end_byte]
    ):
        independent = False
        if b"::" in source.plain[body.start_byte : body.end_byte] and re.search(
            rb"::\s*\w+(?:Idx|Dim)\b", source.plain
        ):
            raise Unsupported("it names the indices with ::")
    for each in find(body, "pointer_expression"):
        if each.children[0].type == "&" and word(each.children[-1]) == "threadIdx":
            raise Unsupported("it takes the address of threadIdx")
    plan = Plan(body, Variables(node, body, facts))
    pieces = list(all_pieces(plan.pieces))
    if not any(isinstance(piece, (Barrier, RowLoop, Strided)) for piece in pieces):
        raise Unsupported("nothing in it is quicker in regions")
    inside = sum(isinstance(piece, Barrier) for piece in pieces)
    if inside != sum(1 for name in find(body, "identifier") if word(name) in BARRIERS):
        raise Unsupported("a barrier is not a statement of its own")
    return Writer(source, plan, independent=independent, global_index=index).write()


def _stand_ins(
    source: Source, functions: list[tuple[str, Node]], kernels: list[Node], facts: Facts
) -> dict[Node, list[str]]:
    """Find functions with barriers that kernels do nothing but call, and the names of those kernels.

    Such a function is what its kernels are, as long as all threads call it with the same arguments.
    """
    count = Counter(name for name, _ in functions)
    found: dict[Node, list[str]] = {}
    for name, node in functions:
        meets = any(word(each) in BARRIERS for each in find(_body(node), "identifier"))
        defaults = any(find(node, "optional_parameter_declaration"))  # which each thread computes for itself
        if node in kernels or count[name] > 1 or not meets or defaults:
            continue
        callers = [
            other
            for _, other in functions
            if other is not node and any(word(each) == name for each in find(_body(other), *NAMES))
        ]
        if callers and all(other in kernels and _only_calls(other, name, facts) for other in callers):
            found[node] = [_name(other) for other in callers]
    return found


def _only_calls(kernel: Node, name: str, facts: Facts) -> bool:
    """Tell whether a kernel does nothing but call a function, with arguments that are the same for all threads."""
    *before, last = [child for child in _body(kernel).named_children if child.type != "comment"] or [kernel]
    call = last.named_children[0] if last.type == "expression_statement" and last.named_children else last
    arguments = call.child_by_field_name("arguments")
    if call.type != "call_expression" or called_name(call) != name or arguments is None or kernel.has_error:
        return False
    variables = Variables(kernel, _body(kernel), facts)
    if any(each.type not in ("declaration", "static_assert_declaration", "alias_declaration") for each in before):
        return False
    if any(v.declaration is not None and not v.lasting for v in variables.all):
        return False
    if sum(word(each) == name for each in find(_body(kernel), *NAMES)) != 1:
        return False
    same = {v for v in variables.all if v.declaration is None and not v.has("change", "address")}
    shared = {v.start for v in variables.all if v.lasting} | {start for start, v in variables.at.items() if v.lasting}
    return all(each.start_byte in shared or variables.is_uniform(each, same) for each in arguments.named_children)


def _words(node: Node) -> set[str]:
    return {word(each) for each in find(node, *NAMES)}


def _body(node: Node) -> Node:
    return node.child_by_field_name("body") or node


def _name(node: Node) -> str:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type not in NAMES:
        declarator = declarator.child_by_field_name("declarator") or declarator.child_by_field_name("name")
    return word(declarator)


def _waiting(functions: list[tuple[str, Node]]) -> frozenset[str]:
    """Name the functions in which threads may wait, by themselves or in functions that they name."""
    mentioned: dict[str, set[str]] = {}
    for name, node in functions:
        mentioned.setdefault(name, set()).update(word(each) for each in find(_body(node), *NAMES))
    waiting = {name for name, words in mentioned.items() if any(_WAITS.fullmatch(w) or w in BARRIERS for w in words)}
    while True:
        more = {name for name, words in mentioned.items() if words & waiting} - waiting
        if not more:
            break
        waiting |= more
    return frozenset(waiting)


def _waits_unseen(source: Source, waiting: frozenset[str]) -> bool:
    """Tell whether threads may wait in operators and destructors, or in functions that others reach by other names."""
    for each in find(source.root, "function_definition"):
        if not _name(each) and any(word(name) in waiting for name in find(each, *NAMES)):
            return True
    inside = ("function_definition", "parameter_list")
    values = (node.child_by_field_name("value") for node in find(source.root, "init_declarator", within=inside))
    if any(word(name) in waiting for value in values if value is not None for name in find(value, *NAMES)):
        return True
    # A parameter of a template may stand for any of them.
    return bool(waiting) and any(
        any(find(node, "function_declarator", "abstract_function_declarator", "placeholder_type_specifier"))
        for node in find(source.root, "template_parameter_list")
    )


def _facts(source: Source) -> Facts:
    parameters: dict[str, list[list[Node]]] = {}
    for declarator in find(source.root, "function_declarator"):
        name, node = _name_of(declarator), declarator.child_by_field_name("parameters")
        if name and node is not None:
            parameters.setdefault(name, []).append([each for each in node.named_children if each.type != "comment"])
    changing: set[str] = set()
    classes = read_classes(source.root)
    for declaration in find(source.root, "declaration", "field_declaration", within=("function_definition",)):
        words = {word(child) for child in declaration.children}
        plain = is_number(word(declaration.child_by_field_name("type"))) or not classes.operators
        fixed = bool(words & {"const", "constexpr"}) and plain
        names = (
            declared_name(each)
            for each in declaration.children_by_field_name("declarator")
            # What such a pointer or reference leads to is const, and itself it is not.
            if not fixed or ("constexpr" not in words and any(find(each, "pointer_declarator", "reference_declarator")))
        )
        changing.update(word(each) for each in names if each is not None)
    return Facts(parameters, frozenset(changing), classes)


def _name_of(declarator: Node) -> str:
    node = declarator.child_by_field_name("declarator")
    while node is not None and node.type not in (*NAMES, "operator_name"):
        node = node.child_by_field_name("declarator") or node.child_by_field_name("name")
    return word(node)
