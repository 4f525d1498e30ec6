"""Names and memory: variables, members, elements, addresses, and how large types are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from podium_opencl.translation.context import Context
from podium_opencl.translation.refusal import Refusal
from podium_opencl.translation.resolution import Templated
from podium_opencl.translation.symbols import (
    Alias,
    Enumerator,
    Local,
    Scope,
    Struct,
    Symbol,
    Variable,
    name_node,
    text_of,
)
from podium_opencl.translation.types import (
    INT,
    UINT,
    ULONG,
    Type,
    alignment_of,
    constant,
    pointer,
    size_of,
    spelled,
    stored,
)
from podium_opencl.translation.values import Value, convert, identity, literal, loaded, named

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Places", "part"]

_INDICES = {
    "threadIdx": "get_local_id",
    "blockIdx": "get_group_id",
    "blockDim": "get_local_size",
    "gridDim": "get_num_groups",
}
_NAMES = ("identifier", "qualified_identifier", "template_function")


class Places(Context):
    """The translation of names, and of what leads from one place in memory to another."""

    def _identifier(self, node: Node) -> Value:
        return self._named(node, text_of(node))

    _type_identifier = _identifier  # what stands between <> is read as a type

    def _qualified_identifier(self, node: Node) -> Value:
        found = self.resolution.symbol(node, self.scope)
        if found is None:
            raise self.unknown(node)
        return self._of_symbol(node, found)

    def _this(self, node: Node) -> Value:
        if self.this is None:
            raise self.refused(node, "this stands outside of a member function")
        return Value("podium_this", self.this.type)

    def _named(self, node: Node, name: str) -> Value:
        scope: Scope | None = self.scope
        while scope is not None:
            found = scope.own(name)
            if found is not None:
                return self._of_symbol(node, found)
            if scope.kind == "struct" and scope.owner is not None and self.this is not None:
                kind = dict(scope.owner.members).get(name)
                if kind is not None and identity(scope.owner) == identity(self.this.type.target):
                    owner = constant(scope.owner, self.this.type.target.const)
                    return self._member_of(
                        Value("(*podium_this)", owner, None, True, self.this.type.space or "?"), name
                    )
            scope = scope.parent
        if name in _INDICES:
            kind = self.resolution.vector("dim3")
            parts = ", ".join(f"(uint){_INDICES[name]}({axis})" for axis in range(3))
            return Value(f"(({kind.name}){{{parts}}})", kind)
        if name == "warpSize":
            return Value(str(self.whole.warp_size), INT, self.whole.warp_size)
        raise self.unknown(node)

    def _of_symbol(self, node: Node, found: Symbol | Templated) -> Value:
        if isinstance(found, Local):
            return self._local(found)
        if isinstance(found, Enumerator):
            base = 0
            if found.node is not None:
                start = self.whole.evaluate(found.node, found.scope).constant
                if not isinstance(start, int):
                    raise self.refused(node, f"{text_of(node)} is no constant that podium-opencl can compute")
                base = start
            return Value(literal(base + found.more, INT), INT, base + found.more)
        if isinstance(found, Variable):
            return self._variable(found)
        if isinstance(found, list):
            raise self.refused(node, f"podium-opencl has no pointers to functions: {text_of(node)} can only be called")
        raise self.refused(node, f"{text_of(node)} is no value")

    def _local(self, found: Local) -> Value:
        kind = found.type
        if kind.kind == "reference":
            return Value(f"(*{found.text})", kind.target, is_lvalue=True, space=kind.space or "?")
        if kind.kind == "pointer" and kind.space in (None, "?"):
            kind = replace(kind, space=self.learned.get(found.key, "?"))
        return Value(found.text, kind, found.constant, True, found.space, key=found.key)

    def _variable(self, found: Variable) -> Value:
        if found.is_shared:
            return self._local(self.shared(found.node, found.declarator, found.scope, ""))
        kind = self.variable_type(found)
        initial = found.initial
        if found.is_constant and kind.is_number:
            if initial is None:
                raise Refusal(f"the constant {found.name} has no value")
            value = self.whole.evaluate(initial, found.scope)
            return replace(convert(loaded(value), kind), is_lvalue=False)
        if found.is_constant:
            return self.whole.constant_array(found)
        place = f"podium_variables + {self.whole.offset(found, kind)}"
        self.need("podium_variables", "__global uchar *podium_variables")
        address = pointer(stored(kind), "global")
        return Value(f"(*({spelled(address)})({place}))", kind, None, True, "global", in_memory=kind.kind == "pointer")

    def shared(self, node: Node, declarator: Node, scope: Scope, home: str) -> Local:
        """Say where a shared variable lies; `home` is the function that it belongs to, nothing for none."""
        if declarator.type == "init_declarator":
            raise Refusal("a shared variable has no initial value")
        name = text_of(name_node(declarator))
        kind = self.resolution.declared(self.resolution.specified(node, scope), declarator, scope)
        if any(text_of(each) == "extern" for each in node.children):
            if kind.kind != "array":
                raise Refusal(f"dynamic shared memory is an array: extern __shared__ ... {name}[]")
            text = self.need("podium_shared", "__local uchar *podium_shared")
            kind = pointer(kind.target, "local")
            return Local(f"(({spelled(kind)}){text})", kind)
        if kind.kind == "pointer":
            raise Refusal("podium-opencl has no shared pointers: share the index")
        word = f"podium_shared{node.start_byte}_{home}_{name}"
        target = stored(kind)
        self.need(word, "__local " + spelled(target, f"(*{word})" if target.kind == "array" else f"*{word}"))
        return Local(f"(*{word})", kind, "local")

    def variable_type(self, found: Variable) -> Type:
        """Return the type of a variable outside of functions; an array without a size has that of its values."""
        inner = found.declarator.child_by_field_name("declarator")
        declarator = inner if found.declarator.type == "init_declarator" else found.declarator
        specifier = found.node.child_by_field_name("type")
        initial = found.initial
        if specifier is not None and specifier.type == "placeholder_type_specifier" and initial is not None:
            return loaded(self.whole.evaluate(initial, found.scope)).type
        kind = self.resolution.declared(self.resolution.specified(found.node, found.scope), declarator, found.scope)
        if kind.kind == "array" and kind.count is None and initial is not None:
            kind = replace(kind, count=initial.named_child_count)
        return kind

    def overloaded(self, node: Node, name: str, values: list[Value]) -> Value:
        """Call an operator that the user has defined."""
        raise NotImplementedError

    # ---- memory ----

    def _subscript_expression(self, node: Node) -> Value:
        base = self.value(part(node, "argument"))
        indices = node.child_by_field_name("indices") or node.child_by_field_name("index")
        items = indices.named_children if indices is not None and indices.type.endswith("list") else [indices]
        if len(items) != 1 or items[0] is None:
            raise self.refused(node, "an element needs one index")
        index = self.rvalue(items[0])
        if base.type.kind == "struct":
            return self.overloaded(node, "operator[]", [base, index])
        if base.type.kind == "array":
            element, space, text = base.type.target, base.space, base.text
        else:
            base = loaded(base)
            if base.type.kind != "pointer" or base.type.target.kind == "void":
                raise self.refused(node, f"a {named(base.type)} has no elements")
            element, space, text = base.type.target, base.type.space or "?", base.text
        if index.type.kind != "integer":
            raise self.refused(node, f"the index {text_of(items[0])} is a {named(index.type)}")
        in_memory = element.kind == "pointer"
        return Value(f"{text}[{index.text}]", element, None, True, space, in_memory)

    def _pointer_expression(self, node: Node) -> Value:
        operator = text_of(part(node, "operator"))
        argument = part(node, "argument")
        value = self.value(argument)
        if operator == "*":
            if value.type.kind == "struct":
                return self.overloaded(node, "operator*", [value])
            value = loaded(value)
            if value.type.kind != "pointer" or value.type.target.kind == "void":
                raise self.refused(node, f"* of a {named(value.type)}")
            kind = value.type.target
            return Value(f"(*{value.text})", kind, None, True, value.type.space or "?", kind.kind == "pointer")
        if not value.is_lvalue:
            raise self.refused(node, f"{text_of(argument)} has no address")
        if value.type.kind == "pointer" and not value.in_memory:
            raise self.refused(node, f"podium-opencl cannot take the address of the pointer {text_of(argument)}")
        return Value(f"(&{value.text})", pointer(value.type, value.space))

    def _field_expression(self, node: Node) -> Value:
        field = text_of(part(node, "field"))
        argument = part(node, "argument")
        if (
            argument.type == "identifier"
            and text_of(argument) in _INDICES
            and self.scope.find(text_of(argument)) is None
        ):
            if field not in ("x", "y", "z"):
                raise self.refused(node, f"no member named {field!r} in {text_of(argument)}")
            return Value(f"((uint){_INDICES[text_of(argument)]}({'xyz'.index(field)}))", UINT)
        base = self.value(argument)
        if text_of(part(node, "operator")) == "->":
            base = loaded(base)
            if base.type.kind != "pointer":
                raise self.refused(node, f"-> of a {named(base.type)}")
            base = Value(f"(*{base.text})", base.type.target, None, True, base.type.space or "?")
        return self._member_of(base, field)

    def _member_of(self, base: Value, name: str) -> Value:
        scope = base.type.origin
        # A struct that points to itself is not complete in the type of that pointer.
        whole = scope.owner if isinstance(scope, Scope) and scope.owner is not None else base.type
        kind = dict(whole.members).get(name) if whole.kind == "struct" else None
        if kind is None:
            static = scope.own(name) if isinstance(scope, Scope) else None
            if isinstance(static, Variable):
                return self._variable(static)
            raise Refusal(f"no member named {name!r} in {named(base.type)}")
        kind, text = constant(kind, base.type.const), f"{base.text}.{name}_"
        return replace(base, text=text, type=kind, constant=None, in_memory=kind.kind == "pointer", key=-1)

    # ---- types ----

    def _sizeof_expression(self, node: Node) -> Value:
        described = node.child_by_field_name("type")
        if described is not None:
            symbol = self.resolution.symbol(described.child_by_field_name("type") or described, self.scope)
            if isinstance(symbol, (Local, Variable)):
                kind = self._of_symbol(described, symbol).type
            else:
                kind = self.resolution.described(described, self.scope)
        else:
            value = part(node, "value")
            while value.type == "parenthesized_expression":
                value = value.named_children[0]
            is_type = value.type in _NAMES and self.is_type(value)
            kind = self.resolution.type_of(value, self.scope) if is_type else self.value(value).type
        size = size_of(kind.target if kind.kind == "reference" else kind)
        return Value(literal(size, ULONG), ULONG, size)

    def _alignof_expression(self, node: Node) -> Value:
        size = alignment_of(self.resolution.described(part(node, "type"), self.scope))
        return Value(literal(size, ULONG), ULONG, size)

    def _cast_expression(self, node: Node) -> Value:
        return self.cast(part(node, "value"), self.resolution.described(part(node, "type"), self.scope))

    def cast(self, node: Node, kind: Type) -> Value:
        """Translate a cast of an expression to a type."""
        if kind.kind == "reference":
            raise self.refused(node, "podium-opencl has no casts to references: cast the address")
        return convert(self.rvalue(node), kind, explicit=True)

    def _compound_literal_expression(self, node: Node) -> Value:
        kind = self.resolution.find_type(part(node, "type"), self.scope)
        if kind is None:
            raise self.refused(node, f"unknown type name {text_of(part(node, 'type'))!r}")
        return self.converted(part(node, "value"), kind)

    def is_type(self, node: Node) -> bool:
        """Tell whether a name stands for a type."""
        if node.type in ("primitive_type", "sized_type_specifier"):
            return True
        found = self.resolution.symbol(node, self.scope)
        return isinstance(found, (Alias, Struct, Type)) or (
            found is None and self.resolution.find_type(node, self.scope) is not None
        )


def part(node: Node, name: str) -> Node:
    """Return a part of a node that its kind always has."""
    found = node.child_by_field_name(name)
    assert found is not None, (node.type, name)
    return found
