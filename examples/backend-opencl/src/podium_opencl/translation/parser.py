"""The parser of the kernel language."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

__all__ = ["parse", "parse_arguments"]


@lru_cache(maxsize=1)
def _language() -> object:
    import tree_sitter
    import tree_sitter_cuda

    return tree_sitter.Language(tree_sitter_cuda.language())


def parse(text: str) -> Node:
    """Parse a text. What cannot be read is an ERROR node in the tree."""
    return _parser().parse(text.encode()).root_node


def parse_arguments(node: Node) -> Node | None:
    """Parse the brackets of a node once more, as the arguments of a call; None if they are none.

    ``V v(a, b);`` may be the declaration of a function, with types for parameters, or a variable that is made of two
    values; the grammar takes it for the former. The nodes have their places in the whole text.
    """
    from tree_sitter import Range

    opening, closing, inside = b"void f() { return g", b"; }", node.text or b""
    end, row, column = len(opening) + len(inside), node.end_point[0], node.end_point[1]
    parser = _parser()
    parser.included_ranges = [
        Range((0, 0), (0, len(opening)), 0, len(opening)),
        Range(node.start_point, node.end_point, len(opening), end),
        Range((row, column), (row, column + len(closing)), end, end + len(closing)),
    ]
    root = parser.parse(opening + inside + closing).root_node
    if root.has_error:
        return None
    found = root
    while found.type != "argument_list":
        if not found.named_child_count:
            return None
        found = found.named_children[-1]
    return found


def _parser() -> Parser:
    import tree_sitter

    parser: Parser = tree_sitter.Parser(_language())  # type: ignore[arg-type]
    return parser
