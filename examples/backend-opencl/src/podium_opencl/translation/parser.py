"""The parser of the kernel language."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

__all__ = ["parse"]


@lru_cache(maxsize=1)
def _language() -> object:
    import tree_sitter
    import tree_sitter_cuda

    return tree_sitter.Language(tree_sitter_cuda.language())


def parse(text: str) -> Node:
    """Parse a text. What cannot be read is an ERROR node in the tree."""
    import tree_sitter

    parser: Parser = tree_sitter.Parser(_language())  # type: ignore[arg-type]
    return parser.parse(text.encode()).root_node
