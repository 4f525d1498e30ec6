"""The tokens of the preprocessor, each with its place."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from podium_opencl.translation.refusal import Place, Refusal

__all__ = ["Token", "lines_of_tokens", "tokens_of"]

_LEXEME = re.compile(
    r"""
      (?P<space>[ \t\f\v]+ | //[^\n]* | /\*.*?\*/)
    | (?P<line>\n)
    | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)")
    | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
    | (?P<character>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z_]|[0-9A-Za-z_.])*)
    | (?P<word>[A-Za-z_$\x80-\U0010ffff][0-9A-Za-z_$\x80-\U0010ffff]*)
    | (?P<sign>\.\.\.|<<=|>>=|->\*|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A token: its kind, its text, where it stands, whether space is before it, and the macros not to expand in it."""

    kind: str
    text: str
    place: Place
    spaced: bool = False
    hidden: frozenset[str] = frozenset()


def tokens_of(text: str, file: str) -> Iterator[Token]:
    """Cut a text into tokens, with one of kind "line" at each end of a line; comments are space. Raises `Refusal`.

    A backslash at the end of a line joins it with the next one, also in the middle of a word.
    """
    pieces = text.split("\\\n")
    joints = deque(accumulate(map(len, pieces[:-1])))  # where lines were joined, in the text that follows
    text = "".join(pieces)
    line, start, spaced, position = 1, 0, False, 0
    while position < len(text):
        while joints and joints[0] <= position:
            line, start = line + 1, max(start, joints.popleft())
        match = _LEXEME.match(text, position)
        assert match is not None  # a single character always matches
        kind, lexeme, place = str(match.lastgroup), match[0], Place(file, line, position - start + 1)
        if lexeme == "/" and text.startswith("/*", position):
            raise Refusal("a comment is not closed", place)
        if lexeme in ('"', "'"):
            raise Refusal(f"a missing terminating {lexeme} character", place)
        position = match.end()
        if kind == "space":
            spaced = True
        else:
            yield Token("raw" if kind == "delimiter" else kind, lexeme, place, spaced)
            spaced = False
        if "\n" in lexeme:
            line += lexeme.count("\n")
            start = match.start() + lexeme.rindex("\n") + 1
            spaced = spaced or kind == "line"


def lines_of_tokens(text: str, file: str) -> Iterator[list[Token]]:
    """Cut a text into the tokens of each logical line, without the empty ones."""
    found: list[Token] = []
    for token in tokens_of(text.replace("\r\n", "\n").removeprefix("\ufeff"), file):
        if token.kind != "line":
            found.append(token)
        elif found:
            yield found
            found = []
    if found:
        yield found
