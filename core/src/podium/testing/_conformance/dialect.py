"""One kernel source: what every compiler of the dialect must understand, seen by running it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import podium
from podium.backend import Driver
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Dialect"]

# What each is where a is 7, b is -3 and f is 2.75.
_EXPRESSIONS = {
    "a / b": -2,
    "a % b": 1,
    "b / 2": -1,
    "b % 2": -1,
    "-a / 2 * 2": -6,
    "b >> 1": -2,
    "(unsigned)b >> 28": 15,
    "a << 3": 56,
    "a & 5 | 8 ^ 2": 15,
    "~a": -8,
    "!a + !!b": 1,
    "a > b && b < 0 || a / (b + 3)": 1,
    "a > 0 ? b : a": -3,
    "(a, b)": -3,
    "f": 2,
    "-f": -2,
    "f + 0.5f": 3,
    "a / 2 + a / 2.0f": 6,
    "f > 2": 1,
    "(unsigned)b + 4u": 1,
    "b < 4u": 0,
    "0x1F + 010 + 'A'": 104,
    "sizeof(int) + sizeof(float)": 8,
    "SQUARE(b + 1)": 4,
    "twice": 14,
}
_STATEMENTS = """
#define SQUARE(x) ((x) * (x))
extern "C" __global__ void table(int* out, int a, int b, float f) {
    const int twice = a * 2;
EXPRESSIONS
    int sum = 0;
    for (int i = 0, j = 10; i < j; ++i, j--) { if (i == 2) continue; sum += i + j; if (sum > 39) break; }
    *out++ = sum - 10;
    int power = 1;
    while (power < 10) power *= 2;
    *out++ = power;
    int chosen = 0;
    for (int i = 0; i < 4; i++) {
        switch (i) {
            case 0: chosen += 1;
            case 1: chosen += 10; break;
            case 3: chosen += 2; break;
            default: break;
        }
    }
    *out++ = chosen;
    int turns = 0;
    do { turns++; } while (turns < 5);
    *out++ = turns;
}
"""
_FUNCTIONS = """
__device__ void increase(int& x) { x += 1; }
__device__ int add(int a, int b = 6) { return a + b; }
__device__ int kind(int x) { return 1; }
__device__ int kind(float x) { return 2; }
__device__ int kind(const int* x) { return 3; }
__device__ int kind(const int* x, int y) { return 3 + y; }
__device__ int factorial(int n) { int product = 1; while (n > 1) product *= n--; return product; }
extern "C" __global__ void call(int* out, int n) {
    int own = n, total = 0;
    increase(own);
    out[0] = own;
    out[1] = add(n);
    out[2] = kind(n);
    out[3] = kind(1.0f);
    out[4] = kind(out);
    out[5] = kind(out, 1);
    out[6] = factorial(n);
    int& alias = total;
    for (int i = 1; i <= n; i++) alias += i;
    out[7] = total;
}
"""
_METHODS = """
struct Pair {
    int values[2];
    __device__ Pair(int x, int y) { values[0] = x; values[1] = y; }
    __device__ int sum() const { return values[0] + values[1]; }
    __device__ Pair operator+(const Pair& other) const {
        return Pair(values[0] + other.values[0], values[1] + other.values[1]);
    }
};
__device__ Pair twice(Pair pair) { pair.values[0] *= 2; pair.values[1] *= 2; return pair; }
extern "C" __global__ void use(int* out, int n) {
    Pair first(n, 2 * n), copy = first, both = first + copy;
    copy.values[0] = 1;
    out[0] = first.values[0];
    out[1] = first.values[1];
    out[2] = first.sum();
    out[3] = twice(Pair(n, n + 2)).sum();
    out[4] = first.values[0];
    out[5] = copy.sum();
}
"""


@contract("One kernel source", "compiles", "executes")
class Dialect(Subject):
    """Sources that users write, with the signature read from them."""

    @pytest.mark.needs("templates")
    def test_a_template_is_instantiated_by_name_expression(self, driver: Driver, level: Level) -> None:
        """``scale<float, 3>`` and ``scale<int, 5>`` are two kernels of one source."""
        module = podium.module(
            "template <typename T, int N> __global__ void scale(T* x) { x[threadIdx.x] = x[threadIdx.x] * N; }"
        )
        floats, ints = self.array([0.5, 1.5]), self.array([7, 8])
        module["scale<float, 3>"][1, 2](floats)
        module["scale<int, 5>"][1, 2](ints)
        assert floats.tolist() == [1.5, 4.5] and ints.tolist() == [35, 40]
        level.check(module["scale<int, 5>"])

    @pytest.mark.needs("namespaces")
    def test_a_kernel_in_a_namespace(self, driver: Driver, level: Level) -> None:
        """A kernel in nested namespaces is asked for by its qualified name."""
        module = podium.module(
            "namespace outer { namespace inner { __global__ void put(int* x) { x[0] = 42; } } }\n"
            "__global__ void put(int* x) { x[0] = 41; }"
        )
        inner, outer = self.array([0]), self.array([0])
        module["outer::inner::put"][1, 1](inner)
        module["put"][1, 1](outer)
        assert (inner.tolist(), outer.tolist()) == ([42], [41])

    def test_extern_c_and_several_kernels(self, driver: Driver, level: Level) -> None:
        """A source with ``extern "C"`` kernels beside others gives each by its name, sharing a device function."""
        module = podium.module(
            "__device__ int twice(int x) { return 2 * x; }\n"
            'extern "C" __global__ void first(int* x) { x[0] = twice(x[0]); }\n'
            'extern "C" {\n__global__ void second(int* x) { x[0] = twice(x[0]) + 1; }\n}\n'
            "__global__ void third(int* x) { x[0] = twice(twice(x[0])); }\n"
        )
        assert set(module.names) >= {"first", "second", "third"}
        results = {}
        for name in ("first", "second", "third"):
            x = self.array([10])
            module[name][1, 1](x)
            results[name] = x.tolist()
        assert results == {"first": [20], "second": [21], "third": [40]}

    def test_defines(self, driver: Driver, level: Level) -> None:
        """`defines` are macros: with a value, empty for an empty text, 1 for True, and left out when False."""
        source = """
            __global__ void put(int* x) {
                x[0] = WIDTH EMPTY;
                x[1] = FLAG;
            #ifdef OFF
                x[2] = 1;
            #endif
            }
        """
        x = self.array([0, 0, 0])
        podium.kernel(source, defines={"WIDTH": 17, "EMPTY": "", "FLAG": True, "OFF": False})[1, 1](x)
        assert x.tolist() == [17, 1, 0]

    def test_include_dirs(self, driver: Driver, level: Level, tmp_path: Path) -> None:
        """Headers are found in `include_dirs`, in their order, and next to the source's own file."""
        files = {"one/shared.h": "ONE 1", "two/shared.h": "TWO 2", "two/second.h": "SECOND 20", "own/own.h": "OWN 3"}
        for name, macro in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(f"#define {macro}\n")
        path = tmp_path / "own" / "kernel.cu"
        path.write_text(
            '#include "own.h"\n#include <shared.h>\n#include "second.h"\n'
            "__global__ void put(int* x) { x[0] = OWN; x[1] = ONE; x[2] = SECOND; }\n"
        )
        x = self.array([0, 0, 0])
        podium.kernel(path, include_dirs=[tmp_path / "one", tmp_path / "two"])[1, 1](x)
        assert x.tolist() == [3, 1, 20]

    def test_constants(self, driver: Driver, level: Level) -> None:
        """`constants` fixes a parameter at compile time, and the call no longer has it.

        Rows ARG-10.
        """
        source = "__global__ void put(int* x, int width, int value) { x[0] = width * 100 + value; }"
        for width in (1, 7):
            x = self.array([0])
            podium.kernel(source, constants={"width": width})[1, 1](x, 3)
            assert x.tolist() == [width * 100 + 3]

    def test_comments_and_line_ends(self, driver: Driver, level: Level) -> None:
        """Comments in any language and CRLF line ends, with a continued macro, compile like any other text."""
        source = "\r\n".join(
            [
                "// größer, 大きい, больше \U0001f3b5",
                "/* __global__ void not_this(int* x) { */",
                "#define SUM(a, b) \\",
                "    ((a) + (b))",
                "__global__ void put(int* x) { x[0] = SUM(40, 2); /* ende ü */ }",
                "",
            ]
        )
        x = self.array([0])
        podium.kernel(source)[1, 1](x)
        assert x.tolist() == [42]

    def test_expressions_and_statements(self, driver: Driver, level: Level) -> None:
        """Integer arithmetic, conversions, loops, switches and macros give what C++ says."""
        lines = "".join(f"    *out++ = (int)({expression});\n" for expression in _EXPRESSIONS)
        out = self.array([0] * (len(_EXPRESSIONS) + 4))
        podium.kernel(_STATEMENTS.replace("EXPRESSIONS", lines))[1, 1](out, 7, -3, 2.75)
        found = dict(zip([*_EXPRESSIONS, "for", "while", "switch", "do"], out.tolist()))
        assert found == {**_EXPRESSIONS, "for": 30, "while": 16, "switch": 23, "do": 5}

    def test_functions(self, driver: Driver, level: Level) -> None:
        """References, overloads by type and number, and default arguments are those of C++."""
        out = self.array([0] * 8)
        podium.kernel(_FUNCTIONS)[1, 1](out, 5)
        assert out.tolist() == [6, 11, 1, 2, 3, 4, 120, 15]

    @pytest.mark.needs("structs")
    def test_structs_with_members_of_all_kinds(self, driver: Driver, level: Level) -> None:
        """A struct has constructors, methods, operators and arrays, is copied, and is passed and returned by value."""
        out = self.array([0] * 6)
        podium.kernel(_METHODS)[1, 1](out, 4)
        assert out.tolist() == [4, 8, 12, 20, 4, 9]

    @pytest.mark.needs("standards")
    def test_options_reach_the_compiler(self, driver: Driver, level: Level) -> None:
        """`std` is obeyed: C++20 says that it is."""
        source = "__global__ void put(int* x) { x[0] = __cplusplus; }"
        values: dict[str, Any] = {}
        for std in ("c++17", "c++20"):
            x = self.array([0])
            podium.kernel(source, std=std)[1, 1](x)
            values[std] = x.tolist()[0]
        assert values["c++17"] == 201703 < values["c++20"]

    @pytest.mark.needs("globals")
    def test_device_globals_start_as_they_are_written(self, driver: Driver, level: Level) -> None:
        """``__constant__`` and ``__device__`` variables hold their initial values."""
        source = """
            __constant__ int table[4] = {2, 3, 5, 7};
            __device__ int offset = 100;
            __global__ void put(int* x) { x[threadIdx.x] = table[threadIdx.x] + offset; }
        """
        x = self.array([0] * 4)
        podium.kernel(source)[1, 4](x)
        assert x.tolist() == [102, 103, 105, 107]

    def test_mathematics(self, driver: Driver, level: Level) -> None:
        """The functions of mathematics give the host's results to single precision."""
        import numpy

        source = """
            __global__ void compute(float* x) {
                int i = blockIdx.x;
                float v = x[i];
                x[i] = sqrtf(v) + expf(-v) + fminf(v, 1.5f) * rsqrtf(v) + floorf(v);
            }
        """
        v = numpy.linspace(0.25, 6, 24, dtype=numpy.float32)
        x = self.array(v)
        podium.kernel(source)[24, 1](x)
        expected = numpy.sqrt(v) + numpy.exp(-v) + numpy.minimum(v, 1.5) / numpy.sqrt(v) + numpy.floor(v)
        numpy.testing.assert_allclose(x.numpy(), expected, rtol=2e-6)
