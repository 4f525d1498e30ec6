"""The translation of the kernel language: what is refused, where, and what comes out. No device is needed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from podium.backend import Entry, Options, Program, Signature, Variable
from podium.errors import CompileError

from podium_opencl.facts import DeviceFacts
from podium_opencl.translation import Translation, translate

_FACTS = DeviceFacts(
    extensions=frozenset({"cl_khr_fp64", "cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"})
)


def _translated(source: str, *names: str, facts: DeviceFacts = _FACTS, **options: object) -> Translation:
    entries = tuple(Entry(name, Signature.parse("")) for name in names)
    return translate(Program(source, "cuda", entries, Options.of(**options), path="user.cu"), facts)  # type: ignore[arg-type]


def _kernel(body: str, before: str = "") -> str:
    return f"{before}\n__global__ void f(int* x, float* y)\n{{\n{body}\n}}\n"


# What is in the body of a kernel, what must be in the message, and in which line of the body.
_REFUSED = [
    ("auto g = [&](int a) { return a; };", "no lambdas", 1),
    ('\nasm volatile("mov.u32 %0, 1;" : "=r"(x[0]));', "no inline PTX", 2),
    ("cudaTextureObject_t t;", "no textures", 1),
    ("x[0] = clock64();", "clocks in kernels", 1),
    ("int* p = (int*)malloc(4);", "memory allocation in kernels", 1),
    ("int* p = new int;", "no new", 1),
    ("static int n = 0;", "no static variables", 1),
    ("goto a; a: x[0] = 1;", "no goto", 1),
    ("x[0] = tiled_partition<32>(x);", "does not have cooperative groups", 1),
    ("__shared__ int s[4]; int* p = x; if (x[1]) p = s;", "shared memory", 1),
    ("int* p = x; int** q = &p;", "address of the pointer", 1),
    ("x[0] = x[1] > 0 ? __shfl_sync(~0u, x[0], 0) : 1;", "__shfl_sync only in a statement of its own", 1),
    ("x[0] = x[1]++ + __shfl_sync(~0u, x[0], 0);", "x[1]++ as a statement of its own", 1),
    ("switch (x[0]) { case 1: __syncthreads(); }", "barrier", 1),
    ("x[0] = __shfl_down(x[0], 1);", "__shfl_down_sync", 1),
    ("x[0] = __reduce_add_sync(~0u, x[0]);", "__reduce_add_sync", 1),
    ("f<<<1, 1>>>(x, y);", "dynamic parallelism", 1),
    ('const char* s = "text";', "strings only", 1),
    ("x[0] = 1;\nx[1] = nowhere;", "undeclared identifier 'nowhere'", 2),
    ("x[0] = nothing(3);", "undeclared identifier 'nothing'", 1),
    ("kind k;", "unknown type name 'kind'", 1),
    ("x[0] = 1 / 0;", "division by zero", 1),
    ("x = y;", "without a cast", 1),
    ("x[0] = (1;", "expected", 1),
    ("for (int v : x) { }", "no loops over ranges", 1),
    ('static_assert(sizeof(int) == 5, "no int of 5 bytes");', "no int of 5 bytes", 1),
    ("y[0] = 1.0L;", "no long double", 1),
    ("__threadfence_nowhere();", "undeclared", 1),
    ("int m[3][4]; int (*q)[4] = m;", "typedef int Row[4], Row *q", 1),
    ("float g(float);", "declarations of functions inside", 1),
    ("y[0] = norm3df(1, 2, 3);", "this mathematical function (norm3df)", 1),
    ("__hadd2(1, 2);", "pairs of 16-bit floats", 1),
    ("__float2half2_rn(y[0]);", "pairs of 16-bit floats", 1),
    ("__float2half_rd(y[0]);", "this rounding", 1),
    ("const int n = x[0]; int a[n];", "no constant", 1),
    ("auto h = threadIdx.x > 3 && __syncthreads_or(1);", "statement of its own", 1),
]
_REFUSED_BEFORE = [
    ("struct A { virtual int f() { return 1; } };", "A a;", "no virtual functions"),
    ("struct A { int a; }; struct B : A { };", "B b;", "no inheritance"),
    ("struct A { int a : 3; };", "A a;", "no bit-fields"),
    ("struct A { int a = 3; };", "A a;", "no initial values of members"),
    ("__device__ int r(int n) { return n ? r(n - 1) : 0; }", "x[0] = r(3);", "no recursion"),
    ("__device__ void g(int*& p) { p++; }", "int* p = x; g(p);", "no references to pointers"),
    ("template <typename... T> __device__ int s(T... t) { return 0; }", "x[0] = s(1);", "no parameter packs"),
    ("__device__ int g(int a) { return a; }", "int (*p)(int) = g;", "no pointers to functions"),
    ("constexpr int u[2] = {3, 4};", "u[0] = 2;", "is const"),
    ("#include <cooperative_groups.h>", "", "does not have cooperative groups"),
    ("#include <cuComplex.h>", "", "does not have complex numbers"),
    ("#include <type_traits>", "", "the C++ standard library"),
    ("#include <cub/cub.cuh>", "", "device libraries"),
    ('#include "absent.h"', "", "absent.h not found"),
    ("#pragma pack(1)", "", "#pragma pack"),
    ("#error stop here", "", "stop here"),
    ("#if 1", "", "unterminated"),
    ("/* open", "", "comment is not closed"),
]


@pytest.mark.parametrize(("body", "message", "line"), _REFUSED, ids=lambda each: str(each)[:30])
def test_what_cannot_be_translated_is_refused_at_its_line(body: str, message: str, line: int) -> None:
    """The reason and the place are in the error, its log and its diagnostics."""
    with pytest.raises(CompileError) as caught:
        _translated(_kernel(body), "f")
    (found,) = caught.value.diagnostics
    assert message in found.message and message in caught.value.log and message in str(caught.value)
    assert (found.file, found.line, found.severity) == ("user.cu", 3 + line, "error")
    assert caught.value.program == "user.cu"


@pytest.mark.parametrize(("before", "body", "message"), _REFUSED_BEFORE, ids=lambda each: str(each)[:30])
def test_declarations_that_cannot_be_translated_are_refused(before: str, body: str, message: str) -> None:
    """What stands outside of kernels is refused by name as well, where a kernel needs it."""
    with pytest.raises(CompileError, match=message.replace("+", "[+]")):
        _translated(_kernel(body, before), "f")


# What is in front of the kernel, what is in it, and what must be in the message; nothing for what C++ allows.
_CONST = [
    ("", "const int* p = x; p[0] = 3;", "p[0] is const and cannot be assigned to"),
    ("", "int const* p = x; p[1]++;", "p[1] is const and cannot be changed by ++"),
    ("", "const int a = 3; a += 1;", "a is const"),
    ("", "int* const p = x; p = p + 1;", "p is const"),
    ("", "const int* p = x; int* q = p;", "no conversion from const int* to int*: what it points to is const"),
    ("", "const int* p = x; atomicAdd(p, 1);", "const int* points to what is const"),
    ("", "const int a[2] = {1, 2}; a[1] = 3;", "a[1] is const"),
    ("", "const int a = 1; auto& r = a; r = 2;", "r is const"),
    ("", "const int a = 1; int& r = a;", "r refers to a, which is const"),
    ("typedef const int fixed;", "fixed* p = x; *p = 1;", "*p is const"),
    ("struct S { int a; };", "const S* s = (const S*)x; s->a = 1;", "s->a is const"),
    ("struct S { int a; __device__ void set() { a = 1; } };", "const S s = {1}; s.set();", "set() of a const S"),
    ("struct S { int a; __device__ void set() const { a = 1; } };", "S s = {1}; s.set();", "a is const"),
    ("__device__ void g(int& a) { a = 1; }", "const int a = 1; g(a);", "call to g(const int)"),
    ("__device__ void g(int& a) { a = 1; }", "g(3);", "call to g(int)"),
    ("template <typename T> __device__ void g(T* a) { *a = 1; }", "const int* p = x; g(p);", "*a is const"),
    ("struct S { int v; __device__ const int& g() const { return v; } };", "S s = {1}; s.g() = 2;", "s.g() is const"),
    ("struct S { int v; __device__ int& g() const { return v; } };", "S s = {1}; s.g() = 2;", "v is const"),
    ("__device__ int& g(int a) { return a + 1; }", "g(3) = 2;", "cannot return a + 1 as a reference to int"),
    ("template <typename T> __device__ T g(const T* a) { T t = *a; t += 1; return t; }", "const int* p = x; g(p);", ""),
    ("__device__ int g(const int& a) { return a; }", "x[0] = g(3) + g(x[1]);", ""),
    ("", "const int* p = x; p++; int* q = const_cast<int*>(p); q[0] = 1; int* r = (int*)p;", ""),
]


def test_what_is_const_is_not_changed() -> None:
    """Constness is kept as C++ has it: in pointers, references, members, member functions and template arguments."""
    for before, body, message in _CONST:
        source = _kernel(body, before)
        if message:
            with pytest.raises(CompileError, match=re.escape(message)):
                _translated(source, "f")
        else:
            _translated(source, "f")
    # A function that has changed nothing for one caller is made once more for another, whose argument is const.
    both = _kernel(
        "int a = 1; g(&a); const int* p = x; g(p);", "template <typename T> __device__ void g(T* a) { *a = 1; }"
    )
    with pytest.raises(CompileError, match="is const"):
        _translated(both, "f")


def test_what_no_kernel_needs_is_not_translated() -> None:
    """Functions that nobody calls may have anything in them: they could be for another backend."""
    unused = "__device__ int g() { return clock64(); }\nstruct A { virtual void f(); };\n"
    unused += "template <typename... T> void h(T...);"
    assert "clock" not in _translated(_kernel("x[0] = 1;", unused), "f").source


def test_comments_and_strings_are_no_code() -> None:
    """Words in comments and strings mean nothing, whatever they are."""
    body = '/* asm("") __syncthreads(); */ printf("goto // new [&](int) { } %d %lld\\n", 1, 2ll); // clock64()'
    text = _translated(_kernel(body), "f").source
    assert 'printf("goto // new [&](int) { } %d %ld\\n", 1, 2L)' in text
    assert "barrier(" not in text.partition("__kernel")[2]


def test_a_device_without_double_is_told_where_one_is() -> None:
    """A literal, a type or a function in double precision is refused with the extension that is missing."""
    facts = DeviceFacts(extensions=frozenset())
    for body in ("y[0] = 1.0;", "double d = 1;", "y[0] = sqrt(1);"):
        with pytest.raises(CompileError, match="cl_khr_fp64"):
            _translated(_kernel(body), "f", facts=facts)
    _translated(_kernel("y[0] = sqrtf(2) + 1.0f;"), "f", facts=facts)
    with pytest.raises(CompileError, match="cl_khr_int64_base_atomics"):
        _translated(_kernel("atomicAdd((unsigned long long*)x, 1ull);"), "f", facts=facts)


def test_lines_point_to_the_users_text() -> None:
    """The output names the user's file and line before each statement, also behind macros and in headers."""
    source = _kernel("x[0] = 1;\n\nx[1] = MANY;", "#define MANY \\\n    (1 + \\\n     2)")
    text = _translated(source, "f").source
    assert '#line 8 "user.cu"\n(x_[1] = 3);' in text


def test_lines_are_joined_as_cpp_joins_them() -> None:
    """A backslash at the end of a line joins two lines, in the middle of a word, too; places stay those of the text."""
    source = _kernel("x[0] = thread\\\nIdx.x; // never \\\nthe end\n  x[1] = no\\\nwhere + 1;")
    with pytest.raises(CompileError, match="undeclared identifier 'nowhere'") as caught:
        _translated(source, "f")
    (found,) = caught.value.diagnostics
    assert (found.line, found.column) == (7, 10)


def test_mistakes_in_headers_are_found_there(tmp_path: Path) -> None:
    """A header is a part of the text, with lines of its own."""
    (tmp_path / "part.h").write_text("// fine\n__device__ int g() { return nowhere; }\n")
    with pytest.raises(CompileError) as caught:
        _translated(_kernel("x[0] = g();", '#include "part.h"'), "f", include_dirs=[tmp_path])
    assert [(Path(each.file).name, each.line) for each in caught.value.diagnostics] == [("part.h", 2)]


def test_macros_are_those_of_cpp() -> None:
    """Arguments, pasting, texts, variable numbers of arguments, conditions, and macros within themselves."""
    before = """
#define EMPTY
#define CAT(a, b) a##b
#define ALL(first, ...) add(first, __VA_ARGS__)
#define again again
#if defined(WIDTH) && WIDTH >= 3 && !defined ABSENT
#define RIGHT 1
#elif 1 / 0
#define RIGHT 2
#else
#define RIGHT 3
#endif
__device__ int add(int a, int b) { return a + b; }
__device__ int again = 4;
"""
    text = _translated(
        _kernel("x[0] = ALL(CAT(1, 2), RIGHT) EMPTY;\nx[1] = WIDTH;", before), "f", defines={"WIDTH": 7}
    ).source
    assert "(12, 1)" in text and "(x_[1] = 7)" in text


def test_only_what_is_asked_for_is_made() -> None:
    """Each kernel has its own name in the output, and parameters for variables and shared memory if it needs them."""
    source = """
__device__ int counter = 3;
__constant__ float table[16];
template <typename T, int N> __global__ void __launch_bounds__(N) put(T* x) { x[0] = N; }
__global__ void count(unsigned n) { counter += n; }
__global__ void share(float* x) { extern __shared__ float s[]; s[0] = x[0]; }
"""
    program = Program(
        source,
        "cuda",
        tuple(Entry(name, Signature.parse("")) for name in ("put<float, 64>", "put<int, 3>", "count", "share")),
        variables=(Variable.of("counter", "u32"), Variable.of("table", "{[16xfp32]}")),
    )
    found = translate(program, _FACTS)
    assert len({each.symbol for each in found.kernels.values()}) == 4
    assert [each.uses_variables for each in found.kernels.values()] == [False, False, True, False]
    assert [each.dynamic_shared for each in found.kernels.values()] == [False, False, False, True]
    assert [each.max_threads for each in found.kernels.values()] == [64, 3, None, None]
    places = sorted((place.offset, place.size) for place in found.variables.values())
    assert places == [(0, 4), (4, 64)] and found.variables_bytes == 68 and found.initialiser
    with pytest.raises(CompileError, match="no kernel 'absent'"):
        _translated(source, "absent")


def test_warp_functions_bound_the_block() -> None:
    """What threads exchange lies in local memory of a fixed size, and a kernel says so."""
    source = _kernel("x[threadIdx.x] = __shfl_sync(0xffffffff, x[threadIdx.x], 0);")
    assert _translated(source, "f").kernels["f"].max_threads == 1024


def test_options_reach_the_compiler() -> None:
    """Flags go to the OpenCL compiler as they are, and what podium's options mean is put in its words."""
    found = _translated(_kernel("x[0] = 1;"), "f", flags=["-cl-mad-enable"], fast_math=True)
    assert found.build_options == ("-cl-std=CL1.2", "-cl-fast-relaxed-math", "-cl-mad-enable")
    with pytest.raises(CompileError, match=r"c\+\+99"):
        _translated(_kernel("x[0] = 1;"), "f", std="c++99")
    with pytest.raises(CompileError, match="blank"):
        _translated(_kernel("x[0] = 1;"), "f", flags=["-D A"])
