"""Parameters fixed at compile time: taken out of the parameter list, and made constants in the kernel's body."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence

from podium._arguments import Slot
from podium._signature import Parameter, Type
from podium._source._kernel_parameters import DeclaredKernel
from podium._source._preprocessor import Preprocessed
from podium.errors import SourceError

__all__ = ["literal", "rewrite"]

_SCALARS = ("boolean", "signed", "unsigned", "float")


def literal(kernel: str, index: int, parameter: Parameter, value: object) -> str:
    """Return a C++ expression for a value of a scalar type, converted as a launch would convert it.

    It is made from the converted bits alone, so nothing but a number can come out.
    Raises `ArgumentTypeError` or `ArgumentValueError` as a launch does, `SourceError` if the type is no scalar.
    """
    kind = parameter.type
    if kind.kind not in _SCALARS:
        raise SourceError(
            f"{kernel}: the parameter {parameter.name!r} has the type {kind}; only numbers can be constants",
            kernel=kernel,
        )
    data = Slot(kernel, index, parameter).encode(value)
    if kind.kind == "boolean":
        return "true" if data[0] else "false"
    if kind.kind == "float":
        return _float_literal(data, kind)
    number = int.from_bytes(data, sys.byteorder, signed=kind.kind == "signed")
    if kind.kind == "unsigned":
        return f"{number}ULL"
    # In C++ a minus is no part of the literal, so the lowest number has no literal of its own.
    return f"({number + 1}LL - 1)" if number < 0 else f"{number}LL"


def rewrite(text: Preprocessed, kernel: str, occurrences: Sequence[DeclaredKernel], fixed: Mapping[int, str]) -> str:
    """Return the source with the parameters at these positions made constants, in every declaration of the kernel.

    `fixed` maps a position to its literal. The lines keep their numbers. Raises `SourceError`.
    """
    if not any(each.head.body is not None for each in occurrences):
        raise SourceError(
            f"{kernel}: its definition is not in this source, so there is no body to put constants in", kernel=kernel
        )
    count = len(occurrences[0].places())
    edits: list[tuple[int, int, str]] = []
    for occurrence in occurrences:
        if problem := occurrence.problem():
            raise SourceError(
                f"{kernel}: no constant can be taken out of the declaration in line {occurrence.line}: {problem}",
                kernel=kernel,
                line=occurrence.line,
            )
        places, commas = occurrence.places(), occurrence.commas()
        if len(places) != count or len(commas) != max(0, count - 1):
            raise SourceError(
                f"{kernel}: its declarations in line {occurrences[0].line} and line {occurrence.line} have different "
                "parameters, so no constant can be taken out of both",
                kernel=kernel,
                line=occurrence.line,
            )
        for cut in _cuts(places, commas, fixed):
            edits.append((*_in_source(text, kernel, *cut), ""))
        if occurrence.head.body is not None:
            _, end = _in_source(text, kernel, occurrence.head.body, occurrence.head.body + 1)
            edits.append((end, end, _constants(occurrence, fixed)))
    return _edited(text.source, edits)


def _constants(occurrence: DeclaredKernel, fixed: Mapping[int, str]) -> str:
    names, types = occurrence.names(), occurrence.specifiers()
    return "".join(
        f" const {types[index]} {names[index]} = ({types[index]})({value});" for index, value in sorted(fixed.items())
    )


def _cuts(places: list[tuple[int, int]], commas: list[int], fixed: Iterable[int]) -> list[tuple[int, int]]:
    """Choose what to cut: each fixed parameter, and for each one comma next to it that is still there."""
    cuts = [places[index] for index in fixed]
    left = dict(enumerate(commas))
    for index in sorted(fixed):
        for comma in (index, *(each for each in sorted(left, reverse=True) if each < index)):
            if comma in left:
                place = left.pop(comma)
                cuts.append((place, place + 1))
                break
    return cuts


def _in_source(text: Preprocessed, kernel: str, start: int, end: int) -> tuple[int, int]:
    found = text.source_range(start, end)
    if found is None:
        line = text.line(start)
        raise SourceError(
            f"{kernel}: a constant, or the brace before the body, comes out of a macro in line {line}; write it "
            "without the macro, or pass the value as an argument",
            kernel=kernel,
            line=line,
        )
    return found


def _edited(source: str, edits: list[tuple[int, int, str]]) -> str:
    parts = []
    position = 0
    for start, end, replacement in sorted(edits):
        parts += [source[position:start], replacement, "\n" * source.count("\n", start, end)]
        position = end
    return "".join(parts) + source[position:]


def _float_literal(data: bytes, kind: Type) -> str:
    """Write a float with enough digits to be exact; halves are written as the single-precision number they are."""
    order = "<" if sys.byteorder == "little" else ">"
    if kind.spelling == "bf16":
        number = struct.unpack("<f", b"\0\0" + (data if order == "<" else data[::-1]))[0]
    else:
        number = struct.unpack(order + {"fp16": "e", "fp32": "f", "fp64": "d"}[kind.spelling], data)[0]
    suffix = "" if kind.spelling == "fp64" else "f"
    # Constant division by zero gives these on every compiler, without a header.
    if math.isnan(number):
        return f"0.0{suffix} / 0.0{suffix}"
    if math.isinf(number):
        return f"{'-' if number < 0 else ''}1.0{suffix} / 0.0{suffix}"
    text = f"{number:.17g}" if suffix == "" else f"{number:.9g}"
    return text + ("" if "." in text or "e" in text else ".0") + suffix
