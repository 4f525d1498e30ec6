"""Intrinsics on the CPU backend against exact arithmetic: directed rounding, conversions, small integers in words."""

from __future__ import annotations

import array
import math
import random
import struct
from collections.abc import Callable
from fractions import Fraction

import pytest
from cpu_kernels import SUCCESS, Kernels, host_compiler, zeros

from podium.backend import HostCompiler


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    return host_compiler()


def neighbours(x: float, code: str) -> tuple[float, float]:
    """Return the next smaller and the next greater number of a format."""
    whole = {"f": "i", "d": "q", "e": "h"}[code]
    (bits,) = struct.unpack(f"={whole}", struct.pack(f"={code}", x))
    top = -1 << (struct.calcsize(f"={whole}") * 8 - 1)

    def value(pattern: int) -> float:
        return float(struct.unpack(f"={code}", struct.pack(f"={whole}", pattern))[0])

    if x == 0:
        return value(top + 1), value(1)
    return (value(bits + 1), value(bits - 1)) if bits < 0 else (value(bits - 1), value(bits + 1))


def is_rounded(found: float, compare: Callable[[float], int], mode: str, code: str) -> bool:
    """Tell whether a result is the exact one, rounded. `compare` gives the sign of a number less the exact one."""
    below, above = neighbours(found, code)
    if mode == "rz":
        mode = "rd" if compare(0.0) <= 0 else "ru"
    if mode == "rd":
        return compare(found) <= 0 < compare(above)
    return compare(below) < 0 <= compare(found)


def sign(x: Fraction) -> int:
    return (x > 0) - (x < 0)


Exact = Callable[[Fraction, Fraction, Fraction], Fraction]

OPERATIONS: dict[str, tuple[str, Exact]] = {
    "__{0}add_{1}(x, y)": ("fd", lambda x, y, z: x + y),
    "__{0}sub_{1}(x, y)": ("fd", lambda x, y, z: x - y),
    "__{0}mul_{1}(x, y)": ("fd", lambda x, y, z: x * y),
    "__{0}div_{1}(x, y)": ("fd", lambda x, y, z: x / y),
    "__{0}rcp_{1}(x)": ("fd", lambda x, y, z: 1 / x),
    "__fmaf_{1}(x, y, z)": ("f", lambda x, y, z: x * y + z),
    "__fmaf_ieee_{1}(x, y, z)": ("f", lambda x, y, z: x * y + z),
    "__fma_{1}(x, y, z)": ("d", lambda x, y, z: x * y + z),
    "__double2float_{1}((double)x * 1.0000000123)": ("f", lambda x, y, z: Fraction(float(x) * 1.0000000123)),
}


@pytest.mark.parametrize("code", ["f", "d"])
def test_directed_rounding(code: str) -> None:
    """Results are rounded down, up and to zero exactly, and the mode is as it was behind each of them."""
    kind = {"f": "float", "d": "double"}[code]
    cases = [
        (text.format(code, mode), exact, mode)
        for text, (codes, exact) in OPERATIONS.items()
        for mode in ("rd", "ru", "rz")
        if code in codes
    ]
    roots = [f"__{code}sqrt_{mode}(x < 0 ? -x : x)" for mode in ("rd", "ru", "rz")]
    lines = [text for text, _, _ in cases] + roots + [f"{kind}(1) / {kind}(3)"]
    source = f'extern "C" __global__ void k(const {kind} *in, {kind} *out) {{\n'
    source += f"  {kind} x = in[3 * threadIdx.x], y = in[3 * threadIdx.x + 1], z = in[3 * threadIdx.x + 2];\n"
    source += "".join(f"  out[{len(lines)} * threadIdx.x + {i}] = {text};\n" for i, text in enumerate(lines)) + "}\n"
    generator = random.Random(3)
    numbers = array.array(code, [generator.choice((-1, 1)) * generator.uniform(0.5, 4.0) for _ in range(3 * 64)])
    out = zeros(code, len(lines) * 64)
    spelling = {"f": "fp32", "d": "fp64"}[code]
    assert Kernels(source, {"k": f"*k{spelling}, *{spelling}"})("k", 1, 64, numbers, out) == SUCCESS
    third = array.array(code, [1 / 3])[0]
    for thread in range(64):
        x, y, z = map(Fraction, numbers[3 * thread : 3 * thread + 3])
        found = out[len(lines) * thread : len(lines) * (thread + 1)]
        for result, (text, exact, mode) in zip(found, cases):
            value = exact(x, y, z)
            assert is_rounded(result, lambda r, value=value: sign(Fraction(r) - value), mode, code), (text, x, y, z)
        for result, mode in zip(found[len(cases) :], ("rd", "ru", "rz")):
            compare = lambda r: -1 if r < 0 else sign(Fraction(r) ** 2 - abs(x))  # noqa: B023, E731
            assert is_rounded(result, compare, mode, code), (mode, x)
        assert found[-1] == third


CONVERSIONS = {
    "int": ("int", "i", "i32"),
    "uint": ("unsigned int", "I", "u32"),
    "ll": ("long long", "q", "i64"),
    "ull": ("unsigned long long", "Q", "u64"),
}


def test_conversions_between_numbers() -> None:
    """Integers become floats, halves and doubles with the rounding asked for, and floats become integers, at any end."""
    modes = ("rd", "ru", "rz")
    body, bodies = "", []
    for name, (kind, _, _) in CONVERSIONS.items():
        lines = [f"__{name}2float_{mode}(x)" for mode in modes] + [f"__{name}2half_{mode}(x)" for mode in modes]
        lines += [f"__{name}2double_{mode}(x)" for mode in modes] if name.endswith("ll") else []
        bodies.append(lines)
        body += (
            f'extern "C" __global__ void to_{name}(const {kind} *in, double *out) {{\n  {kind} x = in[threadIdx.x];\n'
        )
        body += "".join(f"  out[9 * threadIdx.x + {i}] = {line};\n" for i, line in enumerate(lines)) + "}\n"
    body += """
    extern "C" __global__ void special(const float *in, long long *out) {
      float x = in[threadIdx.x];
      long long *o = out + 8 * threadIdx.x;
      o[0] = __float2int_rz(x), o[1] = __float2uint_rz(x), o[2] = __float2ll_rz(x), o[3] = __float2ull_rz(x);
      o[4] = __double2int_rz(x), o[5] = __half2short_rn(__float2half(x)), o[6] = __half2ushort_ru(__float2half(x));
      o[7] = __half2char_rz(__float2half(x)) + 1000 * __half2uchar_rz(__float2half(x));
    }
    extern "C" __global__ void halves(const float *in, float *out) {
      float x = in[threadIdx.x];
      out[4 * threadIdx.x] = __float2half_rd(x), out[4 * threadIdx.x + 1] = __float2half_ru(x);
      out[4 * threadIdx.x + 2] = __float2half_rz(x), out[4 * threadIdx.x + 3] = __double2half_ru((double)x);
    }
    """
    entries = {f"to_{name}": f"*k{spelling}, *fp64" for name, (_, _, spelling) in CONVERSIONS.items()}
    entries |= {"special": "*kfp32, *i64", "halves": "*kfp32, *fp32"}
    kernels = Kernels("#include <cuda_fp16.h>\n" + body, entries)
    generator = random.Random(4)
    for (name, (_, code, _)), lines in zip(CONVERSIONS.items(), bodies):
        size = 8 * array.array(code).itemsize
        low = 0 if name.startswith("u") else -(1 << (size - 1))
        values = [generator.randrange(low, low + (1 << size)) for _ in range(30)]
        values += [generator.randrange(max(low, -60000), 60000) for _ in range(32)] + [0, low]
        out = zeros("d", 9 * 64)
        assert kernels(f"to_{name}", 1, 64, array.array(code, values), out) == SUCCESS
        for thread, value in enumerate(values):
            for i, line in enumerate(lines):
                result, form = out[9 * thread + i], "fed"[i // 3]
                if form == "e" and (math.isinf(result) or abs(value) >= 65504):
                    continue
                compare = lambda r: sign(Fraction(r) - value)  # noqa: B023, E731
                assert is_rounded(result, compare, modes[i % 3], form), (line, value, result)
    numbers = array.array("f", [math.nan, math.inf, -math.inf, 3.7, -3.7, 1e6, -1e6, 200.5])
    found = zeros("q", 64)
    assert kernels("special", 1, 8, numbers, found) == SUCCESS
    least, most = -(1 << 31), (1 << 31) - 1
    assert found.tolist()[:5] == [0, 0, -(1 << 63), -(1 << 63), least]
    assert found.tolist()[8:16] == [most, 2**32 - 1, 2**63 - 1, -1, most, 32767, 65535, 127 + 255000]
    assert found.tolist()[16:24] == [least, 0, -(1 << 63), 0, least, -32768, 0, -128]
    assert found.tolist()[24:32] == [3, 3, 3, 3, 3, 4, 4, 3003]
    assert found.tolist()[32:40] == [-3, 0, -3, 0, -3, -4, 0, -3]
    assert found.tolist()[56:] == [200, 200, 200, 200, 200, 200, 201, 127 + 200000]
    floats = array.array("f", [0.1, -0.1, 1 + 2**-12, 1e-9, -1e-9, 65000.0, 0.0, 0.5])
    halves = zeros("f", 32)
    assert kernels("halves", 1, 8, floats, halves) == SUCCESS
    for thread, value in enumerate(floats):
        compare = lambda r: sign(Fraction(r) - Fraction(value))  # noqa: B023, E731
        for result, mode in zip(halves[4 * thread : 4 * thread + 4], ("rd", "ru", "rz", "ru")):
            assert is_rounded(result, compare, mode, "e"), (mode, value, result)


def elements(word: int, bits: int, signed: bool) -> list[int]:
    parts = [word >> place & (1 << bits) - 1 for place in range(0, 32, bits)]
    return [part - (1 << bits) if signed and part >> (bits - 1) else part for part in parts]


def clamp(x: int, bits: int, signed: bool) -> int:
    low = -(1 << (bits - 1)) if signed else 0
    return min(max(x, low), low + (1 << bits) - 1)


def word_functions(bits: int) -> dict[str, tuple[bool, Callable[[int, int], int]]]:
    """Give each function on the elements of words, and whether these are signed."""
    result: dict[str, tuple[bool, Callable[[int, int], int]]] = {
        "add": (False, lambda a, b: a + b),
        "sub": (False, lambda a, b: a - b),
        "addss": (True, lambda a, b: clamp(a + b, bits, True)),
        "subss": (True, lambda a, b: clamp(a - b, bits, True)),
        "addus": (False, lambda a, b: clamp(a + b, bits, False)),
        "subus": (False, lambda a, b: clamp(a - b, bits, False)),
        "avgs": (True, lambda a, b: (a + b + (a + b >= 0)) >> 1),
        "avgu": (False, lambda a, b: (a + b + 1) >> 1),
        "haddu": (False, lambda a, b: (a + b) >> 1),
        "absdiffs": (True, lambda a, b: abs(a - b)),
        "absdiffu": (False, lambda a, b: abs(a - b)),
        "maxs": (True, max),
        "maxu": (False, max),
        "mins": (True, min),
        "minu": (False, min),
        "abs": (True, lambda a, _: abs(a)),
        "absss": (True, lambda a, _: clamp(abs(a), bits, True)),
        "neg": (True, lambda a, _: -a),
        "negss": (True, lambda a, _: clamp(-a, bits, True)),
    }
    comparisons: dict[str, Callable[[int, int], bool]] = {
        "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "ge": lambda a, b: a >= b,
        "gt": lambda a, b: a > b, "le": lambda a, b: a <= b, "lt": lambda a, b: a < b,
    }  # fmt: skip
    for name, compare in comparisons.items():
        for suffix in ("",) if name in ("eq", "ne") else ("s", "u"):
            result[f"cmp{name}{suffix}"] = (suffix == "s", lambda a, b, c=compare: -int(c(a, b)))
            result[f"set{name}{suffix}"] = (suffix == "s", lambda a, b, c=compare: int(c(a, b)))
    return result


STEPS: dict[str, Callable[[int, int, int], int]] = {
    "__vimax3_{}(a, b, c)": lambda a, b, c: max(a, b, c),
    "__vimin3_{}(a, b, c)": lambda a, b, c: min(a, b, c),
    "__viaddmax_{}(a, b, c)": lambda a, b, c: max(a + b, c),
    "__viaddmin_{}(a, b, c)": lambda a, b, c: min(a + b, c),
}


def word_of(bits: int, signed: bool, function: Callable[[int, int], int]) -> Callable[[int, int, int], int]:
    def word(x: int, y: int, z: int) -> int:
        pairs = zip(elements(x, bits, signed), elements(y, bits, signed))
        return sum((function(a, b) & (1 << bits) - 1) << bits * i for i, (a, b) in enumerate(pairs))

    return word


def step_of(
    bits: int, signed: bool, function: Callable[[int, int, int], int], wraps: bool, relu: bool
) -> Callable[[int, int, int], int]:
    def step(x: int, y: int, z: int) -> int:
        total = 0
        for i, (a, b, c) in enumerate(zip(*(elements(word, bits, signed) for word in (x, y, z)))):
            if wraps:  # the sum, before it is compared
                a, b = elements(a + b & (1 << bits) - 1, bits, signed)[0], 0
            value = function(a, b, c)
            total |= ((max(value, 0) if relu else value) & (1 << bits) - 1) << bits * i
        return total

    return step


def test_small_integers_in_words() -> None:
    """Every function on halves and bytes of words gives what Python's integers give, element by element."""
    expected: dict[str, Callable[[int, int, int], int]] = {}
    for count, bits in ((2, 16), (4, 8)):
        for name, (signed, function) in word_functions(bits).items():
            one = name in ("abs", "absss", "neg", "negss")
            expected[f"__v{name}{count}(x{'' if one else ', y'})"] = word_of(bits, signed, function)
        for letter, signed in (("s", True), ("u", False)):
            expected[f"__vsad{letter}{count}(x, y)"] = lambda x, y, z, bits=bits, signed=signed: sum(  # type: ignore[misc]
                abs(a - b) for a, b in zip(elements(x, bits, signed), elements(y, bits, signed))
            )
    for text, step in STEPS.items():
        for kind, bits, signed in (("s32", 32, True), ("u32", 32, False), ("s16x2", 16, True), ("u16x2", 16, False)):
            for relu in ("", "_relu") if signed else ("",):
                expected[text.format(kind + relu).replace("a, b, c", "x, y, z")] = step_of(
                    bits, signed, step, "add" in text, bool(relu)
                )
    for letter, signed in (("", True), ("u", False)):
        cast = "(int)" if signed else ""
        for name, first in (("lo", 0), ("hi", 2)):
            expected[f"(unsigned)__dp2a_{name}({cast}x, {cast}y, {cast}z)"] = (  # type: ignore[misc]
                lambda x, y, z, first=first, signed=signed: (
                    z + sum(a * b for a, b in zip(elements(x, 16, signed), elements(y, 8, signed)[first:])) & 0xFFFFFFFF
                )
            )
        vectors = "short2", "char4"
        expected[f"(unsigned)__dp2a_lo(*({letter}{vectors[0]} *)&x, *({letter}{vectors[1]} *)&y, {cast}z)"] = (  # type: ignore[misc]
            lambda x, y, z, signed=signed: (
                z + sum(a * b for a, b in zip(elements(x, 16, signed), elements(y, 8, signed))) & 0xFFFFFFFF
            )
        )
        expected[f"(unsigned)__dp4a(*({letter}char4 *)&x, *({letter}char4 *)&y, {cast}z)"] = (  # type: ignore[misc]
            lambda x, y, z, signed=signed: (
                z + sum(a * b for a, b in zip(elements(x, 8, signed), elements(y, 8, signed))) & 0xFFFFFFFF
            )
        )
    expected["(__vibmax_s32((int)x, (int)y, &p) == (int)x) + 2 * p"] = lambda x, y, z: (
        3 * (elements(x, 32, True) >= elements(y, 32, True))
    )
    expected["__vibmin_u32(x, y, &p) ^ (p ? x : y)"] = lambda x, y, z: 0
    expected["(__vibmax_s16x2(x, y, &p, &q), p + 2 * q)"] = lambda x, y, z: sum(
        (a >= b) << 1 - i for i, (a, b) in enumerate(zip(elements(x, 16, True), elements(y, 16, True)))
    )
    # Threads that wait are not made vectors of, which would take the compiler a minute here.
    lines = "".join(f"  out[{len(expected)} * threadIdx.x + {i}] = {text};\n" for i, text in enumerate(expected))
    source = 'extern "C" __global__ void k(const unsigned *in, unsigned *out) {\n  bool p, q;\n  __syncwarp();\n'
    source += (
        f"  unsigned x = in[3 * threadIdx.x], y = in[3 * threadIdx.x + 1], z = in[3 * threadIdx.x + 2];\n{lines}}}\n"
    )
    generator = random.Random(6)
    edges = (0, 0x80008000, 0x7FFF7FFF, 0xFFFFFFFF, 0x80FF017F, 0x00010001)
    words = [generator.choice(edges) if generator.random() < 0.3 else generator.getrandbits(32) for _ in range(3 * 40)]
    out = zeros("I", len(expected) * 40)
    assert Kernels(source, {"k": "*ku32, *u32"})("k", 1, 40, array.array("I", words), out) == SUCCESS
    for thread in range(40):
        x, y, z = words[3 * thread : 3 * thread + 3]
        for i, (text, function) in enumerate(expected.items()):
            found, right = out[len(expected) * thread + i], function(x, y, z)
            assert found == right, f"{text} of {x:#x}, {y:#x}, {z:#x}: {found:#x}, not {right:#x}"


def test_finding_the_nth_bit() -> None:
    """__fns finds a bit upwards or downwards, and says with all ones that there is none."""
    source = """extern "C" __global__ void k(unsigned *out) {
      const unsigned m = 0x90u;
      const unsigned all[] = {__fns(m, 0, 1), __fns(m, 0, 2), __fns(m, 0, 3), __fns(m, 31, -1), __fns(m, 31, -2),
                              __fns(m, 4, 0), __fns(m, 5, 0), __fns(m, 4, 1), __fns(m, 5, 1)};
      for (int i = 0; i < 9; ++i) out[i] = all[i];
    }"""
    out, none = zeros("I", 9), 0xFFFFFFFF
    assert Kernels(source, {"k": "*u32"})("k", 1, 1, out) == SUCCESS
    assert out.tolist() == [4, 7, none, 7, 4, 4, none, 4, 7]


MORE_MATH: dict[str, Callable[[float], float]] = {
    "erfcx(x)": lambda x: math.exp(x * x) * math.erfc(x),
    "erfcxf(-x)": lambda x: math.exp(x * x) * math.erfc(-x),
    "erfcx(x + 12.0) * (x + 12.0)": lambda x: 0.5641895835477563 * (1 - 0.5 / (x + 12) ** 2 + 0.75 / (x + 12) ** 4),
    "cyl_bessel_i0(x)": lambda x: sum((x * x / 4) ** k / math.factorial(k) ** 2 for k in range(30)),
    "cyl_bessel_i1f(-x)": lambda x: (
        -x / 2 * sum((x * x / 4) ** k / math.factorial(k) / math.factorial(k + 1) for k in range(30))
    ),
    "cyl_bessel_i0(x + 40.0) / exp(x + 40.0)": lambda x: (
        (1 + 1 / (8 * (x + 40)) + 9 / (2 * (8 * (x + 40)) ** 2)) / math.sqrt(2 * math.pi * (x + 40))
    ),
    "norm4d(x, 1.0, 2.0, 3.0) * rnorm4df(x, 1.0f, 2.0f, 3.0f)": lambda x: 1.0,
    "normf(3, v) + 1 / rnorm(3, w)": lambda x: 2 * math.sqrt(x * x + 5),
    "rsqrt(x) + rcbrt(x) + exp10(x) + sinpi(x) + cospi(x)": lambda x: (
        x**-0.5 + x ** (-1 / 3) + 10**x + math.sin(math.pi * x) + math.cos(math.pi * x)
    ),
    "(sincospi(x, &s, &c), s * c)": lambda x: math.sin(math.pi * x) * math.cos(math.pi * x),
    "j0(x) + y1f(x) * 0 + lgamma(x) + tgammaf(x) - jnf(0, x)": lambda x: math.lgamma(x) + math.gamma(x),
    "sizeof(sinpi(x)) + sizeof(erfinv(x)) + sizeof(sin(x)) + sizeof(exp((double)x))": lambda x: 20.0,
    "(clock_t)clock() >= 0": lambda x: 1.0,
}


def test_further_mathematical_functions() -> None:
    """The rarer functions of the mathematical API agree with their series, and floats stay floats."""
    lines = "".join(f"  out[{len(MORE_MATH)} * threadIdx.x + {i}] = {text};\n" for i, text in enumerate(MORE_MATH))
    source = 'extern "C" __global__ void k(const float *in, double *out) {\n  float x = in[threadIdx.x], s, c;\n'
    source += f"  float v[3] = {{x, 1, 2}};\n  double w[3] = {{x, 1, 2}};\n{lines}}}\n"
    values = [0.25, 0.5, 1.0, 1.75, 3.0]
    out = zeros("d", len(MORE_MATH) * len(values))
    assert Kernels(source, {"k": "*kfp32, *fp64"})("k", 1, len(values), array.array("f", values), out) == SUCCESS
    for number, value in enumerate(values):
        for i, (text, reference) in enumerate(MORE_MATH.items()):
            found = out[len(MORE_MATH) * number + i]
            assert found == pytest.approx(reference(value), rel=2e-5, abs=1e-6), f"{text} at {value}"


ATOMICS = """
#include <cuda_fp16.h>
struct __align__(16) Wide { unsigned long long low, high; };
extern "C" __global__ void k(float2 *two, float4 *four, __half2 *halves, unsigned short *small, Wide *wide) {
  atomicAdd(two, make_float2(1, 2));
  atomicAdd(four, make_float4(1, 2, 3, 4));
  atomicAdd(halves, make_half2(__float2half(1), __float2half(0.5f)));
  unsigned short seen = *small, before;
  do {
    before = seen;
    seen = atomicCAS(small, before, (unsigned short)(before + 3));
  } while (seen != before);
  if (threadIdx.x == 7) wide[1] = atomicExch(wide, Wide{5, 6});
  if (threadIdx.x == 9) wide[2] = atomicCAS(wide, Wide{5, 6}, Wide{7, 8});
}
"""


def test_atomics_of_other_sizes() -> None:
    """Vectors are added by members; 16 and 128 bits are compared and exchanged as a whole."""
    two, four, small = zeros("f", 2), zeros("f", 4), zeros("H", 1)
    halves = array.array("H", [0, 0])
    memory = array.array("Q", [1, 2, *range(8)])
    start = (memory.buffer_info()[0] + 15) // 16 * 16
    first = (start - memory.buffer_info()[0]) // 8
    memory[first : first + 2] = array.array("Q", [1, 2])
    types = "*{fp32,fp32}@8, *{fp32,fp32,fp32,fp32}@16, *u32, *u16, *{u64,u64}@16"
    wide = struct.pack("=Q", start)
    assert Kernels(ATOMICS, {"k": types})("k", 1, 100, two, four, halves, small, wide) == SUCCESS
    assert two.tolist() == [100, 200] and four.tolist() == [100, 200, 300, 400] and small[0] == 300
    assert struct.unpack("=2e", halves.tobytes()) == (100, 50)
    assert memory[first : first + 6].tolist() == [7, 8, 1, 2, 5, 6]


SHORT = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <class T, class T2, class Raw> __global__ void k(T one, T nan, float *out) {
  T two = one + one, a = two;
  T2 p(one, two), q(two, two), n(nan, one);
  Raw raw = two;
  T again = raw;
  a++;
  const float all[] = {
      float(__heq(nan, nan)), float(__hequ(nan, nan)), float(__hne(nan, one)), float(__hneu(nan, one)),
      float(__hlt(one, two)), float(__hltu(nan, two)), float(__hbgt2(q, p)), float(__hbgeu2(q, n)),
      float(__hne2(p, q).x), float(__hne2(p, q).y), float(__heq2_mask(p, q) == 0xffff0000u), float(nan != nan),
      __hfma_relu(one, -two, one), __hfma2_relu(p, q, p).y, __hcmadd(p, q, p).x, __hcmadd(p, q, p).y,
      float(__hisnan2(n).x), float(__hisnan2(n).y), float(again), float(a), htanh_approx(one) - htanh(one),
      float(p == q), __hmul_sat(two, two), h2exp2(p).y, float((+p).y)};
  for (unsigned i = 0; i < sizeof(all) / sizeof(float); ++i) out[i] = all[i];
}
"""


@pytest.mark.parametrize(("name", "spelling", "one"), [("__half", "fp16", 0x3C00), ("__nv_bfloat16", "bf16", 0x3F80)])
def test_comparisons_and_products_of_sixteen_bits(name: str, spelling: str, one: int) -> None:
    """Ordered comparisons are false for not-a-number and unordered ones true; masks, relu and complex products."""
    entry = f"k<{name}, {name}2, {name}_raw>"
    out = zeros("f", 25)
    arguments = [struct.pack("=H", bits) for bits in (one, 0x7FFF)]
    assert Kernels(SHORT, {entry: f"{spelling}, {spelling}, *fp32"})(entry, 1, 1, *arguments, out) == SUCCESS
    expected = [0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 0, 6, -1, 8, 1, 0, 2, 3, 0, 0, 1, 4, 2]
    assert out.tolist() == expected
