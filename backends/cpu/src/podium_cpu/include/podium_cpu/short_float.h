// What half and bfloat16 have in common: a class of 16 bits that computes in single precision and rounds each result to
// nearest even, a pair of it, and the functions of the dialect on both.
#ifndef PODIUM_CPU_SHORT_FLOAT_H
#define PODIUM_CPU_SHORT_FLOAT_H

#include "math.h"
#include "rounding.h"

namespace podium_cpu {

// Round to single precision so that a second rounding, to fewer digits, gives what one would have: an inexact result
// keeps an odd last bit.
static inline float round_to_odd(double x) {
  const float near = static_cast<float>(x);
  if (near == x || !(fabs(x) < HUGE_VAL)) return near;
  unsigned int bits = __float_as_uint(near);
  if (fabs(static_cast<double>(near)) > fabs(x)) bits -= 1;
  return __uint_as_float(bits | 1);
}

// The next greater number for a direction of 1, the next smaller one for -1.
template <class Scalar>
static inline Scalar step(Scalar x, int direction) {
  const float value = x;
  if (value == 0) return bit_copy<Scalar>(static_cast<unsigned short>(direction < 0 ? 0x8001u : 1u));
  return bit_copy<Scalar>(
      static_cast<unsigned short>(bit_copy<unsigned short>(x) + (value < 0 ? -direction : direction)));
}

// An integer as a number near it, that is moved in one of two directions, for positive and for negative integers, if it
// lies on the other side. The greatest integers are no less exact as a long double than as themselves.
template <class Scalar, class T>
static inline Scalar from_integer(T x, int positive, int negative) {
  const Scalar near(x);
  const int direction = x < T(1) ? negative : positive;
  const long double value = float(near), exact = x;
  return (direction < 0 ? value > exact : value < exact) ? step(near, direction) : near;
}

template <class To, class From>
static inline To within(From x, From least, From greatest) {
  return static_cast<To>(x < least ? least : x > greatest ? greatest : x);
}

}  // namespace podium_cpu

#define PODIUM_CPU_SHORT_CLASS(scalar, encode, decode)                                      \
  struct __attribute__((aligned(2))) scalar##_raw {                                         \
    unsigned short x;                                                                       \
  };                                                                                        \
  struct __attribute__((aligned(4))) scalar##2_raw {                                        \
    unsigned short x, y;                                                                    \
  };                                                                                        \
  struct __attribute__((aligned(2))) scalar {                                               \
    unsigned short __x;                                                                     \
    scalar() = default;                                                                     \
    scalar(float x) : __x(encode(x)) {}                                                     \
    scalar(double x) : __x(encode(podium_cpu::round_to_odd(x))) {}                          \
    scalar(short x) : scalar(static_cast<double>(x)) {}                                     \
    scalar(unsigned short x) : scalar(static_cast<double>(x)) {}                            \
    scalar(int x) : scalar(static_cast<double>(x)) {}                                       \
    scalar(unsigned int x) : scalar(static_cast<double>(x)) {}                              \
    scalar(long x) : scalar(static_cast<double>(x)) {}                                      \
    scalar(unsigned long x) : scalar(static_cast<double>(x)) {}                             \
    scalar(long long x) : scalar(static_cast<double>(x)) {}                                 \
    scalar(unsigned long long x) : scalar(static_cast<double>(x)) {}                        \
    operator float() const { return decode(__x); }                                          \
    scalar(const scalar##_raw &raw) : __x(raw.x) {}                                         \
    scalar &operator=(const scalar##_raw &raw) {                                            \
      __x = raw.x;                                                                          \
      return *this;                                                                         \
    }                                                                                       \
    operator scalar##_raw() const { return scalar##_raw{__x}; }                             \
  };                                                                                        \
  struct __attribute__((aligned(4))) scalar##2 {                                            \
    scalar x, y;                                                                            \
    scalar##2() = default;                                                                  \
    scalar##2(const scalar &x, const scalar &y) : x(x), y(y) {}                             \
    scalar##2(const scalar##2_raw & raw)                                                    \
        : x(podium_cpu::bit_copy<scalar>(raw.x)), y(podium_cpu::bit_copy<scalar>(raw.y)) {} \
    operator scalar##2_raw() const { return scalar##2_raw {x.__x, y.__x}; }                 \
  };

#define PODIUM_CPU_SHORT_OPERATOR(scalar, sign)                                                                   \
  static inline scalar operator sign(const scalar &a, const scalar &b) { return scalar(float(a) sign float(b)); } \
  static inline scalar &operator sign##=(scalar &a, const scalar &b) { return a = a sign b; }                     \
  static inline scalar##2 operator sign(const scalar##2 & a, const scalar##2 & b) {                               \
    return scalar##2(a.x sign b.x, a.y sign b.y);                                                                 \
  }                                                                                                               \
  static inline scalar##2 &operator sign##=(scalar##2 & a, const scalar##2 & b) { return a = a sign b; }

// Comparisons that are false, and others that are true, where one side is not a number; with masks of 16 bits, too.
#define PODIUM_CPU_SHORT_TEST(scalar, suffix, ...)                                                              \
  static inline bool __h##suffix(const scalar &p, const scalar &q) {                                            \
    const float a = p, b = q;                                                                                   \
    return __VA_ARGS__;                                                                                         \
  }                                                                                                             \
  static inline bool __hb##suffix##2(const scalar##2 & p, const scalar##2 & q) {                                \
    return __h##suffix(p.x, q.x) && __h##suffix(p.y, q.y);                                                      \
  }                                                                                                             \
  static inline scalar##2 __h##suffix##2(const scalar##2 & p, const scalar##2 & q) {                            \
    return scalar##2(scalar(__h##suffix(p.x, q.x) ? 1.0f : 0.0f), scalar(__h##suffix(p.y, q.y) ? 1.0f : 0.0f)); \
  }                                                                                                             \
  static inline unsigned int __h##suffix##2_mask(const scalar##2 & p, const scalar##2 & q) {                    \
    return (__h##suffix(p.x, q.x) ? 0xffffu : 0) | (__h##suffix(p.y, q.y) ? 0xffff0000u : 0);                   \
  }

#define PODIUM_CPU_SHORT_COMPARISON(scalar, sign, name)                                                 \
  static inline bool operator sign(const scalar &a, const scalar &b) { return float(a) sign float(b); } \
  static inline bool operator sign(const scalar##2 & a, const scalar##2 & b) {                          \
    return float(a.x) sign float(b.x) && float(a.y) sign float(b.y);                                    \
  }                                                                                                     \
  PODIUM_CPU_SHORT_TEST(scalar, name, (a < b || a >= b) && a sign b)                                    \
  PODIUM_CPU_SHORT_TEST(scalar, name##u, !(a < b || a >= b) || a sign b)

#define PODIUM_CPU_SHORT_BINARY(scalar, name, name2, ...)                   \
  static inline scalar name(const scalar &p, const scalar &q) {             \
    const float a = p, b = q;                                               \
    return scalar(__VA_ARGS__);                                             \
  }                                                                         \
  static inline scalar##2 name2(const scalar##2 & p, const scalar##2 & q) { \
    return scalar##2(name(p.x, q.x), name(p.y, q.y));                       \
  }

#define PODIUM_CPU_SHORT_UNARY(scalar, name, name2, ...) \
  static inline scalar name(const scalar &p) {           \
    const float a = p;                                   \
    return scalar(__VA_ARGS__);                          \
  }                                                      \
  static inline scalar##2 name2(const scalar##2 & p) { return scalar##2(name(p.x), name(p.y)); }

#define PODIUM_CPU_SHORT_FUNCTIONS(scalar)                                                                        \
  PODIUM_CPU_SHORT_OPERATOR(scalar, +)                                                                            \
  PODIUM_CPU_SHORT_OPERATOR(scalar, -)                                                                            \
  PODIUM_CPU_SHORT_OPERATOR(scalar, *)                                                                            \
  PODIUM_CPU_SHORT_OPERATOR(scalar, /)                                                                            \
  PODIUM_CPU_SHORT_COMPARISON(scalar, ==, eq)                                                                     \
  PODIUM_CPU_SHORT_COMPARISON(scalar, !=, ne)                                                                     \
  PODIUM_CPU_SHORT_COMPARISON(scalar, <, lt)                                                                      \
  PODIUM_CPU_SHORT_COMPARISON(scalar, <=, le)                                                                     \
  PODIUM_CPU_SHORT_COMPARISON(scalar, >, gt)                                                                      \
  PODIUM_CPU_SHORT_COMPARISON(scalar, >=, ge)                                                                     \
  PODIUM_CPU_SHORT_UNARY(scalar, __hneg, __hneg2, -a)                                                             \
  PODIUM_CPU_SHORT_UNARY(scalar, __habs, __habs2, fabsf(a))                                                       \
  PODIUM_CPU_SHORT_UNARY(scalar, hsqrt, h2sqrt, sqrtf(a))                                                         \
  PODIUM_CPU_SHORT_UNARY(scalar, hrsqrt, h2rsqrt, 1 / sqrtf(a))                                                   \
  PODIUM_CPU_SHORT_UNARY(scalar, hrcp, h2rcp, 1 / a)                                                              \
  PODIUM_CPU_SHORT_UNARY(scalar, hexp, h2exp, expf(a))                                                            \
  PODIUM_CPU_SHORT_UNARY(scalar, hexp2, h2exp2, exp2f(a))                                                         \
  PODIUM_CPU_SHORT_UNARY(scalar, hexp10, h2exp10, exp10f(a))                                                      \
  PODIUM_CPU_SHORT_UNARY(scalar, hlog, h2log, logf(a))                                                            \
  PODIUM_CPU_SHORT_UNARY(scalar, hlog2, h2log2, log2f(a))                                                         \
  PODIUM_CPU_SHORT_UNARY(scalar, hlog10, h2log10, log10f(a))                                                      \
  PODIUM_CPU_SHORT_UNARY(scalar, hsin, h2sin, sinf(a))                                                            \
  PODIUM_CPU_SHORT_UNARY(scalar, hcos, h2cos, cosf(a))                                                            \
  PODIUM_CPU_SHORT_UNARY(scalar, htanh, h2tanh, tanhf(a))                                                         \
  PODIUM_CPU_SHORT_UNARY(scalar, htanh_approx, h2tanh_approx, tanhf(a))                                           \
  PODIUM_CPU_SHORT_UNARY(scalar, hceil, h2ceil, ceilf(a))                                                         \
  PODIUM_CPU_SHORT_UNARY(scalar, hfloor, h2floor, floorf(a))                                                      \
  PODIUM_CPU_SHORT_UNARY(scalar, htrunc, h2trunc, truncf(a))                                                      \
  PODIUM_CPU_SHORT_UNARY(scalar, hrint, h2rint, rintf(a))                                                         \
  PODIUM_CPU_SHORT_BINARY(scalar, __hadd, __hadd2, a + b)                                                         \
  PODIUM_CPU_SHORT_BINARY(scalar, __hsub, __hsub2, a - b)                                                         \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmul, __hmul2, a *b)                                                          \
  PODIUM_CPU_SHORT_BINARY(scalar, __hdiv, __h2div, a / b)                                                         \
  PODIUM_CPU_SHORT_BINARY(scalar, __hadd_rn, __hadd2_rn, a + b)                                                   \
  PODIUM_CPU_SHORT_BINARY(scalar, __hsub_rn, __hsub2_rn, a - b)                                                   \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmul_rn, __hmul2_rn, a *b)                                                    \
  PODIUM_CPU_SHORT_BINARY(scalar, __hadd_sat, __hadd2_sat, __saturatef(a + b))                                    \
  PODIUM_CPU_SHORT_BINARY(scalar, __hsub_sat, __hsub2_sat, __saturatef(a - b))                                    \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmul_sat, __hmul2_sat, __saturatef(a *b))                                     \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmin, __hmin2, fminf(a, b))                                                   \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmax, __hmax2, fmaxf(a, b))                                                   \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmin_nan, __hmin2_nan, a != a || b != b ? a + b : fminf(a, b))                \
  PODIUM_CPU_SHORT_BINARY(scalar, __hmax_nan, __hmax2_nan, a != a || b != b ? a + b : fmaxf(a, b))                \
  static inline scalar operator-(const scalar &a) { return __hneg(a); }                                           \
  static inline scalar operator+(const scalar &a) { return a; }                                                   \
  static inline scalar##2 operator-(const scalar##2 & a) { return __hneg2(a); }                                   \
  static inline scalar##2 operator+(const scalar##2 & a) { return a; }                                            \
  static inline scalar &operator++(scalar &a) { return a = scalar(float(a) + 1); }                                \
  static inline scalar &operator--(scalar &a) { return a = scalar(float(a) - 1); }                                \
  static inline scalar operator++(scalar &a, int) {                                                               \
    const scalar before = a;                                                                                      \
    ++a;                                                                                                          \
    return before;                                                                                                \
  }                                                                                                               \
  static inline scalar operator--(scalar &a, int) {                                                               \
    const scalar before = a;                                                                                      \
    --a;                                                                                                          \
    return before;                                                                                                \
  }                                                                                                               \
  static inline scalar __hfma(const scalar &a, const scalar &b, const scalar &c) {                                \
    return scalar(__builtin_fma(double(float(a)), double(float(b)), double(float(c))));                           \
  }                                                                                                               \
  static inline scalar __hfma_sat(const scalar &a, const scalar &b, const scalar &c) {                            \
    return scalar(__saturatef(__hfma(a, b, c)));                                                                  \
  }                                                                                                               \
  static inline scalar __hfma_relu(const scalar &a, const scalar &b, const scalar &c) {                           \
    const scalar x = __hfma(a, b, c);                                                                             \
    return float(x) < 0 ? scalar(0.0f) : x;                                                                       \
  }                                                                                                               \
  static inline scalar##2 __hfma2_relu(const scalar##2 & a, const scalar##2 & b, const scalar##2 & c) {           \
    return scalar##2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));                                     \
  }                                                                                                               \
  static inline scalar##2 __hfma2_sat(const scalar##2 & a, const scalar##2 & b, const scalar##2 & c) {            \
    return scalar##2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));                                       \
  }                                                                                                               \
  /* The product of two complex numbers, and a third one. */                                                      \
  static inline scalar##2 __hcmadd(const scalar##2 & a, const scalar##2 & b, const scalar##2 & c) {               \
    return scalar##2(__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y)));   \
  }                                                                                                               \
  static inline scalar##2 __hfma2(const scalar##2 & a, const scalar##2 & b, const scalar##2 & c) {                \
    return scalar##2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));                                               \
  }                                                                                                               \
  static inline bool __hisnan(const scalar &a) { return __builtin_isnan(float(a)); }                              \
  static inline scalar##2 __hisnan2(const scalar##2 & a) {                                                        \
    return scalar##2(scalar(__hisnan(a.x) ? 1.0f : 0.0f), scalar(__hisnan(a.y) ? 1.0f : 0.0f));                   \
  }                                                                                                               \
  static inline int __hisinf(const scalar &a) { return __builtin_isinf(float(a)) ? (float(a) < 0 ? -1 : 1) : 0; } \
  static inline float __low2float(const scalar##2 & a) { return a.x; }                                            \
  static inline float __high2float(const scalar##2 & a) { return a.y; }                                           \
  static inline scalar##2 __lowhigh2highlow(const scalar##2 & a) { return scalar##2(a.y, a.x); }

// A number rounded down, up or to zero: from the nearest one, a step back where that went too far.
#define PODIUM_CPU_SHORT_ROUNDED(scalar, name, from)            \
  static inline scalar name##_rd(from x) {                      \
    const scalar near(x);                                       \
    return float(near) > x ? podium_cpu::step(near, -1) : near; \
  }                                                             \
  static inline scalar name##_ru(from x) {                      \
    const scalar near(x);                                       \
    return float(near) < x ? podium_cpu::step(near, 1) : near;  \
  }                                                             \
  static inline scalar name##_rz(from x) { return x < 0 ? name##_ru(x) : name##_rd(x); }

// Integers to and from, by way of numbers that have room for either; `wide` names the integers of the casts.
#define PODIUM_CPU_SHORT_INTEGER(scalar, name, word, type, wide, least, greatest)                                  \
  static inline scalar __##word##2##name##_rn(type x) { return scalar(x); }                                        \
  static inline scalar __##word##2##name##_rd(type x) { return podium_cpu::from_integer<scalar>(x, -1, -1); }      \
  static inline scalar __##word##2##name##_ru(type x) { return podium_cpu::from_integer<scalar>(x, 1, 1); }        \
  static inline scalar __##word##2##name##_rz(type x) { return podium_cpu::from_integer<scalar>(x, -1, 1); }       \
  static inline type __##name##2##word##_rn(const scalar &x) {                                                     \
    return podium_cpu::within<type, decltype(__float2##wide##_rn(0.0f))>(__float2##wide##_rn(x), least, greatest); \
  }                                                                                                                \
  static inline type __##name##2##word##_rz(const scalar &x) {                                                     \
    return podium_cpu::within<type, decltype(__float2##wide##_rn(0.0f))>(__float2##wide##_rz(x), least, greatest); \
  }                                                                                                                \
  static inline type __##name##2##word##_rd(const scalar &x) {                                                     \
    return podium_cpu::within<type, decltype(__float2##wide##_rn(0.0f))>(__float2##wide##_rd(x), least, greatest); \
  }                                                                                                                \
  static inline type __##name##2##word##_ru(const scalar &x) {                                                     \
    return podium_cpu::within<type, decltype(__float2##wide##_rn(0.0f))>(__float2##wide##_ru(x), least, greatest); \
  }

// Conversions, whose names contain the type's: `name` is half or bfloat16, `pair` is half2 or bfloat162.
#define PODIUM_CPU_SHORT_CONVERSIONS(scalar, name, pair)                                                           \
  static inline scalar __float2##name(float x) { return scalar(x); }                                               \
  static inline scalar __float2##name##_rn(float x) { return scalar(x); }                                          \
  static inline scalar __double2##name(double x) { return scalar(x); }                                             \
  static inline float __##name##2float(const scalar &x) { return x; }                                              \
  static inline scalar##2 __float2##pair##_rn(float x) { return scalar##2(scalar(x), scalar(x)); }                 \
  static inline scalar##2 __floats2##pair##_rn(float x, float y) { return scalar##2(scalar(x), scalar(y)); }       \
  static inline scalar##2 __float22##pair##_rn(float2 v) { return scalar##2(scalar(v.x), scalar(v.y)); }           \
  static inline float2 __##pair##2float2(const scalar##2 & v) { return float2{v.x, v.y}; }                         \
  static inline scalar##2 __##name##2##pair(const scalar &x) { return scalar##2(x, x); }                           \
  static inline scalar __low2##name(const scalar##2 & v) { return v.x; }                                           \
  static inline scalar __high2##name(const scalar##2 & v) { return v.y; }                                          \
  static inline scalar##2 __low2##pair(const scalar##2 & v) { return scalar##2(v.x, v.x); }                        \
  static inline scalar##2 __high2##pair(const scalar##2 & v) { return scalar##2(v.y, v.y); }                       \
  static inline scalar##2 __lows2##pair(const scalar##2 & v, const scalar##2 & w) { return scalar##2(v.x, w.x); }  \
  static inline scalar##2 __highs2##pair(const scalar##2 & v, const scalar##2 & w) { return scalar##2(v.y, w.y); } \
  PODIUM_CPU_SHORT_ROUNDED(scalar, __float2##name, float)                                                          \
  PODIUM_CPU_SHORT_ROUNDED(scalar, __double2##name, double)                                                        \
  PODIUM_CPU_SHORT_INTEGER(scalar, name, short, short, int, -32768, 32767)                                         \
  PODIUM_CPU_SHORT_INTEGER(scalar, name, ushort, unsigned short, uint, 0, 65535)                                   \
  PODIUM_CPU_SHORT_INTEGER(scalar, name, int, int, int, -2147483647 - 1, 2147483647)                               \
  PODIUM_CPU_SHORT_INTEGER(scalar, name, uint, unsigned int, uint, 0, 0xffffffffu)                                 \
  PODIUM_CPU_SHORT_INTEGER(scalar, name, ll, long long, ll, -9223372036854775807ll - 1, 9223372036854775807ll)     \
  PODIUM_CPU_SHORT_INTEGER(scalar, name, ull, unsigned long long, ull, 0, 0xffffffffffffffffull)                   \
  static inline signed char __##name##2char_rz(const scalar &x) {                                                  \
    return podium_cpu::within<signed char, int>(__float2int_rz(x), -128, 127);                                     \
  }                                                                                                                \
  static inline unsigned char __##name##2uchar_rz(const scalar &x) {                                               \
    return podium_cpu::within<unsigned char, unsigned int>(__float2uint_rz(x), 0, 255);                            \
  }                                                                                                                \
  static inline unsigned short __##name##_as_ushort(const scalar &x) { return x.__x; }                             \
  static inline short __##name##_as_short(const scalar &x) { return static_cast<short>(x.__x); }                   \
  static inline scalar __ushort_as_##name(unsigned short bits) { return podium_cpu::bit_copy<scalar>(bits); }      \
  static inline scalar __short_as_##name(short bits) { return podium_cpu::bit_copy<scalar>(bits); }

#endif
