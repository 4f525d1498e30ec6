"""Conversions that have names: with a rounding, and of the bits of a number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from podium_opencl.translation.context import Context
from podium_opencl.translation.prelude import helper_text
from podium_opencl.translation.types import DOUBLE, FLOAT, INT, LONG, SCALARS, UINT, ULONG, Type
from podium_opencl.translation.values import Value, convert

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["NUMBERS", "ROUNDINGS", "call_conversion", "rounded"]

ROUNDINGS = {"rn": "rte", "rz": "rtz", "rd": "rtn", "ru": "rtp"}
_BITS = {
    "__float_as_int": (FLOAT, INT),
    "__int_as_float": (INT, FLOAT),
    "__float_as_uint": (FLOAT, UINT),
    "__uint_as_float": (UINT, FLOAT),
    "__double_as_longlong": (DOUBLE, LONG),
    "__longlong_as_double": (LONG, DOUBLE),
}
NUMBERS = {"float": FLOAT, "double": DOUBLE, "int": INT, "uint": UINT, "ll": LONG, "ull": ULONG}
NUMBERS |= {
    "char": SCALARS["char"],
    "uchar": SCALARS["unsigned char"],
    "short": SCALARS["short"],
    "ushort": SCALARS["unsigned short"],
}


def call_conversion(body: Context, node: Node, name: str, values: list[Value]) -> Value | None:
    """Translate a conversion; None if the name is none. Raises `Refusal`."""
    if name in _BITS:
        body.expect(node, name, values, 1)
        source, kind = _BITS[name]
        return Value(f"as_{kind.name}({convert(values[0], source).text})", kind)
    match = re.fullmatch(r"__(float|double|int|uint|ll|ull)2(float|double|int|uint|ll|ull)(?:_(rn|rz|rd|ru))?", name)
    if match:
        body.expect(node, name, values, 1)
        source, kind = NUMBERS[match[1]], NUMBERS[match[2]]
        mode = ROUNDINGS.get(match[3], "rte")
        if source.kind == "real" and kind.kind == "integer":
            return rounded(body, convert(values[0], source), kind, mode)
        return Value(f"convert_{kind.name}_{mode}({convert(values[0], source).text})", kind)
    return None


def rounded(body: Context, value: Value, kind: Type, mode: str) -> Value:
    """Round to an integer as CUDA does: what is out of range is the nearest one, and what is no number 0."""
    name = f"podium_{kind.name}_{mode}_{value.type.name}"
    text = helper_text("integer", helper=name, type=kind.name, mode=mode, source=value.type.name)
    return Value(f"{body.whole.helper(name, text)}({value.text})", kind)
