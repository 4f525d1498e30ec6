"""Whatever text comes in, an answer or a SourceError comes out: no crash, no endless work, no other exception."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_table import KERNELS
from refused_table import REFUSED

from podium._source import find_kernels, parse_kernel, parse_module
from podium._variable import Variable
from podium.errors import ArgumentError, SourceError

SOURCES = [
    *(row[1] for row in (*KERNELS, *REFUSED)),
    "namespace ns { struct P { int a; float b[2]; }; static __device__ P p[] = {{1, {2, 3}}}, *q; __global__ void k() { } }",
    "__constant__ __align__(16) float4 table[2 * 8] = {}; extern __device__ int e; __managed__ struct { int a; } s;",
]
NAMES = [None, "k", "k<float>", "k<float, 3>", "a::k", "::k"]

TOKENS = [
    *'__global__ void k ( ) { } < > , ; : :: * & && = [ ] [[ ]] # ## \\ / // /* */ " \' R"( )"'.split(),
    *"template typename class struct union enum namespace using typedef const constexpr int float half".split(),
    *"unsigned long T N x 1 0x operator virtual static friend ... ? + - << >> sizeof auto decltype requires".split(),
    *"__device__ __constant__ __managed__ __shared__ [3] {1,2} ns::v".split(),
    *"#if #ifdef #ifndef #else #elif #endif #define #undef #include alignas(16) __align__(8) noexcept".split(),
    *("\n", "\r\n", 'extern "C"', "#pragma pack(1)", "\ufeff", "ß", "\x00", "\ud800"),
]

SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def read(source: str, name: str | None) -> None:
    """Use everything there is; let errors of podium pass."""
    try:
        for kernel in find_kernels(source):
            parse_kernel(source, kernel.name, {})
    except SourceError:
        pass
    try:
        for variable in parse_module(source)[0]:
            assert variable.reason if variable.type is None else Variable.of(variable.name, variable.type).size > 0
    except SourceError:
        pass
    for constants in ({}, {0: 1}, {"n": 1.5}):
        try:
            parsed = parse_kernel(source, name, constants)
            assert parsed.source.count("\n") == source.count("\n")
        except (SourceError, ArgumentError):
            pass


@SETTINGS
@given(st.text(), st.sampled_from(NAMES))
def test_any_text(text: str, name: str | None) -> None:
    """Text that is no code at all."""
    read(text, name)


@SETTINGS
@given(st.lists(st.sampled_from(TOKENS), max_size=60), st.sampled_from(NAMES))
def test_any_tokens(tokens: list[str], name: str | None) -> None:
    """Words of the language in any order."""
    read(" ".join(tokens), name)


@SETTINGS
@given(st.data())
def test_mutated_kernels(data: st.DataObject) -> None:
    """Kernels with pieces cut out, moved in, and doubled."""
    source = data.draw(st.sampled_from(SOURCES))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(source)))
        end = min(len(source), start + data.draw(st.integers(0, 12)))
        piece = data.draw(st.one_of(st.sampled_from(TOKENS), st.just(source[start:end] * 2), st.just("")))
        source = source[:start] + piece + source[end:]
    read(source, data.draw(st.sampled_from(NAMES)))


DEEP = 10_000


@pytest.mark.parametrize(
    "source",
    [
        "namespace a {" * DEEP + "__global__ void k(int n) { }" + "}" * DEEP,
        "{" * DEEP + "__global__ void k(int n) { }",
        "(" * DEEP + "__global__ void k(int n) { }" + ")" * DEEP,
        "__global__ void k(" + "(" * DEEP + "int n" + ")" * DEEP + ") { }",
        "__global__ void k(float " + "*" * DEEP + "n) { }",
        "__global__ void k(float n" + "[2]" * DEEP + ") { }",
        "__global__ void k(" + "A<" * DEEP + "int" + ">" * DEEP + " n) { }",
        "__global__ void k(" + "a::" * DEEP + "b n) { }",
        "__global__ void k(" + ", ".join(f"int a{index}" for index in range(2000)) + ") { }",
        "struct S { int a[" + "(" * DEEP + "1" + ")" * DEEP + "]; };__global__ void k(S n) { }",
        "struct S { int a[" + "1+" * DEEP + "1]; };__global__ void k(S n) { }",
        "struct S { int a[" + "-" * DEEP + "1]; };__global__ void k(S n) { }",
        "struct S {" * DEEP + "int a;" + "} s;" * DEEP + "__global__ void k(S n) { }",
        "".join(f"typedef T{index + 1} T{index};" for index in range(DEEP)) + "__global__ void k(T0 n) { }",
        "".join(f"struct S{index + 1} {{ S{index} a, b; }};" for index in range(60))
        + "struct S0 { int a; }; __global__ void k(S60 n) { }",
        "".join(f"#define M{index + 1} M{index} M{index}\n" for index in range(60)) + "__global__ void k(M60 n) { }",
        "".join(f"#define M{index} M{index + 1}\n" for index in range(DEEP)) + "__global__ void k(M0 n) { }",
        "template <class T> struct A { T x, y; };__global__ void k(" + "A<" * 30 + "int" + ">" * 30 + " n) { }",
        "template <class T> struct A { typename T::U *x, *y; A<A<T>> z, w; };__global__ void k(A<int> n) { }",
        "#if A\n" * DEEP + "__global__ void k(int n) { }\n" + "#endif\n" * DEEP,
        "#if A\n{\n#else\n(\n" * DEEP + "__global__ void k(int n) { }",
        "/*" * DEEP + "__global__ void k(int n) { }",
        '"' * DEEP + "'" * DEEP + "__global__ void k(int n) { }",
        "namespace a = b; namespace b = a; using namespace a; __global__ void k(a::T n) { }",
        "namespace a { using namespace a; using a::T; } __global__ void k(a::T n) { }",
        "using T = S::T; using S = T; __global__ void k(T n) { }",
        "struct S : S { using T = typename S::T; T x; }; __global__ void k(S::T n) { }",
        "enum E { A = B, B = A }; struct S { int x[A]; }; __global__ void k(S n) { }",
        "constexpr int a = b, b = a; struct S { int x[a]; }; __global__ void k(S n) { }",
        "struct S { int x[1 << 1000000000]; }; __global__ void k(S n) { }",
        "struct S { int x[9999999999999999999999999999 * 9]; }; __global__ void k(S n) { }",
        "struct S { int x[" + "9" * DEEP + "]; }; __global__ void k(S n) { }",
        "#if " + "9" * DEEP + "\n#endif\n__global__ void k(int n) { }",
        "template <class A, class B = A> struct P { P<B> x; }; __global__ void k(P<int> n) { }",
        "template <int N> struct F { static constexpr int v = F<N - 1>::v; int x[v]; }; __global__ void k(F<9> n) { }",
        "__global__ " * DEEP + "void k(int n) { }",
        "{ __global__ " * DEEP + "void k(int n) { }",
        "#ifdef A\n__global__ void k(int n) {\n#else\n" * 1000,
        "struct A {} " * DEEP + "__global__ void k(int n) { }",
        "int x[] = {{" * DEEP + "__global__ void k(int n) { }",
        "template <" * DEEP + "__global__ void k(int n) { }",
        "template <class T>\n" * DEEP + "__global__ void k(int n) { }",
        "void f() " * DEEP + "{ } __global__ void k(int n) { }",
        "\\\n" * DEEP + "__global__ void k(int n) { }",
        "#define A \\\n" * DEEP + "\n__global__ void k(int n) { }",
        "using namespace " + " " * DEEP + "x; __global__ void k(T n) { }",
    ],
    ids=lambda source: source[:24].strip(),
)
def test_deep_and_long(source: str) -> None:
    """Nesting, chains and cycles of any length end, without a RecursionError."""
    read(source, "k")
    parse_module("__device__ " + source + "; __constant__ int last[2];")


UNITS = ["x", " ", "1", "(", "{", "}", ";", '"', "/", "*", "#", "\\", "<", "a b;", "'a"]


@pytest.mark.parametrize("unit", UNITS)
def test_a_long_stretch_of_anything(unit: str) -> None:
    """The work grows in step with the text, and the kernel behind the stretch is still found."""
    source = unit * (100_000 // len(unit)) + "\n__global__ void k(int n) { }"
    assert str(parse_kernel(source, "k").signature) == "n: i32"
    parse_module("__device__ int x[" + source)
    parse_module("__device__ __attribute__((aligned(" + source)


def test_a_megabyte_of_code() -> None:
    """A long source with many kernels is read as a short one is."""
    part = (
        "struct S{0} {{ int a[{0} + 1]; }};\n__global__ void k{0}(S{0} s, float* x) {{ for (;;) {{ x[0] = {0}; }} }}\n"
    )
    source = "".join(part.format(index) for index in range(10_000))
    assert len(source) > 1_000_000
    assert len(find_kernels(source)) == 10_000
    assert str(parse_kernel(source, "k9999").signature) == "s: {[10000xi32]}, x: *fp32"


@pytest.mark.parametrize(("text", "words"), [("\0", "NUL"), ("\ud800", "surrogate"), ("\udfff x", "surrogate")])
def test_text_that_no_compiler_reads(text: str, words: str) -> None:
    """A character that ends the text for a compiler, or has no encoding, is an error with its line."""
    with pytest.raises(SourceError, match=f"{words}.*line 2") as caught:
        parse_kernel(f"\n// {text}\n__global__ void k(int n) {{ }}", None)
    assert caught.value.line == 2
    with pytest.raises(SourceError):
        find_kernels(text)


def test_text_has_to_be_text() -> None:
    """Bytes are refused by name."""
    with pytest.raises(SourceError, match="bytes"):
        parse_kernel(b"__global__ void k() { }", None)  # type: ignore[arg-type]


def test_other_alphabets_in_comments_and_strings() -> None:
    """Places stay right when characters take several bytes."""
    source = '// größe 測試 😀\n__global__ void k(int n /* é */, float a) { printf("ü"); } // ß'
    parsed = parse_kernel(source, None, {"n": 2})
    assert parsed.line == 2
    assert (
        parsed.source
        == '// größe 測試 😀\n__global__ void k( /* é */ float a) { const int n = (int)(2LL); printf("ü"); } // ß'
    )
