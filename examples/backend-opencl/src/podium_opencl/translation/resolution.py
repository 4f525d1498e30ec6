"""Names and types of the source: what they stand for, with template arguments put in."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from podium_opencl.translation.refusal import Place, Refusal
from podium_opencl.translation.structs import Structs
from podium_opencl.translation.symbols import Alias, Scope, Struct, Symbol, text_of
from podium_opencl.translation.templates import Argument, Arguments, Evaluator, Templated, items_of
from podium_opencl.translation.types import SCALARS, Type, constant, pointer

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


class Resolution(Structs):
    """Types of one source. `definitions` has the text of the structs that were needed, in an order that compiles."""

    def __init__(self, evaluate: Evaluator, place: Callable[[Node], Place], has_double: bool) -> None:
        super().__init__(place)
        self.evaluate, self.has_double = evaluate, has_double

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
            bound = self.bind(found.template, items_of(arguments), scope, found.scope)
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
        if isinstance(found, Scope) and found.kind == "enum":
            return SCALARS["int"] if found.base is None else self.type_of(found.base, scope)
        return found if isinstance(found, Type) else None

    def _aliased(self, alias: Alias, scope: Scope) -> Type:
        specifier = alias.node.child_by_field_name("type") or alias.node
        return self.declared(self._qualified(alias.node, self.type_of(specifier, scope)), alias.declarator, scope)

    def _builtin(self, name: str) -> Type | None:
        name = _ALIASES.get(name, name)
        if name in SCALARS:
            return SCALARS[name]
        match = _VECTOR.fullmatch("uint3" if name == "dim3" else name)
        if not match:
            return None
        name = match[0]
        if name not in self.structs:
            part, count = SCALARS[_PARTS.get(match[1], match[1])], int(match[2])
            members = tuple((each, part) for each in "xyzw"[:count])
            alignment = min(16, part.size * count) if count in (2, 4) else part.size
            kind = Type("struct", f"podium_{name}", members=members, alignment=alignment)
            self.define(kind)
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
        words = [text_of(each) for each in node.children]
        if "volatile" in words:
            kind = replace(kind, volatile=True)
        return constant(kind, "const" in words or "constexpr" in words)

    def declared(self, kind: Type, declarator: Node | None, scope: Scope) -> Type:
        """Apply pointers, arrays and references of a declarator to a type."""
        while declarator is not None and declarator.type.endswith("declarator"):
            inner = declarator.child_by_field_name("declarator")
            word = declarator.type.removeprefix("abstract_")
            if word == "pointer_declarator":
                is_const = any(text_of(each) == "const" for each in declarator.named_children)
                kind = constant(pointer(kind, None), is_const)
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
