"""What a kernel asks of its block and its grid as cooperative groups, in the words that it has without groups.

``block.sync()`` is a barrier, and ``block.thread_rank()`` a number made of indices, which readers of kernels know.
Only a group that is surely the block or the grid, and is asked for nothing else, is done without: one that is passed
on or parted stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from podium_cpu.regions._syntax import NAMES, Source, called_name, declared_name, find, same, word

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["BLOCK_BARRIER", "asks_by_rank", "write_groups"]

BLOCK_BARRIER = "podium_block_sync"
"""The barrier that ``sync()`` of a block is: see barrier.h."""

_NAMESPACE = "cooperative_groups"
_TYPES = {"this_thread_block": "thread_block", "this_grid": "grid_group"}

# A block has 1024 threads at most: what compilers know to be small, they know to follow each other.
_RANK = "(threadIdx.x + ((blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 1023))"
_SIZE = "(blockDim.x * blockDim.y * blockDim.z)"
_BLOCK = "(blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z))"
_BLOCKS = "(1ull * gridDim.x * gridDim.y * gridDim.z)"
_ANSWERS = {
    "this_thread_block": {
        "sync": f"{BLOCK_BARRIER}()",
        "thread_rank": _RANK,
        "size": _SIZE,
        "num_threads": _SIZE,
    },
    "this_grid": {
        "thread_rank": f"({_BLOCK} * {_SIZE} + {_RANK})",
        "size": f"({_BLOCKS} * {_SIZE})",
        "num_threads": f"({_BLOCKS} * {_SIZE})",
        "block_rank": _BLOCK,
        "num_blocks": _BLOCKS,
    },
}
_VECTORS = {
    "this_thread_block": {
        "thread_index": "threadIdx",
        "group_index": "blockIdx",
        "group_dim": "blockDim",
        "dim_threads": "blockDim",
    },
    "this_grid": {"block_index": "blockIdx", "group_dim": "gridDim", "dim_blocks": "gridDim"},
}

_NUMBERS = {"this_thread_block": "unsigned", "this_grid": "unsigned long long"}

_Change = tuple[int, int, str]


def write_groups(text: str) -> str:
    """Rewrite what preprocessed text asks of blocks and grids; each line keeps its number."""
    if not any(maker in text for maker in _TYPES):
        return text
    source = Source(text)
    names = _Names(source.root)
    if names.are_others:
        return text
    changes: list[_Change] = []
    end = 0
    for function in find(source.root, "function_definition"):
        if function.start_byte >= end and not function.has_error:  # others are inside of the one before
            end = function.end_byte
            changes += [*_of_variables(function, names), *_of_calls(function, names)]
    pieces, position = [], 0
    for start, end, new in sorted(changes):
        # Of what a preprocessor says of lines there may be some in between.
        old = source.text(start, end)
        if "\n#" in old:
            return text
        pieces += [source.text(position, start), new, "\n" * old.count("\n")]
        position = end
    return "".join(pieces) + source.text(position, len(source.data))


def asks_by_rank(text: str) -> bool:
    """Tell whether a function asks for the rank of its thread and the size of its block, and no other place in it."""
    rest = text.replace(_RANK, "").replace(_SIZE, "")
    return rest != text and re.search(r"threadIdx|blockDim", rest) is None


class _Names:
    """What the names of groups mean in a source."""

    def __init__(self, root: Node) -> None:
        self._namespaces = {"", _NAMESPACE}
        for alias in find(root, "namespace_alias_definition"):
            *_, whole = alias.named_children
            if word(whole).removeprefix("::").strip() == _NAMESPACE:
                self._namespaces.add(word(alias.child_by_field_name("name")))
        declared = [each.child_by_field_name("declarator") for each in find(root, "function_declarator")]
        kinds = ("struct_specifier", "class_specifier", "alias_declaration")
        declared += [each.child_by_field_name("name") for each in find(root, *kinds)]
        declared += [each.child_by_field_name("declarator") for each in find(root, "type_definition")]
        self.are_others = not {"sync", *_TYPES, *_TYPES.values()}.isdisjoint(map(word, declared))
        """Whether the source has functions or classes of its own with such names."""

    def maker(self, node: Node | None) -> str:
        """Return the name of the function by which an expression makes a group, or nothing."""
        if node is None or node.type != "call_expression" or not self._is_of_groups(node):
            return ""
        name = called_name(node)
        return name if name in _TYPES and not _arguments(node) else ""

    def is_sync(self, call: Node) -> bool:
        """Tell whether a call is that of the function ``sync``."""
        return self._is_of_groups(call) and called_name(call) == "sync"

    def _is_of_groups(self, call: Node) -> bool:
        function = call.child_by_field_name("function")
        if function is None or function.type not in ("identifier", "qualified_identifier"):
            return False
        scope = word(function).replace(" ", "").rpartition("::")[0].removeprefix("::")
        return scope in self._namespaces

    def declares(self, kind: Node | None, maker: str) -> bool:
        """Tell whether the type of a declaration is that of the group that a function makes."""
        scope, _, name = word(kind).replace(" ", "").rpartition("::")
        return name == "auto" or (name == _TYPES[maker] and scope.removeprefix("::") in self._namespaces)


def _of_variables(function: Node, names: _Names) -> Iterator[_Change]:
    """Give the changes that do without groups in variables."""
    for declaration in find(function, "declaration"):
        declarators = declaration.children_by_field_name("declarator")
        scope = declaration.parent
        if scope is None or scope.type != "compound_statement" or len(declarators) != 1:
            continue
        name, maker = declared_name(declarators[0]), names.maker(declarators[0].child_by_field_name("value"))
        if name is None or not maker or not names.declares(declaration.child_by_field_name("type"), maker):
            continue
        if any(child.type == "storage_class_specifier" for child in declaration.children):
            continue
        uses = [each for each in find(function, *NAMES[:3]) if word(each) == word(name) and not same(each, name)]
        answers = [_answer(each, maker, names) for each in uses]
        if all(answers) and all(declaration.end_byte <= each.start_byte < scope.end_byte for each in uses):
            yield declaration.start_byte, declaration.end_byte, ""
            yield from chain.from_iterable(answers)


def _of_calls(function: Node, names: _Names) -> Iterator[_Change]:
    """Give the changes that do without groups that are asked where they are made."""
    for call in find(function, "call_expression"):
        if maker := names.maker(call):
            yield from _answer(call, maker, names)


def _answer(group: Node, maker: str, names: _Names) -> list[_Change]:
    """Return the changes for an expression that asks a group for something; none if nothing can take its place."""
    around = group.parent
    call = None if around is None else around.parent
    if around is None or call is None or call.type != "call_expression":
        return []
    if around.type == "argument_list":
        fine = maker == "this_thread_block" and names.is_sync(call) and len(_arguments(call)) == 1
        return [(call.start_byte, call.end_byte, f"{BLOCK_BARRIER}()")] if fine else []
    asked = same(around.child_by_field_name("argument"), group) and same(call.child_by_field_name("function"), around)
    if not asked or around.type != "field_expression" or word(around.child_by_field_name("operator")) != ".":
        return []
    name = word(around.child_by_field_name("field"))
    answer, vector = _ANSWERS[maker].get(name), _VECTORS[maker].get(name)
    if _arguments(call) or (answer is None and vector is None):
        return []
    if answer is not None:
        return [(call.start_byte, call.end_byte, answer), *_named_type(call, _NUMBERS[maker])]
    member = call.parent
    if member is not None and member.type == "field_expression":
        number = f"{vector}.{word(member.child_by_field_name('field'))}"
        return [(member.start_byte, member.end_byte, number), *_named_type(member, "unsigned")]
    whole = f"dim3({vector}.x, {vector}.y, {vector}.z)"
    return [(call.start_byte, call.end_byte, whole), *_named_type(call, "dim3")]


def _named_type(value: Node, name: str) -> Iterator[_Change]:
    """Give the change that names the type of a variable that is declared as ``auto`` with a value."""
    declarator = value.parent
    if declarator is None or declarator.type != "init_declarator" or declarator.parent is None:
        return
    kind = declarator.parent.child_by_field_name("type")
    alone = len(declarator.parent.children_by_field_name("declarator")) == 1
    if alone and kind is not None and word(kind) == "auto" and declared_name(declarator) is not None:
        yield kind.start_byte, kind.end_byte, name


def _arguments(call: Node) -> list[Node]:
    arguments = call.child_by_field_name("arguments")
    return [] if arguments is None else [each for each in arguments.named_children if each.type != "comment"]
