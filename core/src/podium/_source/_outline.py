"""The outline of a source: its kernels, and its other declarations by the scope that they stand in.

A whole file of CUDA C++ is more than a parser without a preprocessor can read: one macro in the wrong place derails
it, and everything behind is lost. So the file is first cut up at its braces and semicolons. Functions that are no
kernels are dropped, and each of the other declarations is parsed by itself, when somebody asks for it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from podium._record import field, record, replace
from podium._source._kernel_head import KernelHead, read_kernel_head, skip_template
from podium._source._preprocessor import Branch, Preprocessed
from podium._source._scopes import Piece, Scope

__all__ = ["Outline", "VariableText"]

# Alternatives of plain characters are searched for much faster than a word with its boundaries.
_GLOBAL = r"__global__(?<!\w__global__)(?!\w)"
_TOKEN = re.compile(rf"\(|\)|\{{|\}}|;|{_GLOBAL}")
_TOKEN_IN_BODY = re.compile(rf"\{{|\}}|{_GLOBAL}")
_DECLARES = re.compile(r"\b(?:typedef|using|struct|class|union|enum|const|constexpr|namespace)\b")
_VARIABLE = re.compile(r"\b__(?:device|constant|managed)__(?!\w)")
_GROUP = re.compile(r"[()]")
_TAG = re.compile(r"\b(?:struct|class|union|enum)\b")
_NAMESPACE = re.compile(r"\bnamespace\b\s*([\w:\s]*)")
_ATTRIBUTE = re.compile(r"\[\[[^\]]*\]\]|\b__attribute__\s*\(\([^()]*(?:\([^()]*\)[^()]*)*\)\)")
_LINKAGE = re.compile(r'\bextern\s*"[^"]*"\s*$')
_QUALIFIER = re.compile(r"const|volatile|noexcept|override|final|mutable|try|throw|requires")
_REACH = 4096  # how far back the start of a kernel is looked for inside something that did not end

_BRANCHES = "preprocessor conditions inside it choose between several forms, and podium cannot decide them"


@record
class _Block:
    """An open bracket. `kind` is "scope" (a namespace or linkage block), "class", "body", "other" or "paren"."""

    kind: str
    scope: Scope
    piece: int  # where the declaration in progress begins
    head: int  # where its part after the last closed brace begins
    depth: int = 1  # braces open in a body
    opened: int = 0
    has_kernel: bool = False


@record(frozen=True)
class _Saved:
    """How things stood at an #if: the size of the stack, the block on top, and what that block was like."""

    size: int
    block: _Block
    state: _Block


@record(frozen=True)
class VariableText:
    """A declaration at namespace scope with one of the words of device memory: of variables, if not of a function.

    `is_conditional` tells whether it stands under a preprocessor condition that is not decided.
    """

    scope: Scope = field(repr=False)
    text: str
    place: int
    doubt: str
    is_conditional: bool


class Outline:
    """The kernels and the variables of a source in the order of their text, and the scope that holds the rest."""

    def __init__(self, text: Preprocessed) -> None:
        self.text, self.root = text, Scope()
        self.kernels: list[KernelHead] = []
        self.variables: list[VariableText] = []
        _Reader(self).read()


class _Reader:
    """One pass over the text with a stack of open brackets."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self.text = outline.text.text
        self.stack = [_Block("scope", outline.root, 0, 0)]
        self.saved: list[_Saved] = []
        self.branches: list[int] = []  # those that are not inside the body of a function
        self.bodies: list[tuple[int, int]] = []  # of the member functions in the declaration in progress

    @property
    def top(self) -> _Block:
        return self.stack[-1]

    def read(self) -> None:
        branches = [*self.outline.text.branches, Branch("end", len(self.text) + 1)]
        position = done = 0
        while True:
            block = self.top
            match = (_TOKEN_IN_BODY if block.kind == "body" else _TOKEN).search(self.text, position)
            place = match.start() if match else len(self.text)
            while branches[done].offset <= place and self.top is block:
                position = branches[done].offset
                self._branch(branches[done])
                done += 1
            if self.top is not block:
                continue  # what counts as a token may be another now
            if match is None:
                break
            position = match.end()
            self._token(match[0], place)
        if self.top.kind == "scope":
            self._end_piece(len(self.text))

    def _token(self, token: str, place: int) -> None:
        top = self.top
        if token == "__global__":
            self._global(place)
        elif top.kind == "body":
            top.depth += 1 if token == "{" else -1
            if top.depth == 0:
                self._end_body(place)
        elif token == "(":
            self.stack.append(_Block("paren", top.scope, 0, 0))
        elif token == ")":
            if top.kind == "paren":
                self.stack.pop()
        elif token == "{":
            self._open(place)
        elif token == "}":
            self._close(place)
        elif top.kind == "scope":
            self._end_piece(place)
        elif top.kind == "class":
            top.head = place + 1

    def _open(self, place: int) -> None:
        top = self.top
        if top.kind not in ("scope", "class"):
            self.stack.append(_Block("other", top.scope, 0, 0))
            return
        head = self.text[top.head : place]
        kind = "body" if top.has_kernel else _kind(head)
        scope = top.scope
        if kind == "namespace":
            for name, is_inline in _namespace_path(head):
                scope = scope.child(name, is_inline=is_inline)
        if kind in ("namespace", "linkage"):
            kind = "scope"
        elif top.has_kernel:
            self._add_kernel(place, place)
        self.stack.append(_Block(kind, scope, place + 1, place + 1, opened=place))

    def _close(self, place: int) -> None:
        while self.top.kind == "paren":
            self.stack.pop()
        if len(self.stack) == 1:
            self._restart(place + 1)
            return
        closed = self.stack.pop()
        if closed.kind == "scope":
            self._restart(place + 1)
        elif self.top.kind in ("scope", "class"):
            self.top.head = place + 1

    def _end_body(self, place: int) -> None:
        body = self.stack.pop()
        if self.top.kind == "class":
            self.bodies.append((body.opened + 1, place))
            self.top.head = place + 1
        else:
            self._restart(place + 1)

    def _restart(self, place: int) -> None:
        """Begin a new declaration in the innermost block."""
        top = self.top
        top.piece = top.head = place
        top.has_kernel = False
        self.bodies.clear()

    def _end_piece(self, place: int) -> None:
        top = self.top
        if top.has_kernel:
            self._add_kernel(place, None)
        else:
            declares = _DECLARES.search(self.text, top.piece, place)
            variable = _VARIABLE.search(self.text, top.piece, place)
            if declares or variable:
                doubt = _BRANCHES if self._branched(top.piece, place) else ""
                piece = Piece(self._without_bodies(top.piece, place) + ";", doubt)
                if declares:
                    top.scope.add(piece)
                if variable:
                    self.outline.variables.append(
                        VariableText(top.scope, piece.text, variable.start(), doubt, bool(self.saved))
                    )
        self._restart(place + 1)

    def _without_bodies(self, start: int, end: int) -> str:
        parts = []
        for opened, closed in self.bodies:
            parts.append(self.text[start:opened])
            start = closed
        return ("".join(parts) + self.text[start:end]).strip()

    def _add_kernel(self, end: int, body: int | None) -> None:
        top = self.top
        head = read_kernel_head(self.text, top.head, end, top.scope, body)
        if head is not None:
            if self._branched(*head.declared) or any(self._branched(*each) for each in head.templates):
                head = head.with_problem(_BRANCHES)
            self.outline.kernels.append(replace(head, is_conditional=bool(self.saved)))

    def _branched(self, start: int, end: int) -> bool:
        """Tell whether an undecided condition stands in a part of the text, past its leading white space."""
        while start < end and self.text[start].isspace():
            start += 1
        return bisect_left(self.branches, start) < bisect_left(self.branches, end)

    def _global(self, place: int) -> None:
        if self.top.kind == "class" and re.search(r"\bfriend\b", self.text[self.top.head : place][-_REACH:]):
            return
        if self.top.kind != "scope":
            self._recover(place)
        self.top.has_kernel = True

    def _recover(self, place: int) -> None:
        """A kernel cannot stand in a function or a class: something before it did not end, or was a macro.

        Every brace that is open is then taken for one that holds declarations.
        """
        ends = "{};(" if self.top.kind == "paren" else "{};"
        braces = 0
        while self.top.kind != "scope":
            block = self.stack.pop()
            braces += block.depth if block.kind != "paren" else 0
        self.stack += [_Block("scope", self.top.scope, place, place) for _ in range(braces)]
        start = max(self.text.rfind(each, max(0, place - _REACH), place) for each in ends) + 1
        self._restart(start or self.text.rfind("\n", 0, place) + 1)

    def _branch(self, branch: Branch) -> None:
        if self.top.kind != "body":
            self.branches.append(branch.offset)
        if branch.kind == "if":
            self.saved.append(_Saved(len(self.stack), self.top, replace(self.top)))
        elif branch.kind == "endif" and self.saved:
            self.saved.pop()
        elif self.saved:
            self._back_to(self.saved[-1], branch.offset)

    def _back_to(self, saved: _Saved, place: int) -> None:
        """Start the next branch from the brackets that were open at the #if, or they would be counted twice."""
        if len(self.stack) == saved.size - 1:
            self.stack.append(saved.block)  # the branch before closed it, and so will this one
        if self.top is saved.block:
            self.top.depth = saved.state.depth
        elif len(self.stack) > saved.size:
            del self.stack[saved.size :]
            top = self.top
            opened = self.text[saved.state.head : place]
            if top.kind in ("scope", "class") and ("{" in opened or ";" in opened):
                self._restart(place)
            else:
                top.piece, top.head, top.has_kernel = saved.state.piece, saved.state.head, saved.state.has_kernel


def _namespace_path(head: str) -> Iterator[tuple[str, bool]]:
    """Read ``inline namespace a::inline b`` as its names, each with whether it is inline; unnamed is an empty name."""
    head = _ATTRIBUTE.sub(" ", head)
    match = list(_NAMESPACE.finditer(head))[-1]
    is_inline = head[: match.start()].split()[-1:] == ["inline"]
    for part in match[1].split("::"):
        words = part.split()
        is_inline = is_inline or words[:1] == ["inline"]
        names = [word for word in words if word != "inline"]
        yield (names[0] if names else ""), is_inline
        is_inline = False


def _kind(head: str) -> str:
    """Tell what the brace after a head opens: "namespace", "linkage", "class", "body" (of a function) or "other"."""
    if _LINKAGE.search(head):
        return "linkage"
    start = skip_template(head, 0)
    groups = list(_groups(head, start))
    outside = "".join(_outside(head, start, groups))
    tail = head[groups[-1][1] :] if groups else head[start:]
    if _NAMESPACE.search(outside):
        return "namespace"
    if "=" in outside and "operator" not in outside:
        return "other"
    tags = list(_TAG.finditer(outside))
    if tags:
        before = outside[tags[-1].end() :].partition("(")[0].split()
        # struct ALIGN(16) S and struct ALIGN(16) are structs, struct S f(int) is a function.
        words = [word for word in before if word not in ("class", "struct")]
        if not groups or len(words) <= 1:
            return "class"
    if not groups:
        return "other"
    rest = tail.strip()
    is_function = not rest or rest[:2] == "->" or rest[:1] in ":&" or _QUALIFIER.match(rest)
    return "body" if is_function or not _TAG.search(rest) else "class"


def _groups(head: str, start: int) -> Iterator[tuple[int, int]]:
    """Find the outermost pairs of parentheses."""
    depth = opened = 0
    for match in _GROUP.finditer(head, start):
        if match[0] == "(":
            opened = match.start() if depth == 0 else opened
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield opened, match.end()


def _outside(head: str, start: int, groups: list[tuple[int, int]]) -> Iterator[str]:
    for opened, closed in groups:
        yield head[start:opened] + "( "
        start = closed
    yield head[start:]
