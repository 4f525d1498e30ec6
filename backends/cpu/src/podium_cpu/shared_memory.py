"""Dynamic shared memory: ``extern __shared__ float tile[];`` as a declaration that a host compiler understands.

In the dialect the name stands for memory whose size the launch gives. Here it becomes a reference to the memory that
the running block has. The text is what the preprocessor has left, so that macros and headers are covered as well; line
breaks stay where they are, so compilers go on naming the user's lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["may_have_dynamic_shared", "rewrite_shared"]

_TOKEN = re.compile(
    r"""
      (?P<skip> \#[^\n]*                                              # what the preprocessor says of lines
        | R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"
        | '(?:\\.|[^'\\\n])*' )
    | (?P<string> "(?:\\.|[^"\\\n])*" )
    | (?P<number> \.?[0-9](?:'?[A-Za-z0-9_.]|(?<=[eEpP])[+-])* )     # so that 1'000 does not begin a character
    | (?P<word> [A-Za-z_]\w* )
    | (?P<sign> [{}()\[\]<>,;] )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)

_COMMENT_OR_LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"|"(?:\\.|[^"\\\n])*"', re.DOTALL
)

_INITIALISER = " = podium_cpu::dynamic_shared()"


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def may_have_dynamic_shared(source: str) -> bool:
    """Tell whether a text could declare dynamic shared memory; a macro of HIP's does so, too."""
    if "__shared__" not in source:
        return "HIP_DYNAMIC_SHARED" in source
    bare = _COMMENT_OR_LITERAL.sub(lambda match: '""' if match[0][-1] == '"' else " ", source)
    # The extern of extern "C" is not one of those.
    return "HIP_DYNAMIC_SHARED" in bare or re.search(r'\bextern\b(?!\s*")', bare) is not None


def rewrite_shared(text: str, storage: str = "thread_local") -> str:
    """Rewrite all declarations of shared memory in preprocessed text, and take the word __global__ out of it.

    Shared memory of a fixed size gets the storage class `storage`.
    """
    if "__shared__" not in text and "__global__" not in text:
        return text
    changes: list[tuple[int, int, str]] = []  # start, end, replacement
    scopes: list[str | None] = []  # the name of each open namespace, None for other braces
    declared: set[tuple[tuple[str | None, ...], str]] = set()
    statement: list[_Token] = []
    for match in _TOKEN.finditer(text):
        if match["skip"] is not None:
            continue
        token = _Token(match.lastgroup or "", match[0], match.start())
        if token.text == "__global__":
            changes.append((token.start, token.end, " " * len(token.text)))
            continue
        if token.text == "{":
            scopes.append(_namespace(statement))
            if all(each.text != "extern" for each in statement):  # of a type that is defined in the same place
                changes += _replace_storage(statement, storage)
            statement = []
        elif token.text == "}":
            if scopes:
                scopes.pop()
            statement = []
        elif token.text == ";":
            words = {each.text for each in statement if each.kind == "word"}
            if "__shared__" in words:
                if "extern" in words:
                    changes += _rewrite_extern(text, statement, token, scopes, declared)
                else:
                    changes += _replace_storage(statement, storage)
            statement = []
        else:
            statement.append(token)
    pieces, position = [], 0
    for start, end, replacement in sorted(changes):
        pieces += [text[position:start], replacement]
        position = end
    return "".join(pieces) + text[position:]


def _namespace(statement: list[_Token]) -> str | None:
    """Read what stands before a brace: the name of the namespace that it opens, or None if it opens none."""
    texts = [token.text for token in statement]
    if "namespace" in texts:
        return "::".join(token.text for token in statement[texts.index("namespace") + 1 :] if token.kind == "word")
    if len(statement) >= 2 and texts[-2] == "extern" and statement[-1].kind == "string":
        return ""
    return None


def _rewrite_extern(
    text: str,
    statement: list[_Token],
    semicolon: _Token,
    scopes: list[str | None],
    declared: set[tuple[tuple[str | None, ...], str]],
) -> list[tuple[int, int, str]]:
    first = next(index for index, token in enumerate(statement) if token.text in ("extern", "__shared__"))
    pieces = _split(statement[first:])
    names = [_declared_name(piece) for piece in pieces]
    outside = None not in scopes  # at namespace scope, where it may be declared again
    if outside:
        place = tuple(scope for scope in scopes if scope)
        if all(name is not None and (place, name.text) in declared for name in names):
            lines = text[statement[first].start : semicolon.end].count("\n")
            return [(statement[first].start, semicolon.end, "\n" * lines)]
        declared.update((place, name.text) for name in names if name is not None)
    # Each thread of the system has memory of its own, at an address that never changes.
    changes = _replace_word(statement, "extern", "static thread_local" if outside else "")
    changes += _replace_word(statement, "__shared__", "")
    for piece, name in zip(pieces, names):
        if name is not None:
            end = piece[-1].end
            changes += [(name.start, name.end, f"(&{name.text})"), (end, end, _INITIALISER)]
    return changes


def _split(tokens: list[_Token]) -> list[list[_Token]]:
    """Split a declaration at the commas between declarators."""
    pieces: list[list[_Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += _step(token)
        if token.text == "," and depth == 0:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return [piece for piece in pieces if piece]


def _declared_name(piece: list[_Token]) -> _Token | None:
    """Find the name that a declarator declares: the last word before its brackets, outside all others."""
    depth, name = 0, None
    for token, following in zip(piece, [*piece[1:], None]):
        attribute = following is not None and following.text == "["  # [[such]]
        if token.text == "[" and depth == 0 and name is not None and not attribute:
            return name
        depth += _step(token)
        if (
            depth == 0
            and token.kind == "word"
            and token.text not in ("__attribute__", "alignas", "extern", "__shared__")
        ):
            name = token
    return name


def _step(token: _Token) -> int:
    return (token.text in ("(", "[", "<")) - (token.text in (")", "]", ">"))


def _replace_storage(statement: list[_Token], storage: str) -> list[tuple[int, int, str]]:
    # What is static already is so once.
    is_there = any(token.text == storage for token in statement)
    return _replace_word(statement, "__shared__", "" if is_there else storage)


def _replace_word(statement: list[_Token], word: str, replacement: str) -> list[tuple[int, int, str]]:
    # Blanks keep the columns of what follows.
    return [(t.start, t.end, replacement or " " * len(word)) for t in statement if t.text == word]
