"""Preprocessed text and its syntax tree, which share their offsets."""

from __future__ import annotations

import bisect
import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node

__all__ = ["NAMES", "Source", "called_name", "declared_name", "find", "is_loop", "same", "word"]

NAMES = ("identifier", "type_identifier", "namespace_identifier", "field_identifier")

_MARKER = re.compile(rb'^#[ \t]*(\d+)[ \t]+"((?:[^"\\\n]|\\.)*)"([ \t0-9]*)$', re.MULTILINE)
_WRAPPERS = ("init_declarator", "pointer_declarator", "array_declarator", "attributed_declarator")

# A parser keeps state while it works, so each thread has its own; the language is immutable.
_local = threading.local()


@lru_cache(maxsize=1)
def _language() -> Language:
    import tree_sitter
    import tree_sitter_cuda

    return tree_sitter.Language(tree_sitter_cuda.language())


class Source:
    """Text from the preprocessor. What it says of lines, and headers of the system, are blanks for the parser."""

    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-8", "surrogateescape")
        self._places: list[tuple[int, int, bytes]] = []  # where a marker ends, and the line and file that follow
        pieces: list[bytes] = []
        position, system = 0, False
        for marker in _MARKER.finditer(self.data):
            part = self.data[position : marker.start()]
            pieces += [_blank(part) if system else part, b" " * len(marker[0])]
            position, system = marker.end(), b"3" in marker[3].split()
            self._places.append((position + 1, int(marker[1]), marker[2]))
        rest = self.data[position:]
        self.plain = b"".join([*pieces, _blank(rest) if system else rest])
        parser = getattr(_local, "parser", None)
        if parser is None:
            import tree_sitter

            parser = _local.parser = tree_sitter.Parser(_language())
        self.root: Node = parser.parse(self.plain).root_node

    def text(self, start: int, end: int) -> str:
        """Return the text between two offsets as it is."""
        return self.data[start:end].decode("utf-8", "surrogateescape")

    def line(self, offset: int) -> tuple[int, str]:
        """Return the line that compilers name for an offset, and the file as it stands in markers."""
        index = bisect.bisect(self._places, (offset, 1 << 60, b"")) - 1
        if index < 0:
            return self.data.count(b"\n", 0, offset) + 1, ""
        start, line, file = self._places[index]
        return line + self.data.count(b"\n", start, offset), file.decode("utf-8", "surrogateescape")

    def marker(self, offset: int) -> str:
        """Return what makes the next character one of the line and column of an offset."""
        line, file = self.line(offset)
        column = offset - (self.data.rfind(b"\n", 0, offset) + 1)
        return f'\n# {line} "{file}"\n{" " * column}'


def _blank(text: bytes) -> bytes:
    return re.sub(rb"[^\n]", b" ", text)


def word(node: Node | None) -> str:
    """Return the text of a node on one line, and nothing for none."""
    return "" if node is None else " ".join((node.text or b"").decode("utf-8", "surrogateescape").split())


def same(left: Node | None, right: Node) -> bool:
    """Tell whether two nodes are one."""
    return left is not None and left.id == right.id


def find(node: Node, *types: str, within: tuple[str, ...] = ()) -> Iterator[Node]:
    """Give the nodes of some types in a tree, in order; not those inside nodes of the types `within`."""
    if node.type in types:
        yield node
    for child in node.children:
        if child.type not in within:
            yield from find(child, *types, within=within)


def is_loop(node: Node) -> bool:
    """Tell whether a statement is a loop, which break and continue end or go on with."""
    return node.type in ("for_statement", "while_statement", "do_statement", "for_range_loop")


def called_name(call: Node) -> str:
    """Return the last part of the name that a call calls; nothing if it calls what has no name."""
    node = call.child_by_field_name("function")
    while node is not None and node.type in ("qualified_identifier", "template_function", "template_method"):
        node = node.child_by_field_name("name")
    if node is not None and node.type == "field_expression":
        node = node.child_by_field_name("field")
        if node is not None and node.type == "template_method":
            node = node.child_by_field_name("name")
    return word(node) if node is not None and node.type in (*NAMES, "primitive_type") else ""


def declared_name(declarator: Node | None) -> Node | None:
    """Return the name that a declarator declares; none for functions, references and bindings."""
    while declarator is not None and declarator.type != "identifier":
        if declarator.type == "parenthesized_declarator":
            declarator = declarator.named_children[0]
        elif declarator.type in _WRAPPERS:
            declarator = declarator.child_by_field_name("declarator") or declarator.named_children[0]
        else:
            return None
    return declarator
