"""Declarations of variables inside of functions, and initial values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from podium_opencl.translation.calls import Calls
from podium_opencl.translation.parser import parse_arguments
from podium_opencl.translation.symbols import (
    Local,
    Scope,
    enter,
    function_declarator_below,
    name_node,
    text_of,
    variable_declarators,
)
from podium_opencl.translation.types import Type, constant, spelled
from podium_opencl.translation.values import Value, convert, identity, loaded, named

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Declarations"]


class Declarations(Calls):
    """The translation of declarations."""

    def declaration(self, node: Node) -> list[str]:
        """Translate a declaration, into one for each variable."""
        inner = node.child_by_field_name("type")
        if inner is not None and inner.child_by_field_name("body") is not None:
            enter(inner, self.scope, None)
        words = {text_of(each) for each in node.children} | {text_of(each) for each in node.named_children}
        if "__shared__" in words:
            self._shared(node)
            return []
        if "static" in words and "constexpr" not in words and "const" not in words:
            raise self.refused(node, "podium-opencl has no static variables in functions: declare it outside")
        if "extern" in words:
            raise self.refused(node, "podium-opencl has no extern variables but __shared__ ones")
        if "register" in words or "thread_local" in words:
            raise self.refused(node, "podium-opencl has no register or thread_local variables")
        texts = []
        for declarator in variable_declarators(node):
            initial = declarator.child_by_field_name("value")
            if function_declarator_below(declarator):
                initial = self._values_in(declarator)
                if initial is None:
                    raise self.refused(node, "podium-opencl has no declarations of functions inside of functions")
            with self.at(declarator):
                text = self._variable_declared(node, declarator, initial, bool(words & {"const", "constexpr"}))
                texts.append(self.taken() + text)
        return texts

    def _shared(self, node: Node) -> None:
        for declarator in variable_declarators(node):
            with self.at(declarator):
                name = text_of(name_node(declarator))
                self.scope.names[name] = self.shared(node, declarator, self.scope, self.home)

    def _values_in(self, declarator: Node) -> Node | None:
        """Read what looks like the parameters of a function as the values of a variable; None if they are none."""
        listed = declarator.child_by_field_name("parameters")
        if declarator.type != "function_declarator" or listed is None or not listed.named_child_count:
            return None
        for each in listed.named_children:
            specifier = each.child_by_field_name("type")
            if specifier is None or self.resolution.find_type(specifier, self.scope) is not None:
                return None
        return parse_arguments(listed)

    def _variable_declared(self, node: Node, declarator: Node, initial: Node | None, is_const: bool) -> str:
        has_value = declarator.type in ("init_declarator", "function_declarator")
        inner = declarator.child_by_field_name("declarator") if has_value else declarator
        name = text_of(name_node(inner))
        specifier = node.child_by_field_name("type")
        assert specifier is not None
        if specifier.type == "placeholder_type_specifier":
            base = constant(self._told(node, inner, initial), is_const)
        else:
            base = self.resolution.specified(node, self.scope)
        kind = self.resolution.declared(base, inner, self.scope)
        if kind.kind == "array" and kind.count is None and initial is not None:
            kind = replace(kind, count=initial.named_child_count)
        key = declarator.start_byte
        text = name + "_"
        if kind.kind == "reference":
            return self._reference(declarator, name, kind, initial)
        if kind.kind == "pointer":
            return self._pointer(declarator, name, kind, initial)
        if text_of(specifier) == "dim3" and (initial is None or initial.type in ("argument_list", "initializer_list")):
            value: Value | None = self.made_dim3(node, initial.named_children if initial is not None else [])
        else:
            value = self._initial(declarator, kind, initial)
        known = value.constant if value is not None and is_const and kind.kind != "array" else None
        self.scope.names[name] = Local(text, kind, constant=known, key=key)
        aligned = self._alignment(node)
        if value is None:
            return f"{spelled(kind, text)}{aligned};"
        if aligned:
            raise self.refused(node, "podium-opencl has no initial values of variables with an alignment")
        return self.set_variable(kind, text, value.text, initial)

    def _told(self, node: Node, declarator: Node | None, initial: Node | None) -> Type:
        """Return what auto stands for, which the initial value tells."""
        if initial is None:
            raise self.refused(node, "auto needs an initial value")
        before = list(self.hoisted)
        value = self.value(initial)
        self.hoisted = before  # it is translated once more, to be kept
        if declarator is not None and declarator.type == "reference_declarator":
            return value.type
        kind = loaded(value).type.plain()
        is_pointer = kind.kind == "pointer" and declarator is not None and "pointer" in declarator.type
        return kind.target if is_pointer else kind

    def _alignment(self, node: Node) -> str:
        """Return the attribute of variables that are declared with an alignment."""
        for each in node.named_children:
            inner = each.named_children[0] if each.named_child_count else None
            if inner is not None and inner.type == "alignas_qualifier":
                return f" __attribute__((aligned({self.resolution.count(inner.named_children[0], self.scope)})))"
        return ""

    def set_variable(self, kind: Type, name: str, value: str, initial: Node | None) -> str:
        """Declare a variable with its initial value."""
        if not self.is_masked:
            return f"{spelled(kind, name)} = {value};"
        if kind.kind != "array":
            return f"{spelled(kind, name)}; if ({self.condition()}) {name} = {value};"
        # Arrays cannot be assigned to: copy.
        copy = self.fresh("copy")
        return (
            f"{spelled(kind, name)}; if ({self.condition()}) {{ {spelled(kind, copy)} = {value}; "
            f"for (int podium_i = 0; podium_i < {kind.count}; podium_i++) "
            + _copied(kind.target, f"{name}[podium_i]", f"{copy}[podium_i]")
            + " }"
        )

    def _initial(self, node: Node, kind: Type, initial: Node | None) -> Value | None:
        if initial is None:
            return self.constructed(node, kind, []) if kind.kind == "struct" else None
        if initial.type == "argument_list":
            nodes = [each for each in initial.named_children if each.type != "comment"]
            if kind.kind != "struct":
                if len(nodes) != 1:
                    raise self.refused(initial, f"a {named(kind)} takes one value")
                return convert(self.rvalue(nodes[0]), kind)
            return self._made(node, kind, nodes)
        if kind.kind == "array":
            return Value(self.initialised(initial, kind), kind)
        is_listed = initial.type == "initializer_list" and kind.kind == "struct"
        if is_listed and not self.is_masked and self.constructed_name(kind) is None:
            return Value(self.initialised(initial, kind), kind)
        return self.converted(initial, kind)

    def constructed_name(self, kind: Type) -> str | None:
        """Return the name of a struct's constructors, None if it has none."""
        scope = kind.origin
        has = isinstance(scope, Scope) and isinstance(scope.names.get(scope.name), list)
        return scope.name if has else None

    def converted(self, node: Node, kind: Type) -> Value:
        """Translate an expression, which may be in braces, and convert it to a type."""
        if node.type == "initializer_list" and kind.kind == "struct" and self.constructed_name(kind) is not None:
            made = self.constructed(node, kind, self._given(list(node.named_children)))
            if made is not None:
                return made
        return super().converted(node, kind)

    def _reference(self, node: Node, name: str, kind: Type, initial: Node | None) -> str:
        if initial is None:
            raise self.refused(node, f"the reference {name} refers to nothing")
        value = self.value(initial)
        if not value.is_lvalue or identity(value.type) != identity(kind.target):
            value = convert(loaded(value), kind.target)
            self.scope.names[name] = Local(name + "_", kind.target, key=node.start_byte)
            return self.set_variable(kind.target, name + "_", value.text, initial)
        if value.type.kind == "pointer":
            raise self.refused(node, "podium-opencl has no references to pointers")
        if value.type.const and not kind.target.const:
            raise self.refused(node, f"{name} refers to {text_of(initial)}, which is const: make it a const reference")
        target = constant(value.type, kind.target.const)
        pointer_type = Type("pointer", to=target, space=value.space, size=8)
        self.scope.names[name] = Local(f"{name}_", Type("reference", to=target, space=value.space, size=8))
        return self.set_variable(pointer_type, f"{name}_", f"&{value.text}", initial)

    def _pointer(self, node: Node, name: str, kind: Type, initial: Node | None) -> str:
        key = node.start_byte
        text = name + "_"
        value = None
        if initial is not None:
            if initial.type == "argument_list":
                initial = initial.named_children[0]
            value = self.converted(initial, replace(kind, space=None))
            if not (value.constant == 0 or text_of(initial) in ("nullptr", "NULL", "0")):
                self.learn(key, value.type.space)
        self.scope.names[name] = Local(text, kind, key=key)
        space = self.learned.get(key)
        if space is None:
            self.unknown_spaces[key] = name
            space = "global"
        kind = replace(kind, space=space)
        if value is None:
            return f"{spelled(kind, text)};"
        if value.type.space != space:
            value = Value(f"(({spelled(kind)})0)", kind)
        return self.set_variable(kind, text, value.text, initial)

    def initialised(self, node: Node, kind: Type) -> str:
        """Translate values in braces for an array or a struct."""
        items = [each for each in node.named_children if each.type != "comment"]
        if node.type != "initializer_list":
            raise self.refused(node, f"a {named(kind)} takes its values in braces")
        if not items:
            return "{0}"
        kinds = [kind.target] * len(items) if kind.kind == "array" else [member for _, member in kind.members]
        if len(items) > (kind.count or 0 if kind.kind == "array" else len(kinds)):
            raise self.refused(node, f"too many values for {named(kind)}")
        parts = []
        for item, each in zip(items, kinds):
            if item.type == "initializer_pair":
                raise self.refused(item, "podium-opencl has no designated initializers: give all values in order")
            if each.kind == "array":
                parts.append(self.initialised(item, each))
            elif each.kind == "pointer":
                value = self.converted(item, replace(each, space="global"))
                parts.append(f"(ulong)({value.text})")
            else:
                parts.append(self.converted(item, each).text)
        return f"{{{', '.join(parts)}}}"


def _copied(kind: Type, to: str, source: str) -> str:
    if kind.kind != "array":
        return f"{to} = {source};"
    index = "podium_" + "i" * (to.count("[") + 1)
    inner = _copied(kind.target, f"{to}[{index}]", f"{source}[{index}]")
    return f"for (int {index} = 0; {index} < {kind.count}; {index}++) {inner}"
