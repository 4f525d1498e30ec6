"""The preprocessor: includes, conditions and macros.

It runs before the translation because address spaces and templates have to be seen in what macros and headers say, and
because the OpenCL compiler's own macros must not meet the user's names.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from podium_opencl.translation.condition import evaluate
from podium_opencl.translation.headers import HEADERS, missing_header
from podium_opencl.translation.refusal import Place, Refusal
from podium_opencl.translation.tokens import Token, lines_of_tokens

__all__ = ["Preprocessed", "preprocess"]

_DEEPEST = 100  # of headers in one another
_OWN = "#define __align__(n) alignas(n)\n"
_CONDITIONS = ("if", "ifdef", "ifndef", "elif", "else", "endif")


@dataclass
class Preprocessed:
    """The text without directives and macros, and for each of its lines where that comes from."""

    text: str = ""
    rows: list[tuple[str, int]] = field(default_factory=list)
    columns: list[list[tuple[int, int]]] = field(default_factory=list)

    def place(self, row: int, column: int) -> Place:
        """Return the place in the user's files of a row and a column, from 0, of the text."""
        if row >= len(self.rows):
            return Place(*self.rows[-1]) if self.rows else Place("<source>", 1)
        file, line = self.rows[row]
        starts = self.columns[row]
        index = max(0, bisect_right(starts, (column, 1 << 30)) - 1)
        return Place(file, line, starts[index][1] + max(0, column - starts[index][0]))


@dataclass(frozen=True)
class _Macro:
    body: tuple[Token, ...]
    parameters: tuple[str, ...] | None = None
    variadic: bool = False


def preprocess(
    source: str, label: str, path: str | None, include_dirs: Sequence[str], macros: Iterable[tuple[str, str]]
) -> Preprocessed:
    """Preprocess a source. `path` is where quoted includes are looked for first. Raises `Refusal`."""
    work = _Preprocessor(include_dirs)
    for name, value in macros:
        lines = list(lines_of_tokens(value, "<defines>"))
        work.macros[name] = _Macro(tuple(lines[0]) if lines else ())
    for line in lines_of_tokens(_OWN, "<built in>"):
        work.define(line[2:], line[0].place)
    work.file(source, label, os.path.dirname(os.path.abspath(path)) if path else None)
    return _joined(work.output)


class _Preprocessor:
    def __init__(self, include_dirs: Sequence[str]) -> None:
        self.include_dirs = include_dirs
        self.macros: dict[str, _Macro] = {}
        self.output: list[Token] = []
        self.once: set[str] = set()
        self.depth = 0

    def file(self, text: str, label: str, folder: str | None) -> None:
        # For each open condition: whether its text counts, whether a branch was taken, and where it began.
        open_conditions: list[tuple[bool, bool, Place]] = []
        pending: list[Token] = []
        for line in lines_of_tokens(text, label):
            if line[0].text != "#":
                if all(active for active, _, _ in open_conditions):
                    pending += line
                continue
            self.output += self.expand(pending)
            pending = []
            if len(line) == 1:
                continue
            name, rest = line[1].text, line[2:]
            if name in _CONDITIONS:
                self._condition(name, rest, open_conditions, line[1].place)
            elif all(active for active, _, _ in open_conditions):
                self._directive(name, rest, line[1].place, folder)
        self.output += self.expand(pending)
        if open_conditions:
            raise Refusal("an unterminated conditional directive", open_conditions[-1][2])

    def _condition(self, name: str, rest: list[Token], stack: list[tuple[bool, bool, Place]], place: Place) -> None:
        outer = all(active for active, _, _ in stack[: None if name.startswith("if") else -1])
        if name.startswith("if"):
            if name != "if" and not rest:
                raise Refusal(f"#{name} without a name", place)
            active = outer and (
                self._holds(rest, place) if name == "if" else (rest[0].text in self.macros) == (name == "ifdef")
            )
            stack.append((active, active, place))
            return
        if not stack:
            raise Refusal(f"#{name} without #if", place)
        _, taken, start = stack.pop()
        if name == "elif":
            active = outer and not taken and self._holds(rest, place)
            stack.append((active, taken or active, start))
        elif name == "else":
            stack.append((outer and not taken, True, start))

    def _holds(self, tokens: list[Token], place: Place) -> bool:
        found: list[Token] = []
        index = 0
        while index < len(tokens):
            token = tokens[index]
            if token.text == "defined":
                bracket = index + 1 < len(tokens) and tokens[index + 1].text == "("
                index += 2 if bracket else 1
                name = tokens[index].text if index < len(tokens) else ""
                index += 1 if bracket else 0
                token = replace(token, kind="number", text="1" if name in self.macros else "0")
            elif token.text == "__has_include":
                raise Refusal("podium-opencl has no __has_include", token.place)
            found.append(token)
            index += 1
        return evaluate([token.text for token in self.expand(found)], place) != 0

    def _directive(self, name: str, rest: list[Token], place: Place, folder: str | None) -> None:
        words = " ".join(token.text for token in rest)
        if name == "define":
            self.define(rest, place)
        elif name == "undef" and rest:
            self.macros.pop(rest[0].text, None)
        elif name == "include":
            self._include(rest, place, folder)
        elif name == "error":
            raise Refusal(f"#error {words}", place)
        elif name == "pragma":
            if words.split()[:1] == ["once"]:
                self.once.add(place.file)
            elif words.split()[:1] == ["pack"]:
                raise Refusal("podium-opencl has no #pragma pack: order the members so that none needs padding", place)
        elif name not in ("warning", "line", "ident"):
            raise Refusal(f"invalid preprocessing directive #{name}", place)

    def define(self, rest: list[Token], place: Place) -> None:
        """Define a macro, by the tokens behind the word define."""
        if not rest or rest[0].kind != "word":
            raise Refusal("#define without a name", place)
        name, body = rest[0].text, rest[1:]
        if not body or body[0].text != "(" or body[0].spaced:
            self.macros[name] = _Macro(tuple(body))
            return
        texts = [token.text for token in body]
        if ")" not in texts:
            raise Refusal(f"the parameters of the macro {name} are not closed", place)
        end = texts.index(")")
        names = [text for text in texts[1:end] if text != ","]
        variadic = names[-1:] == ["..."]
        parameters = (*names[:-1], "__VA_ARGS__") if variadic else tuple(names)
        self.macros[name] = _Macro(tuple(body[end + 1 :]), parameters, variadic)

    def _include(self, rest: list[Token], place: Place, folder: str | None) -> None:
        if rest and rest[0].kind == "word":
            rest = self.expand(rest)
        quoted = bool(rest) and rest[0].kind == "string"
        if not rest or not (quoted or rest[0].text == "<"):
            raise Refusal("#include takes <name> or a name in quotes", place)
        name = rest[0].text[1:-1] if quoted else "".join(token.text for token in rest[1:]).partition(">")[0]
        for where in ([folder] if quoted and folder else []) + list(self.include_dirs):
            path = os.path.join(where, name)
            if path in self.once:
                return
            if os.path.isfile(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read()
                self._nested(text, path, os.path.dirname(path), place)
                return
        if name not in HEADERS:
            raise Refusal(missing_header(name), place)
        if name not in self.once:
            self.once.add(name)
            self._nested(HEADERS[name], f"<{name}>", None, place)

    def _nested(self, text: str, label: str, folder: str | None, place: Place) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Refusal("#include nested too deeply", place)
        self.file(text, label, folder)
        self.depth -= 1

    def expand(self, tokens: Sequence[Token]) -> list[Token]:
        """Expand the macros in tokens, as the standard says: a macro is not expanded within itself."""
        waiting = list(reversed(tokens))
        found: list[Token] = []
        while waiting:
            token = waiting.pop()
            macro = None if token.kind != "word" or token.text in token.hidden else self._macro(token)
            if macro is None or (macro.parameters is not None and (not waiting or waiting[-1].text != "(")):
                found.append(token)
                continue
            hidden = token.hidden | {token.text}
            arguments: dict[str, list[Token]] = {}
            if macro.parameters is not None:
                waiting.pop()
                arguments = _arguments(token, macro, waiting)
            body = _substituted(macro, arguments, self.expand)
            body = [replace(each, place=token.place, hidden=each.hidden | hidden) for each in body]
            if body:
                body[0] = replace(body[0], spaced=True)
            if waiting:
                waiting[-1] = replace(waiting[-1], spaced=True)
            waiting += reversed(body)
        return found

    def _macro(self, token: Token) -> _Macro | None:
        if token.text == "__LINE__":
            return _Macro((replace(token, kind="number", text=str(token.place.line)),))
        if token.text == "__FILE__":
            text = token.place.file.replace("\\", "\\\\").replace('"', '\\"')
            return _Macro((replace(token, kind="string", text=f'"{text}"'),))
        if token.text == "_Pragma":
            return _Macro((), ("text",))
        return self.macros.get(token.text)


def _arguments(token: Token, macro: _Macro, waiting: list[Token]) -> dict[str, list[Token]]:
    """Take the arguments of a macro off the waiting tokens, whose next one is behind the bracket."""
    parameters = macro.parameters or ()
    found: list[list[Token]] = [[]]
    depth = 0
    while True:
        if not waiting:
            raise Refusal(f"unterminated argument list invoking macro {token.text!r}", token.place)
        each = waiting.pop()
        if each.text == ")" and depth == 0:
            break
        depth += (each.text == "(") - (each.text == ")")
        if each.text == "," and depth == 0 and not (macro.variadic and len(found) >= len(parameters)):
            found.append([])
        else:
            found[-1].append(each)
    if not parameters and found == [[]]:
        return {}
    if macro.variadic and len(found) == len(parameters) - 1:
        found.append([])
    if len(found) != len(parameters):
        raise Refusal(f"the macro {token.text!r} takes {len(parameters)} arguments, not {len(found)}", token.place)
    return dict(zip(parameters, found))


def _substituted(
    macro: _Macro, arguments: Mapping[str, list[Token]], expand: Callable[[Sequence[Token]], list[Token]]
) -> list[Token]:
    found: list[Token] = []
    body = macro.body
    index = 0
    while index < len(body):
        token = body[index]
        following = body[index + 1].text if index + 1 < len(body) else ""
        if token.text == "#" and macro.parameters is not None and following in arguments:
            text = "".join((" " if each.spaced else "") + each.text for each in arguments[following]).strip()
            quoted = text.replace("\\", "\\\\").replace('"', '\\"')
            found.append(replace(token, kind="string", text=f'"{quoted}"'))
            index += 2
        elif token.text == "##" and found and following:
            right = list(arguments.get(following, [body[index + 1]]))
            if right:
                left = found.pop()
                found += [*_pasted(left, right[0]), *right[1:]]
            index += 2
        else:
            own = arguments.get(token.text)
            if own is not None:
                own = list(own) if following == "##" else expand(own)
                if own:
                    own[0] = replace(own[0], spaced=token.spaced)
                elif following == "##":
                    own = [replace(token, kind="empty", text="")]
            found += [token] if own is None else own
            index += 1
    return [token for token in found if token.kind != "empty"]


def _pasted(left: Token, right: Token) -> list[Token]:
    text = left.text + right.text
    parts = [each for line in lines_of_tokens(text, left.place.file) for each in line]
    if len(parts) != 1:
        raise Refusal(f"pasting {left.text!r} and {right.text!r} does not give a token", left.place)
    return [replace(left, kind=parts[0].kind, text=text)]


def _joined(tokens: Sequence[Token]) -> Preprocessed:
    """Write tokens out, those of one line of a file on one line."""
    found = Preprocessed()
    lines: list[str] = []
    for token in tokens:
        row = (token.place.file, token.place.line)
        if not found.rows or found.rows[-1] != row:
            found.rows.append(row)
            found.columns.append([])
            lines.append("")
        if token.spaced and lines[-1]:
            lines[-1] += " "
        text = token.text.replace("\n", "\\n") if token.kind != "raw" else token.text
        if "\n" in text:
            raise Refusal("podium-opencl has no raw strings over several lines", token.place)
        found.columns[-1].append((len(lines[-1].encode()), token.place.column))
        lines[-1] += text
    found.text = "\n".join(lines)
    return found
