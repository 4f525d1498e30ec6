"""The names of kernels: qualified, with template arguments, and checked before they reach generated code."""

from __future__ import annotations

import re

from podium._record import record
from podium.errors import SourceError

__all__ = ["NameExpression", "check_name_expression", "parse_name_expression"]

_LONGEST = 4096
_DEEPEST = 64

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t]+)
    | (?P<number>-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)[uUlLfFzZ]{0,3}(?![\w.]))
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<sign>::|[<>,*&])
    """,
    re.VERBOSE | re.ASCII,
)


@record(frozen=True)
class NameExpression:
    """A name such as ``ns::reduce<ns::Op<float>, 256>``, taken apart.

    `scopes` are the names before the last one, `arguments` the template arguments of the last, None without ``<>``.
    """

    text: str
    scopes: tuple[str, ...]
    base: str
    arguments: tuple[str, ...] | None
    is_global: bool

    @property
    def qualified(self) -> str:
        """The name without its template arguments."""
        return "::".join((*self.scopes, self.base))


def check_name_expression(name: str) -> str:
    """Return the name with its white space made uniform, if it is a qualified name with or without template arguments.

    Only letters, digits, ``_``, ``::``, ``<>``, ``,``, ``*``, ``&``, numbers and spaces can be in one, so that no name
    can bring code with it. Raises `SourceError` for anything else.
    """
    return parse_name_expression(name).text


def parse_name_expression(name: str) -> NameExpression:
    """Take a name expression apart. Raises `SourceError` as `check_name_expression` does."""
    tokens = _tokens(name)
    _check(name, tokens)
    scopes: list[str] = []
    position = 1 if tokens[0] == "::" else 0
    base = tokens[position]
    position += 1
    while position < len(tokens) and tokens[position] == "::":
        scopes.append(base)
        base = tokens[position + 1]
        position += 2
    arguments = None
    if position < len(tokens):
        if tokens[position] != "<" or _closing(tokens, position) != len(tokens) - 1:
            raise _malformed(name, "template arguments stand once, at the end")
        arguments = tuple(map(_join, _split(tokens[position + 1 : -1])))
    return NameExpression(_join(tokens), tuple(scopes), base, arguments, tokens[0] == "::")


def _tokens(name: str) -> list[str]:
    if not isinstance(name, str):
        raise SourceError(f"The name of a kernel is a string such as 'reduce<float, 256>', not {name!r}")
    if len(name) > _LONGEST:
        raise SourceError(f"The name of a kernel has at most {_LONGEST} characters, not {len(name)}")
    tokens = []
    position = 0
    while position < len(name):
        match = _TOKEN.match(name, position)
        if match is None:
            raise _malformed(name, f"{name[position]!r} cannot be in it")
        if match.lastgroup != "space":
            tokens.append(match[0])
        position = match.end()
    return tokens


def _check(name: str, tokens: list[str]) -> None:
    """Walk the tokens once: words, ``::`` between words, brackets that match, ``*`` and ``&`` after a type."""
    depth = 0
    before = ""
    for token in tokens:
        if _is_word(token):
            fits = not (_is_number(before) or (depth == 0 and (_is_word(before) or before == ">")))
        elif _is_number(token):
            fits = before in ("<", ",")
        elif token == "::":
            fits = before in ("", "<", ",") or _is_word(before) or (before == ">" and depth > 0)
        elif token == "<":
            fits = _is_word(before)
            depth += 1
        elif token == ">":
            depth -= 1
            fits = depth >= 0 and before not in (",", "::", "")
        elif token == ",":
            fits = depth > 0 and before not in ("<", ",", "::")
        else:
            fits = depth > 0 and before not in ("<", ",", "::") and not _is_number(before)
        if not fits:
            raise _malformed(name, f"{token!r} is out of place")
        if depth > _DEEPEST:
            raise _malformed(name, f"it nests deeper than {_DEEPEST} levels")
        before = token
    if depth or before in ("", "::"):
        raise _malformed(name, "it is not complete")


def _is_word(token: str) -> bool:
    return token[:1].isalpha() or token[:1] == "_"


def _is_number(token: str) -> bool:
    return token[:1].isdigit() or token[:1] == "-"


def _closing(tokens: list[str], opening: int) -> int:
    depth = 0
    for position in range(opening, len(tokens)):
        depth += (tokens[position] == "<") - (tokens[position] == ">")
        if depth == 0:
            return position
    return -1


def _split(tokens: list[str]) -> list[list[str]]:
    """Split template arguments at the commas that are not inside brackets."""
    if not tokens:
        return []
    pieces: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token == "<") - (token == ">")
        if token == "," and depth == 0:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def _join(tokens: list[str]) -> str:
    text = ""
    before = ""
    for token in tokens:
        apart = before == "," or (_is_word(token) and (_is_word(before) or before in ("*", "&", ">")))
        text += " " + token if apart else token
        before = token
    return text


def _malformed(name: str, why: str) -> SourceError:
    shown = name if len(name) <= 120 else name[:117] + "..."
    return SourceError(
        f"{shown!r} cannot be the name of a kernel: {why}. A name is written like saxpy, ns::saxpy or "
        f"ns::reduce<ns::Op<float>, 256>"
    )
