// Complex numbers as pairs, and the functions on them.
#ifndef PODIUM_CPU_CUCOMPLEX_H
#define PODIUM_CPU_CUCOMPLEX_H

#include "../podium_cpu.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define PODIUM_CPU_COMPLEX(type, number, suffix, make)                                                             \
  static inline type make(number x, number y) { return type{x, y}; }                                               \
  static inline number cuCreal##suffix(type a) { return a.x; }                                                     \
  static inline number cuCimag##suffix(type a) { return a.y; }                                                     \
  static inline type cuConj##suffix(type a) { return type{a.x, -a.y}; }                                            \
  static inline type cuCadd##suffix(type a, type b) { return type{a.x + b.x, a.y + b.y}; }                         \
  static inline type cuCsub##suffix(type a, type b) { return type{a.x - b.x, a.y - b.y}; }                         \
  static inline type cuCmul##suffix(type a, type b) { return type{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; } \
  static inline type cuCdiv##suffix(type a, type b) {                                                              \
    /* Scaled, so that the square of the divisor stays a number. */                                                \
    const number scale = 1 / (fabs##suffix(b.x) + fabs##suffix(b.y));                                              \
    const type p = {a.x * scale, a.y * scale}, q = {b.x * scale, b.y * scale};                                     \
    const number size = 1 / (q.x * q.x + q.y * q.y);                                                               \
    return type{(p.x * q.x + p.y * q.y) * size, (p.y * q.x - p.x * q.y) * size};                                   \
  }                                                                                                                \
  static inline number cuCabs##suffix(type a) { return hypot##suffix(a.x, a.y); }                                  \
  static inline type cuCfma##suffix(type a, type b, type c) {                                                      \
    return type{fma##suffix(a.x, b.x, c.x) - a.y * b.y, fma##suffix(a.x, b.y, c.y) + a.y * b.x};                   \
  }
PODIUM_CPU_COMPLEX(cuFloatComplex, float, f, make_cuFloatComplex)
PODIUM_CPU_COMPLEX(cuDoubleComplex, double, , make_cuDoubleComplex)
#undef PODIUM_CPU_COMPLEX

static inline cuComplex make_cuComplex(float x, float y) { return cuComplex{x, y}; }
static inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return cuDoubleComplex{a.x, a.y}; }
static inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return cuFloatComplex{static_cast<float>(a.x), static_cast<float>(a.y)};
}

#endif
