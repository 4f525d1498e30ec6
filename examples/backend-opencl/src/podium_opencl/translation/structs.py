"""Structs: made out of their text, with template arguments put in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from podium_opencl.translation.refusal import Place, Refusal
from podium_opencl.translation.symbols import (
    Scope,
    Struct,
    collect,
    function_declarator_below,
    name_node,
    text_of,
    variable_declarators,
)
from podium_opencl.translation.templates import Arguments, Templates, items_of
from podium_opencl.translation.types import Type, spelled, stored

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Structs"]


class Structs(Templates):
    """The structs of one source. `definitions` has the text of those that were needed, in an order that compiles."""

    def __init__(self, place: Callable[[Node], Place]) -> None:
        self.place = place
        self.definitions: list[str] = []
        self.structs: dict[str, Type] = {}

    def declared(self, kind: Type, declarator: Node | None, scope: Scope) -> Type:
        """Apply pointers, arrays and references of a declarator to a type."""
        raise NotImplementedError

    def specified(self, node: Node, scope: Scope) -> Type:
        """Read the type that a declaration begins with, before its declarators."""
        raise NotImplementedError

    def count(self, node: Node, scope: Scope) -> int:
        """Compute a size."""
        raise NotImplementedError

    def instantiate(self, struct: Struct, arguments: Node | None, scope: Scope) -> Type:
        """Make a struct type out of its text, with template arguments where it has them."""
        bound = Arguments(Scope(struct.scope), [])
        if struct.template is not None and arguments is None:
            inner: Scope | None = scope
            while inner is not None:  # the name of a template within itself stands for what it is made into
                if inner.owner is not None and inner.name == struct.name:
                    return inner.owner
                inner = inner.parent
            raise Refusal(f"{struct.name} is a template and needs its arguments here")
        if arguments is not None:
            bound = self.bind(struct.template, items_of(arguments), scope, struct.scope)
        key = f"{struct.name}@{id(struct.node) if struct.template is None else id(struct)}<{bound.key}>"
        if key in self.structs:
            return self.structs[key]
        node = self._specialised(struct, bound) if struct.specialised else struct.node
        if node is None:
            raise Refusal(f"{struct.name} is declared, but not defined")
        if any(each.type == "base_class_clause" for each in node.children):
            raise Refusal(
                f"podium-opencl has no inheritance, which {struct.name} uses: make the base a member", self.place(node)
            )
        inside = Scope(bound.scope, struct.name, "struct")
        body = node.child_by_field_name("body")
        kind = Type(
            "struct", f"{struct.name}_{len(self.structs)}", is_union=node.type == "union_specifier", origin=inside
        )
        self.structs[key] = kind
        inside.owner = kind
        if body is not None:
            collect(body, inside)
            alignment = max([0, *(self._alignment(each, inside) for each in node.named_children)])
            kind = replace(kind, members=tuple(self._members(body, inside)), alignment=alignment)
        self.structs[key] = inside.owner = kind
        self.define(kind)
        return kind

    def _alignment(self, node: Node, scope: Scope) -> int:
        if node.type != "alignas_qualifier":
            return 0
        return self.count(node.named_children[0], scope)

    def _specialised(self, struct: Struct, bound: Arguments) -> Node | None:
        for arguments, template, node in struct.specialised:
            if template.named_child_count:
                raise Refusal(f"podium-opencl has no partial specialisations, which {struct.name} has")
            if self.bind(struct.template, items_of(arguments), struct.scope, struct.scope).key == bound.key:
                bound.scope = Scope(struct.scope)
                return node
        return struct.node

    def _members(self, body: Node, scope: Scope) -> list[tuple[str, Type]]:
        found: list[tuple[str, Type]] = []
        for node in body.named_children:
            try:
                found += self._member(node, scope)
            except Refusal as refusal:
                refusal.place = refusal.place or self.place(node)
                raise
        return found

    def _member(self, node: Node, scope: Scope) -> list[tuple[str, Type]]:
        words = {text_of(each) for each in node.children}
        if "virtual" in words:
            raise Refusal("podium-opencl has no virtual functions")
        if node.type != "field_declaration" or "static" in words:
            return []
        if any(each.type == "bitfield_clause" for each in node.children):
            raise Refusal("OpenCL C has no bit-fields: shift and mask")
        if any(text_of(each) == "mutable" for each in node.named_children):
            raise Refusal("podium-opencl has no mutable members")
        if node.child_by_field_name("default_value") is not None:
            raise Refusal("podium-opencl has no initial values of members: give them where the struct is made")
        declarators = [each for each in variable_declarators(node) if not function_declarator_below(each)]
        inner = node.child_by_field_name("type")
        is_type = inner is not None and (
            inner.type == "enum_specifier" or inner.child_by_field_name("name") is not None
        )
        if not is_type and not list(variable_declarators(node)):
            raise Refusal("podium-opencl has no members without a name")
        found = []
        for declarator in declarators:
            kind = self.declared(self.specified(node, scope), declarator, scope)
            if kind.kind == "reference":
                raise Refusal("podium-opencl has no members that are references")
            found.append((text_of(name_node(declarator)), kind))
        return found

    def define(self, kind: Type) -> None:
        """Put the definition of a struct into the output."""
        members = "".join(f" {spelled(stored(member), name + '_')};" for name, member in kind.members)
        word = "union" if kind.is_union else "struct"
        aligned = f"__attribute__((aligned({kind.alignment}))) " if kind.alignment else ""
        self.definitions.append(f"typedef {word} {aligned}{{{members or ' uchar podium_empty;'} }} {kind.name};")
