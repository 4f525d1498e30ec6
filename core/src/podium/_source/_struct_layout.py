"""Structs passed by value: their members in podium's spelling, or just size and alignment where that is not enough."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from podium._record import record
from podium._signature import Type
from podium._source._cuda_types import Refusal, Resolved
from podium._source._name_lookup import STRUCT_NODES
from podium._source._syntax import words

if TYPE_CHECKING:
    from tree_sitter import Node

    from podium._source._resolver import Resolver
    from podium._source._scopes import Scope

__all__ = ["struct_type"]

_ALIGNED = re.compile(r"\b_*aligned_*\s*\(\s*(\d{1,4})\s*\)")
_ATTRIBUTES = ("attribute_specifier", "attribute_declaration")
_UNSUPPORTED = re.compile(r"\b_*(?:packed|ms_struct|gcc_struct|scalar_storage_order|no_unique_address)_*\b")
_LONGEST = 4096

# What may stand in a struct without being part of its memory.
_NO_MEMBERS = frozenset(
    "access_specifier alias_declaration type_definition using_declaration friend_declaration template_declaration "
    "static_assert_declaration enum_specifier attribute_declaration".split()
)


@record(frozen=True)
class _Member:
    spelling: str
    type: Type
    alignment: int


def struct_type(node: Node, scope: Scope, resolver: Resolver) -> Resolved:
    """Resolve a struct from its definition; `scope` is its inside. Raises `Refusal`."""
    _check(node, resolver)
    members: list[_Member] = []
    body = node.child_by_field_name("body")
    for each in body.named_children if body is not None else ():
        members += _members(each, node, scope, resolver)
    alignment = max([1, *_alignments(node, scope, resolver), *(member.alignment for member in members)])
    if not members:
        return Resolved(f"opaque[{alignment},{alignment}]")
    offset = size = 0
    plain = True
    for member in members:
        offset = _round_up(size, member.alignment)
        plain = plain and offset == _round_up(size, member.type.alignment)
        size = offset + member.type.size
    size = _round_up(size, alignment)
    if size >= 10**9 or alignment >= 10**4:
        raise Refusal(f"it has {size} bytes, aligned to {alignment}: more than any launch can pass")
    spelling = "{" + ",".join(member.spelling for member in members) + "}"
    if alignment > max(member.type.alignment for member in members):
        spelling += f"@{alignment}"
    if not plain or len(spelling) > _LONGEST:
        spelling = f"opaque[{size},{alignment}]"
    return Resolved(spelling)


def _check(node: Node, resolver: Resolver) -> None:
    if node.type == "union_specifier":
        raise Refusal("it is a union, whose bytes have several meanings")
    if node.has_error:
        raise Refusal("its definition has syntax that podium cannot read, such as a macro from a header")
    if resolver.packed:
        raise Refusal("the source has #pragma pack, whose effect podium does not follow")
    if any(each.type == "base_class_clause" for each in node.children):
        raise Refusal("it has a base class, whose layout podium does not follow")
    _check_attributes(node)


def _check_attributes(node: Node) -> None:
    pending = [node]
    while pending:
        for each in pending.pop().children:
            if each.type.endswith("declarator"):
                pending.append(each)
            elif each.type == "ms_declspec_modifier":
                raise Refusal(f"podium does not follow {words(each)!r}")
            elif each.type in _ATTRIBUTES and (match := _UNSUPPORTED.search(words(each))):
                raise Refusal(f"the attribute {match[0]} changes its layout")


def _members(node: Node, struct: Node, scope: Scope, resolver: Resolver) -> Iterator[_Member]:
    if any(each.type == "virtual" or words(each) == "virtual" for each in node.children):
        raise Refusal("it has virtual functions, so a table of addresses on the host")
    if node.type in _NO_MEMBERS:
        return
    if node.type in ("function_definition", "declaration"):
        _require_method(node, struct)
        return
    if node.type != "field_declaration":
        raise Refusal(f"podium cannot read its member {_shown(node)}")
    if any(each.type == "storage_class_specifier" and words(each) in ("static", "friend") for each in node.children):
        return
    _check_attributes(node)
    if any(each.type == "bitfield_clause" for each in node.children):
        raise Refusal(f"its member {_shown(node)} is a bit-field")
    declarators = node.children_by_field_name("declarator")
    inner = node.child_by_field_name("type")
    if not declarators and inner is not None and inner.type in STRUCT_NODES and _is_unnamed(inner):
        yield _member(node, None, scope, resolver)
    for declarator in declarators:
        if not _is_method(declarator):
            yield _member(node, declarator, scope, resolver)


def _member(node: Node, declarator: Node | None, scope: Scope, resolver: Resolver) -> _Member:
    try:
        resolved = resolver.declared(node, declarator, scope)
        spelling = resolver.spelling(resolved)
        kind = resolver.layout(resolved)
        return _Member(spelling, kind, max(kind.alignment, *_alignments(node, scope, resolver), 1))
    except Refusal as refusal:
        raise Refusal(f"its member {_shown(node)} is a problem: {refusal}") from None


def _is_unnamed(struct: Node) -> bool:
    """Tell a struct whose members are found in the one around it from one that is only defined there."""
    return struct.child_by_field_name("name") is None and struct.child_by_field_name("body") is not None


def _is_method(declarator: Node) -> bool:
    """Tell ``int f(int)`` from ``int (*f)(int)``."""
    node: Node | None = declarator
    while node is not None and node.type in ("pointer_declarator", "reference_declarator"):
        node = node.child_by_field_name("declarator") or next(iter(node.named_children), None)
    if node is None or node.type != "function_declarator":
        return False
    inner = node.child_by_field_name("declarator")
    return inner is not None and inner.type != "parenthesized_declarator"


def _require_method(node: Node, struct: Node) -> None:
    """Let functions pass, but nothing that may be a macro with members in it."""
    name = struct.child_by_field_name("name")
    declarator = node.child_by_field_name("declarator")
    if node.child_by_field_name("type") is not None or declarator is None:
        return
    declared = declarator.child_by_field_name("declarator")
    if declared is not None and declared.type == "identifier":
        own = words(name).split("<")[0].strip() if name is not None else ""
        if words(declared) != own:
            raise Refusal(f"podium cannot read its member {_shown(node)}")


def _alignments(node: Node, scope: Scope, resolver: Resolver) -> Iterator[int]:
    """Find what alignas and the aligned attribute ask for."""
    for each in node.children:
        if each.type in _ATTRIBUTES and "aligned" in words(each):
            match = _ALIGNED.search(words(each))
            if match is None:
                raise Refusal(f"podium cannot read {words(each)!r}")
            yield int(match[1])
        inner = each.named_children if each.type == "type_qualifier" else [each]
        for qualifier in inner:
            if qualifier.type == "alignas_qualifier":
                yield _alignas(qualifier, scope, resolver)


def _alignas(node: Node, scope: Scope, resolver: Resolver) -> int:
    if node.named_child_count != 1:
        raise Refusal(f"podium cannot read {words(node)!r}")
    operand = node.named_children[0]
    try:
        value = resolver.value(operand, scope)
    except Refusal:
        value = resolver.layout(resolver.type(operand, scope)).alignment
    if value < 0 or value & (value - 1):
        raise Refusal(f"{value} is no alignment")
    return value


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _shown(node: Node) -> str:
    text = words(node).rstrip("; ")
    return repr(text if len(text) <= 60 else text[:57] + "...")
