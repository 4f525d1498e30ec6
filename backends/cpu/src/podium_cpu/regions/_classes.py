"""What a source's own classes and operators may do where a kernel does not show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium_cpu.regions._syntax import find, word

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Classes", "read_classes"]

# These change their left operand, or are calls, which any reader can see.
_PLAIN_TO_SEE = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--", "()", "[]", "->"}
_SPECIFIERS = ("struct_specifier", "class_specifier", "union_specifier")


@dataclass(frozen=True)
class Classes:
    """The classes that a source defines.

    `names` are all of them, `built` those that run code of their own when an object begins or ends. `operators` says
    that an operator or a conversion is defined, `mutating` that one may change what it is applied to, `holders` that an
    object may keep a reference to what it is made from. `keepers` have members that may be addresses, and `places`
    may tell the address of a member of theirs: one that is an array, or by a function.
    """

    names: frozenset[str]
    built: frozenset[str]
    operators: bool
    mutating: bool
    holders: bool
    keepers: frozenset[str]
    places: frozenset[str]


def read_classes(root: Node) -> Classes:
    """Read the classes and operators of a source."""
    bodies: dict[str, list[Node]] = {}
    built: set[str] = set()
    holders = False
    for specifier in find(root, *_SPECIFIERS):
        name, body = specifier.child_by_field_name("name"), specifier.child_by_field_name("body")
        if body is None:
            continue
        key = word(name).partition("<")[0]
        bodies.setdefault(key, []).append(body)
        if any(child.type == "base_class_clause" for child in specifier.children):
            built.add(key)
        for member in _members(body):
            functions = list(find(member, "function_declarator", within=("compound_statement", "parameter_list")))
            makers = [each for each in functions if word(each.child_by_field_name("declarator")) == key]
            if makers or any(find(member, "destructor_name", within=("compound_statement",))):
                built.add(key)
            holders = holders or any(map(_takes_reference, makers))
            if member.type == "field_declaration" and not functions:
                if member.child_by_field_name("default_value") is not None:
                    built.add(key)
                holders = holders or any(find(member, "reference_declarator"))
    _spread(root, bodies, built)
    operators = [
        each
        for each in find(root, "operator_name", "operator_cast")
        if each.type == "operator_cast" or word(each).removeprefix("operator").strip() not in _PLAIN_TO_SEE
    ]
    mutating = any(map(_may_change, operators))
    keepers = {key for key, parts in bodies.items() if any(map(_may_keep, parts))}
    places = {key for key, parts in bodies.items() if any(map(_is_place, parts))}
    for alias in find(root, "type_definition", "alias_declaration"):
        if any(find(alias, "pointer_declarator", "abstract_pointer_declarator", "array_declarator")):
            # Of a pointer, or of a class without a name of its own.
            names = {word(each) for each in find(alias, "type_identifier")} - set(bodies)
            keepers |= names
            places |= names
    for some in (keepers, places):
        _spread(root, bodies, some)
    return Classes(
        frozenset(bodies), frozenset(built), bool(operators), mutating, holders, frozenset(keepers), frozenset(places)
    )


def _may_keep(body: Node) -> bool:
    fields = [each for each in _members(body) if each.type == "field_declaration"]
    return body.prev_named_sibling is not None and (
        body.prev_named_sibling.type == "base_class_clause"
        or any(
            any(find(field, "pointer_declarator", "reference_declarator", within=("function_declarator",)))
            for field in fields
        )
    )


def _is_place(body: Node) -> bool:
    if body.prev_named_sibling is not None and body.prev_named_sibling.type == "base_class_clause":
        return True
    return any(find(body, "array_declarator", "this", "pointer_expression")) or any(
        any(find(member, "reference_declarator", "pointer_declarator", within=("parameter_list", "compound_statement")))
        and any(find(member, "function_declarator", within=("compound_statement",)))
        for member in _members(body)
    )


def _members(body: Node) -> Iterator[Node]:
    for member in body.named_children:
        if member.type == "template_declaration":
            yield from (each for each in member.named_children if each.type != "template_parameter_list")
        else:
            yield member


def _spread(root: Node, bodies: dict[str, list[Node]], built: set[str]) -> None:
    """Add the classes that contain objects of such classes, and other names for them."""
    aliases = list(find(root, "type_definition", "alias_declaration"))
    while True:
        more = {
            name
            for name, parts in bodies.items()
            if any(
                word(each.child_by_field_name("type")).partition("<")[0] in built
                for part in parts
                for each in _members(part)
                if each.type == "field_declaration"
            )
        }
        for alias in aliases:
            words = {word(each) for each in find(alias, "type_identifier")}
            if words & built:
                more |= words - set(bodies)
        if more <= built:
            return
        built |= more


def _takes_reference(declarator: Node) -> bool:
    """Tell whether a parameter is a reference through which the argument may be changed."""
    parameters = declarator.child_by_field_name("parameters")
    return parameters is not None and any(
        any(find(each, "reference_declarator", "abstract_reference_declarator"))
        and all(word(child) != "const" for child in each.children)
        for each in parameters.named_children
    )


def _may_change(operator: Node) -> bool:
    """Tell whether an operator may change an operand: as a member that is not const, or through a reference."""
    declarator = operator.parent if operator.type == "operator_name" else operator
    while declarator is not None and not declarator.type.endswith("function_declarator"):
        inner = [each for each in declarator.children if each.type.endswith("function_declarator")]
        declarator = inner[0] if inner else (None if operator.type == "operator_cast" else declarator.parent)
    if declarator is None:
        return True
    if _takes_reference(declarator):
        return True
    around = operator.parent
    while around is not None and around.type not in ("field_declaration_list", "friend_declaration"):
        around = around.parent
    member = around is not None and around.type == "field_declaration_list"
    return member and all(word(child) != "const" for child in declarator.children)
