// Mathematical functions that the C library lacks, and the fast ones under their names in the dialect.
// The fast ones are no less exact here than the others.
#ifndef PODIUM_CPU_MATH_H
#define PODIUM_CPU_MATH_H

#include "integer.h"
#include "standard.h"

namespace podium_cpu {
template <class T>
static inline constexpr T lesser(T a, T b) {
  return b < a ? b : a;
}
template <class T>
static inline constexpr T greater(T a, T b) {
  return a < b ? b : a;
}
}  // namespace podium_cpu

#define PODIUM_CPU_MIN_MAX(left, right, result)                                                           \
  static inline constexpr result min(left a, right b) { return podium_cpu::lesser<result>(a, b); }  \
  static inline constexpr result max(left a, right b) { return podium_cpu::greater<result>(a, b); }
PODIUM_CPU_MIN_MAX(int, int, int)
PODIUM_CPU_MIN_MAX(unsigned int, unsigned int, unsigned int)
PODIUM_CPU_MIN_MAX(int, unsigned int, unsigned int)
PODIUM_CPU_MIN_MAX(unsigned int, int, unsigned int)
PODIUM_CPU_MIN_MAX(long, long, long)
PODIUM_CPU_MIN_MAX(unsigned long, unsigned long, unsigned long)
PODIUM_CPU_MIN_MAX(long, unsigned long, unsigned long)
PODIUM_CPU_MIN_MAX(unsigned long, long, unsigned long)
PODIUM_CPU_MIN_MAX(long long, long long, long long)
PODIUM_CPU_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
PODIUM_CPU_MIN_MAX(long long, unsigned long long, unsigned long long)
PODIUM_CPU_MIN_MAX(unsigned long long, long long, unsigned long long)
#undef PODIUM_CPU_MIN_MAX

#if defined(__GLIBC__) && !defined(__clang__)
// g++ calls the library for these, and makes no vectors of a loop with such a call.
#define PODIUM_CPU_INLINE_MIN_MAX(type, suffix)                                                                  \
  extern inline __attribute__((gnu_inline, always_inline)) type fmin##suffix(type a, type b) noexcept {          \
    return (a < b) | (b != b) ? a : b;                                                                           \
  }                                                                                                              \
  extern inline __attribute__((gnu_inline, always_inline)) type fmax##suffix(type a, type b) noexcept {          \
    return (a > b) | (b != b) ? a : b;                                                                           \
  }
extern "C" {
PODIUM_CPU_INLINE_MIN_MAX(float, f)
PODIUM_CPU_INLINE_MIN_MAX(double, )
}
#undef PODIUM_CPU_INLINE_MIN_MAX
#endif

// Of a number and a not-a-number, the number: as fmin and fmax have it.
#define PODIUM_CPU_MIN_MAX(left, right, result, suffix)                                    \
  static inline result min(left a, right b) { return fmin##suffix(result(a), result(b)); } \
  static inline result max(left a, right b) { return fmax##suffix(result(a), result(b)); }
PODIUM_CPU_MIN_MAX(float, float, float, f)
PODIUM_CPU_MIN_MAX(double, double, double, )
PODIUM_CPU_MIN_MAX(float, double, double, )
PODIUM_CPU_MIN_MAX(double, float, double, )
#undef PODIUM_CPU_MIN_MAX

static inline unsigned int umin(unsigned int a, unsigned int b) { return min(a, b); }
static inline unsigned int umax(unsigned int a, unsigned int b) { return max(a, b); }
static inline long long llmin(long long a, long long b) { return min(a, b); }
static inline long long llmax(long long a, long long b) { return max(a, b); }
static inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
static inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }

// A function in double and, with an f behind its name, in single precision.
#define PODIUM_CPU_BOTH(name, parameters, parametersf, ...)              \
  static inline double name parameters { return double(__VA_ARGS__); }   \
  static inline float name##f parametersf { return float(__VA_ARGS__); }
#define PODIUM_CPU_UNARY(name, ...) PODIUM_CPU_BOTH(name, (double x), (float x), __VA_ARGS__)
// Such a one that new C libraries declare as well: the same function, which must not be declared static behind that.
#define PODIUM_CPU_UNARY_OF_C23(name, ...)                                                                     \
  extern "C" inline __attribute__((always_inline)) double name(double x) PODIUM_CPU_NOTHROW { return __VA_ARGS__; } \
  extern "C" inline __attribute__((always_inline)) float name##f(float x) PODIUM_CPU_NOTHROW {                 \
    return float(__VA_ARGS__);                                                                                 \
  }
#define PODIUM_CPU_BINARY(name, ...) PODIUM_CPU_BOTH(name, (double x, double y), (float x, float y), __VA_ARGS__)

namespace podium_cpu {

static constexpr double pi = 3.14159265358979323846;

// The sine of pi times x, exact where x is a multiple of a half.
static inline double sine_of_turns(double x) {
  double rest = fmod(fabs(x), 2.0), sign = x < 0 ? -1.0 : 1.0;
  if (rest >= 1.0) {
    rest -= 1.0;
    sign = -sign;
  }
  if (rest > 0.5)
    rest = 1.0 - rest;
  return rest == 0.0 ? copysign(0.0, x) : sign * (rest > 0.25 ? cos((0.5 - rest) * pi) : sin(rest * pi));
}

static inline double cosine_of_turns(double x) {
  double rest = fmod(fabs(x), 2.0);
  if (rest > 1.0)
    rest = 2.0 - rest;
  return rest == 0.5 ? 0.0 : rest < 0.25 ? cos(rest * pi) : rest > 0.75 ? -cos((1.0 - rest) * pi) : sin((0.5 - rest) * pi);
}

// The inverse of erf: a first guess from its logarithm, then Newton steps, each of which doubles the digits.
static inline double inverse_erf(double y) {
  if (!(fabs(y) < 1.0))
    return fabs(y) == 1.0 ? copysign(HUGE_VAL, y) : NAN;
  const double a = 0.147, log_part = log1p(-y * y), half = 2 / (pi * a) + log_part / 2;
  double x = copysign(sqrt(sqrt(half * half - log_part / a) - half), y);
  for (int i = 0; i < 4; ++i) {
    const double error = fabs(y) < 0.5 ? erf(x) - y : copysign(1 - fabs(y), y) - copysign(erfc(fabs(x)), y);
    x -= error / (2 / sqrt(pi) * exp(-x * x) - x * error);
  }
  return x;
}

// erfc(x) * exp(x * x), by a continued fraction where the one vanishes and the other is infinite.
static inline double scaled_erfc(double x) {
  if (x < 10)
    return exp(x * x) * erfc(x);
  double tail = 0;
  for (int i = 40; i > 0; --i)
    tail = i / 2.0 / (x + tail);
  return 1 / (sqrt(pi) * (x + tail));
}

// The modified Bessel functions: their power series, and for great numbers their asymptotic one.
static inline double modified_bessel(int order, double x) {
  const double y = fabs(x), sign = order % 2 && x < 0 ? -1.0 : 1.0;
  double term = order ? y / 2 : 1, sum = term;
  if (y < 30) {
    for (int k = 1; k < 500 && term > sum * 1e-17; ++k)
      sum += term *= y * y / 4 / (double(k) * (k + order));
    return sign * sum;
  }
  sum = term = 1;
  for (int k = 1; k < 20; ++k)
    sum += term *= ((2 * k - 1) * (2 * k - 1) - 4 * order * order) / (8 * k * y);
  return sign * exp(y / 2) * (exp(y / 2) / sqrt(2 * pi * y)) * sum;
}

template <class T>
static inline double length(int n, const T *x) {
  double result = 0;
  for (int i = 0; i < n; ++i)
    result = hypot(result, double(x[i]));
  return result;
}

}  // namespace podium_cpu

PODIUM_CPU_UNARY_OF_C23(rsqrt, 1 / sqrt(x))
PODIUM_CPU_UNARY(rcbrt, 1 / cbrt(x))
PODIUM_CPU_UNARY_OF_C23(sinpi, podium_cpu::sine_of_turns(x))
PODIUM_CPU_UNARY_OF_C23(cospi, podium_cpu::cosine_of_turns(x))
PODIUM_CPU_UNARY(normcdf, 0.5 * erfc(-double(x) * sqrt(0.5)))
PODIUM_CPU_UNARY(erfinv, podium_cpu::inverse_erf(x))
PODIUM_CPU_UNARY(erfcinv, podium_cpu::inverse_erf(1 - double(x)))
PODIUM_CPU_UNARY(normcdfinv, sqrt(2.0) * podium_cpu::inverse_erf(2 * double(x) - 1))
PODIUM_CPU_UNARY(erfcx, podium_cpu::scaled_erfc(x))
PODIUM_CPU_UNARY(cyl_bessel_i0, podium_cpu::modified_bessel(0, x))
PODIUM_CPU_UNARY(cyl_bessel_i1, podium_cpu::modified_bessel(1, x))
PODIUM_CPU_BINARY(rhypot, 1 / hypot(x, y))
PODIUM_CPU_BOTH(norm3d, (double x, double y, double z), (float x, float y, float z), hypot(hypot(x, y), z))
PODIUM_CPU_BOTH(rnorm3d, (double x, double y, double z), (float x, float y, float z), 1 / hypot(hypot(x, y), z))
PODIUM_CPU_BOTH(norm4d, (double x, double y, double z, double w), (float x, float y, float z, float w),
                hypot(hypot(x, y), hypot(z, w)))
PODIUM_CPU_BOTH(rnorm4d, (double x, double y, double z, double w), (float x, float y, float z, float w),
                1 / hypot(hypot(x, y), hypot(z, w)))
PODIUM_CPU_BOTH(norm, (int n, const double *x), (int n, const float *x), podium_cpu::length(n, x))
PODIUM_CPU_BOTH(rnorm, (int n, const double *x), (int n, const float *x), 1 / podium_cpu::length(n, x))
#ifndef _GNU_SOURCE
PODIUM_CPU_UNARY(exp10, pow(10.0, double(x)))
static inline void sincos(double x, double *sine, double *cosine) { *sine = sin(x), *cosine = cos(x); }
static inline void sincosf(float x, float *sine, float *cosine) { *sine = sinf(x), *cosine = cosf(x); }
#endif
#undef PODIUM_CPU_BINARY
#undef PODIUM_CPU_UNARY
#undef PODIUM_CPU_UNARY_OF_C23
#undef PODIUM_CPU_BOTH

// As in C++, the functions of doubles take floats as well.
#define PODIUM_CPU_OF_FLOAT(name) \
  static inline float name(float x) { return name##f(x); }
PODIUM_CPU_OF_FLOAT(rsqrt)
PODIUM_CPU_OF_FLOAT(rcbrt)
PODIUM_CPU_OF_FLOAT(sinpi)
PODIUM_CPU_OF_FLOAT(cospi)
PODIUM_CPU_OF_FLOAT(exp10)
PODIUM_CPU_OF_FLOAT(erfinv)
PODIUM_CPU_OF_FLOAT(erfcinv)
PODIUM_CPU_OF_FLOAT(erfcx)
PODIUM_CPU_OF_FLOAT(normcdf)
PODIUM_CPU_OF_FLOAT(normcdfinv)
PODIUM_CPU_OF_FLOAT(cyl_bessel_i0)
PODIUM_CPU_OF_FLOAT(cyl_bessel_i1)
#undef PODIUM_CPU_OF_FLOAT

static inline void sincos(float x, float *sine, float *cosine) { sincosf(x, sine, cosine); }
static inline void sincospi(double x, double *sine, double *cosine) { *sine = sinpi(x), *cosine = cospi(x); }
static inline void sincospi(float x, float *sine, float *cosine) { *sine = sinpif(x), *cosine = cospif(x); }
static inline void sincospif(float x, float *sine, float *cosine) { *sine = sinpif(x), *cosine = cospif(x); }
static inline float fdividef(float x, float y) { return x / y; }

static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
// The C library declares functions of these names and has none.
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __tanhf tanhf
#define __sincosf sincosf
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __powf powf
static inline float __fdividef(float x, float y) { return x / y; }

#endif
