"""What the types of C++ and of the CUDA and HIP headers are in podium's spelling.

Sizes are those of 64-bit Linux, where ``long`` has 64 bits; NVRTC, hipRTC and gcc agree on it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium._record import record, replace

if TYPE_CHECKING:
    from tree_sitter import Node

    from podium._source._scopes import Scope

__all__ = ["FUNDAMENTAL_WORDS", "ArgumentMismatch", "Refusal", "Resolved", "builtin", "fundamental"]


class Refusal(Exception):
    """A type or an expression cannot be resolved; the text says why. It never leaves the reader of sources."""


class ArgumentMismatch(Refusal):
    """There are too few template arguments, or too many."""


@record(frozen=True)
class Resolved:
    """A type, as far as it is known.

    `spelling` is podium's; it is "void" for what is unknown. `behind` is what a pointer to the type points to, where
    that is something else. `refusal` says why the type cannot be passed by value, or is empty. An array has its
    `element`, and `bound` gives its size.
    """

    spelling: str
    const: bool = False
    refusal: str = ""
    behind: str = ""
    element: Resolved | None = None
    bound: tuple[Node, Scope] | None = None
    is_function: bool = False

    def with_const(self, const: bool) -> Resolved:
        """Return the type with const added, if it is."""
        return replace(self, const=True) if const and not self.const else self

    def pointer(self, *, const: bool = False) -> Resolved:
        """Return the type of a pointer to this one. What lies behind it is void unless it is a number."""
        if self.is_function:
            return Resolved("*void", const, "a pointer to a function means nothing on another device")
        pointee = self
        while pointee.element is not None:
            pointee = replace(pointee.element, const=pointee.element.const or pointee.const)
        spelling = pointee.behind or ("void" if pointee.spelling[0] in "{o" else pointee.spelling)
        return Resolved(f"*k{spelling}" if pointee.const else f"*{spelling}", const)


_FUNDAMENTAL = {
    "bool": "i1",
    "char": "i8",
    "signed char": "i8",
    "unsigned char": "u8",
    "short": "i16",
    "unsigned short": "u16",
    "int": "i32",
    "unsigned int": "u32",
    "long": "i64",
    "unsigned long": "u64",
    "long long": "i64",
    "unsigned long long": "u64",
    "char8_t": "u8",
    "char16_t": "u16",
    "char32_t": "u32",
    "wchar_t": "i32",
    "float": "fp32",
    "double": "fp64",
}

FUNDAMENTAL_WORDS = frozenset("void signed unsigned".split()).union(*(name.split() for name in _FUNDAMENTAL))
"""The words that built-in types are made of; no declaration can give them another meaning."""

_STANDARD = {
    **{f"{sign}int{8 * size}_t": f"{sign or 'i'}{8 * size}" for sign in ("", "u") for size in (1, 2, 4, 8)},
    **{f"{sign}int_least{8 * size}_t": f"{sign or 'i'}{8 * size}" for sign in ("", "u") for size in (1, 2, 4, 8)},
    "int_fast8_t": "i8",
    "uint_fast8_t": "u8",
    "intmax_t": "i64",
    "uintmax_t": "u64",
    "intptr_t": "i64",
    "uintptr_t": "u64",
    "size_t": "u64",
    "ssize_t": "i64",
    "ptrdiff_t": "i64",
    "byte": "u8",
}

_GLOBAL = {
    **{name: spelling for name, spelling in _STANDARD.items() if name != "byte"},
    # glibc and the headers of CUDA and HIP
    "uchar": "u8",
    "ushort": "u16",
    "uint": "u32",
    "ulong": "u64",
    "clock_t": "i64",
    "cudaTextureObject_t": "u64",
    "cudaSurfaceObject_t": "u64",
    "CUtexObject": "u64",
    "CUsurfObject": "u64",
    "CUdeviceptr": "u64",
    # a CUtensorMap is 16 quadwords; drivers ask for 64 bytes of alignment
    "CUtensorMap": "opaque[128,64]",
    "half": "fp16",
    "__half": "fp16",
    "nv_half": "fp16",
    "_Float16": "fp16",
    "__nv_bfloat16": "bf16",
    "nv_bfloat16": "bf16",
    "__hip_bfloat16": "bf16",
    "hip_bfloat16": "bf16",
    **dict.fromkeys(("half2", "__half2", "nv_half2"), "{fp16,fp16}@4"),
    **dict.fromkeys(("__nv_bfloat162", "nv_bfloat162", "__hip_bfloat162"), "{bf16,bf16}@4"),
    "__nv_fp8_storage_t": "u8",
    "__nv_fp8x2_storage_t": "u16",
    "__nv_fp8x4_storage_t": "u32",
    "dim3": "{u32,u32,u32}",
    **dict.fromkeys(("cuComplex", "cuFloatComplex", "hipComplex", "hipFloatComplex"), "{fp32,fp32}@8"),
    **dict.fromkeys(("cuDoubleComplex", "hipDoubleComplex"), "{fp64,fp64}@16"),
}

_EIGHT_BITS = {
    "__nv_fp8_e4m3": "fp8e4nv",
    "__nv_fp8_e5m2": "fp8e5",
    "__hip_fp8_e4m3": "fp8e4nv",
    "__hip_fp8_e5m2": "fp8e5",
    "__hip_fp8_e4m3_fnuz": "fp8e4b8",
    "__hip_fp8_e5m2_fnuz": "fp8e5b16",
}

_COMPLEX = {
    **dict.fromkeys(("cuComplex", "cuFloatComplex", "hipFloatComplex", "hipComplex"), "c64"),
    **dict.fromkeys(("cuDoubleComplex", "hipDoubleComplex"), "c128"),
}


def _vectors() -> dict[str, str]:
    """Make the table of built-in vector types in the CUDA C++ Programming Guide.

    Vectors of two and of four elements are aligned to their size, but never to more than 16 bytes, except for the
    types with the suffix ``_32a``. Those of one and of three elements are aligned like one element. HIP differs from
    it in the vectors of four elements of eight bytes, which it aligns to 32.
    """
    sizes = {"char": 1, "short": 2, "int": 4, "long": 8, "longlong": 8}
    elements = {name: (f"i{8 * size}", size) for name, size in sizes.items()}
    elements |= {f"u{name}": (f"u{8 * size}", size) for name, size in sizes.items()}
    elements |= {"float": ("fp32", 4), "double": ("fp64", 8)}
    table = {}
    for name, (element, size) in elements.items():
        for count in (1, 2, 3, 4):
            body = "{" + ",".join([element] * count) + "}"
            alignment = min(16, size * count) if count in (2, 4) else size
            table[f"{name}{count}"] = body if alignment == size else f"{body}@{alignment}"
        if size == 8:
            for alignment in (16, 32):
                table[f"{name}4_{alignment}a"] = "{" + ",".join([element] * 4) + "}" + f"@{alignment}"
    return table


_GLOBAL.update(_vectors())


def fundamental(words: list[str]) -> Resolved:
    """Resolve the words of a built-in type in any order, such as ``long unsigned int``. Raises `Refusal`."""
    text = " ".join(words)
    if text == "void":
        return Resolved("void", refusal="void is no value")
    kinds = [word for word in words if word not in ("signed", "unsigned", "long", "short")]
    name = text
    if kinds in ([], ["int"], ["char"]):
        core = " ".join(word for word in words if word in ("long", "short")) or (kinds[0] if kinds else "int")
        sign = "unsigned " if "unsigned" in words else "signed " if core == "char" and "signed" in words else ""
        name = sign + core
    if name not in _FUNDAMENTAL:
        if text == "long double":
            raise Refusal("a device has no long double")
        raise Refusal("podium has no such number type")
    return Resolved(_FUNDAMENTAL[name])


def builtin(path: tuple[str, ...]) -> Resolved | None:
    """Return the type that a name has in the compilers' own headers, or None if it is not one of theirs."""
    name = path[-1]
    if path[:-1] in (("std",), ("cuda", "std")):
        return Resolved(_STANDARD[name]) if name in _STANDARD else None
    if len(path) > 1:
        return None
    if name in _EIGHT_BITS:
        return Resolved(_EIGHT_BITS[name], refusal="an eight-bit float can only be passed behind a pointer")
    return Resolved(_GLOBAL[name], behind=_COMPLEX.get(name, "")) if name in _GLOBAL else None
