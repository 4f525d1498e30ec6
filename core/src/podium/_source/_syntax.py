"""Parsing one declaration with tree-sitter's CUDA grammar."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node

__all__ = ["parse", "words"]

# A parser keeps state while it works, so each thread has its own; the language is immutable.
_local = threading.local()


@lru_cache(maxsize=1)
def _language() -> Language:
    import tree_sitter
    import tree_sitter_cuda

    return tree_sitter.Language(tree_sitter_cuda.language())


def parse(text: str) -> Node:
    """Parse ASCII text and return the root of its tree. Never fails: what it cannot read is inside ERROR nodes."""
    parser = getattr(_local, "parser", None)
    if parser is None:
        import tree_sitter

        parser = _local.parser = tree_sitter.Parser(_language())
    root: Node = parser.parse(text.encode("ascii")).root_node
    return root


def words(node: Node) -> str:
    """Return the source text of a node, its white space made uniform."""
    return " ".join((node.text or b"").decode("ascii").split())
