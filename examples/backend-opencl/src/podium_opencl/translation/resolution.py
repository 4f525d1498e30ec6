"""Names and types of the source: what they stand for, with template arguments put in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, Union

from podium_opencl.translation.refusal import Refusal
from podium_opencl.translation.symbols import (
    Alias,
    Function,
    Local,
    Scope,
    Struct,
    Symbol,
    collect,
    function_declarator_below,
    name_node,
    text_of,
    variable_declarators,
)
from podium_opencl.translation.types import SCALARS, Type, pointer, spelled, stored
from podium_opencl.translation.values import Value, convert, identity, literal

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Argument", "Arguments", "Resolution", "Templated"]

_ALIASES = {
    f"{sign}int{bits}_t": f"{word}{name}"
    for bits, name in ((8, "char"), (16, "short"), (32, "int"), (64, "long"))
    for sign, word in (("", ""), ("u", "unsigned "))
}
_ALIASES |= {"size_t": "unsigned long", "uintptr_t": "unsigned long", "ptrdiff_t": "long", "intptr_t": "long"}
_ALIASES |= {"ssize_t": "long", "uint": "unsigned int", "ushort": "unsigned short", "ulong": "unsigned long"}
_ALIASES |= {"half": "__half", "nv_bfloat16": "__nv_bfloat16", "__half_raw": "__half", "nullptr_t": "unsigned long"}
_VECTOR = re.compile(r"(char|uchar|short|ushort|int|uint|long|ulong|longlong|ulonglong|float|double)([1-4])")
_PARTS = {"uchar": "unsigned char", "ushort": "unsigned short", "uint": "unsigned int", "ulong": "unsigned long"}
_PARTS |= {"longlong": "long", "ulonglong": "unsigned long"}

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
        return identity(argument)
    return f"{argument.name}@{id(argument)}" if isinstance(argument, Struct) else str(argument.constant)


class Evaluator(Protocol):
    """Computes constant expressions."""

    def __call__(self, node: Node, scope: Scope) -> Value: ...


class Resolution:
    """Types of one source. `definitions` has the text of the structs that were needed, in an order that compiles."""

    def __init__(self, evaluate: Evaluator, has_double: bool) -> None:
        self.evaluate, self.has_double = evaluate, has_double
        self.definitions: list[str] = []
        self.structs: dict[str, Type] = {}

    # ---- names ----

    def symbol(self, node: Node, scope: Scope) -> Symbol | Templated | None:
        """Say what a name stands for, qualified or with template arguments; None for one that is not the user's."""
        if node.type in ("qualified_identifier", "nested_namespace_specifier"):
            outer = node.child_by_field_name("scope")
            inner = node.child_by_field_name("name")
            if inner is None:
                return None
            if outer is None:
                top = scope
                while top.parent is not None:
                    top = top.parent
                return self._within(inner, top, scope)
            found = self.symbol(outer, scope)
            if isinstance(found, (Alias, Struct)):
                found = self.type_of(outer, scope)
            if isinstance(found, Type) and isinstance(found.origin, Scope):
                found = found.origin
            if isinstance(found, Scope):
                return self._within(inner, found, scope)
            return None
        if node.type in ("template_type", "template_function", "template_method"):
            name, arguments = node.child_by_field_name("name"), node.child_by_field_name("arguments")
            if name is None or arguments is None:
                return None
            return self._with_arguments(scope.find(text_of(name)), arguments, scope)
        return scope.find(text_of(node))

    def _within(self, node: Node, inside: Scope, scope: Scope) -> Symbol | Templated | None:
        if node.type in ("template_type", "template_function"):
            name, arguments = node.child_by_field_name("name"), node.child_by_field_name("arguments")
            if name is None or arguments is None:
                return None
            return self._with_arguments(inside.own(text_of(name)), arguments, scope)
        if node.type == "qualified_identifier":
            outer, inner = node.child_by_field_name("scope"), node.child_by_field_name("name")
            found = self._within(outer, inside, scope) if outer is not None else None
            if isinstance(found, Type) and isinstance(found.origin, Scope):
                found = found.origin
            elif isinstance(found, Struct):
                found = self.instantiate(found, None, scope).origin
            return self._within(inner, found, scope) if isinstance(found, Scope) and inner is not None else None
        return inside.own(text_of(node))

    def _with_arguments(self, found: Symbol | None, arguments: Node, scope: Scope) -> Symbol | Templated | None:
        if isinstance(found, list):
            return Templated(tuple(found), arguments, scope)
        if isinstance(found, Struct):
            return self.instantiate(found, arguments, scope)
        if isinstance(found, Alias):
            bound = self.bind(found.template, _items(arguments), scope, found.scope)
            return self._aliased(found, bound.scope)
        return None

    # ---- types ----

    def type_of(self, node: Node, scope: Scope) -> Type:
        """Read a type specifier. Raises `Refusal`."""
        found = self.find_type(node, scope)
        if found is None:
            raise Refusal(_no_type(text_of(node)))
        if found.name == "double" and not self.has_double:
            raise Refusal("this OpenCL device has no double (cl_khr_fp64): use float")
        return found

    def find_type(self, node: Node, scope: Scope) -> Type | None:
        """Read a type specifier; None if it names no type."""
        if node.type in ("primitive_type", "sized_type_specifier"):
            return _scalar(text_of(node))
        if node.type in ("struct_specifier", "class_specifier", "union_specifier", "enum_specifier"):
            name = node.child_by_field_name("name")
            if name is None:
                if node.type == "enum_specifier":
                    return SCALARS["int"]
                return self.instantiate(Struct(f"unnamed{node.start_byte}", scope, None, node), None, scope)
            return self.find_type(name, scope)
        if node.type in ("dependent_type", "type_descriptor"):
            if node.type == "type_descriptor":
                return self.described(node, scope)
            return self.find_type(node.named_children[0], scope)
        if node.type in ("placeholder_type_specifier", "decltype", "auto"):
            raise Refusal(f"podium-opencl cannot tell what {text_of(node)} is here: write the type")
        found = self.symbol(node, scope)
        if found is None:
            return self._builtin(text_of(node).removeprefix("std::").removeprefix("::"))
        if isinstance(found, Struct):
            return self.instantiate(found, None, scope)
        if isinstance(found, Alias):
            if found.template is not None:
                raise Refusal(f"{text_of(node)} has no template arguments")
            return self._aliased(found, found.scope)
        if isinstance(found, list) and found[0].name == found[0].scope.name:
            return found[0].scope.owner  # constructors have the name of their struct
        return found if isinstance(found, Type) else None

    def _aliased(self, alias: Alias, scope: Scope) -> Type:
        specifier = alias.node.child_by_field_name("type") or alias.node
        return self.declared(self.type_of(specifier, scope), alias.declarator, scope)

    def _builtin(self, name: str) -> Type | None:
        name = _ALIASES.get(name, name)
        if name in SCALARS:
            return SCALARS[name]
        match = _VECTOR.fullmatch(name)
        if not match and name != "dim3":
            return None
        if name not in self.structs:
            part = SCALARS[_PARTS.get(match[1], match[1])] if match else SCALARS["unsigned int"]
            count = int(match[2]) if match else 3
            members = tuple((each, part) for each in "xyzw"[:count])
            alignment = min(16, part.size * count) if count in (2, 4) else part.size
            kind = Type("struct", f"podium_{name}", members=members, alignment=alignment)
            self._define(kind)
            self.structs[name] = kind
        return self.structs[name]

    def vector(self, name: str) -> Type:
        """Return a vector type such as float4."""
        found = self._builtin(name)
        assert found is not None
        return found

    def described(self, node: Node, scope: Scope) -> Type:
        """Read a type as it stands in a cast or as a template argument."""
        specifier = node.child_by_field_name("type")
        if specifier is None:
            raise Refusal(f"the type {text_of(node)} cannot be read")
        base = self._qualified(node, self.type_of(specifier, scope))
        return self.declared(base, node.child_by_field_name("declarator"), scope)

    def specified(self, node: Node, scope: Scope) -> Type:
        """Read the type that a declaration begins with, before its declarators."""
        specifier = node.child_by_field_name("type")
        if specifier is None:
            raise Refusal("a declaration without a type")
        return self._qualified(node, self.type_of(specifier, scope))

    def _qualified(self, node: Node, kind: Type) -> Type:
        if any(text_of(each) == "volatile" for each in node.children):
            kind = replace(kind, volatile=True)
        return kind

    def declared(self, kind: Type, declarator: Node | None, scope: Scope) -> Type:
        """Apply pointers, arrays and references of a declarator to a type."""
        while declarator is not None and declarator.type.endswith("declarator"):
            inner = declarator.child_by_field_name("declarator")
            word = declarator.type.removeprefix("abstract_")
            if word == "pointer_declarator":
                kind = pointer(kind, None)
            elif word == "reference_declarator":
                inner = inner or next((each for each in declarator.named_children), None)
                kind = Type("reference", to=kind, space=None)
            elif word == "array_declarator":
                size = declarator.child_by_field_name("size")
                count = None if size is None else self.count(size, scope)
                kind = Type("array", to=kind, count=count)
            elif word == "parenthesized_declarator":
                inner = inner or next((each for each in declarator.named_children), None)
            elif word == "init_declarator":
                pass
            elif word == "function_declarator":
                raise Refusal("podium-opencl has no pointers to functions")
            else:
                raise Refusal(f"podium-opencl cannot read the declarator {text_of(declarator)}")
            declarator = inner
        return kind

    def count(self, node: Node, scope: Scope) -> int:
        """Compute a size. Raises `Refusal` if it is no constant."""
        found = self.evaluate(node, scope).constant
        if not isinstance(found, int):
            raise Refusal(f"{text_of(node)} is no constant that podium-opencl can compute")
        if not 0 < found < 1 << 32:
            raise Refusal(f"{text_of(node)} is {found}, which cannot be a size")
        return found

    # ---- structs ----

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
            bound = self.bind(struct.template, _items(arguments), scope, struct.scope)
        key = f"{struct.name}@{id(struct.node) if struct.template is None else id(struct)}<{bound.key}>"
        if key in self.structs:
            return self.structs[key]
        node = self._specialised(struct, bound) if struct.specialised else struct.node
        if node is None:
            raise Refusal(f"{struct.name} is declared, but not defined")
        if any(each.type == "base_class_clause" for each in node.children):
            raise Refusal(f"podium-opencl has no inheritance, which {struct.name} uses: make the base a member")
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
        self._define(kind)
        return kind

    def _alignment(self, node: Node, scope: Scope) -> int:
        if node.type != "alignas_qualifier":
            return 0
        return self.count(node.named_children[0], scope)

    def _specialised(self, struct: Struct, bound: Arguments) -> Node | None:
        for arguments, template, node in struct.specialised:
            if template.named_child_count:
                raise Refusal(f"podium-opencl has no partial specialisations, which {struct.name} has")
            if self.bind(struct.template, _items(arguments), struct.scope, struct.scope).key == bound.key:
                bound.scope = Scope(struct.scope)
                return node
        return struct.node

    def _members(self, body: Node, scope: Scope) -> list[tuple[str, Type]]:
        found: list[tuple[str, Type]] = []
        for node in body.named_children:
            words = {text_of(each) for each in node.children}
            if "virtual" in words:
                raise Refusal("podium-opencl has no virtual functions")
            if node.type != "field_declaration" or "static" in words:
                continue
            if any(each.type == "bitfield_clause" for each in node.children):
                raise Refusal("OpenCL C has no bit-fields: shift and mask")
            if node.child_by_field_name("default_value") is not None:
                raise Refusal("podium-opencl has no initial values of members: give them where the struct is made")
            declarators = [each for each in variable_declarators(node) if not function_declarator_below(each)]
            if not declarators and not list(variable_declarators(node)):
                raise Refusal("podium-opencl has no members without a name")
            for declarator in declarators:
                kind = self.declared(self.specified(node, scope), declarator, scope)
                if kind.kind == "reference":
                    raise Refusal("podium-opencl has no members that are references")
                found.append((text_of(name_node(declarator)), kind))
        return found

    def _define(self, kind: Type) -> None:
        members = "".join(f" {spelled(stored(member), name + '_')};" for name, member in kind.members)
        word = "union" if kind.is_union else "struct"
        aligned = f"__attribute__((aligned({kind.alignment}))) " if kind.alignment else ""
        self.definitions.append(f"typedef {word} {aligned}{{{members or ' uchar podium_empty;'} }} {kind.name};")

    # ---- templates ----

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


def _items(arguments: Node) -> list[Node | Argument]:
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


def _scalar(text: str) -> Type | None:
    words = text.replace("signed char", "char").split() if text.startswith("signed") else text.split()
    text = _ALIASES.get(" ".join(words), " ".join(words))
    if text in SCALARS:
        return SCALARS[text]
    sign = "unsigned " if "unsigned" in words else ""
    rest = [each for each in words if each not in ("unsigned", "signed", "int")]
    if rest == ["long", "double"]:
        raise Refusal("a GPU has no long double: use double")
    name = "long" if "long" in rest else rest[0] if rest else "int"
    return SCALARS.get(sign + name)


def _no_type(text: str) -> str:
    if re.match(r"(cudaTextureObject_t|cudaSurfaceObject_t|texture|surface)\b", text):
        return f"podium-opencl has no textures and surfaces ({text}): pass a pointer and compute the index"
    if re.match(r"(half2|__half2|__nv_bfloat162|nv_bfloat162)\b", text):
        return f"podium-opencl has no {text}: use two values of 16 bits"
    if text.startswith(("cooperative_groups", "cg::")):
        return f"podium-opencl has no cooperative groups ({text}): use __syncthreads and the warp functions"
    return f"unknown type name {text!r}"
