"""The kernel language on a device: what a translated kernel computes is what C++ says."""

from __future__ import annotations

from typing import Any

import numpy

import podium
from podium.backend import Driver

_DECLARATIONS = r"""
#include <cfloat>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#define SQUARE(x) ((x) * (x))
#define JOIN(a, b) a##b
#define local 3 /* a word of OpenCL C, and here a macro */
// __kernel void no(); a comment with "barrier" in it
enum Mode { FIRST, LATER = 5, LAST };
enum class Color : int { Red = 1, Green };
typedef unsigned long long u64;
using i8 = signed char;
struct Vec {
    float x, y;
    __device__ Vec(float a, float b) : x(a), y(b) {}
    __device__ Vec operator+(const Vec& o) const { return Vec(x + o.x, y + o.y); }
    __device__ float dot(Vec o) const { return x * o.x + y * o.y; }
    __device__ void scale(float k) { x *= k; y *= k; }
};
__device__ Vec operator*(float k, Vec v) { return Vec(k * v.x, k * v.y); }
struct Node { int value; const int* link; int row[3]; };
struct vec { float half, global, kernel; };  // words of OpenCL C
template <typename T> struct Pair {
    T first, second;
    __device__ T sum() const { return first + second; }
    static constexpr int N = 2;
};
template <typename T> struct Sum { __device__ T operator()(T a, T b) const { return a + b; } };
template <typename T> struct Most;
template <> struct Most<int> { __device__ int operator()(int a, int b) const { return a > b ? a : b; } };
template <typename T, template <typename> class Op> __device__ T fold(const T* a, int n)
{
    const Op<T> op{};
    T found = a[0];
    for (int i = 1; i < n; i++) found = op(found, a[i]);
    return found;
}
template <typename T> __device__ T larger(T a, T b) { return a > b ? a : b; }
template <> __device__ int larger<int>(int a, int b) { return a > b ? a + 1000 : b + 1000; }
__device__ int over(int x) { return 1; }
__device__ int over(unsigned x) { return 2; }
__device__ int over(float x) { return 3; }
__device__ int over(const int* x) { return 5; }
__device__ int swapped(int a, int b) { int& x = a; int t = x; x = b; b = t; return a * 10 + b; }
__device__ void exchange(int& a, int& b) { int t = a; a = b; b = t; }
__device__ int exchanged() { int a = 1, b = 2; exchange(a, b); return a * 10 + b; }
__device__ int add(int a, int b = 7) { return a + b; }
template <int N> __device__ int factorial() { if constexpr (N <= 1) return 1; else return N * factorial<N - 1>(); }
template <typename T, int N> __device__ T total(const T (&a)[N])
{
    T s = 0;
    for (int i = 0; i < N; i++) s += a[i];
    return s;
}
__device__ int summed() { int a[] = {1, 2, 3}; a[1] += 5; return total(a) + sizeof(a) / sizeof(a[0]); }
constexpr int table[4] = {10, 20, 30, 40};
constexpr float weights[2][2] = {{0.5f, 1.5f}, {2.5f, 3.5f}};
__constant__ int known[3] = {7, 8, 9};
__device__ int counter = 5;
namespace deep { namespace er { __device__ int f() { return 77; } constexpr int K = 6; } using namespace er; }
namespace alias = deep::er;
__device__ const int* advance(const int* p, int n) { return p + n; }
__device__ int pick(const int* a, int i) { return a[i]; }
__device__ int picked(const int* in)
{
    __shared__ int sh[4];
    sh[1] = 4;
    int own[2] = {5, 6};
    return pick(sh, 1) * 100 + pick(own, 1) * 10 + pick(in, 3);
}
__shared__ int outside[2];
__device__ int shared_by_name()
{
    int a, b;
    { __shared__ int s[2]; s[0] = 1; a = s[0]; }
    { __shared__ float s[4]; s[3] = 2.5f; b = s[3] * 10; }
    outside[1] = 4;
    return a + b + outside[1];
}
__device__ const int* cursor;  // what it points to is const
__device__ int through(const int* in) { cursor = in; return cursor[2]; }
__device__ int chosen(Color c) { switch (c) { case Color::Red: return 1; case Color::Green: return 2; } return 0; }
struct Chain { int value; Chain* next; };
__device__ int chained() { Chain last = {5, nullptr}, first = {3, last.next}; return first.next ? 0 : first.value; }
__device__ int linked(const int* in)
{
    Node n = {1, in, {4, 5}};
    n.link += 1;
    Node m = n;
    m.value++;
    const Node* p = &m;
    return n.link[0] + p->row[1] + n.row[2] + n.value + p->value + *p->link;
}
__device__ int wrapped() { short s = 32767; s += 1; unsigned char c = 255; c++; return s + c; }
__device__ int looped(int n)
{
    int i = 0, found = 0;
    while (true) { if (++i > n) break; if (i % 2) continue; found += i; }
    do { i--; } while (i > 2);
    for (int a = 0, b = 10; a < b; a++, b--) found += a;
    switch (n) { case 3: found += 100; break; case LATER: { found += 200; } default: found += 400; }
    if (int q = n; q > 2) found += 1000;
    return found + i;
}
__device__ int words()
{
    int kernel = 1, __private_x = 2, uint = 3, sampler_t = local, M_PI = 5, CLK_LOCAL_MEM_FENCE = 6, get_global_id = 7;
    vec event_t = {1.0f, 2.0f, 3.0f};
    const char constant = 'c';
    return kernel + __private_x + uint + sampler_t + M_PI + CLK_LOCAL_MEM_FENCE + get_global_id + (int)event_t.half
        + constant;
}
__device__ float vectors() { Vec v(1, 2), w{3, 4}; Vec s = v + w; s.scale(2); return (0.5f * s).dot(v); }
__device__ float four() { float4 f = make_float4(1, 2, 3, 4); float4 g = f; g.w *= 2; return f.w + g.w; }
__device__ int three()
{
    int3 v = make_int3(1, 2, 3);
    v.y += 4;
    uchar4 u = {1, 2, 3, 255};
    u.w++;
    return v.x + v.y + v.z + u.w + u.z;
}
__device__ float once() { volatile float v = 2; v = v + 1; return v; }
__device__ float halves(float x)
{
    __half h = __float2half(x), two = h + h;
    two += h;
    return __half2float(two * h) + (h < two) + (float)-h;
}
struct Shape {
    enum { CORNERS = 4 };
    struct Corner { int x; };
    enum class Kind { Flat, Solid = 6 };
    Corner all[CORNERS];
};
__device__ int shaped() { Shape s; s.all[Shape::CORNERS - 1].x = 3; return s.all[3].x + (int)Shape::Kind::Solid; }
__device__ float made_of(float a, float b) { Vec v(a, b), w(a, v.y); return v.x + w.y; }  // no functions
__device__ int sized(int n) { dim3 one, two(2), all = dim3(n, 2, 3); return one.x + two.x * two.y + all.x * all.z; }
template <int N> struct Row {
    int v[N];
    __device__ int& operator[](int i) { return v[i]; }
    __device__ const int& operator[](int i) const { return v[i]; }
    __device__ Row& operator+=(int a) { for (int i = 0; i < N; i++) v[i] += a; return *this; }
    __device__ Row& operator++() { return *this += 1; }
    __device__ Row operator++(int) { Row before = *this; ++*this; return before; }
};
template <int N> __device__ int last_of(const Row<N>& row) { return row[N - 1]; }
__device__ float& largest(float* p, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++) if (p[i] > p[best]) best = i;
    return p[best];
}
__device__ int rows()
{
    __shared__ Row<2> all;
    Row<3> own = {{1, 2, 3}};
    own[1] = 10;
    (own += 1)[0] = 5;
    float f[3] = {1, 9, 4};
    largest(f, 3) = 0;
    int& first = own[0];
    first++;
    all[1] = own++[2];
    return (++own)[2] * 1000 + all[1] * 100 + last_of(own) + own[0] + (int)largest(f, 3);
}
constexpr int squared(int a) { return a * a; }
constexpr int halvings(int n) { return n <= 1 ? 0 : 1 + halvings(n / 2); }
__device__ int computed(int n) { int a[squared(3)]; a[8] = halvings(64); return a[8] + sizeof(a) + squared(n); }
struct Bits { int b; __device__ int which() { return 1; } __device__ int which() const { return 2; } };
__device__ int over_const(int* p) { return 1; }
__device__ int over_const(const int* p) { return 2; }
__device__ int constness(const int* in)
{
    Bits b = {1};
    const Bits c = {2};
    return b.which() + 10 * c.which() + 100 * over_const(&b.b) + 1000 * over_const(in);
}
__device__ float parts(float x)
{
    float s, c, whole;
    int power;
    sincosf(x, &s, &c);
    const float half = frexpf(x, &power);
    return s * s + c * c + modff(x, &whole) + 10 * whole + half * power;
}
__device__ float brains(float x) { __nv_bfloat16 b = __float2bfloat16(x); return __bfloat162float(b * b); }
"""

# in[0] is 3, in[1] is -7, in[2] is 11, in[3] is 4.
_INTEGERS: tuple[tuple[str, int], ...] = (
    ("-7 / 2", -3), ("-7 % 3", -1), ("(int)(unsigned char)300", 44), ("(i8)200", -56), ("in[0] > -1 ? 1 : 0", 1),
    ("in[0] < 1u", 0), ("(unsigned)in[1] >> 28", 15), ("in[1] >> 28", -1), ("wrapped()", -32768), ("!in[0]", 0),
    ("~in[0]", -4), ("bool(5) + bool(in[0])", 2), ("-1 < 0u", 0), ("min(-1, 1)", -1), ("max(-1, 1u) == 4294967295u", 1),
    ("sizeof(Vec) + 100 * sizeof(Node)", 3208), ("sizeof(Pair<double>) + sizeof(u64) + sizeof(float3)", 36),
    ("FIRST + LATER + LAST + (int)Color::Green", 13), ("SQUARE(in[0] + 1)", 16), ("JOIN(4, 2)", 42),
    ("larger(3, 4)", 1004), ("larger<short>(3, 4)", 4), ("(int)larger(2.5f, 1.0f)", 2),
    ("over(1)", 1), ("over(1u)", 2), ("over(1.0f)", 3), ("over(in)", 5), ("over('a')", 1), ("over(true)", 1),
    ("swapped(1, 2)", 21), ("exchanged()", 21), ("add(1)", 8), ("add(1, 2)", 3), ("factorial<5>()", 120),
    ("summed()", 14), ("table[in[0] & 3] + table[3]", 80), ("known[2] + counter", 14),
    ("(int)(weights[1][0] * 2 + weights[in[0] & 1][1])", 8), ("deep::er::f() + deep::K + alias::K", 89),
    ("*advance(in, 2)", 11), ("picked(in)", 464), ("linked(in)", -6), ("looped(3)", 1114), ("looped(5)", 1618),
    ("words()", 127),
    ("shared_by_name()", 30), ("through(in)", 11), ("chosen(Color::Green)", 2), ("chained()", 3), ("three()", 13),
    ("fold<int, Sum>(in, 4)", 11), ("fold<int, Most>(in, 4)", 11),
    ("Pair<int>{3, 4}.first + Pair<int>::N + Pair<int>{5, 6}.sum()", 16), ("__popc(255) + __clz(1) + __ffs(8)", 43),
    ("__popcll(~0ull)", 64), ("shaped()", 9), ("sized(5)", 18), ("constness(in)", 2121),
    ("rows()", 6000 + 400 + 6 + 8 + 4), ("computed(in[0])", 6 + 36 + 9),
    ("alignof(Vec) + alignof(double)", 12),
    ("__mul24(0x1000003, -2) + (int)__umul24(0x1000003u, 2u)", 0), ("'\\xff' + '\\101'", 64), ("lroundf(2.5f)", 3),
    ("__float2int_rz(3e10f) == 2147483647", 1), ("__float2int_rn(__int_as_float(0x7fc00000))", 0),
    ("__half2int_rz(__float2half(-2.5f)) + __half2int_rn(__int2half_rn(7))", 5),
    ("__brev(1) == 0x80000000u", 1), ("__float_as_int(1.0f)", 0x3F800000),
    ("__float2int_rn(2.5f) + 10 * __float2int_rz(-2.7f)", -18), ("(int)3.99f + int(-3.99f)", 0),
    ("0b101 + 0x1F + 017 + 1'000", 1051), ("'a' + '\\n' + '\\0'", 107), ("(1ll << 40) >> 38", 4),
    ("(size_t)3 - 4 > 5", 1), ("(in[0], 4)", 4), ("in[0] == 3 && in[1] < 0 || false", 1), ("5 & 3 | 8 ^ 2", 11),
    ("(i8)-3 / 2", -1), ("7 >> 1 << 2", 12), ("(int)(&in[3] - &in[1])", 2), ("in != nullptr", 1),
    ("(int)((u64)(in + 1) - reinterpret_cast<u64>(in))", 4), ("abs(in[1])", 7), ("__cplusplus == 201703", 1),
    ("threadIdx.x + blockDim.x + gridDim.y", 2),
)  # fmt: skip
_FLOATS: tuple[tuple[str, float], ...] = (
    ("sqrtf(x) + rsqrtf(4.0f) + fabsf(-x) + floor(x) + ceilf(x)", 1.5**0.5 + 0.5 + 1.5 + 1 + 2),
    ("fmodf(x, 0.7f) + powf(x, 2) + fminf(x, 1) + fmaxf(x, 1.0f) + fmaf(x, x, 1.0f)", 0.1 + 2.25 + 1 + 1.5 + 3.25),
    ("expf(x) + logf(x) + exp2f(x)", 4.48168907 + 0.405465108 + 2.82842712), ("1 / 2 + 1 / 2.0f + .5f + 1.f", 2),
    ("abs(-x) + isnan(x) + copysignf(x, -1) + rintf(2.5f)", 2), ("1e3f + 0x1p3f", 1008), ("vectors()", 16),
    ("four()", 12), ("once()", 3), ("halves(x)", 6.75 + 1 - 1.5), ("made_of(x, 2)", 3.5),
    ("parts(x)", 1 + 0.5 + 10 + 0.75), ("ldexpf(x, 3) + rcbrtf(8.0f) + logbf(9.0f)", 15.5),
    ("brains(x)", 2.25), ("4000000000u", 4e9),
    ("(float)(long long)-5", -5), ("x > 1 ? 2 : 3.5f", 2), ("true ? 1 : 2.5", 1), ("FLT_MAX * 0", 0),
    ("x * 1.0 / 3 + sqrt(2.25)", 2), ("__int_as_float(0x40490fdb)", numpy.pi), ("static_cast<float>(7) / 2", 3.5),
)  # fmt: skip


def test_expressions_have_the_values_of_cpp(opencl: Driver) -> None:
    """Integers wrap and convert, overloads and templates are chosen, and names mean what they mean in C++."""
    whole = "".join(f"    o[{i}] = {text};\n" for i, (text, _) in enumerate(_INTEGERS))
    real = "".join(f"    r[{i}] = {text};\n" for i, (text, _) in enumerate(_FLOATS))
    source = f"{_DECLARATIONS}__global__ void all(int* o, const int* in, float* r, float x) {{\n{whole}{real}}}\n"
    integers, floats = podium.empty(len(_INTEGERS), "i32"), podium.empty(len(_FLOATS))
    podium.kernel(source, "all")[1, 1](integers, podium.asarray(numpy.array([3, -7, 11, 4], "i4")), floats, 1.5)
    found: list[Any] = integers.tolist()
    assert [(text, value) for (text, _), value in zip(_INTEGERS, found)] == list(_INTEGERS)
    numpy.testing.assert_allclose(floats.numpy(), [value for _, value in _FLOATS], rtol=2e-6)


_MEETINGS = r"""
__device__ int warp_sum(int v)
{
    for (int off = 16; off; off >>= 1) v += __shfl_xor_sync(0xffffffffu, v, off);
    return v;
}
__device__ int bounded(int v)
{
    const int most = 3;
    for (int i = 0; i < most; i++) {
        const int before = v, other = __shfl_xor_sync(0xffffffffu, before, 1 << i);
        v += other;
    }
    return v;
}
__device__ int scanned(int v)
{
    __shared__ int s[128];
    const int t = threadIdx.x;
    s[t] = v;
    __syncthreads();
    for (int i = 1; i < blockDim.x; i *= 2) {
        const int x = t >= i ? s[t - i] : 0;
        __syncthreads();
        s[t] += x;
        __syncthreads();
    }
    return s[t];
}
__global__ void changed(int* o)
{
    __shared__ int s;
    s = 1;
    __syncthreads();
    if (threadIdx.x == 0) s = 7;
    __syncthreads();
    o[threadIdx.x] = s;
}
__global__ void all_threads(int* o, const int* in, int n)
{
    const int t = threadIdx.x, S = blockDim.x, v = in[t];
    o[t] = scanned(v);
    o[S + t] = __syncthreads_count(v & 1) + 2000 * __syncthreads_and(v >= 0);
}
__global__ void whole_warps(int* o, const int* in, int n)
{
    const int t = threadIdx.x, S = blockDim.x, v = in[t];
    if (t >= n) return;
    o[2 * S + t] = warp_sum(v);
    o[3 * S + t] = __shfl_sync(0xffffffffu, v, 9, 8);
    o[4 * S + t] = __shfl_down_sync(0xffffffffu, v, 3, 8);
    o[5 * S + t] = __ballot_sync(0xffffffffu, v & 1);
    auto wide = __shfl_xor_sync(0xffffffffu, (long long)v << 33, 1);
    o[9 * S + t] = (int)(wide >> 32);
}
__global__ void one_warp(int* o, const int* in, int n)
{
    const int t = threadIdx.x, v = in[t];
    if (t >= n) return;
    int r;
    if (t / 32 == 1) {
        r = __shfl_sync(0xffffffffu, v, 31);
        for (int i = 0; i < 3; i++) {
            const int b = __shfl_xor_sync(0xffffffffu, v, 1 << i);
            if (b > 40) continue;
            r += b;
        }
    } else
        r = bounded(v + 1);
    o[6 * blockDim.x + t] = r;
}
__global__ void turns(int* o, const int* in, int n)
{
    const int t = threadIdx.x, S = blockDim.x, lane = t % 32;
    if (t >= n) return;
    int steps = 0;
    for (int w = in[t]; __any_sync(0xffffffffu, w > 3); ) { w /= 2; steps++; }
    o[7 * S + t] = steps;
    int m = 0;
    do { m += __popc(__ballot_sync(0xffffffffu, lane > m)); if (m > 20) break; } while (m < 25);
    o[8 * S + t] = m;
}
"""


def test_threads_meet_where_only_some_go(opencl: Driver) -> None:
    """Barriers and warp functions work in branches of one warp, in loops that end differently, and after a return."""
    n = 64
    values = numpy.random.default_rng(1).integers(0, 64, 128).astype(numpy.int32)
    out = podium.asarray(numpy.full(10 * 128, -99, numpy.int32))
    for name in ("all_threads", "whole_warps", "one_warp", "turns"):
        podium.kernel(_MEETINGS, name)[1, 128](out, podium.asarray(values), n)
    found = out.numpy().reshape(10, 128)
    assert (found[0] == numpy.cumsum(values)).all()
    assert (found[1] == (values & 1).sum() + 2000).all()
    assert (found[2:, n:] == -99).all()
    warps = values[:n].reshape(-1, 32).astype(numpy.int64)
    lanes = numpy.arange(32)
    ballots = ((warps & 1) << lanes).sum(axis=1)
    steps = numpy.array([next(s for s in range(9) if (warp >> s <= 3).all()) for warp in warps])
    expected = [
        _each(warps.sum(axis=1)),
        warps[:, lanes // 8 * 8 + 1],
        numpy.where(lanes % 8 > 4, warps, warps[:, (lanes + 3) % 32]),
        _each(_signed(ballots)),
        _branches(warps),
        _each(steps),
        numpy.full_like(warps, 31),
        2 * warps[:, lanes ^ 1],
    ]
    for index, values_expected in enumerate(expected):
        assert found[2 + index, :n].reshape(-1, 32).tolist() == values_expected.tolist(), index


def test_a_barrier_shows_what_others_have_written(opencl: Driver) -> None:
    """A shared variable that all threads set, and one of them again, has the last value for all behind the barrier."""
    out = podium.empty(64, "i32")
    podium.kernel(_MEETINGS, "changed")[1, 64](out)
    assert out.tolist() == [7] * 64


def _each(values: Any) -> Any:
    return numpy.repeat(values[:, None], 32, axis=1)


def _signed(values: Any) -> Any:
    return numpy.where(values >= 1 << 31, values - (1 << 32), values)


def _branches(warps: Any) -> Any:
    found = numpy.repeat((warps + 1).reshape(-1, 4, 8).sum(axis=2), 8, axis=1)
    lanes = numpy.arange(32)
    others = numpy.stack([warps[1][lanes ^ (1 << i)] for i in range(3)])
    found[1] = warps[1][31] + numpy.where(others > 40, 0, others).sum(axis=0)
    return found


_ATOMICS = r"""
__global__ void count(int* i, unsigned* u, unsigned long long* w, float* f, double* d)
{
    __shared__ int s;
    __shared__ float sf;
    if (threadIdx.x == 0) { s = 0; sf = 0; }
    __syncthreads();
    const unsigned bit = 1u << (threadIdx.x % 32);
    atomicAdd(&s, 1); atomicAdd(&sf, 0.5f); atomicAdd(i, 2); atomicSub(i + 1, 1); atomicMax(i + 2, (int)threadIdx.x);
    atomicMin(i + 3, -(int)threadIdx.x); atomicCAS(i + 4, 0, 42); atomicOr(u, bit); atomicAnd(u + 1, ~bit);
    atomicXor(u + 2, threadIdx.x); atomicInc(u + 3, 9); atomicDec(u + 4, 9); atomicAdd(w, 1ull << 33);
    atomicMax(w + 1, (unsigned long long)threadIdx.x); atomicAdd(f, 0.25f); atomicExch(f + 1, 3.0f);
    atomicAdd(d, 0.125);
    __syncthreads();
    if (threadIdx.x == 0) { i[5] = s; f[2] = sf; }
}
"""


def test_atomics_on_every_type(opencl: Driver) -> None:
    """Atomics work in global and in shared memory: OpenCL's own, and those that are loops."""
    i, u, w, f, d = (podium.asarray(numpy.zeros(6, kind)) for kind in ("i4", "u4", "u8", "f4", "f8"))
    u.copy_from(numpy.array([0, 0xFFFFFFFF, 0, 0, 0, 0], "u4"))
    podium.kernel(_ATOMICS)[3, 100](i, u, w, f, d)
    assert i.tolist() == [600, -300, 99, -99, 42, 100]
    up, down = 0, 0
    for _ in range(300):
        up, down = (0 if up >= 9 else up + 1), (9 if down == 0 else down - 1)
    assert u.tolist() == [0xFFFFFFFF, 0, 0, up, down, 0]
    assert w.tolist()[:2] == [300 << 33, 99]
    assert f.tolist()[:3] == [75, 3, 50] and d.tolist()[0] == 37.5
