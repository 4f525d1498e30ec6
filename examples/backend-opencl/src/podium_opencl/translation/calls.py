"""Calls: of the user's functions, of what is built in, and what looks like a call and makes a value of a type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from podium_opencl.translation.builtins import call_builtin
from podium_opencl.translation.context import Instance, Parameter
from podium_opencl.translation.overloads import Candidate, Given, Overloads
from podium_opencl.translation.refused_names import refusal_of
from podium_opencl.translation.resolution import Templated
from podium_opencl.translation.symbols import Function, Local, Scope, text_of
from podium_opencl.translation.types import UINT, VOID, Type, constant, pointer, promoted, spelled
from podium_opencl.translation.uniformity import is_uniform
from podium_opencl.translation.values import Value, convert, identity, loaded, named

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Calls"]

_CASTS = ("static_cast", "reinterpret_cast", "const_cast")


class Calls(Overloads):
    """The translation of calls."""

    def _call_expression(self, node: Node) -> Value:
        called = node.child_by_field_name("function")
        arguments = node.child_by_field_name("arguments")
        if called is None or arguments is None:
            raise self.refused(node, "podium-opencl cannot read this call")
        if any(each.type == "kernel_call_syntax" for each in node.children):
            raise self.refused(node, "podium-opencl has no dynamic parallelism: launch the second kernel from Python")
        nodes = [each for each in arguments.named_children if each.type != "comment"]
        if called.type == "template_function" and text_of(called.child_by_field_name("name")) in _CASTS:
            described = called.child_by_field_name("arguments")
            assert described is not None
            return self.cast(nodes[0], self.resolution.described(described.named_children[0], self.scope))
        if called.type == "parenthesized_expression" and called.named_children[0].type.endswith("identifier"):
            called = called.named_children[0]
        if called.type == "field_expression":
            return self._method(node, called, nodes)
        if called.type not in _NAMES:
            value = loaded(self.value(called))
            return self._invoked(node, self._given(nodes), value)
        return self._by_name(node, called, nodes)

    def made_dim3(self, node: Node, nodes: Sequence[Node]) -> Value:
        """Make a dim3, whose members are 1 unless they are given."""
        values = [convert(self.rvalue(each), UINT).text for each in nodes if each.type != "comment"]
        if len(values) > 3:
            raise self.refused(node, f"a dim3 takes up to 3 values, not {len(values)}")
        kind = self.resolution.vector("dim3")
        return Value(f"(({kind.name}){{{', '.join([*values, '1', '1', '1'][:3])}}})", kind)

    def _by_name(self, node: Node, called: Node, nodes: list[Node]) -> Value:
        if text_of(called) == "dim3" and self.scope.find("dim3") is None:
            return self.made_dim3(node, nodes)
        if called.type in ("primitive_type", "sized_type_specifier"):
            if node.parent is not None and node.parent.type == "subscript_expression":
                raise self.refused(
                    node,
                    f"podium-opencl cannot read {text_of(node.parent)!r}: name the type, typedef int Row[4], Row *q",
                )
            return self._made(node, self.resolution.type_of(called, self.scope), nodes)
        found = self.resolution.symbol(called, self.scope)
        if isinstance(found, Local):
            return self._invoked(node, self._given(nodes), self.value(called))
        if isinstance(found, list) and found[0].name == found[0].scope.name and found[0].scope.owner is not None:
            return self._made(node, found[0].scope.owner, nodes)  # a constructor, called within its struct
        if isinstance(found, (list, Templated)):
            functions = found if isinstance(found, list) else list(found.functions)
            explicit = found if isinstance(found, Templated) else None
            given = self._given(nodes)
            own = self._own_object(functions)
            chosen = self.choose(functions, explicit, given, own)
            if chosen is None:
                name = text_of(called).removeprefix("std::").removeprefix("::")
                built_in = None if explicit else call_builtin(self, node, name, given)
                if built_in is not None:
                    return built_in
                raise self.refused(node, self.no_match(functions, given, own))
            if chosen.function.scope.kind == "struct" and not chosen.function.is_static and own is None:
                raise self.refused(node, f"{chosen.function.name} needs an object")
            return self._called(node, chosen, given, None if chosen.function.is_static else own)
        if found is not None and self.is_type(called):
            return self._made(node, self.resolution.type_of(called, self.scope), nodes)
        kind = self.resolution.find_type(called, self.scope) if called.type != "template_function" else None
        if kind is not None:
            return self._made(node, kind, nodes)
        name = text_of(called).removeprefix("std::").removeprefix("::")
        built_in = call_builtin(self, node, name, self._given(nodes) if name != "printf" else list(nodes))
        if built_in is None:
            raise self.refused(node, _unknown_function(text_of(called)))
        return built_in

    def _own_object(self, functions: Sequence[Function]) -> Value | None:
        """Return the object of member functions that another one calls without naming the object."""
        if self.this is None or functions[0].scope.kind != "struct":
            return None
        return Value("(*podium_this)", self.this.type.target, None, True, self.this.type.space or "?")

    def _given(self, nodes: Sequence[Node]) -> list[Given]:
        return [each if each.type == "initializer_list" else self.value(each) for each in nodes]

    def _made(self, node: Node, kind: Type, nodes: list[Node]) -> Value:
        """Translate ``T(...)``."""
        if kind.kind != "struct":
            if not nodes:
                return convert(Value("0", promoted(Type("integer", "int", 4, True)), 0), kind)
            if len(nodes) > 1:
                raise self.refused(node, f"a {named(kind)} takes one value")
            return self.cast(nodes[0], kind)
        given = self._given(nodes)
        if len(given) == 1 and isinstance(given[0], Value) and identity(given[0].type) == identity(kind):
            return loaded(given[0])
        made = self.constructed(node, kind, given)
        if made is not None:
            return made
        if given:
            raise self.refused(node, f"{named(kind)} has no constructor: write {named(kind)}{{...}}")
        return Value(f"(({kind.name}){{0}})", kind)

    def constructed(self, node: Node, kind: Type, given: Sequence[Given]) -> Value | None:
        """Call a constructor of a struct; None if it has none."""
        scope = kind.origin
        if not isinstance(scope, Scope):
            return None
        found = scope.names.get(scope.name)
        if not isinstance(found, list):
            return None
        chosen = self.choose(found, None, given)
        if chosen is None:
            raise self.refused(node, self.no_match(found, given))
        return self._called(node, chosen, given, None)

    def _method(self, node: Node, called: Node, nodes: list[Node]) -> Value:
        base_node, field = called.child_by_field_name("argument"), called.child_by_field_name("field")
        assert base_node is not None and field is not None
        base = self.value(base_node)
        if text_of(called.child_by_field_name("operator")) == "->":
            base = loaded(base)
            if base.type.kind != "pointer":
                raise self.refused(node, f"-> of a {named(base.type)}")
            base = Value(f"(*{base.text})", base.type.target, None, True, base.type.space or "?")
        scope = base.type.origin
        word = field.child_by_field_name("name") if field.type == "template_method" else field
        found = scope.own(text_of(word)) if isinstance(scope, Scope) else None
        if not isinstance(found, list):
            raise self.refused(node, f"{named(base.type)} has no member function {text_of(word)!r}")
        explicit = None
        if field.type == "template_method":
            arguments = field.child_by_field_name("arguments")
            assert arguments is not None
            explicit = Templated(tuple(found), arguments, self.scope)
        return self._of_object(node, found, explicit, base, self._given(nodes))

    def _invoked(self, node: Node, given: Sequence[Given], value: Value) -> Value:
        scope = value.type.origin
        found = scope.own("operator()") if isinstance(scope, Scope) else None
        if not isinstance(found, list):
            raise self.refused(node, f"a {named(value.type)} cannot be called")
        return self._of_object(node, found, None, value, given)

    def _of_object(
        self, node: Node, found: list[Function], explicit: Templated | None, base: Value, given: Sequence[Given]
    ) -> Value:
        chosen = self.choose(found, explicit, given, base)
        if chosen is None:
            raise self.refused(node, self.no_match(found, given, base))
        return self._called(node, chosen, given, None if chosen.function.is_static else base)

    def overloaded(self, node: Node, name: str, values: list[Value]) -> Value:
        """Call an operator that the user has defined, as a member or not."""
        scope = values[0].type.origin
        found = scope.own(name) if isinstance(scope, Scope) else None
        if isinstance(found, list):
            chosen = self.choose(found, None, values[1:], values[0])
            if chosen is not None:
                return self._called(node, chosen, values[1:], values[0])
        functions: list[Function] = []
        outer: Scope | None = self.scope
        while outer is not None:
            more = outer.own(name)
            functions += more if isinstance(more, list) and outer.kind != "struct" else []
            outer = outer.parent
        chosen = self.choose(functions, None, values)
        if chosen is None:
            kinds = " and ".join(named(each.type) for each in values)
            raise self.refused(node, f"no {name} for {kinds}")
        return self._called(node, chosen, values, None)

    def _computed(self, chosen: Candidate, given: Sequence[Given]) -> Value | None:
        """Compute a constexpr function that is one expression, of constants; None if that is for the compiler to do."""
        node = chosen.function.node
        code = node.child_by_field_name("body")
        inside = [each for each in code.named_children if each.type != "comment"] if code is not None else []
        if len(inside) != 1 or inside[0].type != "return_statement" or len(given) != len(chosen.parameters):
            return None
        if not any(text_of(each) == "constexpr" for each in node.children) or not inside[0].named_child_count:
            return None
        scope = Scope(chosen.bound.scope, kind="function")
        for (name, kind), each in zip(chosen.parameters, given):
            if not isinstance(each, Value) or each.constant is None or not kind.is_number:
                return None
            value = convert(loaded(each), kind)
            scope.names[name] = Local(value.text, value.type, constant=value.constant)
        value = self.whole.evaluate(inside[0].named_children[0], scope)
        if value.constant is None or value.type.kind != "integer":
            return None
        specifier = node.child_by_field_name("type")
        if specifier is None or specifier.type == "placeholder_type_specifier":
            return value
        return convert(value, self.resolution.specified(node, chosen.bound.scope))

    def _called(self, node: Node, chosen: Candidate, given: Sequence[Given], base: Value | None) -> Value:
        if base is None:
            computed = self._computed(chosen, given)
            if computed is not None:
                return computed
        arguments = list(given)
        texts: list[Value] = []
        parameters: list[Parameter] = []
        for index, (name, kind) in enumerate(chosen.parameters):
            if index < len(arguments):
                value = self._passed(node, arguments[index], kind)
                uniform = not self.is_masked and self._is_uniform(node, index)
            else:
                default = chosen.defaults[index]
                assert default is not None
                value = convert(loaded(self.whole.evaluate(default, chosen.bound.scope)), kind)
                uniform = True
            texts.append(value)
            parameters.append(Parameter(name, value.type, uniform))
        this = None
        if base is not None:
            # A value that lies nowhere is handed over itself, and has its address in the function.
            kind = constant(base.type, chosen.function.is_const)
            this_type = pointer(kind, base.space) if base.is_lvalue else kind
            texts.insert(0, Value(f"(&{base.text})" if base.is_lvalue else base.text, this_type))
            this = Parameter("podium_this", this_type)
        collective = chosen.function.name in self.whole.collective
        masked = collective and self.is_masked
        instance = self.whole.instance(chosen.function, chosen.bound, parameters, this, masked)
        return self._written(node, instance, texts, collective)

    def _written(self, node: Node, instance: Instance, values: list[Value], collective: bool) -> Value:
        for name, declaration in instance.implicit.items():
            self.need(name, declaration)
        if collective:
            if not self.may_hoist:
                raise self.refused(
                    node,
                    f"{text_of(node.child_by_field_name('function'))} has a barrier or a warp function in it: "
                    "podium-opencl can call it only in a statement of its own, not behind &&, || or ?:, nor in the "
                    "head of a for loop",
                )
            texts = [self.temporary(each, "argument") for each in values]
            if instance.masked:
                texts.append(f"(uchar)({self.condition()})")
        else:
            texts = [each.text for each in values]
        call = f"{instance.name}({', '.join([*texts, *instance.implicit])})"
        if collective and instance.result == VOID:
            self.hoisted.append(f"{call};")
            return Value("", VOID)
        if collective:
            name = self.fresh("result")
            self.hoisted.append(f"{spelled(instance.result, name)} = {call};")
            call = name
        if instance.result.kind == "reference":
            return Value(f"(*{call})", instance.result.target, None, True, instance.result.space or "?")
        return Value(call, instance.result)

    def _passed(self, node: Node, given: Given, kind: Type) -> Value:
        """Convert an argument to its parameter's type; a reference is passed as an address."""
        if kind.kind == "reference":
            if isinstance(given, Value) and given.is_lvalue and identity(given.type) == identity(kind.target):
                if given.type.kind == "pointer":
                    raise self.refused(node, "podium-opencl has no references to pointers")
                target = constant(given.type, kind.target.const)
                return Value(f"(&{given.text})", Type("reference", to=target, space=given.space, size=8))
            kind = kind.target
        if isinstance(given, Value):
            value = convert(loaded(given), kind)
            if value.type.kind == "pointer" and value.type.space in (None, "?"):
                value = replace(value, type=replace(value.type, space="global"))
            return value
        return self.converted(given, kind)

    def _is_uniform(self, node: Node, index: int) -> bool:
        listed = node.child_by_field_name("arguments")
        nodes = [each for each in listed.named_children if each.type != "comment"] if listed is not None else []
        return index < len(nodes) and is_uniform(nodes[index], self.varying, self.scope)


_NAMES = (
    "identifier",
    "qualified_identifier",
    "template_function",
    "primitive_type",
    "sized_type_specifier",
    "type_identifier",
)


def _unknown_function(name: str) -> str:
    return refusal_of(name) or f"use of undeclared identifier {name!r}"
