"""Looking names up: through namespaces, structs, enums, aliases and template arguments to what was declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from podium._record import record
from podium._source._cuda_types import Refusal
from podium._source._scopes import Argument, Entity, Scope
from podium._source._syntax import words
from podium._source._templates import bind

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["NAME_NODES", "STRUCT_NODES", "Found", "NameLookup"]

STRUCT_NODES = ("struct_specifier", "class_specifier", "union_specifier")
NAME_NODES = ("type_identifier", "identifier", "primitive_type", "namespace_identifier", "field_identifier")

_DEEPEST = 32
_MOST_STEPS = 20_000

_SEVERAL = "it is defined in several ways, and podium cannot tell which one counts"


@record(frozen=True)
class Found:
    """What a name means: its path as written, its template arguments, and the entities or the argument behind it."""

    path: tuple[str, ...]
    arguments: list[Argument] | None
    entities: list[Entity]
    argument: Argument | None = None


class NameLookup:
    """Looks names up in the scopes of one source.

    Sources can be written so that following names never ends, or takes forever: both are bounded here.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._steps = 0
        self._insides: dict[Entity, Scope] = {}

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Guard one step of following a definition. Raises `Refusal` when there were too many."""
        self._steps += 1
        if self._depth >= _DEEPEST or self._steps > _MOST_STEPS:
            raise Refusal("its definition refers to others too many times over")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def find(self, node: Node, scope: Scope) -> Found:
        """Look up a name as it stands in a scope. Raises `Refusal`."""
        path: list[str] = []
        where: Scope | None = None
        is_qualified = False
        while node.type == "qualified_identifier":
            outer, inner = node.child_by_field_name("scope"), node.child_by_field_name("name")
            if inner is None or len(path) >= _DEEPEST:
                raise Refusal("podium cannot read it")
            if outer is None:
                where = scope.outermost
            elif not is_qualified:
                where = self._first_step(outer, scope)
            elif where is not None:
                where = self._next_step(outer, where, scope)
            if outer is not None:
                path.append(_plain_name(outer))
            is_qualified = True
            node = inner
        name = _plain_name(node)
        path.append(name)
        arguments = _arguments(node, scope)
        if is_qualified:
            return Found(tuple(path), arguments, [] if where is None else where.members(name))
        found = scope.find(name)
        if isinstance(found, Argument):
            return Found(tuple(path), arguments, [], found)
        return Found(tuple(path), arguments, found)

    def inside(self, entity: Entity, arguments: Sequence[Argument] | None) -> Scope:
        """Return the scope inside a struct, for a template with its parameters bound. Raises `Refusal`."""
        if entity in self._insides and arguments is None:
            return self._insides[entity]
        scope = Scope(parent=self.filled(entity, arguments))
        body = entity.node.child_by_field_name("body")
        for each in body.named_children if body is not None else ():
            scope.index(each, entity.doubt)
        if arguments is None:
            self._insides[entity] = scope
        return scope

    def filled(self, entity: Entity, arguments: Sequence[Argument] | None) -> Scope:
        """Return the scope that an entity's definition is read in, with its template parameters bound."""
        return _with_arguments(entity.scope, bind(entity.template, arguments, entity.scope))

    def _first_step(self, node: Node, scope: Scope) -> Scope | None:
        name = _plain_name(node)
        found = scope.find(name)
        if isinstance(found, Argument):
            return self._inside_type(found.node, found.scope)
        return self._inside_any(found, _arguments(node, scope)) or scope.namespace((name,))

    def _next_step(self, node: Node, where: Scope, scope: Scope) -> Scope | None:
        name = _plain_name(node)
        return self._inside_any(where.members(name), _arguments(node, scope)) or where.inner(name)

    def _inside_type(self, node: Node, scope: Scope) -> Scope | None:
        """Return the inside of the struct or the enum that a type names; None if it is not in this source."""
        with self.deeper():
            if node.type in ("type_descriptor", "dependent_type"):
                inner = node.child_by_field_name("type") or node.named_children[0]
                return self._inside_type(inner, scope)
            if node.type in STRUCT_NODES and node.child_by_field_name("body") is not None:
                return self.inside(Entity("struct", node, scope), None)
            if node.type not in (*NAME_NODES, "qualified_identifier", "template_type"):
                return None
            found = self.find(node, scope)
            if found.argument is not None:
                return self._inside_type(found.argument.node, found.argument.scope)
            return self._inside_any(found.entities, found.arguments)

    def _inside_any(self, entities: list[Entity], arguments: list[Argument] | None) -> Scope | None:
        kinds = ("struct", "enum", "alias", "using")
        candidates = [each for each in entities if each.kind in kinds]
        if not candidates:
            return None
        # typedef struct S S; says nothing new
        entity = next((each for each in candidates if each.kind in kinds[:2]), candidates[0])
        if sum(each.kind == entity.kind for each in candidates) > 1 or entity.doubt:
            raise Refusal(entity.doubt or _SEVERAL)
        if entity.kind == "struct":
            return self.inside(entity, arguments)
        if entity.kind == "enum":
            return entity.scope.with_enumerators(entity)
        if entity.kind == "using":
            return self._inside_type(entity.node, entity.scope)
        inner = entity.node.child_by_field_name("type")
        return None if inner is None else self._inside_type(inner, self.filled(entity, arguments))


def _with_arguments(scope: Scope, arguments: Mapping[str, Argument]) -> Scope:
    if not arguments:
        return scope
    inner = Scope(parent=scope)
    inner.arguments = arguments
    return inner


def _plain_name(node: Node) -> str:
    if node.type in ("template_type", "template_function"):
        node = node.child_by_field_name("name") or node
    return words(node)


def _arguments(node: Node, scope: Scope) -> list[Argument] | None:
    if node.type not in ("template_type", "template_function"):
        return None
    arguments = node.child_by_field_name("arguments")
    return [Argument(each, scope) for each in (arguments.named_children if arguments is not None else ())]
