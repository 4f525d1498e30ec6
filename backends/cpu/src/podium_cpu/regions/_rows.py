"""What grows evenly along a row of threads: numbers that follow each other, and conditions for the first of them.

Compilers make the best vectors of a loop with no condition in it, over indices that they can see to be consecutive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium_cpu.regions._pieces import Region
from podium_cpu.regions._syntax import called_name, find, word
from podium_cpu.regions._variables import Variable

if TYPE_CHECKING:
    from tree_sitter import Node

    from podium_cpu.regions._plan import Plan

__all__ = ["Guard", "follows", "guard", "rises", "slope"]

_WHOLE = {"const", "unsigned", "int", "long", "int32_t", "int64_t", "uint32_t", "uint64_t", "size_t", "ptrdiff_t"}
_INDICES = {"threadIdx", "blockIdx", "blockDim", "gridDim"}
_SMALL = re.compile(r"[0-9]{1,6}[uUlL]*")
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True)
class Guard:
    """An if in front of all that a region does; `leaves` says that threads return for which the condition holds."""

    node: Node
    condition: Node
    leaves: bool


def slope(plan: Plan, node: Node | None) -> int | None:
    """Tell by how much a pure expression grows from one thread to the next along x; None if it is not known."""
    if node is None or plan.is_uniform(node):
        return None if node is None else 0
    operator = word(node.child_by_field_name("operator"))
    if node.type == "field_expression" and word(node.child_by_field_name("argument")) == "threadIdx":
        return int(word(node.child_by_field_name("field")) == "x")
    if node.type == "identifier":
        variable = plan.variables.at.get(node.start_byte)
        if variable is None or variable not in plan.again or variable.is_pointer or not _type(variable) <= _WHOLE:
            return None
        return slope(plan, variable.value)
    if node.type == "cast_expression" and set(word(node.child_by_field_name("type")).split()) <= _WHOLE:
        return slope(plan, node.child_by_field_name("value"))
    if node.type == "call_expression" and called_name(node) == "static_cast":
        arguments = node.child_by_field_name("arguments")
        whole = set(re.findall(r"\w+", word(node.child_by_field_name("function")))) - {"static_cast"} <= _WHOLE
        return slope(plan, arguments.named_children[0]) if arguments is not None and whole else None
    if node.type not in ("binary_expression", "parenthesized_expression", "unary_expression"):
        return None
    slopes = [slope(plan, child) for child in node.named_children]
    if None in slopes:
        return None
    if not any(slopes):
        return 0
    if node.type == "parenthesized_expression" or (operator == "-" and len(slopes) == 2 and slopes[1] == 0):
        return slopes[0]
    return sum(each for each in slopes if each) if operator == "+" and len(slopes) == 2 else None


def rises(plan: Plan, node: Node | None) -> bool:
    """Tell whether an expression is made of indices, sizes and positive numbers, by sums, products and masks.

    Others may lie below zero at the front of a row. As unsigned numbers, they would be great there and small behind.
    """
    if node is None:
        return False
    variable = plan.variables.at.get(node.start_byte) if node.type == "identifier" else None
    if variable is not None:
        return variable.is_fixed and not variable.bound and _type(variable) <= _WHOLE and rises(plan, variable.value)
    if node.type in ("cast_expression", "call_expression"):  # to a whole number, since it has a slope
        return rises(plan, node.child_by_field_name("value" if node.type == "cast_expression" else "arguments"))
    if node.type in ("binary_expression", "parenthesized_expression", "argument_list"):
        operator = word(node.child_by_field_name("operator")) or "+"
        return operator in ("+", "*", "&") and all(rises(plan, child) for child in node.named_children)
    return _SMALL.fullmatch(word(node)) is not None or word(node).partition(".")[0] in _INDICES


def follows(plan: Plan, variable: Variable) -> str:
    """Return the type of a variable that is one more for each next thread of a row, as if by counting; else nothing."""
    declarator, value = variable.declarator, variable.value
    if variable not in plan.again or declarator is None or value is None or declarator.type != "init_declarator":
        return ""
    if value.type in ("initializer_list", "argument_list", "field_expression") or not _type(variable) <= _WHOLE:
        return ""
    kind = " ".join(each for each in _words(variable) if each != "const")
    fine = kind in ("int", "int32_t", "unsigned", "unsigned int", "uint32_t") or rises(plan, value)
    return kind if fine and not variable.is_pointer and slope(plan, value) == 1 else ""


def guard(plan: Plan, region: Region, is_last: bool) -> Guard | None:
    """Find the condition for all that a region does, if it holds for the first threads of each row and no others."""
    for position, node in enumerate(region.nodes):
        if node.type == "declaration" and all(
            plan.is_declared_once(each) or _is_again(plan, each) for each in node.children_by_field_name("declarator")
        ):
            continue
        if node.type != "if_statement" or node.child_by_field_name("alternative") is not None:
            return None
        condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        if condition is None or then is None or any(word(child) == "constexpr" for child in node.children):
            return None
        if not plan.is_pure(condition):
            return None
        inner = then.named_children if then.type == "compound_statement" else [then]
        leaves = is_last and len(inner) == 1 and inner[0].type == "return_statement"
        alone = position == len(region.nodes) - 1 and not any(find(then, "return_statement"))
        return Guard(node, condition, leaves) if (leaves or alone) and _is_front(plan, condition, leaves) else None
    return None


def _is_again(plan: Plan, declarator: Node) -> bool:
    return any(variable.declarator == declarator and variable in plan.again for variable in plan.variables.all)


def _is_front(plan: Plan, node: Node, negated: bool) -> bool:
    """Tell whether a condition, or its opposite, holds for some first threads of a row only."""
    if node.type in ("condition_clause", "parenthesized_expression"):
        return len(node.named_children) == 1 and _is_front(plan, node.named_children[0], negated)
    if slope(plan, node) == 0:
        return True
    operator = word(node.child_by_field_name("operator"))
    if node.type == "unary_expression" and operator == "!":
        return _is_front(plan, node.named_children[0], not negated)
    if node.type != "binary_expression":
        return False
    if operator in ("&&", "||"):
        return all(_is_front(plan, child, negated) for child in node.named_children)
    sign = _NEGATED.get(operator, "") if negated else operator
    sides = (node.child_by_field_name("left"), node.child_by_field_name("right"))
    left, right = (slope(plan, side) for side in sides)
    if any(slope(plan, side) and not rises(plan, side) for side in sides):
        return False
    if sign in ("<", "<="):
        return left in (0, 1) and right == 0
    return sign in (">", ">=") and left == 0 and right in (0, 1)


def _words(variable: Variable) -> list[str]:
    if variable.declaration is None:
        return ["?"]
    first = variable.declaration.children_by_field_name("declarator")[0]
    words = (child for child in variable.declaration.children if child.end_byte <= first.start_byte)
    return " ".join(map(word, words)).split()


def _type(variable: Variable) -> set[str]:
    return set(_words(variable))
