"""The expressions of ``#if``: whole numbers and operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podium_opencl.translation.refusal import Place, Refusal

__all__ = ["evaluate", "integer"]

_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: int(bool(a or b)),
    "&&": lambda a, b: int(bool(a and b)),
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "<<": lambda a, b: a << b if 0 <= b < 64 else 0,
    ">>": lambda a, b: a >> b if 0 <= b < 64 else 0,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    # An operand that is not evaluated, as behind &&, may divide by zero.
    "/": lambda a, b: 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: 0 if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1),
}


def integer(text: str) -> int | None:
    """Return the value of an integer literal, None if the text is none."""
    digits = text.replace("'", "").rstrip("uUlLzZ").lower()
    try:
        if digits.startswith(("0x", "0b")):
            return int(digits, 0)
        return int(digits, 8 if digits.startswith("0") and len(digits) > 1 else 10)
    except ValueError:
        return None


def evaluate(texts: Sequence[str], place: Place) -> int:
    """Compute a condition whose macros are expanded; names that are left are 0. Raises `Refusal`."""
    waiting = list(reversed(texts))
    value = _ternary(waiting, place)
    if waiting:
        raise Refusal(f"the condition cannot be read at {waiting[-1]!r}", place)
    return value


def _ternary(waiting: list[str], place: Place) -> int:
    value = _level(waiting, 0, place)
    if waiting and waiting[-1] == "?":
        waiting.pop()
        yes = _ternary(waiting, place)
        if not waiting or waiting.pop() != ":":
            raise Refusal("a ? without : in the condition", place)
        no = _ternary(waiting, place)
        return yes if value else no
    return value


def _level(waiting: list[str], level: int, place: Place) -> int:
    if level == len(_LEVELS):
        return _unary(waiting, place)
    value = _level(waiting, level + 1, place)
    while waiting and waiting[-1] in _LEVELS[level]:
        operation = waiting.pop()
        value = _OPERATIONS[operation](value, _level(waiting, level + 1, place))
    return value


def _unary(waiting: list[str], place: Place) -> int:
    if not waiting:
        raise Refusal("the condition is not complete", place)
    text = waiting.pop()
    if text == "(":
        value = _ternary(waiting, place)
        if not waiting or waiting.pop() != ")":
            raise Refusal("a bracket of the condition is not closed", place)
        return value
    if text in ("!", "-", "+", "~"):
        value = _unary(waiting, place)
        return {"!": int(not value), "-": -value, "+": value, "~": ~value}[text]
    if text == "true":
        return 1
    if text[:1].isalpha() or text[:1] == "_":
        return 0
    found = integer(text)
    if found is None:
        raise Refusal(f"{text!r} cannot be in a condition", place)
    return found
