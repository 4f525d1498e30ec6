"""Element types of arrays: podium's spelling, the size, and the names that other libraries give them."""

from __future__ import annotations

import sys
from typing import Any

from podium._record import record

__all__ = ["ElementType", "element_type"]


@record(frozen=True)
class ElementType:
    """One element type. `code` and `bits` are DLPack's, `format` is the one of the struct module, if it has one."""

    spelling: str
    numpy: str
    code: int
    bits: int
    format: str | None

    @property
    def typestr(self) -> str | None:
        """The name in ``__array_interface__`` and ``__cuda_array_interface__``; None if it has none."""
        kind = {0: "i", 1: "u", 2: "f", 6: "b"}.get(self.code)
        return kind and f"{'|' if self.size == 1 else '<' if sys.byteorder == 'little' else '>'}{kind}{self.size}"

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return self.bits // 8


_TYPES = [
    ElementType("i1", "bool", 6, 8, "?"),
    ElementType("i8", "int8", 0, 8, "b"),
    ElementType("i16", "int16", 0, 16, "h"),
    ElementType("i32", "int32", 0, 32, "i"),
    ElementType("i64", "int64", 0, 64, "q"),
    ElementType("u8", "uint8", 1, 8, "B"),
    ElementType("u16", "uint16", 1, 16, "H"),
    ElementType("u32", "uint32", 1, 32, "I"),
    ElementType("u64", "uint64", 1, 64, "Q"),
    ElementType("fp16", "float16", 2, 16, "e"),
    ElementType("bf16", "bfloat16", 4, 16, None),
    ElementType("fp32", "float32", 2, 32, "f"),
    ElementType("fp64", "float64", 2, 64, "d"),
]
_BY_NAME = {name: each for each in _TYPES for name in (each.spelling, each.numpy)}
_BY_NAME |= {f"f{bits}": _BY_NAME[f"fp{bits}"] for bits in (16, 32, 64)}
_BY_NAME |= {"float": _BY_NAME["fp64"], "int": _BY_NAME["i64"], "half": _BY_NAME["fp16"]}


def element_type(name: Any) -> ElementType:
    """Return the element type of a name: podium's ``fp32``, numpy's ``float32``, ``f32``, or a numpy dtype.

    Raises TypeError listing the names.
    """
    text = name if isinstance(name, str) else getattr(name, "name", None) or getattr(name, "__name__", repr(name))
    found = _BY_NAME.get(str(text))
    if found is None:
        raise TypeError(f"{name!r} is not an element type; they are {', '.join(each.spelling for each in _TYPES)}")
    return found
