"""Templates: their parameters, and the arguments that these are bound to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Union

from podium_opencl.translation.refusal import Refusal
from podium_opencl.translation.symbols import Function, Local, Scope, Struct, Symbol, name_node, text_of
from podium_opencl.translation.types import Type
from podium_opencl.translation.values import Value, convert, literal, qualified

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Argument", "Arguments", "Evaluator", "Templated", "Templates", "items_of"]

Argument = Union[Type, Local, Struct]


@dataclass(frozen=True)
class Templated:
    """Function templates with the template arguments that were written behind their name."""

    functions: tuple[Function, ...]
    arguments: Node
    scope: Scope


@dataclass
class Arguments:
    """Template arguments bound to names, in order."""

    scope: Scope
    bound: list[Argument]

    @property
    def key(self) -> str:
        """A text that is equal for equal arguments."""
        return ",".join(map(key_of, self.bound))


def key_of(argument: Argument) -> str:
    """Return a text that is equal for equal template arguments."""
    if isinstance(argument, Type):
        return qualified(argument)
    return f"{argument.name}@{id(argument)}" if isinstance(argument, Struct) else str(argument.constant)


class Evaluator(Protocol):
    """Computes constant expressions."""

    def __call__(self, node: Node, scope: Scope) -> Value: ...


class Templates:
    """The binding of template arguments."""

    evaluate: Evaluator

    def symbol(self, node: Node, scope: Scope) -> Symbol | Templated | None:
        """Say what a name stands for."""
        raise NotImplementedError

    def type_of(self, node: Node, scope: Scope) -> Type:
        """Read a type specifier."""
        raise NotImplementedError

    def described(self, node: Node, scope: Scope) -> Type:
        """Read a type as it stands in a cast or as a template argument."""
        raise NotImplementedError

    def bind(
        self,
        template: Node | None,
        given: Sequence[Node | Argument],
        scope: Scope,
        outer: Scope,
        deduced: dict[str, Argument] | None = None,
    ) -> Arguments:
        """Give template parameters their arguments; those that are missing are `deduced` or have defaults."""
        found = Arguments(Scope(outer), [])
        parameters = [] if template is None else [each for each in template.named_children if each.type != "comment"]
        if len(given) > len(parameters):
            raise Refusal(f"{len(given)} template arguments for {len(parameters)} parameters")
        for index, parameter in enumerate(parameters):
            if "variadic" in parameter.type:
                raise Refusal(f"podium-opencl has no parameter packs: {text_of(parameter)}")
            name = _parameter_name(parameter)
            default = parameter.child_by_field_name("default_type") or parameter.child_by_field_name("default_value")
            argument: Node | Argument | None = given[index] if index < len(given) else None
            inside = scope
            if argument is None and deduced is not None:
                argument = deduced.get(name)
            if argument is None and default is not None:
                argument, inside = default, found.scope
            if argument is None:
                raise Refusal(f"the template parameter {name or index + 1} has no argument")
            value = self._argument(parameter, argument, inside, found.scope)
            found.bound.append(value)
            if name:
                found.scope.names[name] = value
        return found

    def _argument(self, parameter: Node, argument: Node | Argument, scope: Scope, own: Scope) -> Argument:
        if isinstance(argument, (Type, Struct, Local)):
            return argument
        if parameter.type == "template_template_parameter_declaration":
            found = self.symbol(_bare(argument), scope)
            if not isinstance(found, Struct):
                raise Refusal(f"{text_of(argument)} is no template of a struct")
            return found
        if parameter.type in ("type_parameter_declaration", "optional_type_parameter_declaration"):
            if argument.type == "type_descriptor":
                return self.described(argument, scope)
            return self.type_of(argument, scope)
        value = self.evaluate(_bare(argument), scope)
        if value.constant is None:
            raise Refusal(f"{text_of(argument)} is no constant that podium-opencl can compute")
        specifier = parameter.child_by_field_name("type")
        if specifier is not None and specifier.type != "placeholder_type_specifier":
            value = convert(value, self.type_of(specifier, own))
        assert value.constant is not None
        if value.type.kind != "integer" or isinstance(value.constant, float):
            raise Refusal(f"{text_of(argument)} cannot be a template argument")
        return Local(literal(value.constant, value.type), value.type, constant=value.constant)


def items_of(arguments: Node) -> list[Node | Argument]:
    """List template arguments as they are written."""
    return [each for each in arguments.named_children if each.type != "comment"]


def _bare(node: Node) -> Node:
    """Return the name inside what was read as a type but may be a value or a template."""
    inner = node.child_by_field_name("type") if node.type == "type_descriptor" else None
    return node if inner is None or node.child_by_field_name("declarator") is not None else inner


def _parameter_name(parameter: Node) -> str:
    if parameter.type == "template_template_parameter_declaration":
        inner = [each for each in parameter.named_children if each.type == "type_parameter_declaration"]
        return _parameter_name(inner[-1]) if inner else ""
    if "type_parameter" in parameter.type:
        default = parameter.child_by_field_name("default_type")
        names = [each for each in parameter.named_children if each.type == "type_identifier" and each != default]
        return text_of(names[0]) if names else ""
    return text_of(name_node(parameter.child_by_field_name("declarator")))
