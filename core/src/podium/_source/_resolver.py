"""Types of a source in podium's spelling: names are followed, declarators applied, templates filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podium._record import replace
from podium._signature import Type
from podium._source._constant_expressions import evaluate
from podium._source._cuda_types import FUNDAMENTAL_WORDS, Refusal, Resolved, builtin, fundamental
from podium._source._name_lookup import NAME_NODES, STRUCT_NODES, NameLookup
from podium._source._scopes import Argument, Entity, Scope
from podium._source._struct_layout import struct_type
from podium._source._syntax import words

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Resolver"]

_UNKNOWN = "its definition is not in this source, and podium does not read headers"
_SEVERAL = "it is defined in several ways, and podium cannot tell which one counts"
_SPECIALISED = "its template has specialisations, which podium does not follow"

_MOST_DECLARATORS = 64

# Attributes that change what a declared type is, or how it lies in memory.
_CHANGES_TYPE = re.compile(r"\b_*(?:aligned|packed|vector_size|ext_vector_type|mode|address_space)_*\b")


class Resolver:
    """Resolves the types of one source. Structs are kept, so that one which is used twice is laid out once."""

    def __init__(self, macros: Mapping[str, str], *, packed: bool = False) -> None:
        self.packed = packed
        self._macros = macros
        self._lookup = NameLookup()
        self._structs: dict[Entity, Resolved] = {}

    def declared(self, node: Node, declarator: Node | None, scope: Scope, *, shallow: bool = False) -> Resolved:
        """Resolve what a declaration declares: its type, with const, and a declarator such as ``*x`` or ``x[3]``.

        What cannot be resolved does not matter behind a pointer; otherwise the result has a refusal.
        With `shallow`, structs are not laid out.
        """
        inner = node.child_by_field_name("type")
        if inner is None:
            raise Refusal("it has no type that podium can read")
        shallow = shallow or (declarator is not None and _is_pointer(declarator))
        try:
            resolved = self.type(inner, scope, shallow=shallow)
        except Refusal as refusal:
            resolved = Resolved("void", refusal=str(refusal))
        resolved = _with_attributes(resolved.with_const(_has_const(node)), node)
        return self._apply(resolved, declarator, scope)

    def type(self, node: Node, scope: Scope, *, shallow: bool = False) -> Resolved:
        """Resolve the node of a type, without declarators. Raises `Refusal`."""
        with self._lookup.deeper():
            kind = node.type
            if kind == "type_descriptor":
                return self.declared(node, node.child_by_field_name("declarator"), scope, shallow=shallow)
            if kind == "sized_type_specifier" or (kind in NAME_NODES and words(node) in FUNDAMENTAL_WORDS):
                return fundamental(words(node).split())
            if kind == "enum_specifier" and node.child_by_field_name("body") is not None:
                return self._enum(node, scope)
            if kind in STRUCT_NODES and node.child_by_field_name("body") is not None:
                return self._struct(Entity("struct", node, scope), None, shallow)
            if kind == "enum_specifier" or kind in STRUCT_NODES:
                name = node.child_by_field_name("name")
                if name is not None:
                    return self._named(name, scope, shallow, ("struct", "enum"))
            if kind == "dependent_type" and node.named_child_count == 1:
                return self.type(node.named_children[0], scope, shallow=shallow)
            if kind in (*NAME_NODES, "qualified_identifier", "template_type"):
                return self._named(node, scope, shallow)
            if kind in ("placeholder_type_specifier", "decltype"):
                raise Refusal(f"{words(node)!r} leaves the type to the compiler")
            raise Refusal("podium cannot read it")

    def value(self, node: Node, scope: Scope) -> int:
        """Compute an integer constant expression. Raises `Refusal`."""
        with self._lookup.deeper():
            return evaluate(node, _Values(self, scope))

    def layout(self, resolved: Resolved) -> Type:
        """Return size and alignment of a type; an array has them, too. Raises `Refusal`."""
        return Type.parse("{" + self.spelling(resolved) + "}")

    def spelling(self, resolved: Resolved) -> str:
        """Return the spelling of a type as the member of a struct, where arrays stay arrays. Raises `Refusal`."""
        if resolved.element is None:
            if resolved.refusal:
                raise Refusal(resolved.refusal)
            return resolved.spelling
        if resolved.bound is None:
            raise Refusal("the array has no size")
        count = self.value(*resolved.bound)
        if not 0 < count < 10**9:
            raise Refusal(f"an array cannot have {count} elements")
        return f"[{count}x{self.spelling(resolved.element)}]"

    def _apply(self, resolved: Resolved, declarator: Node | None, scope: Scope) -> Resolved:
        """Apply declarators from the outside in: ``*x[3]`` makes a pointer first, and then an array of those."""
        for _ in range(_MOST_DECLARATORS):
            if declarator is None:
                return resolved
            kind = declarator.type
            resolved = _with_attributes(resolved, declarator)
            if _is_pointer(declarator):
                resolved = resolved.pointer(const=_has_const(declarator))
            elif kind.endswith("array_declarator"):
                size = declarator.child_by_field_name("size")
                bound = None if size is None else (size, scope)
                resolved = Resolved("void", resolved.const, "an array is no value", element=resolved, bound=bound)
            elif kind.endswith("function_declarator"):
                resolved = Resolved("void", refusal="a function is no value", is_function=True)
            elif kind.endswith("reference_declarator"):
                return Resolved("void", refusal="a reference is an address on the host; take a pointer or a value")
            elif kind == "variadic_declarator":
                return Resolved("void", refusal="a parameter pack has no fixed types")
            elif kind == "qualified_identifier":
                return Resolved("void", refusal="a pointer to a member means nothing outside of C++")
            declarator = _inner(declarator)
        raise Refusal("it has more declarators than podium follows")

    def _named(
        self,
        node: Node,
        scope: Scope,
        shallow: bool,
        wanted: tuple[str, ...] = ("struct", "enum", "alias", "using"),
    ) -> Resolved:
        found = self._lookup.find(node, scope)
        if found.argument is not None:
            return self.type(found.argument.node, found.argument.scope, shallow=shallow)
        entities = [each for each in found.entities if each.kind in wanted]
        if any(each.specialised for each in entities):
            raise Refusal(_SPECIALISED)
        answers = [self._entity(each, found.arguments, shallow) for each in entities]
        if not answers:
            known = self._builtin(found.path, found.arguments)
            if known is None:
                raise Refusal(self._macros.get(found.path[-1], _UNKNOWN))
            return known
        if any(answer != answers[0] for answer in answers):
            raise Refusal(_SEVERAL)
        return answers[0]

    def _entity(self, entity: Entity, arguments: list[Argument] | None, shallow: bool) -> Resolved:
        if entity.doubt:
            raise Refusal(entity.doubt)
        if entity.kind == "enum":
            return self._enum(entity.node, entity.scope)
        if entity.kind == "struct":
            return self._struct(entity, arguments, shallow)
        with self._lookup.deeper():
            if entity.kind == "using":
                return self._named(entity.node, entity.scope, shallow)
            declarator = entity.declarator
            if declarator is None:
                declarator = entity.node.child_by_field_name("declarator")
            return self.declared(entity.node, declarator, self._lookup.filled(entity, arguments), shallow=shallow)

    def _struct(self, entity: Entity, arguments: list[Argument] | None, shallow: bool) -> Resolved:
        if shallow:
            return Resolved("void", refusal="it was not laid out")
        if arguments is not None or entity.template is not None:
            return struct_type(entity.node, self._lookup.inside(entity, arguments or []), self)
        if entity not in self._structs:
            # Found again while it is laid out, it can only be behind a pointer.
            self._structs[entity] = Resolved("void", refusal="it contains itself")
            try:
                self._structs[entity] = struct_type(entity.node, self._lookup.inside(entity, None), self)
            except Refusal as refusal:
                self._structs[entity] = Resolved("void", refusal=str(refusal))
        return self._structs[entity]

    def _enum(self, node: Node, scope: Scope) -> Resolved:
        """Resolve an enum to its underlying type: the one it names, else the smallest of at least 32 bits."""
        if (base := node.child_by_field_name("base")) is not None:
            return self.type(base, scope)
        if any(each.type in ("class", "struct") for each in node.children):
            return Resolved("i32")
        if node.has_error:
            raise Refusal("its enumerators have syntax that podium cannot read")
        body = node.child_by_field_name("body")
        low, high, last = 0, 0, -1
        for each in body.named_children if body is not None else ():
            if each.type == "enumerator":
                given = each.child_by_field_name("value")
                last = last + 1 if given is None else self.value(given, scope)
                low, high = min(low, last), max(high, last)
        if high < 1 << 31 and low >= -(1 << 31):
            return Resolved("i32")
        if low >= 0:
            return Resolved("u32" if high < 1 << 32 else "u64")
        return Resolved("i64")

    def _builtin(self, path: tuple[str, ...], arguments: list[Argument] | None) -> Resolved | None:
        if arguments is None:
            return builtin(path)
        library = path[:-1]
        if path[-1] == "complex" and library in (("std",), ("cuda", "std"), ("thrust",)) and len(arguments) == 1:
            element = self.type(arguments[0].node, arguments[0].scope).spelling
            behind = {"fp32": "c64", "fp64": "c128"}.get(element, "")
            return Resolved("void", refusal="podium passes such complex numbers behind pointers only", behind=behind)
        if path[-1] == "array" and library in (("std",), ("cuda", "std")) and len(arguments) == 2:
            element_type = self.type(arguments[0].node, arguments[0].scope)
            bound = (arguments[1].node, arguments[1].scope)
            return Resolved("{" + self.spelling(Resolved("void", element=element_type, bound=bound)) + "}")
        return None


class _Values:
    """What the names in an expression mean, for `evaluate`."""

    def __init__(self, resolver: Resolver, scope: Scope) -> None:
        self.resolver, self.scope = resolver, scope

    def value_of(self, node: Node) -> int:
        lookup = self.resolver._lookup
        with lookup.deeper():
            if node.type == "type_descriptor" and node.named_child_count == 1:
                node = node.named_children[0]
            if node.type not in (*NAME_NODES, "qualified_identifier", "template_type", "template_function"):
                raise Refusal(f"{words(node)!r} is no value")
            found = lookup.find(node, self.scope)
            if found.argument is not None:
                return self.resolver.value(found.argument.node, found.argument.scope)
            wanted = [each for each in found.entities if each.kind in ("value", "enumerator", "using")]
            values = {self._entity(each, found.arguments) for each in wanted}
            if len(values) != 1:
                unknown = self.resolver._macros.get(found.path[-1], "its value is not in this source")
                raise Refusal(f"{words(node)!r} cannot be computed: {_SEVERAL if values else unknown}")
            return values.pop()

    def size_of(self, node: Node) -> int:
        return self.resolver.layout(self.resolver.type(node, self.scope)).size

    def convert(self, value: int, node: Node) -> int:
        """Let a value pass if its type holds it; what wraps around would need more rules of C++ than these."""
        kind = Type.parse(self.resolver.spelling(self.resolver.type(node, self.scope)))
        bits = 1 if kind.kind == "boolean" else 8 * kind.size - (kind.kind == "signed")
        low = -(1 << bits) if kind.kind == "signed" else 0
        if kind.kind not in ("boolean", "signed", "unsigned") or not low <= value < 1 << bits:
            raise Refusal(f"{value} is no value of the type {words(node)}")
        return value

    def _entity(self, entity: Entity, arguments: list[Argument] | None) -> int:
        if entity.doubt or entity.specialised:
            raise Refusal(entity.doubt or _SPECIALISED)
        if entity.kind == "using":
            return _Values(self.resolver, entity.scope).value_of(entity.node)
        if entity.kind == "enumerator":
            return self._enumerator(entity)
        scope = self.resolver._lookup.filled(entity, arguments)
        value = self.resolver.value(_initial_value(entity), scope)
        kind = entity.node.child_by_field_name("type")
        if kind is None or kind.type == "placeholder_type_specifier":
            return value
        return _Values(self.resolver, scope).convert(value, kind)

    def _enumerator(self, entity: Entity) -> int:
        """Compute an enumerator: its own value, or one more than that of the enumerator before it."""
        body = entity.node.parent
        count = -1
        for each in reversed(body.named_children if body is not None else ()):
            if each.type != "enumerator" or (count < 0 and each != entity.node):
                continue
            count += 1
            if (given := each.child_by_field_name("value")) is not None:
                return self.resolver.value(given, entity.scope) + count
        return count


def _initial_value(entity: Entity) -> Node:
    """Return the expression that a constant is initialised with. Raises `Refusal`."""
    declarator = entity.declarator
    if declarator is not None and (value := declarator.child_by_field_name("value")) is not None:
        return value
    found = False
    for index, each in enumerate(entity.node.children):
        name = entity.node.field_name_for_child(index)
        if name == "declarator":
            found = each == declarator
        elif name == "default_value" and found:
            return each
    raise Refusal("it has no value in this source")


def _is_pointer(declarator: Node) -> bool:
    return declarator.type.endswith("pointer_declarator")


def _has_const(node: Node) -> bool:
    return any(each.type == "type_qualifier" and words(each) in ("const", "constexpr") for each in node.children)


def _with_attributes(resolved: Resolved, node: Node) -> Resolved:
    """Refuse a type by value if an attribute beside it changes what it is."""
    for each in node.children:
        is_attribute = each.type in ("attribute_specifier", "attribute_declaration")
        if is_attribute and not resolved.refusal and (match := _CHANGES_TYPE.search(words(each))):
            return replace(resolved, spelling="void", refusal=f"the attribute {match[0]} changes the type")
    return resolved


def _inner(declarator: Node) -> Node | None:
    inner = declarator.child_by_field_name("declarator")
    if inner is None:
        inner = next((each for each in declarator.named_children if each.type.endswith("declarator")), None)
    return inner
