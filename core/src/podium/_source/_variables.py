"""The variables of a source: what is declared ``__device__``, ``__constant__`` or ``__managed__`` in a namespace.

Constants are left out: nobody changes them, so it does not matter how many there are. Variable templates, static
members of classes and static variables of functions are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from podium._record import replace
from podium._signature import Type
from podium._source._cuda_types import Refusal, Resolved
from podium._source._outline import Outline, VariableText
from podium._source._resolver import Resolver
from podium._source._scopes import declared_name
from podium._source._syntax import parse, words
from podium._variable import DeclaredVariable
from podium.errors import SignatureError

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["read_variables"]

_PLACES = re.compile(r"\b__(?:device|constant|managed|host)__(?!\w)")
_TAG = re.compile(r"\b(?:struct|class|union|enum)\b")
# Where a variable lies does not change what it is.
_IN_BRACKETS = r"\((?:[^()]|\([^()]*\))*\)"
_ALIGNMENT = re.compile(
    rf"\balignas\s*{_IN_BRACKETS}|\b__attribute__\s*\(\(\s*_*aligned_*\s*(?:{_IN_BRACKETS})?\s*\)\)"
)


_SEVERAL = "it is defined in several ways, and podium cannot tell which one counts"
_CONDITIONAL = "it stands under a preprocessor condition that podium cannot decide"


def read_variables(outline: Outline, resolver: Resolver) -> list[DeclaredVariable]:
    """List the variables that can change, each once, in the order of their text."""
    found: dict[str, DeclaredVariable] = {}
    for text in outline.variables:
        for variable in _declared(outline, text, resolver):
            known = found.get(variable.name)
            if known is not None and known.type != variable.type:
                variable = replace(known, type=None, reason=known.reason or variable.reason or _SEVERAL)
            found[variable.name] = variable
    return list(found.values())


def _declared(outline: Outline, variable: VariableText, resolver: Resolver) -> Iterator[DeclaredVariable]:
    text = _blank(_PLACES, variable.text)
    if not _TAG.search(text):
        text = _blank(_ALIGNMENT, text)
    for node in parse(text).named_children:
        # extern "C" in front of a single declaration makes it one that defines nothing.
        if node.type == "declaration" and not _has_word(node, "__shared__"):
            for declarator in node.children_by_field_name("declarator"):
                if declared := _one(outline, variable, node, declarator, resolver):
                    yield declared


def _one(
    outline: Outline, variable: VariableText, node: Node, declarator: Node, resolver: Resolver
) -> DeclaredVariable | None:
    inner, value = declarator, None
    if declarator.type == "init_declarator":
        inner = declarator.child_by_field_name("declarator") or declarator
        value = declarator.child_by_field_name("value")
    elif _has_word(node, "extern"):
        return None
    name = declared_name(inner)
    if name is None:
        return None
    spelling, reason = None, variable.doubt
    try:
        # A qualified name is that of a member declared elsewhere; with more around it, it cannot be told from a
        # pointer to a member.
        plain = None if inner.type == "qualified_identifier" else inner
        resolved = resolver.declared(node, plain, variable.scope)
        if resolved.is_function or resolved.const:
            return None
        if node.has_error and (inner.has_error or value is None):
            raise Refusal("podium cannot read it; if it has a macro from a header or a compiler option, that is why")
        spelling = _spelling(resolved, value, resolver)
    except Refusal as refusal:
        reason = reason or str(refusal)
    if variable.is_conditional:
        reason = reason or _CONDITIONAL
    own = _qualified(name)
    path = [scope.name for scope in variable.scope.path]
    short = [scope.name for scope in variable.scope.path if not scope.is_open]
    return DeclaredVariable(
        "::".join([*path, own]),
        "::".join([*short, own]),
        None if reason else spelling,
        reason,
        outline.text.line(variable.place),
    )


def _spelling(resolved: Resolved, value: Node | None, resolver: Resolver) -> str:
    """Spell a type; the size of an array that has none is the number of its initialisers. Raises `Refusal`."""
    if resolved.element is None and resolved.spelling.startswith("*"):
        spelling = resolved.spelling  # of a pointer to a function, too: as a value it can be handed back
    elif resolved.element is not None and resolved.bound is None:
        spelling = f"[{_count(resolved.element, value)}x{resolver.spelling(resolved.element)}]"
    else:
        spelling = resolver.spelling(resolved)
    try:
        Type.parse("{" + spelling + "}")
    except SignatureError as error:
        raise Refusal(str(error)) from None
    return spelling


def _count(element: Resolved, value: Node | None) -> int:
    """Count initialisers; without braces of its own, a struct takes several of them."""
    values = [] if value is None or value.type != "initializer_list" else value.named_children
    plain = element.element is None and element.spelling[0] not in "{o"
    if not values or not (plain or all(each.type == "initializer_list" for each in values)):
        raise Refusal("the array has no size")
    if any(each.type in ("call_expression", "initializer_pair", "parameter_pack_expansion") for each in values):
        raise Refusal("the array has no size, and podium cannot count its initialisers")
    return len(values)


def _qualified(name: Node) -> str:
    """Return a name with the scopes before it in a declarator, as in ``int outer::x;``."""
    while name.parent is not None and name.parent.type == "qualified_identifier":
        name = name.parent
    return "".join(words(name).split())


def _has_word(node: Node, word: str) -> bool:
    return any(words(each) == word for each in node.children)


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: " " * len(match[0]), text)
