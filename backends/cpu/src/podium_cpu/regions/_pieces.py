"""What a kernel is taken apart into: regions that all threads run through, and what is done once for a block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

    from podium_cpu.regions._variables import Variable

__all__ = [
    "Barrier",
    "Block",
    "Branch",
    "Loop",
    "Once",
    "Piece",
    "Region",
    "RowLoop",
    "Strided",
    "all_pieces",
    "inner_pieces",
]


@dataclass(eq=False)
class Region:
    """Statements, or one expression, that all threads run before any of them goes on."""

    nodes: list[Node]
    number: int = 0


@dataclass(eq=False)
class Once:
    """A statement that is run once for the block; of a declaration perhaps `only` some declarators."""

    node: Node
    only: list[Node] | None = None


@dataclass(eq=False)
class Barrier:
    """A barrier; one that votes has the expression, and the statement that its result goes to."""

    node: Node
    call: Node
    vote: Region | None = None
    result: Region | None = None


@dataclass(eq=False)
class Block:
    """A compound statement."""

    node: Node
    pieces: list[Piece]


@dataclass(eq=False)
class Branch:
    """An if; with `condition`, each thread decides for itself."""

    node: Node
    condition: Region | None
    then: list[Piece]
    other: list[Piece]


@dataclass(eq=False)
class Loop:
    """A loop with barriers; with `condition`, each thread decides for itself when it leaves."""

    node: Node
    condition: Region | None
    first: Region | None
    update: Region | None
    body: list[Piece]


@dataclass(eq=False)
class Strided:
    """A loop whose variable begins at each thread's index and advances by the same for all.

    With `is_row`, the next thread along x begins one further.
    """

    node: Node
    variable: Variable
    type: str
    start: Node
    is_row: bool
    condition: Node
    step: Node
    body: Node
    region: Region


@dataclass(eq=False)
class RowLoop:
    """A loop that goes the same way for all threads of a row; around another one, or around what each thread does."""

    node: Node
    first: Node
    body: Node
    inner: Strided | None
    region: Region


Piece = RowLoop | Region | Once | Barrier | Block | Branch | Loop | Strided


def inner_pieces(piece: Piece) -> list[Piece]:
    """Return the pieces that a piece is made of."""
    if isinstance(piece, Block):
        return piece.pieces
    if isinstance(piece, Branch):
        return piece.then + piece.other
    return piece.body if isinstance(piece, Loop) else []


def all_pieces(pieces: list[Piece]) -> Iterator[Piece]:
    """Give some pieces and all those inside of them."""
    for piece in pieces:
        yield piece
        yield from all_pieces(inner_pieces(piece))
