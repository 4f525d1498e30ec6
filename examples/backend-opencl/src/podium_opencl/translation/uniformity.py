"""Which variables have the same value in all threads of a block that are at one place.

A barrier must be reached by all threads of a block. Where control depends only on values that all of them share, it
is; everywhere else `masked.py` has to see to it. What is not known to be shared counts as different.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from podium_opencl.translation.symbols import Enumerator, Function, Local, Scope, Variable, along, name_node, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["LOOPS", "has_jumps", "is_uniform", "varying_variables"]

LOOPS = ("for_statement", "while_statement", "do_statement", "for_range_loop")
_SHARED_INDICES = ("blockIdx", "blockDim", "gridDim")
_OPERATORS = (
    "binary_expression",
    "unary_expression",
    "parenthesized_expression",
    "conditional_expression",
    "cast_expression",
    "condition_clause",
    "init_statement",
    "argument_list",
    "initializer_list",
)
_CASTS = ("static_cast", "int", "unsigned", "float", "size_t", "min", "max", "abs")


def is_uniform(node: Node, varying: frozenset[str] | set[str], scope: Scope) -> bool:
    """Tell whether an expression has one value in all threads of a block."""
    kind = node.type
    if kind in ("number_literal", "char_literal", "true", "false", "null", "sizeof_expression", "type_descriptor"):
        return True
    if kind == "identifier":
        name = text_of(node)
        if name in varying or name in ("threadIdx", "this"):
            return False
        found = scope.find(name)
        return not (isinstance(found, Variable) and not found.is_constant)
    if kind == "field_expression":
        base = node.child_by_field_name("argument")
        if base is None or text_of(node.child_by_field_name("operator")) == "->":
            return False
        return text_of(base) in _SHARED_INDICES or is_uniform(base, varying, scope)
    if kind == "qualified_identifier":
        named = along(text_of(node), scope)
        return isinstance(named, Enumerator) or (isinstance(named, Variable) and named.is_constant)
    if kind in _OPERATORS:
        return all(is_uniform(each, varying, scope) for each in node.named_children)
    if kind == "call_expression":
        called = node.child_by_field_name("function")
        name = text_of(called).partition("<")[0]
        arguments = node.child_by_field_name("arguments")
        built_in = name in _CASTS and (called is None or not isinstance(scope.find(name), list))
        return built_in and arguments is not None and is_uniform(arguments, varying, scope)
    return False


def has_jumps(loop: Node) -> bool:
    """Tell whether a loop may be left from within, or a turn of it."""
    return _jumps(loop, True)


def _jumps(node: Node, own: bool) -> bool:
    for each in node.named_children:
        if each.type == "return_statement":
            return True
        if own and each.type in ("break_statement", "continue_statement"):
            return True
        if _jumps(each, own and each.type not in LOOPS):
            return True
    return False


def varying_variables(body: Node, parameters: Sequence[tuple[str, bool]], scope: Scope, masked: bool) -> frozenset[str]:
    """Find the variables of a function that may differ.

    `parameters` tells for each whether it is uniform, `masked` that only some threads take part in all of the function.
    """
    search = _Search({name for name, uniform in parameters if not uniform}, scope)
    before = -1
    while before != len(search.varying):
        before = len(search.varying)
        search.returned = False
        search.visit(body, masked)
    return frozenset(search.varying)


class _Search:
    def __init__(self, varying: set[str], scope: Scope) -> None:
        self.varying, self.scope = varying, scope
        self.returned = False  # some threads may have returned before what is visited

    def _differs(self, node: Node | None) -> bool:
        return node is not None and not is_uniform(node, self.varying, self.scope)

    def visit(self, node: Node, control: bool) -> None:
        control = control or self.returned
        kind = node.type
        if kind == "declaration":
            self._declared(node, control)
        elif kind == "assignment_expression":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            self._assigned(left, control or self._differs(right))
        elif kind == "update_expression":
            self._assigned(node.child_by_field_name("argument"), control)
        elif kind == "pointer_expression" and text_of(node.child_by_field_name("operator")) == "&":
            self._assigned(node.child_by_field_name("argument"), True)
        elif kind == "call_expression":
            self._called(node)
        elif kind == "if_statement":
            condition = node.child_by_field_name("condition")
            inside = control or self._differs(condition)
            for each in node.named_children:
                self.visit(each, control if each == condition else inside)
            return
        elif kind == "for_statement":
            self._for(node, control)
            return
        elif kind in LOOPS:
            inside = control or self._differs(node.child_by_field_name("condition")) or has_jumps(node)
            for each in node.named_children:
                self.visit(each, inside)
            return
        elif kind == "switch_statement":
            control = True
        elif kind == "return_statement" and control:
            self.returned = True
        for each in node.named_children:
            self.visit(each, control)

    def _for(self, node: Node, control: bool) -> None:
        initial, update = node.child_by_field_name("initializer"), node.child_by_field_name("update")
        own = self._differs(node.child_by_field_name("condition")) or has_jumps(node)
        # A variable of the loop's own head is the same in all threads if all of them go through the head.
        if initial is not None:
            self._visit_head(initial, control)
        if update is not None:
            self._visit_head(update, own)
        body = node.child_by_field_name("body")
        if body is not None:
            self.visit(body, control or own)

    def _visit_head(self, node: Node, control: bool) -> None:
        before, self.returned = self.returned, False
        self.visit(node, control and node.type != "declaration")
        self.returned = before

    def _declared(self, node: Node, control: bool) -> None:
        shared = any(text_of(each) == "__shared__" for each in node.children)
        for declarator in node.children_by_field_name("declarator"):
            inner = declarator.child_by_field_name("declarator") if declarator.type == "init_declarator" else declarator
            name = text_of(name_node(inner))
            value = declarator.child_by_field_name("value")
            is_plain = inner is not None and inner.type in ("identifier", "pointer_declarator") and not shared
            if inner is not None and inner.type == "reference_declarator":
                self._assigned(value, True)  # what it refers to may change by its name
            if control or not is_plain or self._differs(value):
                self.varying.add(name)

    def _assigned(self, target: Node | None, differs: bool) -> None:
        plain = target is not None and target.type == "identifier"
        while target is not None and target.type != "identifier":
            inner = target.child_by_field_name("argument") or target.child_by_field_name("left")
            if inner is None and target.named_child_count == 1:
                inner = target.named_children[0]
            target = inner
        if target is not None and (differs or not plain):
            self.varying.add(text_of(target))

    def _called(self, node: Node) -> None:
        """A function may change what it is given by reference, and a member function its object."""
        called, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if called is not None and called.type == "field_expression":
            self._assigned(called.child_by_field_name("argument"), True)
        base = called
        while base is not None and base.type in ("template_function", "qualified_identifier"):
            base = base.child_by_field_name("name")
        found = self.scope.find(text_of(base))
        functions = found if isinstance(found, list) else []
        changes = called is not None and called.type == "qualified_identifier"
        if changes or any("&" in _parameters(each) for each in functions) or isinstance(found, Local):
            for each in arguments.named_children if arguments is not None else ():
                if each.type == "identifier":
                    self.varying.add(text_of(each))


def _parameters(function: Function) -> str:
    return text_of(function.node.child_by_field_name("declarator"))
