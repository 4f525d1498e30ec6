"""The mathematical functions: those that OpenCL C has under the same or another name, and what is made of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from podium_opencl.translation.context import Context
from podium_opencl.translation.conversions import rounded
from podium_opencl.translation.prelude import helper_text
from podium_opencl.translation.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    UINT,
    ULONG,
    VOID,
    Type,
    common,
    pointer,
    promoted,
)
from podium_opencl.translation.values import Value, convert, named, widened

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["call_mathematics", "call_minimum"]

_SAME = (
    "sqrt rsqrt exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "floor ceil trunc round rint fabs cbrt erf erfc tgamma lgamma sinpi cospi pow atan2 fmod fmin fmax copysign hypot "
    "fdim nextafter remainder fma logb"
)
_MATHEMATICS = {name: name for name in _SAME.split()} | {"nearbyint": "rint"}
_ARITIES = dict.fromkeys("pow atan2 fmod fmin fmax copysign hypot fdim nextafter remainder".split(), 2) | {"fma": 3}
# What gives or takes more than numbers of one type: the types of the other operands and of the result, the text.
_MIXED = {
    "ldexp": ((INT,), None, "ldexp({0}, {1})"),
    "scalbn": ((INT,), None, "ldexp({0}, {1})"),
    "scalbln": ((LONG,), None, "ldexp({0}, convert_int_sat({1}))"),
    "ilogb": ((), INT, "ilogb({0})"),
    "rcbrt": ((), None, "(1 / cbrt({0}))"),
    "lround": ((), LONG, "round({0})"),
    "llround": ((), LONG, "round({0})"),
    "lrint": ((), LONG, "rint({0})"),
    "llrint": ((), LONG, "rint({0})"),
    "modf": ((None,), None, "modf({0}, {1})"),
    "frexp": ((pointer(INT, None),), None, "frexp({0}, {1})"),
    "sincos": ((None, None), VOID, "(*({1}) = sincos({0}, {2}))"),
}
_FAST = dict.fromkeys("sin cos tan exp log log2 log10 exp10 pow".split())
_TESTS = ("isnan", "isinf", "isfinite", "signbit")
_EXACT = {"__fadd_rn": "+", "__fsub_rn": "-", "__fmul_rn": "*", "__fdiv_rn": "/", "__fdividef": "/"}


def call_mathematics(body: Context, node: Node, name: str, values: list[Value]) -> Value | None:
    """Translate a mathematical function; None if the name is none. Raises `Refusal`."""
    match = re.fullmatch(r"__(\w+?)f", name)
    if match and match[1] in _FAST:
        return _applied(body, node, name, _MATHEMATICS[match[1]], values, FLOAT)
    if re.fullmatch(r"__f(sqrt|rcp|maf)_rn|__frsqrt_rn|__saturatef", name):
        return _single(body, node, name, values)
    if name in _EXACT:
        body.expect(node, name, values, 2)
        left, right = (convert(each, FLOAT).text for each in values)
        word = {"+": "add", "-": "sub", "*": "mul", "/": "div"}[_EXACT[name]]
        if word == "div":
            return Value(f"({left} / {right})", FLOAT)
        helper = body.whole.helper(f"podium_exact_{word}", helper_text("exact", word=word, operator=_EXACT[name]))
        return Value(f"{helper}({left}, {right})", FLOAT)
    if name in _TESTS:
        body.expect(node, name, values, 1)
        return Value(f"({name}({_floating(values).text}) != 0)", BOOL)
    known = _MATHEMATICS | _MIXED
    plain = name.removesuffix("f") if name not in known and name.endswith("f") else name
    if plain not in known:
        return None
    kind = FLOAT if plain != name else None
    if plain in _MIXED:
        return _mixed(body, node, name, plain, values, kind)
    return _applied(body, node, name, _MATHEMATICS[plain], values, kind)


def _floating(values: Sequence[Value]) -> Value:
    value = widened(values[0])
    return value if value.type.kind == "real" else convert(value, DOUBLE)


def _applied(body: Context, node: Node, name: str, word: str, values: list[Value], kind: Type | None) -> Value:
    body.expect(node, name, values, _ARITIES.get(word, 1))
    if kind is None:
        kinds = [widened(each).type for each in values]
        if any(not each.is_number for each in kinds):
            raise body.refused(node, f"{name} of a {', '.join(map(named, kinds))}")
        kind = FLOAT if all(each == FLOAT for each in kinds) else DOUBLE
    _need_double(body, node, name, kind)
    texts = ", ".join(convert(each, kind).text for each in values)
    return Value(f"{word}({texts})", kind)


def _mixed(body: Context, node: Node, name: str, plain: str, values: list[Value], kind: Type | None) -> Value:
    others, result, text = _MIXED[plain]
    body.expect(node, name, values, 1 + len(others))
    kind = kind or (FLOAT if widened(values[0]).type == FLOAT else DOUBLE)
    _need_double(body, node, name, kind)
    texts = [convert(values[0], kind).text]
    for value, other in zip(values[1:], others):  # None is a pointer to what the function is of
        texts.append(convert(value, other if other is not None else pointer(kind, None)).text)
    value = Value(text.format(*texts), kind)
    return rounded(body, value, LONG, "rte") if result == LONG else replace(value, type=result or kind)


def _need_double(body: Context, node: Node, name: str, kind: Type) -> None:
    if kind == DOUBLE and "cl_khr_fp64" not in body.whole.extensions:
        raise body.refused(node, f"this OpenCL device has no double (cl_khr_fp64): use {name}f and floats")


def _single(body: Context, node: Node, name: str, values: list[Value]) -> Value:
    word = name.strip("_").removesuffix("_rn")
    body.expect(node, name, values, 3 if word == "fmaf" else 1)
    texts = [convert(each, FLOAT).text for each in values]
    written = {
        "fsqrt": f"sqrt({texts[0]})",
        "frcp": f"(1.0f / {texts[0]})",
        "frsqrt": f"rsqrt({texts[0]})",
        "saturatef": f"fmin(fmax({texts[0]}, 0.0f), 1.0f)",
        "fmaf": f"fma({', '.join(texts)})",
    }
    return Value(written[word], FLOAT)


def call_minimum(body: Context, node: Node, name: str, values: list[Value]) -> Value | None:
    """Translate a minimum, a maximum or an absolute value; None if the name is none. Raises `Refusal`."""
    fixed = {"umin": UINT, "umax": UINT, "llmin": LONG, "llmax": LONG, "ullmin": ULONG, "ullmax": ULONG}
    if name in ("min", "max", *fixed):
        body.expect(node, name, values, 2)
        if not all(each.type.is_number for each in values):
            raise body.refused(node, f"{name} of a {named(values[0].type)} and a {named(values[1].type)}")
        kind = fixed.get(name) or common([each.type for each in values])
        word = name[-3:]
        if kind.kind == "small":
            texts = [widened(each).text for each in values]
            return convert(Value(f"f{word}({', '.join(texts)})", FLOAT), kind)
        texts = [convert(each, kind).text for each in values]
        if values[0].constant is not None and values[1].constant is not None and kind.kind == "integer":
            pair = [convert(each, kind) for each in values]
            return (min if word == "min" else max)(pair, key=lambda each: each.constant or 0)
        return Value(f"{'f' if kind.kind == 'real' else ''}{word}({', '.join(texts)})", kind)
    if name in ("abs", "labs", "llabs"):
        body.expect(node, name, values, 1)
        value = values[0]
        if not value.type.is_number:
            raise body.refused(node, f"{name} of a {named(value.type)}")
        if value.type.kind != "integer":
            return convert(Value(f"fabs({widened(value).text})", widened(value).type), value.type)
        kind = promoted(value.type) if name == "abs" else LONG
        if not kind.signed:
            return convert(value, kind)
        return Value(f"(({kind.name})abs({convert(value, kind).text}))", kind)
    return None
