"""As much of a C preprocessor as reading declarations needs: macros without parameters, and plain conditions.

There are no headers here and no macros of the compiler's own, so most conditions cannot be decided. Then all branches
stay in the text, and the places of the directives are kept, so that a declaration which depends on one can be told.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping

from podium._computed import computed
from podium._record import field, record
from podium._source._comments import blank_comments
from podium.errors import SourceError

__all__ = ["Branch", "Preprocessed", "preprocess"]

_DIRECTIVE = re.compile(r"(?:#|%:)(?P<text>(?:[^\n\\]+|\\(?:\r?\n)?)*)")
_PACK_OPERATOR = re.compile(r"_pragma\s*\(\W*pack\b", re.IGNORECASE)
_SPLICE = re.compile(r"\\\r?\n")
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINED = re.compile(r"(?P<negated>!?)\s*defined\s*(?:\(\s*(?P<inner>\w+)\s*\)|(?P<bare>\w+))")
_INTEGER = re.compile(r"(?:0[xX][0-9a-fA-F]{1,16}|0[bB][01]{1,64}|0[0-7]{0,22}|[1-9]\d{0,19})(?=[uUlL]*$)")

# Both compilers spell alignment with macros of their own headers; the grammar knows the standard's word only.
_PREDEFINED = {"__align__": "alignas", "__builtin_align__": "alignas"}

_MOST_WORDS = 1000
_DEEPEST_BODY = 20


@record(frozen=True)
class Branch:
    """A conditional directive that could not be decided: "if", "else" (also elif) or "endif", at an offset."""

    kind: str
    offset: int


@record(frozen=True)
class Preprocessed:
    """Text without comments, literals, directives and decided branches, and with macros expanded. All of it is ASCII.

    `runs` lists where stretches of the source's own text begin, as (offset here, offset in the source, length);
    what lies between them came out of macros. `doubtful` has the macros that were left alone, with the reason.
    """

    source: str = field(repr=False)
    text: str = field(repr=False)
    branches: tuple[Branch, ...]
    runs: tuple[tuple[int, int, int], ...] = field(repr=False)
    doubtful: Mapping[str, str]
    packed: bool

    def origin(self, offset: int) -> int | None:
        """Return the offset in the source of a character here, or None if it came out of a macro."""
        start, place, length = self._run(offset)
        return place + offset - start if offset - start < length else None

    def line(self, offset: int) -> int:
        """Return the line in the source, counted from 1."""
        start, place, length = self._run(offset)
        return bisect_left(self._line_ends, place + min(offset - start, length)) + 1

    @computed
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self.source)]

    def source_range(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the range in the source that became a range here; None if that is only a part of a macro."""
        index = bisect_right(self.runs, (start, len(self.source) + 1)) - 1
        opened, place, length = self.runs[index]
        first = place + start - opened if start - opened <= length else None
        index = bisect_right(self.runs, (end - 1, len(self.source) + 1)) - 1
        opened, place, length = self.runs[index]
        last = place + end - opened if end - opened <= length else None
        if last is None and index + 1 < len(self.runs) and end == self.runs[index + 1][0]:
            last = self.runs[index + 1][1]
        return None if first is None or last is None else (first, last)

    def original(self, start: int, end: int) -> str:
        """Return the source's own text of a range, on one line, or what macros made of it."""
        found = self.source_range(start, end)
        text = self.text[start:end] if found is None else self.source[slice(*found)]
        return " ".join(text.split())

    def is_faithful(self, start: int, end: int) -> bool:
        """Tell whether a range has the letters of the source: those outside of ASCII are underscores here."""
        places = [self.origin(offset) for offset in range(start, end) if self.text[offset] == "_"]
        return all(place is None or self.source[place] == "_" for place in places)

    def _run(self, offset: int) -> tuple[int, int, int]:
        return self.runs[max(0, bisect_right(self.runs, (offset, len(self.source) + 1)) - 1)]


def preprocess(source: str, defines: Iterable[tuple[str, str]] = ()) -> Preprocessed:
    """Prepare source text for reading its declarations; `defines` are the macros given to the compiler.

    Raises `SourceError` if no compiler could read the text either: it has a NUL, or a character that is none.
    """
    text = _plain(source)
    conditions = _Conditions(text, defines)
    expanded, runs = _expand(conditions.text, conditions.macros)
    starts = [place for _, place, _ in runs]

    def forward(offset: int) -> int:
        start, place, length = runs[max(0, bisect_right(starts, offset) - 1)]
        return start + min(offset - place, length)

    return Preprocessed(
        source,
        expanded,
        tuple(Branch(branch.kind, forward(branch.offset)) for branch in conditions.branches),
        tuple(runs),
        conditions.macros.doubtful,
        conditions.packed or _PACK_OPERATOR.search(source) is not None,
    )


def _plain(source: str) -> str:
    if not isinstance(source, str):
        raise SourceError(f"The source of a kernel is text, not {type(source).__name__}")
    for pattern, name in (("\0", "a NUL character"), ("[\ud800-\udfff]", "a lone surrogate, which is no character,")):
        if not (pattern != "\0" and source.isascii()) and (match := re.search(pattern, source)):
            line = source.count("\n", 0, match.start()) + 1
            raise SourceError(f"The source has {name} in line {line}; no compiler reads past it", line=line)
    text = blank_comments(source)
    if text.startswith("\ufeff"):
        text = " " + text[1:]
    # One byte per character from here on: offsets in the tree are offsets in the text.
    return text if text.isascii() else re.sub(r"[^\x00-\x7f]", "_", text)


class _Macros:
    """Which macros have which body at which offset. A body of None means that there is none, or none to rely on."""

    def __init__(self, defines: Iterable[tuple[str, str]]) -> None:
        self.doubtful: dict[str, str] = {}
        self._bodies: dict[str, list[tuple[int, str | None]]] = {}
        self._certain: dict[str, bool] = {}
        for name, body in (*_PREDEFINED.items(), *defines):
            self.define(0, name, body or "1", in_doubt=False)

    def define(self, offset: int, name: str, body: str, *, in_doubt: bool) -> None:
        if name in self.doubtful and in_doubt:
            return
        known = self.body(name, offset)
        if in_doubt and known is not None and known != body:
            self.doubt(offset, name, "it is a macro with several meanings, chosen by preprocessor conditions")
            return
        self.doubtful.pop(name, None)
        self._bodies.setdefault(name, []).append((offset, body))
        self._certain[name] = not in_doubt or self._certain.get(name, False)

    def define_function(self, offset: int, name: str) -> None:
        self.doubt(offset, name, "it is a macro with parameters")

    def undefine(self, offset: int, name: str, *, in_doubt: bool) -> None:
        if not in_doubt:
            self.doubtful.pop(name, None)
            self._bodies.setdefault(name, []).append((offset, None))
            self._certain[name] = True
        elif self.body(name, offset) is not None:
            self.doubt(offset, name, "it is a macro that preprocessor conditions may take away")

    def doubt(self, offset: int, name: str, why: str) -> None:
        """Leave a name alone from an offset on."""
        self.doubtful[name] = why
        self._bodies.setdefault(name, []).append((offset, None))
        self._certain[name] = False

    def body(self, name: str, offset: int) -> str | None:
        """Return the body that a name has at an offset."""
        history = self._bodies.get(name)
        if not history:
            return None
        index = bisect_right(history, offset, key=lambda entry: entry[0]) - 1
        return history[index][1] if index >= 0 else None

    def is_defined(self, name: str, offset: int) -> bool | None:
        """Tell whether a name is defined at an offset; None if that depends on what is not known here."""
        return self.body(name, offset) is not None if self._certain.get(name) else None

    @property
    def names(self) -> Iterable[str]:
        return self._bodies

    def expansion(self, name: str, offset: int) -> str | None:
        """Return what a name becomes, or None if it stays as it is, as it also does if it would become too much."""
        words = 0

        def expand(name: str, within: tuple[str, ...]) -> str:
            nonlocal words
            words += 1
            body = self.body(name, offset)
            if body is None or name in within or len(within) >= _DEEPEST_BODY or words > _MOST_WORDS:
                return name
            return _WORD.sub(lambda match: expand(match[0], (*within, name)), body)

        if self.body(name, offset) is None:
            return None
        text = expand(name, ())
        return text if words <= _MOST_WORDS else None


@record
class _Level:
    """One open #if: whether text around it counts, whether this branch does, and whether one was surely taken."""

    outer: bool
    active: bool
    taken: bool
    in_doubt: bool = False


class _Conditions:
    """One pass over the directives: they and the branches that surely do not count become spaces."""

    def __init__(self, text: str, defines: Iterable[tuple[str, str]]) -> None:
        self.macros = _Macros(tuple(defines))
        self.branches: list[Branch] = []
        self.packed = False
        self._has_header = False
        self._defaults: set[str] = set()
        self._levels: list[_Level] = []
        self._doubts = 0
        pieces: list[str] = []
        position = 0
        directives = [
            match
            for match in _DIRECTIVE.finditer(text)
            if not text[text.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
        ]
        for index, match in enumerate(directives):
            between = text[position : match.start()]
            pieces.append(between if self._active else " " * len(between))
            pieces.append(" " * len(match[0]))
            position = match.end()
            words = _SPLICE.sub(" ", match["text"]).split(None, 1)
            if words:
                following = directives[index + 1]["text"].split() if index + 1 < len(directives) else []
                self._directive(match.start(), words[0], words[1].strip() if len(words) > 1 else "", following[:2])
        pieces.append(text[position:] if self._active else " " * (len(text) - position))
        self.text = _SPLICE.sub(lambda match: " " * len(match[0]), "".join(pieces))

    @property
    def _active(self) -> bool:
        return not self._levels or self._levels[-1].active

    def _directive(self, offset: int, word: str, rest: str, following: list[str]) -> None:
        # A directive may be glued to its operand, as in #if(X) or #define X.
        match = _WORD.match(word)
        if match and match.end() < len(word):
            word, rest = match[0], word[match.end() :] + " " + rest
        if word in ("if", "ifdef", "ifndef"):
            self._open(offset, word, rest, following)
        elif word in ("elif", "elifdef", "elifndef", "else") and self._levels:
            self._alternative(offset, word, rest)
        elif word == "endif" and self._levels:
            level = self._levels.pop()
            if level.in_doubt:
                self._doubts -= 1
                self.branches.append(Branch("endif", offset))
        elif not self._active:
            return
        elif word == "define" and (name := _WORD.match(rest)):
            if rest[name.end() : name.end() + 1] == "(":
                self.macros.define_function(offset, name[0])
            else:
                body = rest[name.end() :].strip()
                if self._has_header and body and name[0] in self._defaults:
                    self.macros.doubt(offset, name[0], "it is a macro that a header may have defined before")
                else:
                    self.macros.define(offset, name[0], body, in_doubt=self._doubts > 0)
        elif word == "undef" and (name := _WORD.match(rest)):
            self.macros.undefine(offset, name[0], in_doubt=self._doubts > 0)
        elif word == "pragma" and rest.startswith("pack"):
            self.packed = True
        elif word == "include" and not rest.startswith("<"):
            self._has_header = True

    def _open(self, offset: int, word: str, rest: str, following: list[str]) -> None:
        if not self._active:
            self._levels.append(_Level(outer=False, active=False, taken=True))
            return
        name = rest.split(None, 1)[0] if rest else ""
        answer = self._answer(word, rest, offset)
        if word == "ifndef" and answer is None and following == ["define", name]:
            # An include guard, or a default for a macro that nobody gave; but a header of the user's may have given it.
            answer = None if self._has_header else True
            self._defaults.add(name)
        level = _Level(outer=True, active=answer is not False, taken=answer is True)
        self._levels.append(level)
        if answer is None:
            self._begin_doubt(level, offset)

    def _alternative(self, offset: int, word: str, rest: str) -> None:
        level = self._levels[-1]
        answer = True if word == "else" else self._answer(word[2:], rest, offset)
        if not level.outer or level.taken or answer is False:
            level.active = False
            return
        level.active = True
        level.taken = answer is True
        if level.in_doubt:
            self.branches.append(Branch("else", offset))
        elif answer is None:
            self._begin_doubt(level, offset)

    def _begin_doubt(self, level: _Level, offset: int) -> None:
        level.in_doubt = True
        self._doubts += 1
        self.branches.append(Branch("if", offset))

    def _answer(self, word: str, rest: str, offset: int) -> bool | None:
        """Decide a condition of the plainest kinds: a number, a macro that is one, defined or not defined."""
        if word in ("ifdef", "ifndef"):
            defined = self.macros.is_defined(rest.split(None, 1)[0] if rest else "", offset)
            return defined if defined is None or word == "ifdef" else not defined
        if match := _DEFINED.fullmatch(rest.strip()):
            defined = self.macros.is_defined(match["inner"] or match["bare"], offset)
            return defined if defined is None or not match["negated"] else not defined
        text = rest.strip()
        if self.macros.is_defined(text, offset):
            text = self.macros.expansion(text, offset) or ""
        match = _INTEGER.match(text)
        return int(re.sub("^0(?=[0-7])", "0o", match[0]), 0) != 0 if match else None


def _expand(text: str, macros: _Macros) -> tuple[str, list[tuple[int, int, int]]]:
    """Expand macros; return the text and its runs."""
    names = sorted(macros.names)
    pieces: list[str] = []
    runs: list[tuple[int, int, int]] = []
    position = length = 0
    # A few names are found fastest by an alternation, many by looking at every word.
    pattern = re.compile(rf"(?:{'|'.join(names)})(?!\w)") if len(names) <= 64 else _WORD
    known = set(names)
    for match in pattern.finditer(text):
        if match[0] not in known or _is_word(text[max(0, match.start() - 1) : match.start()]):
            continue
        if (expansion := macros.expansion(match[0], match.start())) is None:
            continue
        runs.append((length, position, match.start() - position))
        pieces += (text[position : match.start()], expansion)
        length += match.start() - position + len(expansion)
        position = match.end()
    runs.append((length, position, len(text) - position))
    pieces.append(text[position:])
    return "".join(pieces), runs


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
