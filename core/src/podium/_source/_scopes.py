"""Namespaces and the insides of structs: which names a source declares, where, and how they are looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from podium._record import record
from podium._source._syntax import parse, words

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Argument", "Entity", "Piece", "Scope", "declared_name"]

_STRUCTS = ("struct_specifier", "class_specifier", "union_specifier")


@record(frozen=True)
class Piece:
    """The text of one declaration, not yet parsed. `doubt` says why it cannot be relied on, or is empty."""

    text: str
    doubt: str = ""


@record(frozen=True, eq=False)
class Entity:
    """Something declared under a name.

    `kind` is "alias" (`node` has the type, `declarator` what is made of it), "struct", "enum", "value" (`node` is the
    declaration, `declarator` its init_declarator or field), "enumerator" (`node` is the enumerator, `declarator` the
    enum) or "using" (`node` is the qualified name). `template` is the list of template parameters, if there is one.
    """

    kind: str
    node: Node
    scope: Scope
    declarator: Node | None = None
    template: Node | None = None
    specialised: bool = False
    doubt: str = ""


@record(frozen=True, eq=False)
class Argument:
    """A template argument: the node that gives it, and the scope in which that means something."""

    node: Node
    scope: Scope


class Scope:
    """A namespace, a struct's inside, or the template parameters around one.

    Declarations are parsed when a name in them is first asked for: most of a source has nothing to do with a kernel's
    parameters.
    """

    def __init__(self, name: str = "", parent: Scope | None = None, *, is_open: bool = False) -> None:
        self.name, self.parent = name, parent
        self.is_open = is_open  # unnamed or inline: its names are found in the scope around it, too
        self.arguments: Mapping[str, Argument] = {}
        self._children: dict[str, Scope] = {}
        self._links: dict[str, tuple[str, ...]] = {}
        self._used: list[tuple[str, ...]] = []
        self._pieces: list[Piece] = []
        self._entities: dict[str, list[Entity]] = {}

    @property
    def outermost(self) -> Scope:
        """The global namespace."""
        *_, last = self._outwards()
        return last

    @property
    def path(self) -> tuple[Scope, ...]:
        """The named scopes from the outermost to this one."""
        chain = [scope for scope in self._outwards() if scope.name]
        return tuple(reversed(chain))

    def child(self, name: str, *, is_inline: bool = False) -> Scope:
        """Return the namespace of that name in this one, a new one if need be; an empty name is the unnamed one."""
        scope = self._children.get(name)
        if scope is None:
            scope = self._children[name] = Scope(name, self, is_open=is_inline or not name)
        return scope

    def add(self, piece: Piece) -> None:
        """Add a declaration that stands in this scope."""
        first, _, rest = piece.text.lstrip().partition(" ")
        if first == "using" and rest.split(None, 1)[:1] == ["namespace"]:
            self._used.append(_path(rest.split(None, 1)[1]))
        elif first == "namespace" and "=" in rest:
            name, _, path = rest.partition("=")
            self._links[name.strip()] = _path(path)
        else:
            self._pieces.append(piece)

    def find(self, name: str) -> list[Entity] | Argument:
        """Look a name up from here outwards; the innermost scope that knows it decides."""
        for scope in self._outwards():
            if name in scope.arguments:
                return scope.arguments[name]
            if found := scope.members(name):
                return found
        return []

    def members(self, name: str) -> list[Entity]:
        """Return what this scope itself has under a name."""
        return [entity for scope in self._visible() for entity in scope._declared(name)]

    def namespace(self, path: tuple[str, ...]) -> Scope | None:
        """Find a namespace by a path that is looked up from here outwards."""
        for start in self._outwards():
            scope: Scope | None = start
            for name in path:
                scope = scope and scope.inner(name)
            if scope is not None:
                return scope
        return None

    def index(self, node: Node, doubt: str = "", template: Node | None = None) -> None:
        """Enter what a parsed declaration declares."""
        kind = node.type
        if kind == "template_declaration":
            parameters = node.child_by_field_name("parameters")
            for each in node.named_children:
                if each != parameters:
                    self.index(each, doubt, parameters)
        elif kind in _STRUCTS or kind == "enum_specifier":
            self._index_tagged(node, doubt, template)
        elif kind == "alias_declaration":
            self._enter(node.child_by_field_name("name"), "alias", node.child_by_field_name("type"), doubt, template)
        elif kind == "type_definition":
            self._index_inner(node, doubt)
            for declarator in node.children_by_field_name("declarator"):
                self._enter(declared_name(declarator), "alias", node, doubt, declarator=declarator)
        elif kind in ("declaration", "field_declaration"):
            self._index_inner(node, doubt)
            if any(words(each) in ("const", "constexpr") for each in node.children if each.type == "type_qualifier"):
                for declarator in node.children_by_field_name("declarator"):
                    self._enter(declared_name(declarator), "value", node, doubt, template, declarator)
        elif kind == "using_declaration":
            for each in node.named_children:
                if each.type == "qualified_identifier":
                    self._enter(declared_name(each), "using", each, doubt)

    def with_enumerators(self, entity: Entity) -> Scope:
        """Return a scope that has an enum's enumerators as members."""
        scope = Scope(parent=self)
        scope._enter_enumerators(entity.node, entity.doubt)
        return scope

    def _index_inner(self, node: Node, doubt: str) -> None:
        inner = node.child_by_field_name("type")
        if inner is not None and (inner.type in _STRUCTS or inner.type == "enum_specifier"):
            self._index_tagged(inner, doubt, None)

    def _index_tagged(self, node: Node, doubt: str, template: Node | None) -> None:
        """Enter a struct or an enum if it has a body: a name alone declares nothing that a type can be read from."""
        body = node.child_by_field_name("body")
        if body is None:
            return
        name = node.child_by_field_name("name")
        if node.type != "enum_specifier":
            self._enter(name, "struct", node, doubt, template)
            return
        self._enter(name, "enum", node, doubt)
        if not any(each.type in ("class", "struct") for each in node.children):
            self._enter_enumerators(node, doubt)

    def _enter_enumerators(self, node: Node, doubt: str) -> None:
        body = node.child_by_field_name("body")
        for each in body.named_children if body is not None else ():
            if each.type == "enumerator":
                self._enter(each.child_by_field_name("name"), "enumerator", each, doubt, declarator=node)

    def _enter(
        self,
        name: Node | None,
        kind: str,
        node: Node | None,
        doubt: str,
        template: Node | None = None,
        declarator: Node | None = None,
    ) -> None:
        if name is None or node is None:
            return
        specialised = name.type == "template_type"
        if specialised:
            name = name.child_by_field_name("name") or name
        if node.has_error:
            doubt = doubt or "its definition has syntax that podium cannot read, such as a macro from a header"
        entity = Entity(kind, node, self, declarator, template, specialised, doubt)
        self._entities.setdefault(words(name), []).append(entity)

    def _declared(self, name: str) -> list[Entity]:
        if any(name in piece.text for piece in self._pieces):
            wanted = [piece for piece in self._pieces if name in piece.text]
            self._pieces = [piece for piece in self._pieces if name not in piece.text]
            for piece in wanted:
                for node in parse(piece.text).named_children:
                    self.index(node, piece.doubt)
        return self._entities.get(name, [])

    def inner(self, name: str) -> Scope | None:
        """Return the namespace of that name in this one; None if there is none."""
        for scope in self._visible():
            if name in scope._children:
                return scope._children[name]
            if name in scope._links:
                return scope.namespace(scope._links[name])
        return None

    def _visible(self) -> list[Scope]:
        """This scope, those open inside it, and those named by using-directives in any of these."""
        found: list[Scope] = [self]
        for scope in found:
            used = (scope._target(path) for path in scope._used)
            for each in (*(child for child in scope._children.values() if child.is_open), *used):
                if each is not None and each not in found:
                    found.append(each)
        return found

    def _target(self, path: tuple[str, ...]) -> Scope | None:
        """Find the namespace of a using-directive, without following other directives on the way."""
        for start in self._outwards():
            scope: Scope | None = start
            for name in path:
                scope = scope and scope._children.get(name)
            if scope is not None:
                return scope
        return None

    def _outwards(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


def _path(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip(" \t\r\n;") for part in text.split("::"))))


def declared_name(declarator: Node) -> Node | None:
    """Go down a declarator to the name that it declares."""
    node: Node | None = declarator
    while node is not None:
        if node.type in ("identifier", "field_identifier", "type_identifier", "primitive_type"):
            return node
        if node.type == "qualified_identifier":
            node = node.child_by_field_name("name")
            continue
        inner = node.child_by_field_name("declarator")
        if inner is None:
            parts = (each for each in node.named_children if each.type.endswith(("declarator", "identifier")))
            inner = next(parts, None)
        node = inner
    return None
