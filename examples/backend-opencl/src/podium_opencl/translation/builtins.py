"""The functions that the kernel language has built in, but for atomics and those of warps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Union

from podium_opencl.translation.atomics import call_atomic
from podium_opencl.translation.collectives import call_collective
from podium_opencl.translation.context import Context
from podium_opencl.translation.prelude import helper_text
from podium_opencl.translation.symbols import text_of
from podium_opencl.translation.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    SCALARS,
    UINT,
    ULONG,
    VOID,
    Type,
    common,
    promoted,
)
from podium_opencl.translation.values import Value, convert, loaded, named, widened

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["call_builtin"]

_SAME = (
    "sqrt rsqrt exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "floor ceil trunc round rint fabs cbrt erf erfc tgamma lgamma sinpi cospi pow atan2 fmod fmin fmax copysign hypot "
    "fdim nextafter remainder fma"
)
_MATHEMATICS = {name: name for name in _SAME.split()} | {"nearbyint": "rint"}
_ARITIES = dict.fromkeys("pow atan2 fmod fmin fmax copysign hypot fdim nextafter remainder".split(), 2) | {"fma": 3}
_FAST = dict.fromkeys("sin cos tan exp log log2 log10 exp10 pow".split())
_TESTS = ("isnan", "isinf", "isfinite", "signbit")
_ROUNDINGS = {"rn": "rte", "rz": "rtz", "rd": "rtn", "ru": "rtp"}
_BITS = {
    "__float_as_int": (FLOAT, INT),
    "__int_as_float": (INT, FLOAT),
    "__float_as_uint": (FLOAT, UINT),
    "__uint_as_float": (UINT, FLOAT),
    "__double_as_longlong": (DOUBLE, LONG),
    "__longlong_as_double": (LONG, DOUBLE),
}
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
_SMALL_OPERATIONS = {"__hadd": "+", "__hsub": "-", "__hmul": "*", "__hdiv": "/"}
_SMALL_OPERATIONS |= {"__hgt": ">", "__hlt": "<", "__hge": ">=", "__hle": "<=", "__heq": "==", "__hne": "!="}
_EXACT = {"__fadd_rn": "+", "__fsub_rn": "-", "__fmul_rn": "*", "__fdiv_rn": "/", "__fdividef": "/"}
_FENCES = ("__threadfence", "__threadfence_block", "__threadfence_system")

Given = Union[Value, "Node"]


def call_builtin(body: Context, node: Node, name: str, given: Sequence[Given]) -> Value | None:
    """Translate a call of a function that is built in; None if there is none of that name. Raises `Refusal`."""
    if name == "printf":
        return _printf(body, node)
    values = []
    for each in given:
        if not isinstance(each, Value):
            raise body.refused(node, f"{name} takes no values in braces")
        values.append(loaded(each))
    for call in (call_collective, call_atomic, _mathematics, _minimum, _bits, _small, _vector, _other):
        found = call(body, node, name, values)
        if found is not None:
            return found
    return None


def _expect(body: Context, node: Node, name: str, values: Sequence[Value], count: int) -> None:
    if len(values) != count:
        raise body.refused(node, f"{name} takes {count} arguments, not {len(values)}")


def _mathematics(body: Context, node: Node, name: str, values: list[Value]) -> Value | None:
    match = re.fullmatch(r"__(\w+?)f", name)
    if match and match[1] in _FAST:
        return _applied(body, node, name, _MATHEMATICS[match[1]], values, FLOAT)
    if re.fullmatch(r"__f(sqrt|rcp|maf)_rn|__frsqrt_rn|__saturatef", name):
        return _single(body, node, name, values)
    if name in _EXACT:
        _expect(body, node, name, values, 2)
        left, right = (convert(each, FLOAT).text for each in values)
        word = {"+": "add", "-": "sub", "*": "mul", "/": "div"}[_EXACT[name]]
        if word == "div":
            return Value(f"({left} / {right})", FLOAT)
        helper = body.whole.helper(f"podium_exact_{word}", helper_text("exact", word=word, operator=_EXACT[name]))
        return Value(f"{helper}({left}, {right})", FLOAT)
    if name in _TESTS:
        _expect(body, node, name, values, 1)
        return Value(f"({name}({_floating(values).text}) != 0)", BOOL)
    plain = name.removesuffix("f") if name not in _MATHEMATICS and name.endswith("f") else name
    if plain not in _MATHEMATICS:
        return None
    kind = FLOAT if plain != name else None
    return _applied(body, node, name, _MATHEMATICS[plain], values, kind)


def _floating(values: Sequence[Value]) -> Value:
    value = widened(values[0])
    return value if value.type.kind == "real" else convert(value, DOUBLE)


def _applied(body: Context, node: Node, name: str, word: str, values: list[Value], kind: Type | None) -> Value:
    _expect(body, node, name, values, _ARITIES.get(word, 1))
    if kind is None:
        kinds = [widened(each).type for each in values]
        if any(not each.is_number for each in kinds):
            raise body.refused(node, f"{name} of a {', '.join(map(named, kinds))}")
        kind = FLOAT if all(each == FLOAT for each in kinds) else DOUBLE
    if kind == DOUBLE and "cl_khr_fp64" not in body.whole.extensions:
        raise body.refused(node, f"this OpenCL device has no double (cl_khr_fp64): use {name}f and floats")
    texts = ", ".join(convert(each, kind).text for each in values)
    return Value(f"{word}({texts})", kind)


def _single(body: Context, node: Node, name: str, values: list[Value]) -> Value:
    word = name.strip("_").removesuffix("_rn")
    _expect(body, node, name, values, 3 if word == "fmaf" else 1)
    texts = [convert(each, FLOAT).text for each in values]
    written = {
        "fsqrt": f"sqrt({texts[0]})",
        "frcp": f"(1.0f / {texts[0]})",
        "frsqrt": f"rsqrt({texts[0]})",
        "saturatef": f"fmin(fmax({texts[0]}, 0.0f), 1.0f)",
        "fmaf": f"fma({', '.join(texts)})",
    }
    return Value(written[word], FLOAT)


def _minimum(body: Context, node: Node, name: str, values: list[Value]) -> Value | None:
    fixed = {"umin": UINT, "umax": UINT, "llmin": LONG, "llmax": LONG, "ullmin": ULONG, "ullmax": ULONG}
    if name in ("min", "max", *fixed):
        _expect(body, node, name, values, 2)
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
        _expect(body, node, name, values, 1)
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


def _bits(body: Context, node: Node, name: str, values: list[Value]) -> Value | None:
    counted = re.fullmatch(r"__(popc|clz|ffs|brev)(ll)?", name)
    if counted:
        _expect(body, node, name, values, 1)
        kind = ULONG if counted[2] else UINT
        text = convert(values[0], kind).text
        if counted[1] == "popc":
            return Value(f"((int)popcount({text}))", INT)
        if counted[1] == "clz":
            return Value(f"((int)clz({text}))", INT)
        word = f"podium_{counted[1]}_{kind.name}"
        helper = body.whole.helper(word, helper_text(counted[1], type=kind.name, bits=8 * kind.size))
        return Value(f"{helper}({text})", kind if counted[1] == "brev" else INT)
    high = re.fullmatch(r"__(u?)mul(64)?hi", name)
    if high:
        _expect(body, node, name, values, 2)
        kind = {("", None): INT, ("u", None): UINT, ("", "64"): LONG, ("u", "64"): ULONG}[high[1], high[2]]
        return Value(f"mul_hi({', '.join(convert(each, kind).text for each in values)})", kind)
    if name in ("__mul24", "__umul24"):
        _expect(body, node, name, values, 2)
        kind = INT if name == "__mul24" else UINT
        return Value(f"mul24({', '.join(convert(each, kind).text for each in values)})", kind)
    if name in _BITS:
        _expect(body, node, name, values, 1)
        source, kind = _BITS[name]
        return Value(f"as_{kind.name}({convert(values[0], source).text})", kind)
    rounded = re.fullmatch(r"__(float|double|int|uint|ll|ull)2(float|double|int|uint|ll|ull)(?:_(rn|rz|rd|ru))?", name)
    if rounded:
        _expect(body, node, name, values, 1)
        kinds = {"float": FLOAT, "double": DOUBLE, "int": INT, "uint": UINT, "ll": LONG, "ull": ULONG}
        source, kind = kinds[rounded[1]], kinds[rounded[2]]
        mode = f"_{_ROUNDINGS[rounded[3]]}" if rounded[3] else ""
        return Value(f"convert_{kind.name}{mode}({convert(values[0], source).text})", kind)
    return None


def _small(body: Context, node: Node, name: str, values: list[Value]) -> Value | None:
    if name in _SMALL:
        _expect(body, node, name, values, 1)
        source, kind = _SMALL[name]
        return convert(convert(values[0], source), kind)
    if name in _SMALL_BITS:
        _expect(body, node, name, values, 1)
        source, kind = _SMALL_BITS[name]
        text = convert(values[0], source).text
        if source.kind == "small":
            return Value(f"(({kind.name}){source.name}_bits({text}))", kind)
        return Value(f"(({kind.name}){{(ushort)({text})}})", kind)
    if name in _SMALL_OPERATIONS:
        _expect(body, node, name, values, 2)
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
    _expect(body, node, name, values, {"__hmax": 2, "__hmin": 2, "__hfma": 3}.get(name, 1))
    if values[0].type.kind != "small":
        raise body.refused(node, f"{name} of a {named(values[0].type)}")
    return convert(Value(named_ones[name]([widened(each).text for each in values]), FLOAT), values[0].type)


def _vector(body: Context, node: Node, name: str, values: list[Value]) -> Value | None:
    match = re.fullmatch(r"make_((?:u?char|u?short|u?int|u?long|u?longlong|float|double)[1-4])", name)
    if not match:
        return None
    kind = body.resolution.vector(match[1])
    if kind.members[0][1] == DOUBLE and "cl_khr_fp64" not in body.whole.extensions:
        raise body.refused(node, f"this OpenCL device has no double (cl_khr_fp64), which {match[1]} has")
    _expect(body, node, name, values, len(kind.members))
    parts = [convert(value, member).text for value, (_, member) in zip(values, kind.members)]
    return Value(f"(({kind.name}){{{', '.join(parts)}}})", kind)


def _other(body: Context, node: Node, name: str, values: list[Value]) -> Value | None:
    if name in ("__ldg", "__ldca", "__ldcg", "__ldcs"):
        _expect(body, node, name, values, 1)
        kind = values[0].type
        if kind.kind != "pointer":
            raise body.refused(node, f"{name} takes a pointer")
        target = kind.target
        return loaded(Value(f"(*{values[0].text})", target, None, True, kind.space or "?", target.kind == "pointer"))
    if name in _FENCES:
        _expect(body, node, name, values, 0)
        return Value(f"{body.whole.helper('podium_fence', helper_text('fence'))}()", VOID)
    return None


def _printf(body: Context, node: Node) -> Value:
    arguments = node.child_by_field_name("arguments")
    nodes = arguments.named_children if arguments is not None else []
    if not nodes or nodes[0].type not in ("string_literal", "concatenated_string"):
        raise body.refused(node, "printf takes a string literal as its format")
    text = _directives(text_of(nodes[0]))
    parts = []
    for each in nodes[1:]:
        if each.type == "string_literal":
            parts.append(text_of(each))
            continue
        value = widened(body.rvalue(each))
        if value.type.kind == "struct":
            raise body.refused(each, f"printf of a {named(value.type)}")
        parts.append(convert(value, promoted(value.type)).text if value.type.is_number else f"(ulong)({value.text})")
    return Value(f"printf({', '.join([text, *parts])})", INT)


def _directives(text: str) -> str:
    """Write the directives of printf as OpenCL C has them, where long has 64 bits and no other length is longer."""
    return re.sub(r"%(%|[-+ #0-9.*]*)(ll|l|z|j|t|hh|h)?([diouxXcsfFeEgGaAp])?", _directive, text)


def _directive(match: re.Match[str]) -> str:
    flags, length, kind = match[1] or "", match[2] or "", match[3] or ""
    if flags == "%":
        return "%%"
    if kind == "p":
        return f"%{flags}lx"
    return f"%{flags}{'l' if length in ('ll', 'l', 'z', 'j', 't') and kind in 'diouxX' else ''}{kind}"
