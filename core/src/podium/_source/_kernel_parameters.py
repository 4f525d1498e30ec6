"""The parameters of a kernel as its source declares them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium._record import record
from podium._signature import Type
from podium._source._cuda_types import Refusal
from podium._source._kernel_head import KernelHead
from podium._source._outline import Outline
from podium._source._resolver import Resolver
from podium._source._scopes import Argument, Scope
from podium._source._syntax import parse, words
from podium._source._templates import bind

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["DeclaredKernel", "DeclaredParameter"]

_PARAMETERS = ("parameter_declaration", "optional_parameter_declaration", "variadic_parameter_declaration")
_UNREADABLE = "podium cannot read it; if it has a macro from a header or a compiler option, that is why"


@record(frozen=True)
class DeclaredParameter:
    """One parameter: its name, its text, and its type, or else the reason why that is not known."""

    name: str
    text: str
    type: Type | None
    reason: str
    line: int


class DeclaredKernel:
    """One declaration of a kernel, parsed: the template parameters and the parameters it has."""

    def __init__(self, outline: Outline, head: KernelHead) -> None:
        self.outline, self.head = outline, head
        self.line = outline.text.line(head.declared[0])
        self._start, text = head.declaration(outline.text.text)
        root = parse(text)
        opened, closed = head.parameters
        self._list = _covering(root, opened - self._start, closed - self._start, "parameter_list")
        self._nodes = _nodes(self._list)
        self._commas = [
            self._start + each.start_byte for each in (self._list.children if self._list else ()) if each.type == ","
        ]
        self.template: Node | None = None
        if head.templates:
            first, last = head.templates[-1]
            self.template = _covering(root, first - self._start, last - self._start, "template_parameter_list")

    def problem(self) -> str:
        """Say why this declaration cannot be read at all; an empty text if it can."""
        if self._list is None or (self.head.templates and self.template is None):
            return self.head.problem or "podium cannot read its syntax"
        return self.head.problem

    def parameters(
        self, arguments: Sequence[Node] | None, others: Sequence[DeclaredKernel], resolver: Resolver
    ) -> tuple[DeclaredParameter, ...]:
        """Resolve the parameters with these template arguments; `others` are more declarations of the same kernel.

        Raises `Refusal` if the template arguments do not fit; types that are not known are in the parameters.
        """
        # Template arguments are read where the name expression is: in the global namespace.
        given = None if arguments is None else [Argument(each, self.outline.root) for each in arguments]
        templates = [each.template for each in others if each.template is not None]
        scope = Scope(parent=self.head.scope)
        scope.arguments = bind(self.template, given, self.head.scope, templates)
        return tuple(
            self._parameter(name, node, broken, scope, resolver)
            for name, (node, broken) in zip(self.names(), self._nodes)
        )

    def names(self) -> list[str]:
        """Return the names of the parameters; those without one are named by their position."""
        names: dict[str, None] = {}
        for index, (node, broken) in enumerate(self._nodes):
            name = words(found) if (found := _name(node)) is not None else ""
            if broken:
                name = self._last_word(node) or name
            name = name or f"arg{index}"
            while name in names:
                name += "_"
            names[name] = None
        return list(names)

    def specifiers(self) -> list[str]:
        """Return the text of each parameter's type, without const and declarators, with macros expanded."""
        types = [node.child_by_field_name("type") for node, _ in self._nodes]
        return ["" if each is None else words(each) for each in types]

    @property
    def template_parameters(self) -> tuple[str, ...]:
        """The text of each template parameter."""
        if self.template is None:
            return tuple(self.outline.text.text[first + 1 : last - 1] for first, last in self.head.templates)
        return tuple(map(words, self.template.named_children))

    def commas(self) -> list[int]:
        """Return the places of the commas between the parameters."""
        return self._commas

    def places(self) -> list[tuple[int, int]]:
        """Return where each parameter stands."""
        return [(self._start + node.start_byte, self._start + node.end_byte) for node, _ in self._nodes]

    def _text(self, node: Node) -> str:
        """Return the source's text from a parameter to the next one: what could not be read may stand behind it."""
        index = bisect_left(self._commas, self._start + node.end_byte)
        end = self._commas[index] if index < len(self._commas) else self.head.parameters[1] - 1
        return self.outline.text.original(self._start + node.start_byte, end)

    def _last_word(self, node: Node) -> str:
        """Guess the name of a parameter that could not be read."""
        found = re.findall(r"[A-Za-z_]\w*", self._text(node).partition("=")[0])
        return found[-1] if len(found) > 1 else ""

    def _parameter(self, name: str, node: Node, broken: bool, scope: Scope, resolver: Resolver) -> DeclaredParameter:
        kind = None
        reason = _UNREADABLE
        if not broken:
            reason = ""
            try:
                kind = _parameter_type(node, scope, resolver)
            except Refusal as refusal:
                reason = str(refusal)
        named = _name(node)
        if named is not None and not self.outline.text.is_faithful(
            self._start + named.start_byte, self._start + named.end_byte
        ):
            reason = reason or "its name has characters other than letters, digits and underscores"
        place, text = self._start + node.start_byte, self.outline.text
        return DeclaredParameter(name, self._text(node), None if reason else kind, reason, text.line(place))


def _nodes(parameters: Node | None) -> list[tuple[Node, bool]]:
    """List the nodes of parameters, each with whether something in it or beside it could not be read."""
    found: list[tuple[Node, bool]] = []
    broken = False
    for each in parameters.children if parameters is not None else ():
        if each.type in _PARAMETERS or each.type == "...":
            found.append((each, broken or _has_error(each)))
            broken = False
        elif each.type == "ERROR" and found:
            found[-1] = (found[-1][0], True)
        else:
            broken = broken or each.type == "ERROR"
    if len(found) == 1 and not found[0][1] and words(found[0][0]) == "void":
        return []
    return found


def _has_error(node: Node) -> bool:
    """Tell whether a parameter could not be read; its default value does not matter."""
    return any(
        each.has_error and node.field_name_for_child(index) != "default_value"
        for index, each in enumerate(node.children)
    )


def _parameter_type(node: Node, scope: Scope, resolver: Resolver) -> Type:
    if node.type not in ("parameter_declaration", "optional_parameter_declaration"):
        raise Refusal("a parameter pack has no fixed types")
    inner = node.child_by_field_name("type")
    if inner is not None and inner.type == "placeholder_type_specifier":
        raise Refusal(f"{words(inner)!r} makes the kernel a template without names for its types")
    resolved = resolver.declared(node, node.child_by_field_name("declarator"), scope)
    if resolved.element is not None:
        # An array as a parameter is a pointer to its first element.
        resolved = resolved.element.with_const(resolved.const).pointer()
    elif resolved.is_function:
        resolved = resolved.pointer()
    return Type.parse(resolver.spelling(resolved))


def _name(parameter: Node) -> Node | None:
    """Find the name of a parameter inside its declarators; None if it has none."""
    node = parameter.child_by_field_name("declarator")
    while node is not None and node.type not in ("identifier", "type_identifier"):
        inner = node.child_by_field_name("declarator") or node.child_by_field_name("name")
        if inner is None:
            parts = (each for each in node.named_children if each.type.endswith(("declarator", "identifier")))
            inner = next(parts, None)
        node = inner
    return node


def _covering(root: Node, start: int, end: int, kind: str) -> Node | None:
    """Find the node of a kind that covers exactly a range."""
    node = root.descendant_for_byte_range(start, end - 1)
    while node is not None and node.start_byte >= start and node.end_byte <= end:
        if node.type == kind and (node.start_byte, node.end_byte) == (start, end):
            return node
        node = node.parent
    return None
