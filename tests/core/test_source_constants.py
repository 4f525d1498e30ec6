"""Parameters fixed at compile time: taken out of the list, and constants with the exact value in the body."""

from __future__ import annotations

import math
import struct

import pytest

from podium._signature import Parameter, Signature, Type
from podium._source import parse_kernel
from podium._source._fixed_parameters import literal
from podium.errors import ArgumentTypeError, ArgumentValueError, SourceError

SAXPY = "__global__ void saxpy(int n, float a, const float* x, float* y) { y[0] = a * x[n]; }"


def test_constants_leave_list_and_signature() -> None:
    """ARG-10: a value is only fixed where the caller asks for it, and then the parameter is gone from the call."""
    parsed = parse_kernel(SAXPY, None, {"a": 2.5, 0: 7})
    assert parsed.source == (
        "__global__ void saxpy(  const float* x, float* y) "
        "{ const int n = (int)(7LL); const float a = (float)(2.5f); y[0] = a * x[n]; }"
    )
    assert str(parsed.signature) == "x: *kfp32, y: *fp32"


@pytest.mark.parametrize(
    ("fixed", "parameters"),
    [
        ("a", "( int b, int c)"),
        ("b", "(int a,  int c)"),
        ("c", "(int a, int b )"),
        ("ab", "(  int c)"),
        ("bc", "(int a  )"),
        ("ac", "( int b )"),
        ("abc", "(  )"),
    ],
)
def test_commas_go_with_their_parameters(fixed: str, parameters: str) -> None:
    """Any choice of parameters leaves a list that is well formed, and reads back as what is left."""
    parsed = parse_kernel("__global__ void k(int a, int b, int c) {}", None, dict.fromkeys(fixed, 1))
    assert parsed.source.startswith("__global__ void k" + parameters + " {")
    assert parse_kernel(parsed.source, None).signature == parsed.signature
    assert "".join(parsed.signature.names) == "".join(sorted(set("abc") - set(fixed)))


def test_lines_keep_their_numbers() -> None:
    """Messages of the compiler go on pointing to the user's lines."""
    source = (
        "__global__ void k(int a, // first, (of\n  /* three\n  lines */ unsigned\n    long b = f(1,\n 2), int c\n)\n"
        "// body {\n{\n  use(a);\n}\n"
    )
    parsed = parse_kernel(source, None, {"b": 3})
    assert parsed.source.count("\n") == source.count("\n")
    assert parsed.source.split("\n")[-3] == "  use(a);"
    assert parsed.source.split("\n")[-4] == "{ const unsigned long b = (unsigned long)(3ULL);"
    assert str(parse_kernel(parsed.source, None).signature) == "a: i32, c: i32"


def test_every_declaration_of_the_kernel_changes() -> None:
    """A declaration left as it was would be another overload, and make the name ambiguous to the compiler."""
    source = (
        "namespace n { template <class T> __global__ void k(T* x, int);\n"
        "template <class T> __global__ void k(T* x, int n) { }\n"
        "template <> __global__ void k<int>(int* x, int count) { }\n"
        "template __global__ void k<float>(float*, int); }\n__global__ void j(int n) { }"
    )
    parsed = parse_kernel(source, "k<double>", {"n": 5})
    assert parsed.source == (
        "namespace n { template <class T> __global__ void k(T* x );\n"
        "template <class T> __global__ void k(T* x ) { const int n = (int)(5LL); }\n"
        "template <> __global__ void k<int>(int* x ) { const int count = (int)(5LL); }\n"
        "template __global__ void k<float>(float* ); }\n__global__ void j(int n) { }"
    )


def test_the_type_of_a_constant_is_the_users_own() -> None:
    """Overloads and templates that the body calls see the same type as before: aliases, enums, template parameters."""
    source = (
        "enum class Mode : char { A, B }; namespace n { using index = long; }\n"
        "template <typename T> __global__ void k(T a, const Mode mode, n::index i, bool b) { }"
    )
    parsed = parse_kernel(source, "k<half>", {"a": 0.5, "mode": 1, "i": -1, "b": True})
    assert (
        "{ const T a = (T)(0.5f); const Mode mode = (Mode)(1LL); const n::index i = (n::index)((0LL - 1)); "
        "const bool b = (bool)(true); }"
    ) in parsed.source
    assert str(parsed.signature) == ""


@pytest.mark.parametrize(
    ("spelling", "value", "text"),
    [
        ("i1", True, "true"),
        ("i1", 0, "false"),
        ("i8", -128, "(-127LL - 1)"),
        ("u8", 255, "255ULL"),
        ("i32", -(2**31), "(-2147483647LL - 1)"),
        ("i64", -(2**63), "(-9223372036854775807LL - 1)"),
        ("u64", 2**64 - 1, "18446744073709551615ULL"),
        ("fp32", 1, "1.0f"),
        ("fp32", 0.1, "0.100000001f"),
        ("fp32", -0.0, "-0.0f"),
        ("fp32", 1e30, "1.00000002e+30f"),
        ("fp32", math.inf, "1.0f / 0.0f"),
        ("fp32", -math.inf, "-1.0f / 0.0f"),
        ("fp64", math.nan, "0.0 / 0.0"),
        ("fp64", 0.1, "0.10000000000000001"),
        ("fp64", 5e-324, "4.9406564584124654e-324"),
        ("fp16", 0.1, "0.0999755859f"),
        ("fp16", 1e6, "1.0f / 0.0f"),
        ("bf16", 0.1, "0.100097656f"),
    ],
)
def test_literals(spelling: str, value: object, text: str) -> None:
    """A literal has the value that a launch would pass, in a form that every C++ compiler reads exactly."""
    assert literal("k", 0, Parameter("x", Type.parse(spelling)), value) == text


@pytest.mark.parametrize("bits", [0x00000001, 0x007FFFFF, 0x00800000, 0x3DCCCCCD, 0x7F7FFFFF, 0xC2F6E979])
def test_single_precision_literals_are_exact(bits: int) -> None:
    """Nine digits tell all single-precision numbers apart."""
    number = struct.unpack("<f", struct.pack("<I", bits))[0]
    text = literal("k", 0, Parameter("x", Type.parse("fp32")), number)
    assert struct.pack("<f", float(text.rstrip("f"))) == struct.pack("<I", bits)


@pytest.mark.parametrize(
    ("key", "value", "error", "words"),
    [
        ("n", 2**31, ArgumentValueError, ("'n'", "i32", "2147483648")),
        ("n", 1.5, ArgumentTypeError, ("'n'", "i32")),
        ("n", "1; }", ArgumentTypeError, ("'n'", "i32")),
        ("a", "1.0", ArgumentTypeError, ("'a'", "fp32")),
        ("a", None, ArgumentTypeError, ("'a'",)),
        ("x", 0, SourceError, ("'x'", "*kfp32", "only numbers")),
        ("m", 1, SourceError, ("'m'", "n, a, x, y")),
        (4, 1, SourceError, ("4", "n, a, x, y")),
        (-1, 1, SourceError, ("-1",)),
        (True, 1, SourceError, ("True",)),
        ("nn", 1, SourceError, ("Did you mean 'n'",)),
    ],
)
def test_constants_that_do_not_fit(key: object, value: object, error: type[Exception], words: tuple[str, ...]) -> None:
    """ARG-02: range and type are checked as at a launch, and only scalar parameters can be constants."""
    with pytest.raises(error) as caught:
        parse_kernel(SAXPY, None, {key: value})
    for word in words:
        assert word in str(caught.value)


def test_a_constant_given_twice() -> None:
    """Name and position of the same parameter contradict each other."""
    with pytest.raises(SourceError, match="'n' is given twice"):
        parse_kernel(SAXPY, None, {"n": 1, 0: 2})


class Hostile(int):
    """An integer whose texts are code."""

    def __repr__(self) -> str:
        return "0; } extern void evil(); {"

    __str__ = __format__ = __repr__  # type: ignore[assignment]


class HostileFloat(float):
    """A float whose texts are code."""

    def __repr__(self) -> str:
        return "0; } extern void evil(); {"

    __str__ = __format__ = __repr__  # type: ignore[assignment]


def test_only_numbers_reach_the_source() -> None:
    """A subclass of a number cannot bring text of its own into the code."""
    parsed = parse_kernel(SAXPY, None, {"n": Hostile(3), "a": HostileFloat(0.5)})
    assert "evil" not in parsed.source
    assert "(int)(3LL)" in parsed.source
    assert "(float)(0.5f)" in parsed.source


def test_numpy_scalars_are_numbers() -> None:
    """ARG-07: numpy scalars are taken by their value."""
    numpy = pytest.importorskip("numpy")
    parsed = parse_kernel(SAXPY, None, {"n": numpy.int64(3), "a": numpy.float32(0.5)})
    assert "const int n = (int)(3LL); const float a = (float)(0.5f);" in parsed.source


def test_a_constant_out_of_a_macro_is_refused() -> None:
    """Text that a macro made cannot be edited where it stands."""
    source = "#define ARGS float* x, int n\n__global__ void k(ARGS) { }"
    assert str(parse_kernel(source, None).signature) == "x: *fp32, n: i32"
    with pytest.raises(SourceError, match="macro in line 2"):
        parse_kernel(source, None, {"n": 1})


def test_a_type_out_of_a_macro_can_be_constant() -> None:
    """A macro that is the type goes with the parameter, and is expanded in the constant."""
    source = "#define REAL float\n#define N n\n__global__ void k(REAL a , int N) { }"
    assert "k(  int N) { const float a = (float)(1.0f); }" in parse_kernel(source, None, {"a": 1}).source
    assert "k(REAL a  ) { const int n = (int)(1LL); }" in parse_kernel(source, None, {"n": 1}).source


def test_explicit_signatures_and_constants() -> None:
    """An explicit signature has all parameters, or all that are not constant."""
    source = "__global__ void k(Foo* f, Index n, float* x) { }"
    whole = parse_kernel(source, None, {"n": 3}, Signature.parse("f: *void, n: i64, x: *fp32"))
    assert str(whole.signature) == "f: *void, x: *fp32"
    assert whole.source == "__global__ void k(Foo* f,  float* x) { const Index n = (Index)(3LL); }"
    with pytest.raises(SourceError, match=r"3 parameters, 1 of them constant, but the signature has 1"):
        parse_kernel(source, None, {"n": 3}, Signature.parse("f: *void"))
    rest = parse_kernel(SAXPY, None, {"n": 3}, Signature.parse("a: fp64, x: *void, y: *void"))
    assert str(rest.signature) == "a: fp64, x: *void, y: *void"
    with pytest.raises(SourceError, match=r"'n'.*is not clear"):
        parse_kernel(source, None, {"n": 3}, Signature.parse("f: *void, x: *fp32"))


def test_without_a_body_there_is_nothing_to_put_a_constant_in() -> None:
    """A kernel that is only declared here would lose the parameter where it is defined elsewhere."""
    with pytest.raises(SourceError, match="no body"):
        parse_kernel("__global__ void k(int n);", None, {"n": 1})
