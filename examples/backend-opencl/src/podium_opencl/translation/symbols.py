"""Scopes, and what the names in them stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Union

from podium_opencl.translation.types import Type

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = [
    "Alias",
    "Enumerator",
    "Function",
    "Local",
    "Scope",
    "Struct",
    "Symbol",
    "Variable",
    "along",
    "collect",
    "enter",
    "function_declarator",
    "function_declarator_below",
    "name_node",
    "text_of",
    "variable_declarators",
]


@dataclass(eq=False)
class Function:
    """A function that has a body. `arguments` are those of an explicit specialisation."""

    name: str
    node: Node
    scope: Scope
    template: Node | None = None
    arguments: Node | None = None
    is_static: bool = False
    is_const: bool = False  # a member function that does not change its object


@dataclass(eq=False)
class Struct:
    """A struct or a template of one, with its specialisations: their arguments, template parameters and text."""

    name: str
    scope: Scope
    template: Node | None = None
    node: Node | None = None
    specialised: list[tuple[Node, Node, Node]] = field(default_factory=list)


@dataclass(eq=False)
class Alias:
    """Another name of a type."""

    node: Node
    declarator: Node | None
    scope: Scope
    template: Node | None = None


@dataclass(eq=False)
class Variable:
    """A variable outside of functions; `is_constant` tells that it is const and the host cannot reach it."""

    name: str
    node: Node
    declarator: Node
    scope: Scope
    is_constant: bool
    is_shared: bool = False

    @property
    def initial(self) -> Node | None:
        """The value that it starts with."""
        return self.declarator.child_by_field_name("value") or self.node.child_by_field_name("default_value")


@dataclass(eq=False)
class Enumerator:
    """A constant of an enumeration: the value of `node` and `more`."""

    node: Node | None
    more: int
    scope: Scope


@dataclass(eq=False)
class Local:
    """A variable of a function: how OpenCL C names it, and its value where that is known at compile time."""

    text: str
    type: Type
    space: str = "private"
    constant: int | float | None = None
    key: int = -1  # the place of the declaration, for what is learned about the variable


Symbol = Union["list[Function]", Struct, Alias, Variable, Enumerator, Local, Type, "Scope", int]


class Scope:
    """Names, in a namespace, a struct, a function or a block."""

    def __init__(self, parent: Scope | None = None, name: str = "", kind: str = "namespace") -> None:
        self.parent, self.name, self.kind = parent, name, kind
        self.names: dict[str, Symbol] = {}
        self.opened: list[Scope] = []  # by "using namespace"
        self.owner: Type | None = None  # of a struct's scope
        self.base: Node | None = None  # the type of an enumeration

    def find(self, name: str) -> Symbol | None:
        """Look a name up here and in the scopes around."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.own(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def own(self, name: str) -> Symbol | None:
        """Look a name up in this scope alone."""
        if name in self.names:
            return self.names[name]
        for other in self.opened:
            if name in other.names:
                return other.names[name]
        return None

    def qualified(self, name: str) -> str:
        """Return a name with the namespaces that it is in."""
        scope: Scope | None = self
        while scope is not None:
            if scope.name and scope.kind == "namespace":
                name = f"{scope.name}::{name}"
            scope = scope.parent
        return name


def text_of(node: Node | None) -> str:
    """Return the text of a node; nothing for none."""
    return "" if node is None or node.text is None else node.text.decode()


def name_node(declarator: Node | None) -> Node | None:
    """Find the name within declarators."""
    while declarator is not None and declarator.type.endswith("declarator"):
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            inner = next((each for each in declarator.named_children if each.type != "type_qualifier"), None)
        declarator = inner
    return declarator


def collect(root: Node, scope: Scope) -> None:
    """Enter the declarations of a file, a namespace or a struct into its scope."""
    for node in root.named_children:
        enter(node, scope, None)


def _words(node: Node) -> set[str]:
    return {
        text_of(each)
        for each in node.children
        if each.type in ("type_qualifier", "storage_class_specifier") or not each.is_named
    }


def enter(node: Node, scope: Scope, template: Node | None) -> None:
    """Enter one declaration into a scope; `template` are the parameters in front of it."""
    kind = node.type
    if kind == "namespace_definition":
        _enter_namespace(node, scope)
    elif kind == "linkage_specification":
        body = node.child_by_field_name("body")
        if body is not None:
            for each in body.named_children if body.type == "declaration_list" else [body]:
                enter(each, scope, None)
    elif kind == "template_declaration":
        for each in node.named_children[1:]:
            enter(each, scope, node.child_by_field_name("parameters"))
    elif kind == "function_definition":
        _enter_function(node, scope, template)
    elif kind in ("struct_specifier", "class_specifier", "union_specifier"):
        _enter_struct(node, scope, template)
    elif kind == "enum_specifier":
        _enter_enumeration(node, scope)
    elif kind == "type_definition":
        for each in node.children_by_field_name("declarator"):
            name = name_node(each)
            scope.names[text_of(name)] = Alias(node, each, scope)
        _enter_inner(node, scope)
    elif kind == "alias_declaration":
        described = node.child_by_field_name("type")
        if described is not None:
            alias = Alias(described, described.child_by_field_name("declarator"), scope, template)
            scope.names[text_of(node.child_by_field_name("name"))] = alias
    elif kind in ("declaration", "field_declaration"):
        _enter_inner(node, scope)
        _enter_variables(node, scope)
    elif kind == "using_declaration":
        _enter_using(node, scope)
    elif kind == "namespace_alias_definition":
        found = along(text_of(node.named_children[-1]), scope)
        if found is not None:
            scope.names[text_of(node.named_children[0])] = found


def _enter_inner(node: Node, scope: Scope) -> None:
    """Enter the struct or enumeration that a declaration defines on its way."""
    inner = node.child_by_field_name("type")
    if inner is not None and inner.child_by_field_name("body") is not None and inner.type.endswith("_specifier"):
        enter(inner, scope, None)


def _enter_namespace(node: Node, scope: Scope) -> None:
    name = node.child_by_field_name("name")
    names = text_of(name).split("::") if name is not None else [""]
    for each in names:
        inner = scope.names.get(each) if each else None
        if not isinstance(inner, Scope):
            inner = Scope(scope, each)
            if each:
                scope.names[each] = inner
            else:
                scope.opened.append(inner)
        scope = inner
    body = node.child_by_field_name("body")
    if body is not None:
        collect(body, scope)


def along(name: str, scope: Scope) -> Symbol | None:
    """Look up a name with namespaces before it."""
    first, *rest = (each.strip() for each in name.split("::"))
    found = scope.find(first)
    for each in rest:
        found = found.own(each) if isinstance(found, Scope) else None
    return found


def _enter_using(node: Node, scope: Scope) -> None:
    parts = text_of(node).removeprefix("using").strip(" ;").split("::")
    whole = parts[0].startswith("namespace ")
    parts[0] = parts[0].removeprefix("namespace ").strip()
    found = along("::".join(parts), scope)
    if whole and isinstance(found, Scope):
        scope.opened.append(found)
    elif not whole and found is not None:
        scope.names[parts[-1].strip()] = found


def function_declarator(node: Node) -> Node | None:
    """Find the declarator of a function, with its parameters, in its definition or declaration."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            inner = next((each for each in declarator.named_children if each.type.endswith("declarator")), None)
        declarator = inner
    return declarator


def _enter_function(node: Node, scope: Scope, template: Node | None) -> None:
    declarator = function_declarator(node)
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    if name is None or node.child_by_field_name("body") is None:
        return
    arguments = None
    if name.type == "template_function":
        arguments = name.child_by_field_name("arguments")
        name = name.child_by_field_name("name")
    found = scope.names.setdefault(text_of(name).replace(" ", ""), [])
    if isinstance(found, list):
        is_static = "static" in _words(node)
        is_const = declarator is not None and any(text_of(each) == "const" for each in declarator.named_children)
        word = text_of(name).replace(" ", "")
        found.append(Function(word, node, scope, template, arguments, is_static, is_const))


def _enter_struct(node: Node, scope: Scope, template: Node | None) -> None:
    name = node.child_by_field_name("name")
    arguments = None
    if name is not None and name.type == "template_type":
        arguments, name = name.child_by_field_name("arguments"), name.child_by_field_name("name")
    word = text_of(name) or f"unnamed{node.start_byte}"
    found = scope.names.get(word)
    if not isinstance(found, Struct):
        found = scope.names[word] = Struct(word, scope, template)
    if arguments is not None and template is not None:
        found.specialised.append((arguments, template, node))
    elif node.child_by_field_name("body") is not None:
        found.node, found.template = node, template


def _enter_enumeration(node: Node, scope: Scope) -> None:
    name = text_of(node.child_by_field_name("name"))
    inner = scope
    if any(text_of(each) in ("class", "struct") for each in node.children):
        inner = Scope(scope, name, "enum")
        inner.base = node.child_by_field_name("base")
        scope.names[name] = inner
    elif name:
        base = node.child_by_field_name("base")
        scope.names[name] = Alias(base, None, scope) if base is not None else _INT
    body = node.child_by_field_name("body")
    before: Node | None = None
    more = 0
    for each in body.named_children if body is not None else ():
        if each.type != "enumerator":
            continue
        value = each.child_by_field_name("value")
        before, more = (value, 0) if value is not None else (before, more)
        inner.names[text_of(each.child_by_field_name("name"))] = Enumerator(before, more, inner)
        more += 1


def _enter_variables(node: Node, scope: Scope) -> None:
    words = _words(node)
    for declarator in variable_declarators(node):
        inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
        if inner is None or function_declarator_below(inner):
            continue
        name = text_of(name_node(inner))
        is_memory = bool(words & {"__device__", "__constant__", "__managed__", "__shared__"})
        # What a pointer points to may be const while the pointer is not.
        own = {text_of(each) for each in inner.named_children} if inner.type == "pointer_declarator" else words
        is_constant = bool({"constexpr"} & words or {"const"} & own) and not words & {"__constant__", "__managed__"}
        if scope.kind == "struct" and "static" not in words:
            continue  # a member
        if is_memory or is_constant:
            is_shared = "__shared__" in words
            scope.names[name] = Variable(name, node, declarator, scope, is_constant and not is_shared, is_shared)


def variable_declarators(node: Node) -> Iterator[Node]:
    """List the declarators of a declaration, each with its initial value where it has one."""
    yield from node.children_by_field_name("declarator")


def function_declarator_below(declarator: Node | None) -> bool:
    """Tell whether a declarator declares a function."""
    while declarator is not None:
        if declarator.type == "function_declarator":
            inner = declarator.child_by_field_name("declarator")
            return inner is None or inner.type != "parenthesized_declarator"
        declarator = declarator.child_by_field_name("declarator")
    return False


_INT = Type("integer", "int", 4, True)
