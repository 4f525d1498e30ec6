"""The functions of floats of 16 bits, which are computed with as floats of 32."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from podium_opencl.translation.context import Context
from podium_opencl.translation.conversions import NUMBERS, ROUNDINGS, rounded
from podium_opencl.translation.types import BOOL, FLOAT, SCALARS, common
from podium_opencl.translation.values import Value, convert, named, widened

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["call_small"]

_USHORT, _SHORT = SCALARS["unsigned short"], SCALARS["short"]
_HALF, _BFLOAT = SCALARS["__half"], SCALARS["__nv_bfloat16"]
_SMALL = {
    **dict.fromkeys(("__float2half", "__float2half_rn"), (FLOAT, _HALF)),
    **dict.fromkeys(("__float2bfloat16", "__float2bfloat16_rn"), (FLOAT, _BFLOAT)),
    "__half2float": (_HALF, FLOAT),
    "__bfloat162float": (_BFLOAT, FLOAT),
}
_SMALL_BITS = {
    "__half_as_ushort": (_HALF, _USHORT),
    "__half_as_short": (_HALF, _SHORT),
    "__ushort_as_half": (_USHORT, _HALF),
    "__short_as_half": (_SHORT, _HALF),
    "__bfloat16_as_ushort": (_BFLOAT, _USHORT),
    "__ushort_as_bfloat16": (_USHORT, _BFLOAT),
}
_INTEGERS = "int|uint|ll|ull|short|ushort|char|uchar"
_SMALL_OPERATIONS = {"__hadd": "+", "__hsub": "-", "__hmul": "*", "__hdiv": "/"}
_SMALL_OPERATIONS |= {"__hgt": ">", "__hlt": "<", "__hge": ">=", "__hle": "<=", "__heq": "==", "__hne": "!="}


def call_small(body: Context, node: Node, name: str, values: list[Value]) -> Value | None:
    """Translate a function of a float of 16 bits; None if the name is none. Raises `Refusal`."""
    if name in _SMALL:
        body.expect(node, name, values, 1)
        source, kind = _SMALL[name]
        return convert(convert(values[0], source), kind)
    match = re.fullmatch(
        rf"__(half|bfloat16)2({_INTEGERS})_(rn|rz|rd|ru)|__({_INTEGERS}|double)2(half|bfloat16)(?:_rn)?", name
    )
    if match:
        body.expect(node, name, values, 1)
        small = _HALF if "half" in name else _BFLOAT
        if match[4]:
            return convert(convert(values[0], NUMBERS[match[4]]), small)
        kind = NUMBERS[match[2]]
        return rounded(body, widened(convert(values[0], small)), kind, ROUNDINGS[match[3]])
    if name in _SMALL_BITS:
        body.expect(node, name, values, 1)
        source, kind = _SMALL_BITS[name]
        text = convert(values[0], source).text
        if source.kind == "small":
            return Value(f"(({kind.name}){source.name}_bits({text}))", kind)
        return Value(f"(({kind.name}){{(ushort)({text})}})", kind)
    if name in _SMALL_OPERATIONS:
        body.expect(node, name, values, 2)
        operator = _SMALL_OPERATIONS[name]
        kind = common([each.type for each in values])
        value = Value(f"({widened(values[0]).text} {operator} {widened(values[1]).text})", FLOAT)
        return convert(value, kind) if operator in "+-*/" else replace(value, type=BOOL)
    named_ones: dict[str, Callable[[list[str]], str]] = {
        "__hneg": lambda texts: f"(-{texts[0]})",
        "__habs": lambda texts: f"fabs({texts[0]})",
        "__hmax": lambda texts: f"fmax({texts[0]}, {texts[1]})",
        "__hmin": lambda texts: f"fmin({texts[0]}, {texts[1]})",
        "__hfma": lambda texts: f"fma({texts[0]}, {texts[1]}, {texts[2]})",
        "hexp": lambda texts: f"exp({texts[0]})",
        "hlog": lambda texts: f"log({texts[0]})",
        "hsqrt": lambda texts: f"sqrt({texts[0]})",
        "hrsqrt": lambda texts: f"rsqrt({texts[0]})",
        "hrcp": lambda texts: f"(1.0f / {texts[0]})",
        "hsin": lambda texts: f"sin({texts[0]})",
        "hcos": lambda texts: f"cos({texts[0]})",
    }
    if name not in named_ones:
        return None
    body.expect(node, name, values, {"__hmax": 2, "__hmin": 2, "__hfma": 3}.get(name, 1))
    if values[0].type.kind != "small":
        raise body.refused(node, f"{name} of a {named(values[0].type)}")
    return convert(Value(named_ones[name]([widened(each).text for each in values]), FLOAT), values[0].type)
