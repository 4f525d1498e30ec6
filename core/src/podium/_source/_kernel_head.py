"""The head of a kernel: everything from ``template`` or ``__global__`` to the parameter list, taken apart."""

from __future__ import annotations

import re

from podium._record import field, record, replace
from podium._source._scopes import Scope

__all__ = ["KernelHead", "read_kernel_head", "skip_template"]

_GROUP = re.compile(r"[()]")
_ANGLE = re.compile(r"[<>(){};]")
_TEMPLATE = re.compile(r"\btemplate\b\s*(?=<)")
_INSTANTIATION = re.compile(r"\btemplate\b\s*(?!\s*<)")
_TEMPLATE_PREFIX = re.compile(r"\s*template\s*(?=<)")
_GLOBAL = re.compile(r"\b__global__\b")

# Words that may stand before parentheses behind the parameter list, or around it, and never name a kernel.
_NOT_A_NAME = frozenset(
    "noexcept throw requires decltype alignas asm __asm__ __attribute__ __attribute __launch_bounds__ __cluster_dims__ "
    "__maxnreg__ __block_size__ __nv_pure__ void if while for switch return sizeof operator".split()
)


@record(frozen=True)
class KernelHead:
    """Where the parts of a kernel stand in the preprocessed text.

    `name` is as written there, with the namespaces and template arguments it may have; `scope` is where it stands.
    `templates` are the ranges of the ``<...>`` after each ``template``, `parameters` is that of the parameter list with
    its parentheses, `body` the place of the opening brace or None for a declaration. `declared` covers name and
    parameters. `role` is "kernel", "specialisation" or "instantiation". `problem` says why it cannot be read,
    `is_conditional` whether it stands under a preprocessor condition that is not decided.
    """

    scope: Scope = field(repr=False)
    name: str
    role: str
    templates: tuple[tuple[int, int], ...]
    declared: tuple[int, int]
    parameters: tuple[int, int]
    body: int | None
    problem: str = ""
    is_conditional: bool = False

    def with_problem(self, problem: str) -> KernelHead:
        """Return the same head with a reason why it cannot be read."""
        return replace(self, problem=self.problem or problem)

    def declaration(self, text: str) -> tuple[int, str]:
        """Return a declaration with the same template and parameters, and the place that its text starts at.

        The parts keep their distances; all else is left out, since attributes, macros and storage classes never
        change the type of a parameter, but can confuse a parser.
        """
        opened, closed = self.parameters
        prefix, middle = "", " void k"
        start = opened - len(middle)
        if self.templates:
            first, last = self.templates[-1]
            prefix = "template" + text[first:last]
            start = first - len("template")
        return start, prefix + middle.rjust(opened - start - len(prefix)) + text[opened:closed] + ";"


def read_kernel_head(text: str, start: int, end: int, scope: Scope, body: int | None) -> KernelHead | None:
    """Take apart the head that lies between two places; None if it has no parameter list, so is no kernel."""
    declared = _declared(text, start, end)
    if declared is None:
        return None
    declared_from, (opened, closed) = declared
    name = "".join(text[declared_from:opened].split()).strip("()")
    templates = []
    position = start
    while match := _TEMPLATE.search(text, position, declared_from):
        position = _close_angle(text, match.end(), declared_from)
        templates.append((match.end(), position))
    marks = len(_GLOBAL.findall(text, start, declared_from))
    problem = ""
    if len(templates) > 1 or marks > 1:
        problem = "several forms of its head stand before one body, or it is a member of a template"
    role = "kernel"
    if not templates and _INSTANTIATION.search(text, start, declared_from):
        role = "instantiation"
    elif name.endswith(">") or any(not text[first + 1 : last - 1].strip() for first, last in templates):
        role = "specialisation"
    return KernelHead(scope, name, role, tuple(templates), (declared_from, closed), (opened, closed), body, problem)


def skip_template(text: str, start: int) -> int:
    """Return the place behind ``template <...>`` prefixes, or the start if there are none."""
    while match := _TEMPLATE_PREFIX.match(text, start):
        start = _close_angle(text, match.end(), len(text))
    return start


def _declared(text: str, start: int, end: int) -> tuple[int, tuple[int, int]] | None:
    """Find the name and the parameter list: the last parentheses with something before them that can be a name."""
    depth = opened = 0
    groups: list[tuple[int, int]] = []
    for match in _GROUP.finditer(text, start, end):
        if match[0] == "(":
            opened = match.start() if depth == 0 else opened
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                groups.append((opened, match.end()))
    marks = [match.end() for match in _GLOBAL.finditer(text, start, end)]
    for index in reversed(range(len(groups))):
        opened = groups[index][0]
        first = _name_start(text, start, opened)
        if first is None and index and groups[index - 1][1] == len(text[:opened].rstrip()):
            inner = groups[index - 1]
            first = inner[0] if text[inner[0] + 1 : inner[1] - 1].strip().isidentifier() else None
        if first is not None and marks and first >= marks[0]:
            return first, groups[index]
    return None


def _name_start(text: str, start: int, end: int) -> int | None:
    """Read a name such as ``ns::k<float>`` backwards from its end; return its start, or None if there is none."""
    found = None
    position = end
    while True:
        position = _skip_space(text, start, position)
        if text[position - 1 : position] == ">" and found is None:
            position = _skip_space(text, start, _open_angle(text, start, position))
        stop = position
        while position > start and (text[position - 1].isalnum() or text[position - 1] == "_"):
            position -= 1
        word = text[position:stop]
        if not word or word[0].isdigit() or word in _NOT_A_NAME:
            return found
        found = position
        before = _skip_space(text, start, position)
        if text[max(start, before - 2) : before] != "::":
            return found
        position = before - 2


def _skip_space(text: str, start: int, position: int) -> int:
    while position > start and text[position - 1].isspace():
        position -= 1
    return position


def _open_angle(text: str, start: int, position: int) -> int:
    depth = 0
    while position > start:
        position -= 1
        depth += (text[position] == ">") - (text[position] == "<")
        if depth == 0 or text[position] in "{};":
            break
    return position


def _close_angle(text: str, start: int, end: int) -> int:
    """Return the place behind the ``>`` that closes the ``<`` at the start; parentheses hide other ones."""
    depth = parentheses = 0
    for match in _ANGLE.finditer(text, start, end):
        sign = match[0]
        if sign in "()":
            parentheses += 1 if sign == "(" else -1
        elif sign in "{};":
            continue
        elif parentheses <= 0:
            depth += 1 if sign == "<" else -1
            if depth == 0:
                return match.end()
    return end
