// What half and bfloat16 have in common: a class of 16 bits that computes in single precision and rounds each result to
// nearest even, a pair of it, and the functions of the dialect on both.
#ifndef PODIUM_CPU_SHORT_FLOAT_H
#define PODIUM_CPU_SHORT_FLOAT_H

#include "math.h"

namespace podium_cpu {

// Round to single precision so that a second rounding, to fewer digits, gives what one would have: an inexact result
// keeps an odd last bit.
static inline float round_to_odd(double x) {
  const float near = static_cast<float>(x);
  if (near == x || !(fabs(x) < HUGE_VAL))
    return near;
  unsigned int bits = __float_as_uint(near);
  if (fabs(static_cast<double>(near)) > fabs(x))
    bits -= 1;
  return __uint_as_float(bits | 1);
}

}  // namespace podium_cpu

#define PODIUM_CPU_SHORT_CLASS(scalar, encode, decode)                                \
  struct __attribute__((aligned(2))) scalar {                                         \
    unsigned short __x;                                                               \
    scalar() = default;                                                               \
    scalar(float x) : __x(encode(x)) {}                                               \
    scalar(double x) : __x(encode(podium_cpu::round_to_odd(x))) {}                    \
    scalar(short x) : scalar(static_cast<double>(x)) {}                               \
    scalar(unsigned short x) : scalar(static_cast<double>(x)) {}                      \
    scalar(int x) : scalar(static_cast<double>(x)) {}                                 \
    scalar(unsigned int x) : scalar(static_cast<double>(x)) {}                        \
    scalar(long x) : scalar(static_cast<double>(x)) {}                                \
    scalar(unsigned long x) : scalar(static_cast<double>(x)) {}                       \
    scalar(long long x) : scalar(static_cast<double>(x)) {}                           \
    scalar(unsigned long long x) : scalar(static_cast<double>(x)) {}                  \
    operator float() const { return decode(__x); }                                    \
  };                                                                                  \
  struct __attribute__((aligned(4))) scalar##2 {                                      \
    scalar x, y;                                                                      \
    scalar##2() = default;                                                            \
    scalar##2(const scalar &x, const scalar &y) : x(x), y(y) {}                       \
  };

#define PODIUM_CPU_SHORT_OPERATOR(scalar, sign)                                                               \
  static inline scalar operator sign(const scalar &a, const scalar &b) { return scalar(float(a) sign float(b)); } \
  static inline scalar &operator sign##=(scalar &a, const scalar &b) { return a = a sign b; }                  \
  static inline scalar##2 operator sign(const scalar##2 &a, const scalar##2 &b) {                              \
    return scalar##2(a.x sign b.x, a.y sign b.y);                                                              \
  }                                                                                                            \
  static inline scalar##2 &operator sign##=(scalar##2 &a, const scalar##2 &b) { return a = a sign b; }

#define PODIUM_CPU_SHORT_COMPARISON(scalar, sign, name)                                                       \
  static inline bool operator sign(const scalar &a, const scalar &b) { return float(a) sign float(b); }       \
  static inline bool operator sign(const scalar##2 &a, const scalar##2 &b) {                                  \
    return float(a.x) sign float(b.x) && float(a.y) sign float(b.y);                                          \
  }                                                                                                           \
  static inline bool __h##name(const scalar &a, const scalar &b) { return float(a) sign float(b); }           \
  static inline bool __hb##name##2(const scalar##2 &a, const scalar##2 &b) { return a sign b; }               \
  static inline scalar##2 __h##name##2(const scalar##2 &a, const scalar##2 &b) {                              \
    return scalar##2(scalar(float(a.x) sign float(b.x) ? 1.0f : 0.0f),                                        \
                     scalar(float(a.y) sign float(b.y) ? 1.0f : 0.0f));                                       \
  }

#define PODIUM_CPU_SHORT_BINARY(scalar, name, name2, ...)                               \
  static inline scalar name(const scalar &p, const scalar &q) {                         \
    const float a = p, b = q;                                                           \
    return scalar(__VA_ARGS__);                                                         \
  }                                                                                     \
  static inline scalar##2 name2(const scalar##2 &p, const scalar##2 &q) {               \
    return scalar##2(name(p.x, q.x), name(p.y, q.y));                                   \
  }

#define PODIUM_CPU_SHORT_UNARY(scalar, name, name2, ...)                                \
  static inline scalar name(const scalar &p) {                                          \
    const float a = p;                                                                  \
    return scalar(__VA_ARGS__);                                                         \
  }                                                                                     \
  static inline scalar##2 name2(const scalar##2 &p) { return scalar##2(name(p.x), name(p.y)); }

#define PODIUM_CPU_SHORT_FUNCTIONS(scalar)                                                                      \
  PODIUM_CPU_SHORT_OPERATOR(scalar, +)                                                                          \
  PODIUM_CPU_SHORT_OPERATOR(scalar, -)                                                                          \
  PODIUM_CPU_SHORT_OPERATOR(scalar, *)                                                                          \
  PODIUM_CPU_SHORT_OPERATOR(scalar, /)                                                                          \
  PODIUM_CPU_SHORT_COMPARISON(scalar, ==, eq)                                                                   \
  PODIUM_CPU_SHORT_COMPARISON(scalar, !=, ne)                                                                   \
  PODIUM_CPU_SHORT_COMPARISON(scalar, <, lt)                                                                    \
  PODIUM_CPU_SHORT_COMPARISON(scalar, <=, le)                                                                   \
  PODIUM_CPU_SHORT_COMPARISON(scalar, >, gt)                                                                    \
  PODIUM_CPU_SHORT_COMPARISON(scalar, >=, ge)                                                                   \
  PODIUM_CPU_SHORT_UNARY(scalar, __hneg, __hneg2, -a)                                                           \
  PODIUM_CPU_SHORT_UNARY(scalar, __habs, __habs2, fabsf(a))                                                     \
  PODIUM_CPU_SHORT_UNARY(scalar, hsqrt, h2sqrt, sqrtf(a))                                                       \
  PODIUM_CPU_SHORT_UNARY(scalar, hrsqrt, h2rsqrt, 1 / sqrtf(a))                                                 \
  PODIUM_CPU_SHORT_UNARY(scalar, hrcp, h2rcp, 1 / a)                                                            \
  PODIUM_CPU_SHORT_UNARY(scalar, hexp, h2exp, expf(a))                                                          \
  PODIUM_CPU_SHORT_UNARY(scalar, hexp2, h2exp2, exp2f(a))                                                       \
  PODIUM_CPU_SHORT_UNARY(scalar, hexp10, h2exp10, exp10f(a))                                                    \
  PODIUM_CPU_SHORT_UNARY(scalar, hlog, h2log, logf(a))                                                          \
  PODIUM_CPU_SHORT_UNARY(scalar, hlog2, h2log2, log2f(a))                                                       \
  PODIUM_CPU_SHORT_UNARY(scalar, hlog10, h2log10, log10f(a))                                                    \
  PODIUM_CPU_SHORT_UNARY(scalar, hsin, h2sin, sinf(a))                                                          \
  PODIUM_CPU_SHORT_UNARY(scalar, hcos, h2cos, cosf(a))                                                          \
  PODIUM_CPU_SHORT_UNARY(scalar, htanh, h2tanh, tanhf(a))                                                       \
  PODIUM_CPU_SHORT_UNARY(scalar, hceil, h2ceil, ceilf(a))                                                       \
  PODIUM_CPU_SHORT_UNARY(scalar, hfloor, h2floor, floorf(a))                                                    \
  PODIUM_CPU_SHORT_UNARY(scalar, htrunc, h2trunc, truncf(a))                                                    \
  PODIUM_CPU_SHORT_UNARY(scalar, hrint, h2rint, rintf(a))                                                       \
  PODIUM_CPU_SHORT_BINARY(scalar, __hadd, __hadd2, a + b)                                                       \
  PODIUM_CPU_SHORT_BINARY(scalar, __hsub, __hsub2, a - b)                                                       \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmul, __hmul2, a *b)                                                        \
  PODIUM_CPU_SHORT_BINARY(scalar, __hdiv, __h2div, a / b)                                                       \
  PODIUM_CPU_SHORT_BINARY(scalar, __hadd_rn, __hadd2_rn, a + b)                                                 \
  PODIUM_CPU_SHORT_BINARY(scalar, __hsub_rn, __hsub2_rn, a - b)                                                 \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmul_rn, __hmul2_rn, a *b)                                                  \
  PODIUM_CPU_SHORT_BINARY(scalar, __hadd_sat, __hadd2_sat, __saturatef(a + b))                                  \
  PODIUM_CPU_SHORT_BINARY(scalar, __hsub_sat, __hsub2_sat, __saturatef(a - b))                                  \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmul_sat, __hmul2_sat, __saturatef(a *b))                                   \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmin, __hmin2, fminf(a, b))                                                 \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmax, __hmax2, fmaxf(a, b))                                                 \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmin_nan, __hmin2_nan, a != a || b != b ? a + b : fminf(a, b))              \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmax_nan, __hmax2_nan, a != a || b != b ? a + b : fmaxf(a, b))              \
  static inline scalar operator-(const scalar &a) { return __hneg(a); }                                         \
  static inline scalar operator+(const scalar &a) { return a; }                                                 \
  static inline scalar##2 operator-(const scalar##2 &a) { return __hneg2(a); }                                  \
  static inline scalar &operator++(scalar &a) { return a = scalar(float(a) + 1); }                              \
  static inline scalar &operator--(scalar &a) { return a = scalar(float(a) - 1); }                              \
  static inline scalar __hfma(const scalar &a, const scalar &b, const scalar &c) {                              \
    return scalar(__builtin_fma(double(float(a)), double(float(b)), double(float(c))));                         \
  }                                                                                                             \
  static inline scalar __hfma_sat(const scalar &a, const scalar &b, const scalar &c) {                          \
    return scalar(__saturatef(__hfma(a, b, c)));                                                                \
  }                                                                                                             \
  static inline scalar##2 __hfma2(const scalar##2 &a, const scalar##2 &b, const scalar##2 &c) {                 \
    return scalar##2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));                                             \
  }                                                                                                             \
  static inline bool __hisnan(const scalar &a) { return __builtin_isnan(float(a)); }                            \
  static inline int __hisinf(const scalar &a) {                                                                 \
    return __builtin_isinf(float(a)) ? (float(a) < 0 ? -1 : 1) : 0;                                             \
  }                                                                                                             \
  static inline float __low2float(const scalar##2 &a) { return a.x; }                                           \
  static inline float __high2float(const scalar##2 &a) { return a.y; }                                          \
  static inline scalar##2 __lowhigh2highlow(const scalar##2 &a) { return scalar##2(a.y, a.x); }

// Conversions, whose names contain the type's: `name` is half or bfloat16, `pair` is half2 or bfloat162.
#define PODIUM_CPU_SHORT_CONVERSIONS(scalar, name, pair)                                                        \
  static inline scalar __float2##name(float x) { return scalar(x); }                                            \
  static inline scalar __float2##name##_rn(float x) { return scalar(x); }                                       \
  static inline scalar __double2##name(double x) { return scalar(x); }                                          \
  static inline float __##name##2float(const scalar &x) { return x; }                                           \
  static inline scalar##2 __float2##pair##_rn(float x) { return scalar##2(scalar(x), scalar(x)); }              \
  static inline scalar##2 __floats2##pair##_rn(float x, float y) { return scalar##2(scalar(x), scalar(y)); }    \
  static inline scalar##2 __float22##pair##_rn(float2 v) { return scalar##2(scalar(v.x), scalar(v.y)); }        \
  static inline float2 __##pair##2float2(const scalar##2 &v) { return float2{v.x, v.y}; }                       \
  static inline scalar##2 __##name##2##pair(const scalar &x) { return scalar##2(x, x); }                        \
  static inline scalar __low2##name(const scalar##2 &v) { return v.x; }                                         \
  static inline scalar __high2##name(const scalar##2 &v) { return v.y; }                                        \
  static inline scalar##2 __low2##pair(const scalar##2 &v) { return scalar##2(v.x, v.x); }                      \
  static inline scalar##2 __high2##pair(const scalar##2 &v) { return scalar##2(v.y, v.y); }                     \
  static inline scalar##2 __lows2##pair(const scalar##2 &v, const scalar##2 &w) { return scalar##2(v.x, w.x); } \
  static inline scalar##2 __highs2##pair(const scalar##2 &v, const scalar##2 &w) {                              \
    return scalar##2(v.y, w.y);                                                                                 \
  }                                                                                                             \
  static inline scalar __int2##name##_rn(int x) { return scalar(x); }                                           \
  static inline scalar __uint2##name##_rn(unsigned int x) { return scalar(x); }                                 \
  static inline scalar __short2##name##_rn(short x) { return scalar(x); }                                       \
  static inline scalar __ushort2##name##_rn(unsigned short x) { return scalar(x); }                             \
  static inline int __##name##2int_rn(const scalar &x) { return __float2int_rn(x); }                            \
  static inline int __##name##2int_rz(const scalar &x) { return __float2int_rz(x); }                            \
  static inline int __##name##2int_rd(const scalar &x) { return __float2int_rd(x); }                            \
  static inline int __##name##2int_ru(const scalar &x) { return __float2int_ru(x); }                            \
  static inline unsigned int __##name##2uint_rn(const scalar &x) { return __float2uint_rn(x); }                 \
  static inline unsigned int __##name##2uint_rz(const scalar &x) { return __float2uint_rz(x); }                 \
  static inline unsigned short __##name##_as_ushort(const scalar &x) { return x.__x; }                          \
  static inline short __##name##_as_short(const scalar &x) { return static_cast<short>(x.__x); }                \
  static inline scalar __ushort_as_##name(unsigned short bits) { return podium_cpu::bit_copy<scalar>(bits); }   \
  static inline scalar __short_as_##name(short bits) { return podium_cpu::bit_copy<scalar>(bits); }

#endif
