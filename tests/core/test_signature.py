"""Types and signatures: how they are spelled, what they measure, and which spellings are none."""

from __future__ import annotations

import ctypes
import pickle
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium._signature import Parameter, Signature, Type
from podium.errors import SignatureError

SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8}
SIZES |= {"fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8}


@pytest.mark.parametrize("name", SIZES)
def test_scalars(name: str) -> None:
    """Each scalar has the width that its name says, and stands alone, behind a pointer and in a struct."""
    parsed = Type.parse(name)
    assert (parsed.size, parsed.alignment, parsed.spelling, str(parsed)) == (SIZES[name], SIZES[name], name, name)
    pointer = Type.parse(f"*{name}")
    assert (pointer.kind, pointer.size, pointer.alignment, pointer.const) == ("pointer", 8, 8, False)
    assert pointer.pointee == parsed
    assert Type.parse(f"*k{name}").const and Type.parse(f"*k{name}").pointee == parsed
    assert Type.parse(f"{{{name}}}").size == SIZES[name]


@pytest.mark.parametrize("name", ["void", "fp8e4nv", "fp8e5", "c64", "c128"])
def test_types_that_stand_behind_pointers_only(name: str) -> None:
    """Untyped memory, small floats and complex numbers are pointed to, and are no parameters by themselves."""
    assert Type.parse(f"*{name}").size == 8 and Type.parse(f"**k{name}").size == 8
    with pytest.raises(SignatureError, match="pass a pointer to it"):
        Type.parse(name)
    with pytest.raises(SignatureError, match="cannot be inside a struct"):
        Type.parse(f"{{{name}}}")


C_TYPES: dict[str, Any] = {
    "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "u8": ctypes.c_uint8,
    "fp32": ctypes.c_float, "fp64": ctypes.c_double, "*fp32": ctypes.c_void_p, "i1": ctypes.c_bool,
}  # fmt: skip


@st.composite
def structs(draw: st.DrawFn, depth: int = 2) -> tuple[str, Any]:
    """A struct as podium spells it, and as ctypes lays it out."""
    spellings, fields = [], []
    for index in range(draw(st.integers(1, 5))):
        if depth and draw(st.integers(0, 3)) == 0:
            spelling, kind = draw(structs(depth=depth - 1))
        else:
            spelling, kind = draw(st.sampled_from(sorted(C_TYPES.items(), key=lambda item: item[0])))
        if draw(st.integers(0, 4)) == 0:
            count = draw(st.integers(1, 4))
            spelling, kind = f"[{count}x{spelling}]", kind * count
        spellings.append(spelling)
        fields.append((f"m{index}", kind))
    return "{" + ",".join(spellings) + "}", type("Struct", (ctypes.Structure,), {"_fields_": fields})


@given(structs())
def test_structs_are_laid_out_as_in_c(struct: tuple[str, Any]) -> None:
    """Size and alignment of any struct are those that the C compiler of this machine gives it."""
    spelling, kind = struct
    parsed = Type.parse(spelling)
    assert (parsed.size, parsed.alignment) == (ctypes.sizeof(kind), ctypes.alignment(kind))
    assert Type.parse(str(parsed)) == parsed


def test_struct_alignment_and_opaque() -> None:
    """An alignment can be raised, never lowered; an opaque struct has just size and alignment."""
    assert (Type.parse("{fp32,fp32}@8").size, Type.parse("{fp32,fp32}@8").alignment) == (8, 8)
    assert (Type.parse("{fp32,fp32,fp32}@16").size, Type.parse("{fp64}@4").alignment) == (16, 8)
    assert (Type.parse("opaque[128,64]").size, Type.parse("opaque[128,64]").alignment) == (128, 64)
    assert Type.parse("{[0xfp32],i8}").size == 4
    assert Type.parse(" { fp32 , i32 } ") == Type.parse("{fp32,i32}")


@pytest.mark.parametrize(
    "spelling",
    ["", " ", "int", "i7", "I32", "fp128", "f32", "*", "**", "*k", "k*fp32", "fp32*", "{", "}", "{}", "{fp32", "fp32}", "{fp32;i32}",
     "{fp32,,i32}", "[4xfp32]", "[xfp32]", "{[4fp32]}", "{[4xfp32}", "{fp32}@3", "{fp32}@0", "opaque[0,1]", "opaque[8,3]",
     "opaque[9,8]", "opaque[256,256]", "{i8}@256", "opaque[8]", "opaque", "constexpr*", "*constexpr,", "{constexpr}", "i32 i32", "i32;", "i32\n\0", "tensor"],
)  # fmt: skip
def test_spellings_that_are_no_types(spelling: str) -> None:
    """ARG-16: anything else is an error that shows the spelling, never a guess."""
    with pytest.raises(SignatureError) as caught:
        Type.parse(spelling)
    assert isinstance(caught.value, ValueError)
    assert caught.value.spelling is not None


@given(st.text(alphabet="i8163245fpub*k{}[],x@opaque vdcnstr", max_size=24))
def test_any_text_is_a_type_or_a_signature_error(text: str) -> None:
    """Whatever is written, parsing gives a type whose spelling reads back, or a SignatureError."""
    try:
        parsed = Type.parse(text)
    except SignatureError:
        return
    assert Type.parse(parsed.spelling) == parsed


@pytest.mark.parametrize("opening", ["*", "*k", "{", "[2x", "{*", "{[1x"])
@pytest.mark.parametrize("count", [65, 250, 330, 950, 5000, 100_000])
def test_types_that_are_too_deep(opening: str, count: int) -> None:
    """More types inside one another than anybody means are a signature error with a short text, however many."""
    closing = {"{": "}", "[2x": "]", "{*": "}", "{[1x": "]}"}.get(opening, "")
    spelling = opening * count + "i8" + closing * count
    for form in (spelling, {"x": spelling}, [spelling]):
        with pytest.raises(SignatureError, match="64 pointers, structs and arrays|is not a type") as caught:
            Signature.parse(form)
        assert len(str(caught.value)) < 500


def test_types_that_are_as_deep_as_can_be() -> None:
    """What parses can also be compared, hashed, printed and pickled."""
    for spelling in ("*" * 64 + "i8", "{" * 64 + "i8" + "}" * 64):
        signature = Signature.parse({"x": spelling})
        assert pickle.loads(pickle.dumps(signature)) == signature and hash(signature) and spelling in str(signature)


@pytest.mark.parametrize("value", [None, 5, b"i32", int, ["i32"]])
def test_a_type_is_text(value: Any) -> None:
    """A type that is no text is a signature error."""
    with pytest.raises(SignatureError):
        Type.parse(value)


SAME: list[Any] = [
    "x: *fp32, n: i32, s: {fp32,i32}",
    {"x": "*fp32", "n": "i32", "s": "{fp32,i32}"},
    MappingProxyType({"x": "*fp32", "n": "i32", "s": "{fp32,i32}"}),
    [Parameter("x", Type.parse("*fp32")), Parameter("n", Type.parse("i32")), Parameter("s", Type.parse("{fp32,i32}"))],
    {"x": Type.parse("*fp32"), "n": "i32", "s": " { fp32, i32 } "},
]


@pytest.mark.parametrize("form", SAME, ids=lambda form: type(form).__name__)
def test_a_signature_in_every_form(form: Any) -> None:
    """Text, mappings and sequences of parameters give one signature, which is its own form and reads back."""
    signature = Signature.parse(form)
    assert str(signature) == "x: *fp32, n: i32, s: {fp32,i32}"
    assert signature.names == ("x", "n", "s") and len(signature) == 3
    assert Signature.parse(signature) is signature
    assert Signature.parse(str(signature)) == signature
    assert hash(Signature.parse(str(signature))) == hash(signature)
    assert pickle.loads(pickle.dumps(signature)) == signature


def test_types_without_names() -> None:
    """Without names the parameters are called arg0, arg1 and so on."""
    assert Signature.parse("*fp32, {i8,i8}, i32").names == ("arg0", "arg1", "arg2")
    assert Signature.parse(["*fp32", "i32"]).names == ("arg0", "arg1")
    assert Signature.parse("") == Signature.parse([]) == Signature.parse({}) == Signature(())


def test_tuples_are_flattened() -> None:
    """A tuple in place of a type stands for its members, named by their place, at any depth."""
    signature = Signature.parse({"t": ("i32", ("fp32", ["i8"])), "n": "u8", "e": ()})
    assert signature.names == ("t.0", "t.1.0", "t.1.1.0", "n")
    assert Signature.parse(str(signature)) == signature


@pytest.mark.parametrize(
    "form",
    ["x: i32, x: i32", {"a b": "i32"}, {"": "i32"}, {"1": "i32"}, {"a;": "i32"}, {"a.b": "i32"}, {"é": "i32"}, "i32,", ",", "i32,,i32", 5,
     None, {"x": 5}, {"x": None}, [5], {"x; system()": "i32"}, {"x\n": "i32"}],
    ids=repr,
)  # fmt: skip
def test_what_is_no_signature(form: Any) -> None:
    """Doubled or malformed names, missing types and other objects are signature errors."""
    with pytest.raises(SignatureError):
        Signature.parse(form)


def test_shapes_say_what_a_launcher_must_know() -> None:
    """PRF-04: two signatures share their shape exactly if one launcher serves both."""
    shape = Signature.parse("a: *fp32, b: i32, c: {fp32,i32}, d: constexpr").shape
    assert shape == Signature.parse("x: **i8, y: i32, z: {i32,fp32}, w: constexpr").shape
    for other in ("*kfp32, i32, {fp32,i32}, constexpr", "*fp32, u32, {fp32,i32}, constexpr", "*fp32, i32, {fp64,i32}, constexpr",
                  "*fp32, i32, {fp32,i32}@16, constexpr", "*fp32, i32, {fp32,i32}", "*fp32, i32, constexpr, {fp32,i32}"):  # fmt: skip
        assert Signature.parse(other).shape != shape


def test_constants_are_in_the_call_and_not_in_the_binary() -> None:
    """`passed` leaves the folded parameters out, and nothing else."""
    signature = Signature.parse("a: i32, b: constexpr, c: fp32")
    assert [each.name for each in signature.passed] == ["a", "c"] and len(signature) == 3
    assert [str(each) for each in signature] == ["a: i32", "b: constexpr", "c: fp32"]
    assert [each.size for each in signature.types] == [4, 0, 4]
