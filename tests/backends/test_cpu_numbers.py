"""Atomics, mathematical functions, intrinsics, short floats and vectors on the CPU backend."""

from __future__ import annotations

import array
import math
import random
import struct
import threading
from collections.abc import Callable

import pytest
from cpu_kernels import SUCCESS, Kernels, cpu_driver, host_compiler, ints, zeros

from podium.backend import HostCompiler, Target


@pytest.fixture(scope="module", autouse=True)
def compiler() -> HostCompiler:
    return host_compiler()


# ---- atomics ----

ATOMICS = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <class T> __global__ void integers(T *o) {
  const int i = threadIdx.x;
  atomicAdd(o, 2);
  atomicSub(o + 1, (T)1);
  atomicMin(o + 2, (T)i);
  atomicMax(o + 3, (T)i);
  atomicAnd(o + 4, (T)~(T(1) << i % 8));
  atomicOr(o + 5, T(1) << i % 8);
  atomicXor(o + 6, (T)i);
  if (i == 5) o[8] = atomicExch(o + 7, (T)77);
  if (i == 6) o[10] = atomicCAS(o + 9, 3, 4) + atomicCAS(o + 9, 3, 5);
  atomicAdd_block(o + 11, (T)1);
  atomicAdd_system(o + 11, (T)1);
}
extern "C" __global__ void wrapping(unsigned *o) {
  atomicInc(o, 9u);
  atomicDec(o + 1, 9u);
}
template <class T> __global__ void floats(T *o) {
  atomicAdd(o, T(0.5f));
  if (threadIdx.x == 3) o[1] = atomicExch(o + 2, T(8.0f));
}
extern "C" __global__ void minima(float *o, double *d) {
  atomicMax(o, (float)threadIdx.x);
  atomicMin(d, -1.0 * threadIdx.x);
}
__global__ void histogram(const unsigned char *in, unsigned *bins, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(bins + i, local[i]);
}
__device__ int lock_word = 0;
extern "C" __global__ void locked(volatile int *sum) {
  while (atomicCAS(&lock_word, 0, 1) != 0) {}
  __threadfence();
  *sum = *sum + 1;
  __threadfence();
  atomicExch(&lock_word, 0);
}
"""

INTEGER_TYPES = {"int": "i32", "unsigned int": "u32", "unsigned long long": "u64", "long long": "i64"}


@pytest.fixture(scope="module")
def atomics() -> Kernels:
    entries = {f"integers<{name}>": f"*{spelling}" for name, spelling in INTEGER_TYPES.items()}
    entries |= {"floats<float>": "*fp32", "floats<double>": "*fp64", "floats<__half>": "*fp16"}
    entries |= {"floats<__nv_bfloat16>": "*bf16", "wrapping": "*u32", "minima": "*fp32, *fp64"}
    entries |= {"histogram": "*ku8, *u32, i32", "locked": "*i32"}
    return Kernels(ATOMICS, entries)


@pytest.mark.parametrize("name", INTEGER_TYPES)
def test_integer_atomics(atomics: Kernels, name: str) -> None:
    """Every atomic of the integers does what its name says, and returns what was there."""
    code = {"i32": "i", "u32": "I", "u64": "Q", "i64": "q"}[INTEGER_TYPES[name]]
    out = array.array(code, [10, 1000, 50, 50, 255, 0, 0, 5, 0, 3, 0, 0])
    assert atomics(f"integers<{name}>", 1, 100, out) == SUCCESS
    xor = 0
    for i in range(100):
        xor ^= i
    assert out.tolist() == [210, 900, 0, 99, 0, 255, xor, 77, 5, 4, 7, 200]


def test_atomics_that_wrap(atomics: Kernels) -> None:
    """atomicInc and atomicDec wrap at their bound."""
    out = array.array("I", [0, 0])
    assert atomics("wrapping", 1, 25, out) == SUCCESS
    assert out.tolist() == [5, 5]


def test_float_atomics(atomics: Kernels) -> None:
    """Floats of every width can be added and exchanged; minima and maxima of floats work too."""
    for name, code in (("float", "f"), ("double", "d")):
        out = array.array(code, [1.0, 0.0, 4.0])
        assert atomics(f"floats<{name}>", 1, 64, out) == SUCCESS
        assert out.tolist() == [33.0, 4.0, 8.0]
    half = array.array("H", struct.unpack("=3H", struct.pack("=3e", 1, 0, 4)))
    assert atomics("floats<__half>", 1, 64, half) == SUCCESS
    assert struct.unpack("=3e", half.tobytes()) == (33.0, 4.0, 8.0)
    short = array.array("H", [0x3F80, 0, 0x4080])
    assert atomics("floats<__nv_bfloat16>", 1, 64, short) == SUCCESS
    assert short.tolist() == [0x4204, 0x4080, 0x4100]
    most, least = array.array("f", [-5.0]), array.array("d", [5.0])
    assert atomics("minima", 1, 40, most, least) == SUCCESS
    assert (most[0], least[0]) == (39.0, -39.0)


def test_histogram(atomics: Kernels) -> None:
    """Atomics on shared and on global memory count every byte once."""
    data = random.Random(4).randbytes(5000)
    bins = zeros("I", 256)
    assert atomics("histogram", 4, 64, array.array("B", data), bins, len(data)) == SUCCESS
    assert bins.tolist() == [data.count(value) for value in range(256)]


def test_atomics_across_launches(atomics: Kernels) -> None:
    """Atomics and fences hold between launches from several threads: a lock made of them keeps a sum right."""
    total = ints([0])
    threads = [threading.Thread(target=atomics, args=("locked", 50, 32, total)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total[0] == 4 * 50 * 32


# ---- numbers ----

MATH: dict[str, Callable[[float], float]] = {
    "rsqrtf(x)": lambda x: x**-0.5,
    "rsqrt((double)x)": lambda x: x**-0.5,
    "rcbrtf(x)": lambda x: x ** (-1 / 3),
    "sinpif(x)": lambda x: math.sin(math.pi * x),
    "cospif(x)": lambda x: math.cos(math.pi * x),
    "exp10f(x)": lambda x: 10**x,
    "normcdff(x)": lambda x: 0.5 * math.erfc(-x / math.sqrt(2)),
    "erff(erfinvf(x / 4))": lambda x: x / 4,
    "erfcf(erfcinvf(x / 2))": lambda x: x / 2,
    "normcdf(normcdfinv(x / 4))": lambda x: x / 4,
    "rhypotf(x, 2.0f)": lambda x: 1 / math.hypot(x, 2),
    "norm3df(x, 2.0f, 3.0f)": lambda x: math.hypot(x, 2, 3),
    "__expf(x)": math.exp,
    "__logf(x)": math.log,
    "__log2f(x) + __log10f(x)": lambda x: math.log2(x) + math.log10(x),
    "__sinf(x) + __cosf(x) + __tanf(x)": lambda x: math.sin(x) + math.cos(x) + math.tan(x),
    "__powf(x, 2.5f)": lambda x: x**2.5,
    "__fdividef(x, 3.0f)": lambda x: x / 3,
    "__saturatef(x)": lambda x: min(max(x, 0.0), 1.0),
    "__frcp_rn(x) + __fsqrt_rn(x)": lambda x: 1 / x + math.sqrt(x),
    "__fmaf_rn(x, x, -1.0f) + __fadd_rn(x, 1.0f)": lambda x: x * x + x,
    "fabs(x) + abs(-x) + fabsf(-x)": lambda x: 3 * x,
    "pow(x, 3) + powf(x, 2.0f)": lambda x: x**3 + x**2,
    "min(x, 1.0f) + max(x, 1.0) + fminf(x, 2.0f)": lambda x: min(x, 1) + max(x, 1) + min(x, 2),
    "sin(x) + exp(x) + tanh(x) + floor(x) + fmod(x, 1.0f)": lambda x: (
        math.sin(x) + math.exp(x) + math.tanh(x) + math.floor(x) + math.fmod(x, 1)
    ),
    "isnan(x) + isinf(x) + isfinite(x)": lambda x: 1.0,
}


def test_mathematical_functions() -> None:
    """Functions that the C library has not, the fast ones, and the overloads for floats agree with Python's."""
    lines = "\n".join(f"  o[{i}] = {expression};" for i, expression in enumerate(MATH))
    source = 'extern "C" __global__ void k(const float *in, double *out) {\n  float x = in[threadIdx.x];\n'
    source += f"  double *o = out + {len(MATH)} * threadIdx.x;\n{lines}\n}}\n"
    values = [0.1, 0.25, 0.5, 1.0, 1.4, 1.75]
    out = zeros("d", len(MATH) * len(values))
    assert Kernels(source, {"k": "*kfp32, *fp64"})("k", 1, len(values), array.array("f", values), out) == SUCCESS
    for number, value in enumerate(array.array("f", values)):
        for i, (expression, reference) in enumerate(MATH.items()):
            found = out[len(MATH) * number + i]
            assert found == pytest.approx(reference(value), rel=1e-5, abs=1e-6), f"{expression} at {value}"


def signed(x: int, bits: int = 32) -> int:
    return (x + (1 << (bits - 1)) & (1 << bits) - 1) - (1 << (bits - 1))


X, Y = 0x80F01234, 0x0BADF00D

INTEGERS: dict[str, int] = {
    "__popc(x)": X.bit_count() if hasattr(int, "bit_count") else bin(X).count("1"),
    "__popcll((unsigned long long)x << 8)": bin(X).count("1"),
    "__clz(y) + 100 * __clz(0) + 10000 * __clz(x)": 4 + 3200,
    "__clzll(y) + 100 * __clzll(0)": 36 + 6400,
    "__ffs(x) + 100 * __ffs(0) + 1000 * __ffsll((long long)y << 33)": 3 + 34000,
    "__brev(x)": int(f"{X:032b}"[::-1], 2),
    "__brevll(y)": int(f"{Y:064b}"[::-1], 2),
    "__byte_perm(x, y, 0x7410)": 0x0B0D1234,
    "__byte_perm(x, y, 0x80fb)": 0x003400FF,
    "(unsigned)__mulhi((int)x, (int)y)": signed(X) * Y >> 32 & 0xFFFFFFFF,
    "__umulhi(x, y)": X * Y >> 32,
    "__umul64hi((unsigned long long)x << 30, (unsigned long long)y << 30)": (X << 30) * (Y << 30) >> 64,
    "(unsigned long long)__mul64hi((long long)(int)x << 30, (long long)y << 30)": (signed(X) << 30) * (Y << 30) >> 64
    & (1 << 64) - 1,
    "(unsigned)__mul24((int)x, (int)y)": signed(X & 0xFFFFFF, 24) * signed(Y & 0xFFFFFF, 24) & 0xFFFFFFFF,
    "__umul24(x, y)": (X & 0xFFFFFF) * (Y & 0xFFFFFF) & 0xFFFFFFFF,
    "__sad((int)x, (int)y, 5u)": Y - signed(X) + 5 & 0xFFFFFFFF,
    "__usad(x, y, 5u)": X - Y + 5,
    "(unsigned)__hadd((int)x, (int)y)": (signed(X) + Y >> 1) & 0xFFFFFFFF,
    "(unsigned)__rhadd((int)x, (int)y)": (signed(X) + Y + 1 >> 1) & 0xFFFFFFFF,
    "__uhadd(x, y) + __urhadd(x, y) - x": ((X + Y >> 1) + (X + Y + 1 >> 1) - X) & 0xFFFFFFFF,
    "__funnelshift_l(x, y, 37)": ((Y << 32 | X) << 5 >> 32) & 0xFFFFFFFF,
    "__funnelshift_r(x, y, 5)": (Y << 32 | X) >> 5 & 0xFFFFFFFF,
    "__funnelshift_lc(x, y, 40) ^ __funnelshift_rc(x, y, 40)": X ^ Y,
    "(unsigned)__dp4a((int)x, (int)y, 7)": sum(
        signed(X >> s & 255, 8) * signed(Y >> s & 255, 8) for s in (0, 8, 16, 24)
    )
    + 7
    & 0xFFFFFFFF,
    "__dp4a(x, y, 7u)": sum((X >> s & 255) * (Y >> s & 255) for s in (0, 8, 16, 24)) + 7,
    "__float_as_uint(1.5f) + (unsigned)__float_as_int(-0.0f)": 0x3FC00000 + 0x80000000,
    "(unsigned long long)__double_as_longlong(__hiloint2double(0x40090000, 1))": 0x4009000000000001,
    "(unsigned)__double2hiint(3.125) + __double2loint(3.125)": 0x40090000,
    "(unsigned)__float2int_rz(-2.7f) + __float2int_rn(2.5f) + __float2int_ru(2.1f) + __float2int_rd(2.9f)": 5,
    "(unsigned)__float2int_rz(1e20f) ^ (unsigned)__float2int_rn(-1e20f) ^ (unsigned)__float2int_rz(NAN)": 0xFFFFFFFF,
    "__float2uint_rn(-5.0f) + __float2uint_rz(1e20f) + __double2uint_rz(7.9)": (0xFFFFFFFF + 7) & 0xFFFFFFFF,
    "__float2ull_rz(1e30f) ^ (unsigned long long)__double2ll_rz(-1e30)": 0x7FFFFFFFFFFFFFFF,
    "__ldg(in) + __ldcs(in + 1)": X + Y & 0xFFFFFFFF,
    "(unsigned)min(-1, 1) + max(3u, 2u) + min(5ll, 4ll) + umax(1, 2) + max(-1, 0u)": (-1 + 3 + 4 + 2 + 0xFFFFFFFF)
    & (1 << 64) - 1,
    "clock64() <= clock64()": 1,
}


def test_integer_intrinsics() -> None:
    """Integer intrinsics, casts of bits, and conversions that saturate give what Python's integers give."""
    lines = "\n".join(f"  out[{i}] = {expression};" for i, expression in enumerate(INTEGERS))
    source = 'extern "C" __global__ void k(const unsigned *in, unsigned long long *out) {\n'
    source += f"  unsigned x = in[0], y = in[1];\n{lines}\n}}\n"
    out = zeros("Q", len(INTEGERS))
    assert Kernels(source, {"k": "*ku32, *u64"})("k", 1, 1, array.array("I", [X, Y]), out) == SUCCESS
    for found, (expression, expected) in zip(out, INTEGERS.items()):
        assert found == expected, f"{expression}: {found:#x}, not {expected:#x}"


SHORT_FLOATS = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <class T> __device__ unsigned short bits(T x) { return podium_cpu::bit_copy<unsigned short>(x); }
template <class T> __global__ void decode(const T *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}
template <class T> __global__ void encode(const float *in, T *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}
template <class T> __global__ void encode_double(const double *in, T *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}
template <class T, class T2> __global__ void arithmetic(T a, T b, float *out) {
  T c = a;
  c += b;
  c *= T(2);
  T2 pair(a, b);
  pair = __hfma2(pair, pair, pair) - pair;
  const float all[] = {a + b, a - b, a * b, a / b, -a, c, float(a < b), float(a >= b), float(a == a), __hadd(a, b),
                       __hfma(a, b, a), __habs(-a), __hmax(a, b), __hmin(a, b), hsqrt(b), hexp(a), float(__hisnan(a)),
                       __low2float(pair), __high2float(pair), T(7), T(7ll), T(2.5), float(int(T(3.75f))),
                       float(__hgt(a, b)), float(__hlt(a, b)), float(__hbeq2(pair, pair)), __hadd_sat(a, b), hfloor(a)};
  for (int i = 0; i < sizeof(all) / sizeof(float); ++i) out[i] = all[i];
}
"""


@pytest.fixture(scope="module", params=["host", "baseline"])
def short_floats(request: pytest.FixtureRequest) -> Kernels:
    """Once for this processor, which may convert half precision itself, and once for one that does not."""
    entries = {}
    for name, spelling in (("__half", "fp16"), ("__nv_bfloat16", "bf16")):
        entries[f"decode<{name}>"] = f"*k{spelling}, *fp32, i32"
        entries[f"encode<{name}>"] = f"*kfp32, *{spelling}, i32"
        entries[f"encode_double<{name}>"] = f"*kfp64, *{spelling}, i32"
        entries[f"arithmetic<{name}, {name}2>"] = f"{spelling}, {spelling}, *fp32"
    target = cpu_driver.CpuDriver().default_target()
    if request.param == "baseline":
        if target.arch not in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
            pytest.skip(f"{target.arch} has one level only")
        target = Target("cpu", "x86-64", 32)
    return Kernels(SHORT_FLOATS, entries, target)


def float_bits(x: float) -> int:
    return int(struct.unpack("=I", struct.pack("=f", x))[0])


def reference_half(x: float) -> int:
    try:
        return int(struct.unpack("=H", struct.pack("=e", x))[0])
    except OverflowError:
        return 0xFC00 if x < 0 else 0x7C00


def reference_bfloat16(x: float) -> int:
    bits = float_bits(x)
    if (bits & 0x7FFFFFFF) > 0x7F800000:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16) & 0xFFFF


def interesting_floats() -> list[float]:
    source = random.Random(5)
    patterns = [source.getrandbits(32) for _ in range(20000)]
    patterns += [(0x38000000 + (i << 12) + j) & 0xFFFFFFFF for i in range(0, 1 << 16, 37) for j in (0, 1, 0xFFF)]
    patterns += [0x477FEFFF, 0x477FF000, 0x477FF001, 0x33000000, 0x33000001, 0x387FFFFF, 0x7F7FFFFF, 0x7F800000]
    patterns += [pattern | 0x80000000 for pattern in patterns[-8:]] + [0, 0x80000000, 1, 0x7F7F8000, 0x7F7F7FFF]
    values: tuple[float, ...] = struct.unpack(f"={len(patterns)}f", struct.pack(f"={len(patterns)}I", *patterns))
    return [value for value in values if value == value]


def test_every_half_and_bfloat16_is_decoded(short_floats: Kernels) -> None:
    """All 65536 bit patterns of both formats become the float that they stand for."""
    patterns, out = array.array("H", range(65536)), zeros("f", 65536)
    assert short_floats("decode<__half>", 64, 1024, patterns, out, 65536) == SUCCESS
    expected = struct.unpack("=65536e", patterns.tobytes())
    assert all(a == b or (a != a and b != b) for a, b in zip(out, expected))
    assert [math.copysign(1, x) for x in (out[0], out[0x8000])] == [1, -1]
    assert short_floats("decode<__nv_bfloat16>", 64, 1024, patterns, out, 65536) == SUCCESS
    found = array.array("I", out.tobytes())
    assert all(a == i << 16 or i & 0x7FFF > 0x7F80 for i, a in enumerate(found))


def test_floats_are_rounded_to_nearest_even(short_floats: Kernels) -> None:
    """ARG-05: conversions to 16 bits round to nearest even, with subnormal numbers, infinities and not-a-numbers."""
    values = interesting_floats()
    data, out = array.array("f", values), zeros("H", len(values))
    for name, reference in (("__half", reference_half), ("__nv_bfloat16", reference_bfloat16)):
        assert short_floats(f"encode<{name}>", len(values) // 256 + 1, 256, data, out, len(values)) == SUCCESS
        wrong = [(value, hex(found)) for value, found in zip(values, out) if found != reference(value)]
        assert wrong == []
        nan = array.array("f", [math.nan])
        assert short_floats(f"encode<{name}>", 1, 1, nan, out, 1) == SUCCESS
        exponent = 0x7C00 if name == "__half" else 0x7F80
        assert out[0] & exponent == exponent and out[0] & ~exponent & 0x7FFF


def test_doubles_are_rounded_once(short_floats: Kernels) -> None:
    """A double just beside the middle of two halves is not rounded to the middle first."""
    values = [
        1 + 2**-11 + 2**-40,
        1 + 2**-11 - 2**-40,
        1 + 2**-11,
        1 + 3 * 2**-11,
        -(2**-25) - 2**-60,
        2**-25,
        1e300,
        0.0,
    ]
    out = zeros("H", 8)
    assert short_floats("encode_double<__half>", 1, 8, array.array("d", values), out, 8) == SUCCESS
    assert out.tolist() == [reference_half(value) for value in values]
    values = [1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 1 + 2**-8, 1 + 3 * 2**-8, -3.0, 1e300, 0.0, 0.5]
    assert short_floats("encode_double<__nv_bfloat16>", 1, 8, array.array("d", values), out, 8) == SUCCESS
    assert out.tolist() == [0x3F81, 0x3F80, 0x3F80, 0x3F82, 0xC040, 0x7F80, 0, 0x3F00]


@pytest.mark.parametrize("name", ["__half", "__nv_bfloat16"])
def test_arithmetic_of_sixteen_bits(short_floats: Kernels, name: str) -> None:
    """Operators and functions of both formats give exact results where the result is exact."""
    a, b, out = 0.5, 4.0, zeros("f", 28)
    encode = reference_half if name == "__half" else reference_bfloat16
    arguments = [struct.pack("=H", encode(value)) for value in (a, b)]
    assert short_floats(f"arithmetic<{name}, {name}2>", 1, 1, *arguments, out) == SUCCESS
    root = 1.6484375  # of e, rounded
    expected = [4.5, -3.5, 2.0, 0.125, -0.5, 9.0, 1, 0, 1, 4.5, 2.5, 0.5, 4.0, 0.5, 2.0, root, 0, 0.25, 16.0]
    expected += [7, 7, 2.5, 3, 0, 1, 1, 1, 0]
    found = out.tolist()
    assert found[15] == pytest.approx(root, rel=0.01)
    found[15] = root
    assert found == expected


def test_vector_types() -> None:
    """Vector types have the sizes and alignments of CUDA's, and functions that make them."""
    layouts = {
        "char": (1, [1, 2, 1, 4]), "uchar": (1, [1, 2, 1, 4]), "short": (2, [2, 4, 2, 8]), "ushort": (2, [2, 4, 2, 8]),
        "int": (4, [4, 8, 4, 16]), "uint": (4, [4, 8, 4, 16]), "float": (4, [4, 8, 4, 16]),
        "long": (8, [8, 16, 8, 16]), "longlong": (8, [8, 16, 8, 16]), "ulonglong": (8, [8, 16, 8, 16]),
        "double": (8, [8, 16, 8, 16]),
    }  # fmt: skip
    checks = []
    for name, (size, alignments) in layouts.items():
        for count, alignment in enumerate(alignments, 1):
            arguments = ", ".join("1234"[:count])
            checks.append(f'static_assert(sizeof({name}{count}) == {size * count}, "size");')
            checks.append(f'static_assert(alignof({name}{count}) == {alignment}, "alignment");')
            checks.append(f'static_assert(make_{name}{count}({arguments}).x == 1, "value");')
    source = (
        "\n".join(checks)
        + """
    struct __align__(32) Big { float4 v; };
    static_assert(alignof(Big) == 32, "alignment");
    extern "C" __global__ void k(float4 *p, float4 v, int2 w) {
      float4 u = p[threadIdx.x];
      p[threadIdx.x] = make_float4(u.x + v.x, u.y + v.y, u.z + w.x, u.w + w.y);
    }
    """
    )
    data = array.array("f", range(8))
    kernels = Kernels(source, {"k": "*{fp32,fp32,fp32,fp32}@16, {fp32,fp32,fp32,fp32}@16, {i32,i32}@8"})
    assert kernels("k", 1, 2, data, struct.pack("=4f", 10, 20, 30, 40), struct.pack("=2i", 100, 200)) == SUCCESS
    assert data.tolist() == [10, 21, 102, 203, 14, 25, 106, 207]
