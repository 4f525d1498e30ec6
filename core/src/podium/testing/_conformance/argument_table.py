"""The argument types: for each, values with the bytes that the kernel must see, and values that must be refused."""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from podium.errors import ArgumentTypeError, ArgumentValueError

__all__ = ["SCALARS", "STRUCTS", "Inner", "Outer", "Scalar", "StructCase"]

_INTEGER_C = {8: "char", 16: "short", 32: "int", 64: "long long"}


@dataclass(frozen=True)
class Scalar:
    """A scalar type: its spelling, its C type, and what becomes of values.

    `good` has pairs of a value and the bytes for it, `bad` pairs of a value and the error; `definition` stands before
    the kernel.
    """

    spelling: str
    c_type: str
    good: tuple[tuple[Any, bytes], ...]
    bad: tuple[tuple[Any, type[Exception]], ...]
    needs: tuple[str, ...] = ()
    definition: str = ""


class _Index:
    """An object that is an integer for all who ask with ``__index__``."""

    def __index__(self) -> int:
        return 77


class _Whole(int):
    """A subclass of int."""


class _Real(float):
    """A subclass of float."""


def _integers(bits: int, signed: bool) -> Scalar:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    code = {8: "b", 16: "h", 32: "i", 64: "q"}[bits]
    code = code if signed else code.upper()
    values: list[Any] = [low, low + 1, 0, 1, 100, high - 1, high, True, False, _Index(), _Whole(5)]
    values += [-1] if signed else []
    values += [ctypes.c_int8(11), ctypes.c_uint64(12)]
    good = [(value, struct.pack(f"={code}", _whole(value))) for value in values]
    bad: list[tuple[Any, type[Exception]]] = [
        (low - 1, ArgumentValueError),
        (high + 1, ArgumentValueError),
        (1 << 200, ArgumentValueError),
        (-(1 << 200), ArgumentValueError),
        (1.0, ArgumentTypeError),
        ("1", ArgumentTypeError),
        (None, ArgumentTypeError),
        ([1], ArgumentTypeError),
        (1j, ArgumentTypeError),
    ]
    name = f"{'i' if signed else 'u'}{bits}"
    c_type = f"{'signed' if signed else 'unsigned'} {_INTEGER_C[bits]}"
    needs = {8: ("small_integers",), 16: ("small_integers",), 32: (), 64: ("int64",)}[bits]
    return Scalar(name, c_type, tuple(good), tuple(bad), needs)


def _whole(value: Any) -> int:
    return int(value.value) if isinstance(value, ctypes._SimpleCData) else value.__index__()


_NOT_NUMBERS: tuple[tuple[Any, type[Exception]], ...] = (
    ("1.0", ArgumentTypeError),
    (b"1", ArgumentTypeError),
    (None, ArgumentTypeError),
    ([1.0], ArgumentTypeError),
    (1j, ArgumentTypeError),
)

# value and bits; the last ones round: to even down and up, below the smallest, over the largest
_FP16 = (
    (0.0, 0x0000), (-0.0, 0x8000), (1.0, 0x3C00), (-2.0, 0xC000), (65504.0, 0x7BFF), (2.0**-24, 0x0001),
    (math.inf, 0x7C00), (-math.inf, 0xFC00), (1 + 2.0**-11, 0x3C00), (1 + 3 * 2.0**-11, 0x3C02), (2.0**-26, 0x0000),
    (65520.0, 0x7C00), (65519.0, 0x7BFF), (-1e300, 0xFC00), (3, 0x4200), (True, 0x3C00), (_Real(0.5), 0x3800),
)  # fmt: skip
_BF16 = (
    (0.0, 0x0000), (-0.0, 0x8000), (1.0, 0x3F80), (-2.0, 0xC000), (3.3895313892515355e38, 0x7F7F), (2.0**-133, 0x0001),
    (math.inf, 0x7F80), (-math.inf, 0xFF80), (1 + 2.0**-8, 0x3F80), (1 + 3 * 2.0**-8, 0x3F82), (2.0**-135, 0x0000),
    (3.4e38, 0x7F80), (1e300, 0x7F80), (3, 0x4040), (False, 0x0000), (_Real(0.5), 0x3F00),
)  # fmt: skip


def _halves(name: str, pairs: tuple[tuple[Any, int], ...]) -> Scalar:
    c_type, header = {"fp16": ("__half", "cuda_fp16.h"), "bf16": ("__nv_bfloat16", "cuda_bf16.h")}[name]
    good = tuple((value, struct.pack("=H", bits)) for value, bits in pairs)
    return Scalar(name, c_type, good, _NOT_NUMBERS, needs=("half",), definition=f"#include <{header}>")


def _floats(name: str, c_type: str, code: str, values: tuple[Any, ...]) -> Scalar:
    good = tuple((value, struct.pack(f"={code}", float(value))) for value in values)
    bad: tuple[tuple[Any, type[Exception]], ...] = (*_NOT_NUMBERS, (10**400, ArgumentValueError))
    return Scalar(name, c_type, good, bad, needs=("fp64",) if name == "fp64" else ())


_LARGEST = (3.4028234663852886e38, -3.4028234663852886e38)

SCALARS: tuple[Scalar, ...] = (
    *(_integers(bits, signed) for signed in (True, False) for bits in (8, 16, 32, 64)),
    Scalar(
        "i1",
        "bool",
        ((True, b"\1"), (False, b"\0"), (1, b"\1"), (0, b"\0")),
        ((2, ArgumentValueError), (-1, ArgumentValueError), ("", ArgumentTypeError), (None, ArgumentTypeError)),
        ("small_integers",),
    ),
    _halves("fp16", _FP16),
    _halves("bf16", _BF16),
    _floats("fp32", "float", "f", (0.0, -0.0, 1.5, -1e-45, *_LARGEST, math.inf, -math.inf, 0.1, 7, True, _Real(0.25))),
    _floats("fp64", "double", "d", (0.0, -0.0, 0.1, 5e-324, sys.float_info.max, math.inf, -math.inf, 1 << 60, True)),
)


class Inner(ctypes.Structure):
    """A structure with padding inside."""

    _fields_ = [("tag", ctypes.c_int8), ("value", ctypes.c_double)]


class Outer(ctypes.Structure):
    """A structure that has another one and an array in it, and padding at its end."""

    _fields_ = [
        ("count", ctypes.c_int32),
        ("inner", Inner),
        ("row", ctypes.c_int16 * 5),
        ("flag", ctypes.c_uint8),
    ]


class _Pair(ctypes.Structure):
    _fields_ = [("x", ctypes.c_float), ("y", ctypes.c_float)]


@dataclass(frozen=True)
class StructCase:
    """A struct by value: its spelling, its definition in C, a structure of ctypes, and how to fill that."""

    name: str
    spelling: str
    definition: str
    structure: type[ctypes.Structure]
    fill: Callable[[Any], None] = field(repr=False)
    needs: tuple[str, ...] = ("structs",)

    def value(self) -> ctypes.Structure:
        """Return a filled structure; its padding is zero."""
        made = self.structure()
        self.fill(made)
        return made

    def members(self) -> Iterator[tuple[int, int]]:
        """Yield offset and size of each plain member: the bytes that a copy must keep, which padding is not."""
        yield from _plain(self.structure, 0)


def _plain(structure: Any, base: int) -> Iterator[tuple[int, int]]:
    for name, kind, *_ in structure._fields_:
        offset = base + getattr(structure, name).offset
        if isinstance(kind, type) and issubclass(kind, ctypes.Structure):
            yield from _plain(kind, offset)
        else:
            yield offset, ctypes.sizeof(kind)


def _fill_pair(pair: Any) -> None:
    pair.x, pair.y = 1.25, -8.5


def _fill_outer(outer: Any) -> None:
    outer.count, outer.flag = -3, 200
    outer.inner.tag, outer.inner.value = -7, 1e100
    outer.row[:] = [1, -2, 3, -4, 32767]


STRUCTS = (
    StructCase("pair", "{fp32,fp32}", "struct T { float x, y; };", _Pair, _fill_pair),
    StructCase(
        "nested",
        "{i32,{i8,fp64},[5xi16],u8}",
        "struct I { signed char tag; double value; };\n"
        "struct T { int count; I inner; short row[5]; unsigned char flag; };",
        Outer,
        _fill_outer,
        ("structs", "fp64", "small_integers"),
    ),
)
