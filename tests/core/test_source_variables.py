"""Reading variables: which a source has, what they are, and which kernels surely are beside them."""

from __future__ import annotations

import pytest

from podium._program import Entry
from podium._source import parse_module
from podium._variable import DeclaredVariable, Variable
from podium.errors import SignatureError, SourceError

STRUCTS = """
#include <cuda_fp16.h>
#define N 4
#define TABLE __constant__
struct Pair { int a; float b; };
struct Point { float x, y; };
template <class T, int n> struct Many { T items[n]; };
typedef float Row[N];
enum Mode : unsigned char { A, B };
"""

# What is declared, and the name, the spelling, the element type and the shape of each variable in it.
DECLARED: list[tuple[str, list[tuple[str, str, str, tuple[int, ...]]]]] = [
    ("__device__ unsigned int counter;", [("counter", "u32", "u32", ())]),
    ("TABLE float coefficients[16];", [("coefficients", "[16xfp32]", "fp32", (16,))]),
    ("static __device__ __align__(16) double m[2][N - 1] = {{1}};", [("m", "[2x[3xfp64]]", "fp64", (2, 3))]),
    ("__device__ int five(5);", [("five", "i32", "i32", ())]),
    ("inline __device__ int six{6};", [("six", "i32", "i32", ())]),
    ("unsigned __constant__ long long u = 5;", [("u", "u64", "u64", ())]),
    ("__device__ bool __attribute__((aligned(8))) flag;", [("flag", "i1", "i1", ())]),
    (
        "__device__ volatile int a, *b, c[] = {1, N, 3};",
        [("a", "i32", "i32", ()), ("b", "*i32", "u64", ()), ("c", "[3xi32]", "i32", (3,))],
    ),
    ("__device__ float (*function)(float) = square;", [("function", "*void", "u64", ())]),
    ("__device__ const float *pointer;", [("pointer", "*kfp32", "u64", ())]),
    ("__managed__ Pair pair;", [("pair", "{i32,fp32}", "u8", (8,))]),
    ("__device__ Pair pairs[3];", [("pairs", "[3x{i32,fp32}]", "u8", (3, 8))]),
    ("__constant__ struct Own { int a; double b; } own;", [("own", "{i32,fp64}", "u8", (16,))]),
    ("__device__ Point points[] = {{1, 2}, {3, 4}};", [("points", "[2x{fp32,fp32}]", "fp32", (2, 2))]),
    ("__device__ Many<short, N * 2> many;", [("many", "{[8xi16]}", "u8", (16,))]),
    ("__device__ float4 wide[N];", [("wide", "[4x{fp32,fp32,fp32,fp32}@16]", "fp32", (4, 4))]),
    ("__device__ float3 narrow;", [("narrow", "{fp32,fp32,fp32}", "fp32", (3,))]),
    ("__device__ half2 h; __device__ __half g[2];", [("h", "{fp16,fp16}@4", "fp16", (2,)), ("g", "[2xfp16]", "fp16", (2,))]),
    ("__constant__ Row rows[2];", [("rows", "[2x[4xfp32]]", "fp32", (2, 4))]),
    ("__device__ Mode mode = A;", [("mode", "u8", "u8", ())]),
    ('extern "C" { __device__ int ec; }', [("ec", "i32", "i32", ())]),
    ("__device__ int Keeper::count = 3;", [("Keeper::count", "i32", "i32", ())]),
    ("namespace ns { inline namespace v1 { __device__ int v; } }", [("ns::v1::v", "i32", "i32", ())]),
    ("namespace ns { namespace { __device__ char hidden[4]; } }", [("ns::hidden", "[4xi8]", "i8", (4,))]),
    ("extern __device__ int later; __device__ int later = 1;", [("later", "i32", "i32", ())]),
    # none of these is a variable that can change, in a namespace, and in memory for the whole module
    ("__device__ const int constant = 4; __constant__ const float table[] = {1, 2};", []),
    ("static constexpr __device__ int also = 3; __device__ int *const fixed = nullptr;", []),
    ("extern __device__ int elsewhere; extern \"C\" __device__ int there;", []),
    ("extern __shared__ float dynamic[]; __shared__ int shared; __device__ __shared__ int both;", []),
    ("__host__ __device__ int f(int); __device__ int g(int x) { static int kept; return x; }", []),
    ("template <class T> __device__ T pi = T(3);", []),
    ("struct S { __device__ int f() { return 1; } int member; };", []),
    ("// __device__ int commented;\nconst char *text = \"__device__ int quoted;\";", []),
    ("#if 0\n__device__ int never;\n#endif\n", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), DECLARED, ids=[text for text, _ in DECLARED])
def test_variables_are_understood(text: str, expected: list[tuple[str, str, str, tuple[int, ...]]]) -> None:
    """Every way that people declare variables gives the name, the type and the layout that the compiler sees."""
    variables, _ = parse_module(STRUCTS + text)
    found = [Variable.of(each.name, each.type) for each in variables]
    assert [(each.name, str(each.type), *each.layout()) for each in found] == expected
    assert [each.size for each in found] == [Variable.of("x", spelling).type.size for _, spelling, _, _ in expected]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("__device__ Unknown x[3];", "not in this source"),
        ("__device__ auto x = 4;", "leaves the type to the compiler"),
        ("__device__ float x[SIZE(3)];", "SIZE"),
        ("__device__ char x[] = \"text\";", "podium cannot read it"),
        ("__device__ Point x[] = {1, 2, 3, 4};", "has no size"),
        ("__device__ int x[] = {EACH(1), EACH(2)};", "cannot count its initialisers"),
        ("__device__ long double x;", "no long double"),
        ("#ifdef __CUDA_ARCH__\n__device__ int x;\n#endif\n", "condition that podium cannot decide"),
        ("__device__ int x\n#ifdef FOUR\n[4]\n#endif\n;", "choose between several forms"),
        ("#if A\n__device__ int x;\n#else\n__device__ float x;\n#endif\n", "condition that podium cannot decide"),
    ],
)  # fmt: skip
def test_a_variable_whose_type_is_not_clear_is_known_by_name(text: str, reason: str) -> None:
    """What cannot be resolved has no type but the reason and the line, never a guess."""
    variables, _ = parse_module(STRUCTS + text)
    (variable,) = variables
    assert variable.name == "x" and variable.type is None and reason in variable.reason
    assert "__device__" in (STRUCTS + text).splitlines()[variable.line - 1]


def test_macros_of_the_options_decide() -> None:
    """The macros that the compiler is given hold for conditions and for sizes."""
    source = "#ifdef TABLE\n__constant__ float table[TABLE];\n#endif\n"
    assert parse_module(source, defines=[("TABLE", "7")])[0] == (DeclaredVariable("table", "table", "[7xfp32]", "", 2),)


def test_the_kernels_that_surely_are_there() -> None:
    """Plain kernels and instances that the source makes are listed; what is conditional or not clear is not."""
    source = """
    __device__ int v;
    __global__ void plain(float* x, int n) { }
    namespace ns { __global__ void inside(int n) { } }
    __global__ void declared(int n);
    template <class T> __global__ void made(T* x) { }
    template __global__ void made<float>(float* x);
    template <> __global__ void made<int>(int* x) { }
    template <int N> __global__ void wanted(int* x) { }
    __global__ void unclear(Unknown x) { }
    #if SOMETHING
    __global__ void sometimes(int* x) { }
    #endif
    """
    _, kernels = parse_module(source)
    assert [(each.name, str(each.signature)) for each in kernels if isinstance(each, Entry)] == [
        ("plain", "x: *fp32, n: i32"),
        ("ns::inside", "n: i32"),
        ("made<float>", "x: *fp32"),
    ]


def test_text_that_no_compiler_reads_is_refused() -> None:
    """A NUL in the source is an error here as it is for kernels."""
    with pytest.raises(SourceError, match="NUL"):
        parse_module("__device__ int a;\0")


@pytest.mark.parametrize("spelling", ["", "i3", "fp32, i32", "void", "fp8e5", "[0]", "constexpr", 7, None])
def test_what_is_no_type_is_refused(spelling: object) -> None:
    """The type of a variable is one type that memory can have."""
    with pytest.raises(SignatureError):
        Variable.of("x", spelling)
