"""Integer constant expressions, as they stand in the sizes of arrays and in template arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from podium._source._cuda_types import Refusal
from podium._source._syntax import words

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Meaning", "evaluate"]

_LITERAL = re.compile(r"(?P<sign>-?)(?P<digits>0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)[uUlLzZ]{0,3}")
_LIMIT = 1 << 63


class Meaning(Protocol):
    """What the names in an expression mean: the value of a name, the size of a type, a value converted to a type."""

    def value_of(self, node: Node) -> int: ...

    def size_of(self, node: Node) -> int: ...

    def convert(self, value: int, node: Node) -> int: ...


def evaluate(node: Node, meaning: Meaning, depth: int = 0) -> int:
    """Return the value of an expression.

    Raises `Refusal` for what is not a constant integer, or leaves 64 bits on the way.
    """
    if depth > 64:
        raise Refusal("the expression nests too deeply")
    value = _value(node, meaning, depth + 1)
    if not -_LIMIT <= value < 2 * _LIMIT:
        raise Refusal(f"{words(node)!r} is out of range")
    return value


def _value(node: Node, meaning: Meaning, depth: int) -> int:
    def operand(field: str) -> int:
        inner = node.child_by_field_name(field)
        if inner is None:
            raise _no_constant(node)
        return evaluate(inner, meaning, depth)

    kind = node.type
    if node.has_error:
        raise _no_constant(node)
    if kind == "number_literal":
        return _literal(node)
    if kind in ("true", "false"):
        return int(kind == "true")
    if kind in ("identifier", "qualified_identifier", "type_identifier", "type_descriptor", "template_function"):
        return meaning.value_of(node)
    if kind in ("parenthesized_expression", "initializer_list", "argument_list") and node.named_child_count == 1:
        return evaluate(node.named_children[0], meaning, depth)
    if kind == "unary_expression":
        return _unary(_operator(node), operand("argument"))
    if kind == "binary_expression":
        return _binary(node, operand)
    if kind == "conditional_expression":
        return operand("consequence") if operand("condition") else operand("alternative")
    if kind == "sizeof_expression" and (inner := _sized_type(node)) is not None:
        return meaning.size_of(inner)
    if (target := _cast_target(node)) is not None:
        return meaning.convert(operand("value" if kind == "cast_expression" else "arguments"), target)
    raise _no_constant(node)


def _sized_type(node: Node) -> Node | None:
    """Return the type in sizeof; the grammar takes a name alone for a value."""
    if (inner := node.child_by_field_name("type")) is not None:
        return inner
    value = node.child_by_field_name("value")
    if value is None or value.type != "parenthesized_expression" or value.named_child_count != 1:
        return None
    return value.named_children[0] if value.named_children[0].type.endswith("identifier") else None


def _cast_target(node: Node) -> Node | None:
    """Return the type that (int)5, int(5) or static_cast<int>(5) converts to; None if it is no cast."""
    if node.type == "cast_expression":
        return node.child_by_field_name("type")
    function = node.child_by_field_name("function")
    if function is None or node.type != "call_expression":
        return None
    if function.type == "primitive_type":
        return function
    name, arguments = function.child_by_field_name("name"), function.child_by_field_name("arguments")
    if name is None or arguments is None or words(name) != "static_cast" or arguments.named_child_count != 1:
        return None
    return arguments.named_children[0]


def _literal(node: Node) -> int:
    match = _LITERAL.fullmatch(words(node).replace("'", ""))
    if match is None or len(match["digits"]) > 64:
        raise Refusal(f"{words(node)!r} is not an integer that podium can read")
    digits = re.sub("^0(?=[0-9])", "0o", match["digits"])
    try:
        value = int(digits, 0)
    except ValueError:
        raise Refusal(f"{words(node)!r} is not an integer that podium can read") from None
    return -value if match["sign"] else value


def _operator(node: Node) -> str:
    operator = node.child_by_field_name("operator")
    return operator.type if operator is not None else ""


def _unary(operator: str, value: int) -> int:
    if operator == "+":
        return value
    if operator == "-":
        return -value
    if operator == "~":
        return ~value
    if operator == "!":
        return int(not value)
    raise Refusal(f"the operator {operator!r} is none that podium can compute")


def _binary(node: Node, operand: Callable[[str], int]) -> int:
    operator = _operator(node)
    left = operand("left")
    if operator in ("&&", "and"):
        return int(bool(left and operand("right")))
    if operator in ("||", "or"):
        return int(bool(left or operand("right")))
    right = operand("right")
    if operator in ("/", "%"):
        if right == 0:
            raise Refusal("the expression divides by zero")
        # C++ rounds towards zero
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    if operator in ("<<", ">>"):
        if not 0 <= right < 64:
            raise Refusal("the expression shifts too far")
        return left << right if operator == "<<" else left >> right
    if operator in _ARITHMETIC:
        return _ARITHMETIC[operator](left, right)
    raise Refusal(f"the operator {operator!r} is none that podium can compute")


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "&": lambda left, right: left & right,
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
    "<": lambda left, right: int(left < right),
    "<=": lambda left, right: int(left <= right),
    ">": lambda left, right: int(left > right),
    ">=": lambda left, right: int(left >= right),
}


def _no_constant(node: Node) -> Refusal:
    shown = words(node)
    return Refusal(f"{shown if len(shown) <= 60 else shown[:57] + '...'!r} is not a constant that podium can compute")
