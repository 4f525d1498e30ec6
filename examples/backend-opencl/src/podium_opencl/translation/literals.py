"""Literals: numbers, characters, true and false."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium_opencl.translation.condition import integer
from podium_opencl.translation.context import Context
from podium_opencl.translation.symbols import text_of
from podium_opencl.translation.types import BOOL, DOUBLE, FLOAT, INT, LONG, NULL, SCALARS, UINT, ULONG
from podium_opencl.translation.values import Value, literal

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Literals"]


class Literals(Context):
    """The translation of literals."""

    def _number_literal(self, node: Node) -> Value:
        text = text_of(node).replace("'", "")
        lower = text.lower()
        if "p" in lower or ("0x" not in lower and any(each in lower for each in ".e")):
            digits = lower.rstrip("fl")
            single = lower.endswith("f")
            if lower.endswith("l"):
                raise self.refused(node, "a GPU has no long double: use double")
            if not single and "cl_khr_fp64" not in self.whole.extensions:
                raise self.refused(node, f"this OpenCL device has no double (cl_khr_fp64): write {digits}f")
            try:
                constant = float.fromhex(digits) if "p" in digits else float(digits)
            except ValueError:
                raise self.refused(node, f"{text} is no number that podium-opencl knows") from None
            return Value(digits + ("f" if single else ""), FLOAT if single else DOUBLE, constant)
        value = integer(lower)
        suffix = lower[len(lower.rstrip("uzl")) :]
        if value is None:
            raise self.refused(node, f"{text} is no number that podium-opencl knows")
        kinds = [UINT, ULONG] if "u" in suffix else [INT, LONG] if lower[:1] != "0" else [INT, UINT, LONG, ULONG]
        if "l" in suffix or "z" in suffix:
            kinds = [kind for kind in kinds if kind.size == 8]
        fitting = [kind for kind in kinds if value < 1 << (8 * kind.size - kind.signed)]
        if not fitting:
            raise self.refused(node, f"{text} is larger than any integer")
        return Value(literal(value, fitting[0]), fitting[0], value)

    def _char_literal(self, node: Node) -> Value:
        try:
            value = ord(text_of(node)[1:-1].encode().decode("unicode_escape"))
        except (ValueError, TypeError):
            value = 256
        if not 0 <= value < (256 if "\\" in text_of(node) else 128):
            raise self.refused(node, f"the character {text_of(node)} is not a plain one")
        value -= 256 if value > 127 else 0
        return Value(f"((char)({value}))", SCALARS["char"], value)

    def _true(self, node: Node) -> Value:
        return Value("1", BOOL, 1)

    def _false(self, node: Node) -> Value:
        return Value("0", BOOL, 0)

    def _null(self, node: Node) -> Value:
        return Value("0", NULL)

    def _string_literal(self, node: Node) -> Value:
        raise self.refused(node, "podium-opencl has strings only as the format of printf")
