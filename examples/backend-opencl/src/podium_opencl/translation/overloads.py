"""Which of several functions a call means, and the template arguments that it deduces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from podium_opencl.translation.expressions import Expressions
from podium_opencl.translation.refusal import Refusal
from podium_opencl.translation.resolution import Argument, Arguments, Templated
from podium_opencl.translation.symbols import Function, Local, Scope, Struct, function_declarator, name_node, text_of
from podium_opencl.translation.types import SCALARS, Type, constant, pointer, promoted
from podium_opencl.translation.values import Value, identity, loaded, named, qualified

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Candidate", "Given", "Overloads", "parameter_nodes"]

Given = Union[Value, "Node"]  # an argument: a value, or what stands in braces


@dataclass
class Candidate:
    """A function that a call may mean, with its parameters, and how well the arguments fit them."""

    function: Function
    bound: Arguments
    parameters: list[tuple[str, Type]]
    defaults: list[Node | None]
    score: int


class Overloads(Expressions):
    """The choice of functions."""

    def choose(
        self,
        functions: Sequence[Function],
        explicit: Templated | None,
        given: Sequence[Given],
        base: Value | None = None,
    ) -> Candidate | None:
        """Choose the function that fits best; `base` is the object of member functions. None if none fits."""
        found: list[Candidate] = []
        for function in functions:
            if function.arguments is None:
                candidate = self._candidate(function, explicit, given)
                if candidate is not None and base is not None and not function.is_static:
                    if base.type.const and not function.is_const:
                        continue
                    candidate.score += base.type.const == function.is_const
                if candidate is not None:
                    found.append(candidate)
        if not found:
            return None
        best = max(each.score for each in found)
        found = [each for each in found if each.score == best]
        plain = [each for each in found if each.function.template is None]
        if len(plain or found) > 1:
            raise Refusal(
                f"podium-opencl cannot choose among the overloads of {found[0].function.name}: cast the arguments"
            )
        chosen = (plain or found)[0]
        for function in functions:
            if function.arguments is None or chosen.function.template is None:
                continue
            nodes = list(function.arguments.named_children)
            own = self.resolution.bind(chosen.function.template, nodes, function.scope, function.scope)
            if own.key == chosen.bound.key:
                return Candidate(function, Arguments(Scope(function.scope), own.bound), chosen.parameters, [], 0)
        return chosen

    def _candidate(self, function: Function, explicit: Templated | None, given: Sequence[Given]) -> Candidate | None:
        declarator = function_declarator(function.node)
        listed = declarator.child_by_field_name("parameters") if declarator is not None else None
        nodes = parameter_nodes(listed)
        needed = sum(each.child_by_field_name("default_value") is None for each in nodes)
        if not needed <= len(given) <= len(nodes):
            return None
        written: list[Node | Argument] = list(explicit.arguments.named_children) if explicit is not None else []
        if written and function.template is None:
            return None
        try:
            deduced = self._deduced(function, nodes, given, written)
            scope = explicit.scope if explicit is not None else self.scope
            bound = self.resolution.bind(function.template, written, scope, function.scope, deduced)
        except Refusal:
            if len(given) == len(nodes) and explicit is not None:
                raise
            return None
        parameters = [
            (text_of(name_node(each.child_by_field_name("declarator"))), self.parameter_type(each, bound.scope))
            for each in nodes
        ]
        score = 0
        for (_, kind), value in zip(parameters, given):
            fits = _fit(value, kind)
            if not fits:
                return None
            score += fits
        defaults = [each.child_by_field_name("default_value") for each in nodes]
        return Candidate(function, bound, parameters, defaults, score)

    def parameter_type(self, node: Node, scope: Scope) -> Type:
        """Read the type of a parameter; an array is a pointer there."""
        with self.at(node):
            base = self.resolution.specified(node, scope)
            kind = self.resolution.declared(base, node.child_by_field_name("declarator"), scope)
        return pointer(kind.target, None) if kind.kind == "array" else kind

    def _deduced(
        self, function: Function, nodes: Sequence[Node], given: Sequence[Given], written: Sequence[object]
    ) -> dict[str, Argument]:
        found: dict[str, Argument] = {}
        if function.template is None:
            return found
        names = {text_of(each) for each in _template_names(function.template)}
        for node, value in zip(nodes, given):
            if isinstance(value, Value):
                specifier, declarator = node.child_by_field_name("type"), node.child_by_field_name("declarator")
                kind = value.type if "&" in text_of(declarator) else loaded(value).type
                if specifier is not None:
                    is_const = any(text_of(each) == "const" for each in node.children)
                    self._unify(specifier, declarator, kind, is_const, names, found)
        return found

    def _unify(
        self,
        specifier: Node,
        declarator: Node | None,
        kind: Type,
        is_const: bool,
        names: set[str],
        found: dict[str, Argument],
    ) -> None:
        is_const = is_const or declarator is None or not declarator.type.endswith("declarator")
        while declarator is not None and declarator.type.endswith("declarator"):
            if declarator.type == "array_declarator" and kind.kind == "array":
                size = text_of(declarator.child_by_field_name("size"))
                if size in names and kind.count is not None:
                    found.setdefault(size, Local(str(kind.count), SCALARS["int"], constant=kind.count))
                kind = kind.target
            elif "pointer" in declarator.type or "array" in declarator.type:
                if kind.kind != "pointer":
                    return
                kind = kind.target
            inner = declarator.child_by_field_name("declarator")
            if inner is None:
                inner = next((each for each in declarator.named_children if each.type.endswith("declarator")), None)
            declarator = inner
        if text_of(specifier) in names:
            found.setdefault(text_of(specifier), constant(kind.plain(), kind.const and not is_const))
        elif specifier.type == "template_type" and kind.kind == "struct" and isinstance(kind.origin, Scope):
            arguments = specifier.child_by_field_name("arguments")
            outer = kind.origin.parent
            values = list(outer.names.values()) if outer is not None else []
            for each, value in zip(arguments.named_children if arguments is not None else (), values):
                if text_of(each) in names and isinstance(value, (Type, Local, Struct)):
                    found.setdefault(text_of(each), value)

    def no_match(self, functions: Sequence[Function], given: Sequence[Given], base: Value | None = None) -> str:
        """Say that no function of a name takes the arguments, or is for the object."""
        kinds = ", ".join(named(each.type) if isinstance(each, Value) else "{...}" for each in given)
        return f"no matching function for call to {functions[0].name}({kinds})" + (
            f" of a {named(base.type)}" if base is not None and base.type.const else ""
        )


def parameter_nodes(listed: Node | None) -> list[Node]:
    """List the parameters of a function; ``(void)`` has none. Raises `Refusal` for packs."""
    nodes = [each for each in listed.named_children if each.type != "comment"] if listed is not None else []
    for each in nodes:
        if each.type not in ("parameter_declaration", "optional_parameter_declaration"):
            raise Refusal(f"podium-opencl has no parameter packs: {text_of(each)}")
    return [] if len(nodes) == 1 and text_of(nodes[0]) == "void" else nodes


def _template_names(template: Node) -> list[Node]:
    found: list[Node] = []
    for each in template.named_children:
        found += [inner for inner in each.named_children if inner.type in ("type_identifier", "identifier")]
    return found


def _fit(given: Given, kind: Type) -> int:
    """Say how well an argument fits a parameter: 0 for not at all."""
    target = kind.target if kind.kind == "reference" else kind
    if not isinstance(given, Value):
        return 1 if target.kind == "struct" or given.named_child_count <= 1 else 0
    source = given.type if kind.kind == "reference" and given.is_lvalue else loaded(given).type
    if kind.kind == "reference" and not target.const and (source.const or not given.is_lvalue):
        return 0
    if identity(source) == identity(target):
        same = kind.kind not in ("pointer", "reference") or qualified(source) == qualified(target)
        dropped = kind.kind == "pointer" and source.kind == "pointer" and source.target.const > target.target.const
        return 0 if dropped else 8 if same else 7
    if source.is_number and target.is_number:
        same = promoted(source).name == promoted(target).name
        return 4 if same else 3 if source.kind == target.kind else 2
    if target.kind == "pointer" and (source.kind == "null" or (source.kind == "integer" and given.constant == 0)):
        return 2
    return 2 if target.kind == source.kind == "pointer" and target.target.kind == "void" else 0
