"""Template parameters: their names, and the arguments and defaults that they are bound to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from podium._source._cuda_types import ArgumentMismatch, Refusal
from podium._source._scopes import Argument, Scope
from podium._source._syntax import words

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["bind", "example_arguments"]

_TYPE_PARAMETERS = ("type_parameter_declaration", "optional_type_parameter_declaration")
_PACKS = ("variadic_type_parameter_declaration", "variadic_parameter_declaration")


def bind(
    template: Node | None,
    arguments: Sequence[Argument] | None,
    scope: Scope,
    others: Iterable[Node] = (),
) -> dict[str, Argument]:
    """Give template parameters their arguments, and the rest of them their defaults, to be read in `scope`.

    `others` are the template parameters of other declarations of the same thing, which may have the defaults.
    Raises `Refusal` if a parameter is of a kind that podium does not follow, `ArgumentMismatch` if it gets nothing.
    """
    if template is None:
        if arguments is not None:
            raise Refusal("it is no template, but has template arguments")
        return {}
    if template.has_error:
        raise Refusal("its template parameters have syntax that podium cannot read")
    parameters = _parameters(template)
    given = list(arguments or ())
    if len(given) > len(parameters) and all(each.type not in _PACKS for each in parameters):
        raise ArgumentMismatch(f"the template takes {len(parameters)} arguments, not {len(given)}")
    bound: dict[str, Argument] = {}
    # A default may name the parameters before it.
    inner = Scope(parent=scope)
    inner.arguments = bound
    for index, parameter in enumerate(parameters):
        if parameter.type in _PACKS:
            raise Refusal(f"podium does not follow the template parameter pack {words(parameter)!r}")
        if parameter.type == "template_template_parameter_declaration":
            raise Refusal(f"podium does not follow the template template parameter {words(parameter)!r}")
        name = _name(parameter)
        if index < len(given):
            bound[name] = given[index]
            continue
        defaults = [_default(each[index]) for each in (parameters, *map(_parameters, others)) if index < len(each)]
        default = next(filter(None, defaults), None)
        if default is None:
            raise ArgumentMismatch(f"the template parameter {name or index + 1} has no argument and no default")
        bound[name] = Argument(default, inner)
    bound.pop("", None)
    return bound


def example_arguments(template: Node | None, given: Sequence[str] | None) -> str:
    """Return the arguments that are given, and of the right kinds for an error message, such as ``float, 256``."""
    parameters = _parameters(template)
    examples = list(given or ())[: len(parameters)]
    for parameter in parameters[len(examples) :]:
        kind = parameter.child_by_field_name("type")
        if parameter.type in _TYPE_PARAMETERS:
            examples.append("float")
        elif kind is not None and kind.type in ("primitive_type", "sized_type_specifier", "placeholder_type_specifier"):
            examples.append("true" if words(kind) == "bool" else "256")
        else:
            examples.append(_name(parameter) or "...")
    return ", ".join(examples)


def _parameters(template: Node | None) -> list[Node]:
    return [] if template is None else [each for each in template.named_children if each.type != "comment"]


def _default(parameter: Node) -> Node | None:
    return parameter.child_by_field_name("default_type") or parameter.child_by_field_name("default_value")


def _name(parameter: Node) -> str:
    if parameter.type in (*_TYPE_PARAMETERS, *_PACKS, "template_template_parameter_declaration"):
        default = _default(parameter)
        for each in parameter.named_children:
            if each.type == "type_identifier" and each != default:
                return words(each)
        return ""
    node = parameter.child_by_field_name("declarator")
    while node is not None and node.type != "identifier":
        node = node.child_by_field_name("declarator")
    return "" if node is None else words(node)
