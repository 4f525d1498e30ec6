"""Constant expressions: the operators on values that are known at compile time, as the types have them wrap."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podium_opencl.translation.types import Type
from podium_opencl.translation.values import wrapped

__all__ = ["folded"]

Number = int | float

_UNARY: dict[str, Callable[[Number], Number]] = {
    "-": lambda a: -a,
    "+": lambda a: a,
    "~": lambda a: ~int(a),
}
_EITHER: dict[str, Callable[[Number, Number], Number]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
}
_WHOLE: dict[str, Callable[[int, int], int]] = {
    "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}


def folded(operator: str, operands: Sequence[int | float | None], kind: Type) -> int | float | None:
    """Compute an operator whose operands have been converted to a type; None if that is for the compiler to do.

    Only integers are folded, and comparisons of them: floats round as the device rounds.
    """
    if any(each is None for each in operands) or kind.kind != "integer":
        return None
    whole = [int(each) for each in operands if each is not None]
    if len(whole) == 1:
        return wrapped(_UNARY[operator](whole[0]), kind) if operator in _UNARY else None
    left, right = whole
    if operator in _EITHER:
        found = _EITHER[operator](left, right)
        return found if operator in ("<", ">", "<=", ">=", "==", "!=") else wrapped(found, kind)
    if operator in ("/", "%") and right == 0:
        return None
    if operator in ("<<", ">>") and not 0 <= right < 8 * kind.size:
        return None
    return wrapped(_WHOLE[operator](left, right), kind) if operator in _WHOLE else None
