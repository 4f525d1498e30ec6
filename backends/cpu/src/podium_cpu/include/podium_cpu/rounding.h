// Arithmetic with the rounding that its name says, and conversions between numbers of different types.
#ifndef PODIUM_CPU_ROUNDING_H
#define PODIUM_CPU_ROUNDING_H

#include "standard.h"

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <fenv.h>
#endif

namespace podium_cpu {

// Values that the compiler cannot follow: it neither merges them with the next operation nor moves that elsewhere.
static inline __attribute__((always_inline)) float opaque(float x) {
#if defined(__x86_64__)
  __asm__ volatile("" : "+x"(x));
#elif defined(__aarch64__)
  __asm__ volatile("" : "+w"(x));
#else
  __asm__ volatile("" : "+m"(x));
#endif
  return x;
}
static inline __attribute__((always_inline)) double opaque(double x) {
#if defined(__x86_64__)
  __asm__ volatile("" : "+x"(x));
#elif defined(__aarch64__)
  __asm__ volatile("" : "+w"(x));
#else
  __asm__ volatile("" : "+m"(x));
#endif
  return x;
}
template <class T>
static inline __attribute__((always_inline)) T opaque(T x) {
  __asm__ volatile("" : "+r"(x));
  return x;
}

// A rounded result that is not merged into a fused operation with the next one. It may still be vectorised.
template <class T>
static inline __attribute__((always_inline)) T rounded(T x) {
#if defined(__x86_64__)
  __asm__("" : "+x"(x));
#elif defined(__aarch64__)
  __asm__("" : "+w"(x));
#else
  __asm__("" : "+m"(x));
#endif
  return x;
}

// While one exists, the processor rounds another way.
struct rounding {
#if defined(__x86_64__)
  enum { down = 0x2000, up = 0x4000, zero = 0x6000 };
  unsigned int before;
  __attribute__((always_inline)) rounding(unsigned int mode) {
    __asm__ volatile("stmxcsr %0" : "=m"(before));
    const unsigned int now = (before & ~0x6000u) | mode;
    __asm__ volatile("ldmxcsr %0" : : "m"(now));
  }
  __attribute__((always_inline)) ~rounding() { __asm__ volatile("ldmxcsr %0" : : "m"(before)); }
#elif defined(__aarch64__)
  enum { up = 1 << 22, down = 2 << 22, zero = 3 << 22 };
  unsigned long long before;
  __attribute__((always_inline)) rounding(unsigned long long mode) {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"((before & ~(3ull << 22)) | mode));
  }
  __attribute__((always_inline)) ~rounding() { __asm__ volatile("msr fpcr, %0" : : "r"(before)); }
#else
  enum { down = FE_DOWNWARD, up = FE_UPWARD, zero = FE_TOWARDZERO };
  int before;
  rounding(int mode) : before(fegetround()) { fesetround(mode); }
  ~rounding() { fesetround(before); }
#endif
};

// Conversions that stop at the ends of the range; what becomes of not-a-number is 0, or the sign bit alone where one of
// the types has 64 bits, as on a GPU.
template <class To, class From>
static inline To saturated(From x, From low, From past_high, To least, To greatest) {
  const To nan = sizeof(From) == 8 || sizeof(To) == 8 ? To((sizeof(To) == 8 ? 1ull << 63 : 1ull << 31)) : To(0);
  return x != x ? nan : x < low ? least : x >= past_high ? greatest : To(x);
}

}  // namespace podium_cpu

#define PODIUM_CPU_NEAREST(letter, type, root)                                                 \
  static inline type __##letter##add_rn(type x, type y) { return podium_cpu::rounded(x + y); } \
  static inline type __##letter##sub_rn(type x, type y) { return podium_cpu::rounded(x - y); } \
  static inline type __##letter##mul_rn(type x, type y) { return podium_cpu::rounded(x * y); } \
  static inline type __##letter##div_rn(type x, type y) { return podium_cpu::rounded(x / y); } \
  static inline type __##letter##rcp_rn(type x) { return podium_cpu::rounded(1 / x); }         \
  static inline type __##letter##sqrt_rn(type x) { return root(x); }
PODIUM_CPU_NEAREST(f, float, __builtin_sqrtf)
PODIUM_CPU_NEAREST(d, double, __builtin_sqrt)
#undef PODIUM_CPU_NEAREST
static inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline float __fmaf_ieee_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
static inline float __frsqrt_rn(float x) { return static_cast<float>(1 / __builtin_sqrt(static_cast<double>(x))); }
static inline float __double2float_rn(double x) { return static_cast<float>(x); }
static inline float __int2float_rn(int x) { return static_cast<float>(x); }
static inline float __uint2float_rn(unsigned int x) { return static_cast<float>(x); }
static inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
static inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
static inline double __int2double_rn(int x) { return x; }
static inline double __uint2double_rn(unsigned int x) { return x; }
static inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
static inline double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }

// What is computed from the parameters, each of them opaque, in another mode of rounding.
#define PODIUM_CPU_UNARY(name, type, from, mode, ...)             \
  static inline type name(from number) {                          \
    const podium_cpu::rounding other(podium_cpu::rounding::mode); \
    const from x = podium_cpu::opaque(number);                    \
    return podium_cpu::opaque(static_cast<type>(__VA_ARGS__));    \
  }
#define PODIUM_CPU_BINARY(name, type, mode, sign)                                \
  static inline type name(type x, type y) {                                      \
    const podium_cpu::rounding other(podium_cpu::rounding::mode);                \
    return podium_cpu::opaque(podium_cpu::opaque(x) sign podium_cpu::opaque(y)); \
  }
#define PODIUM_CPU_FUSED(name, type, mode, fused)                                                          \
  static inline type name(type x, type y, type z) {                                                        \
    const podium_cpu::rounding other(podium_cpu::rounding::mode);                                          \
    return podium_cpu::opaque(fused(podium_cpu::opaque(x), podium_cpu::opaque(y), podium_cpu::opaque(z))); \
  }
#define PODIUM_CPU_DIRECTED(suffix, mode)                                     \
  PODIUM_CPU_BINARY(__fadd_##suffix, float, mode, +)                          \
  PODIUM_CPU_BINARY(__fsub_##suffix, float, mode, -)                          \
  PODIUM_CPU_BINARY(__fmul_##suffix, float, mode, *)                          \
  PODIUM_CPU_BINARY(__fdiv_##suffix, float, mode, /)                          \
  PODIUM_CPU_BINARY(__dadd_##suffix, double, mode, +)                         \
  PODIUM_CPU_BINARY(__dsub_##suffix, double, mode, -)                         \
  PODIUM_CPU_BINARY(__dmul_##suffix, double, mode, *)                         \
  PODIUM_CPU_BINARY(__ddiv_##suffix, double, mode, /)                         \
  PODIUM_CPU_UNARY(__frcp_##suffix, float, float, mode, 1 / x)                \
  PODIUM_CPU_UNARY(__drcp_##suffix, double, double, mode, 1 / x)              \
  PODIUM_CPU_UNARY(__fsqrt_##suffix, float, float, mode, __builtin_sqrtf(x))  \
  PODIUM_CPU_UNARY(__dsqrt_##suffix, double, double, mode, __builtin_sqrt(x)) \
  PODIUM_CPU_FUSED(__fmaf_##suffix, float, mode, __builtin_fmaf)              \
  PODIUM_CPU_FUSED(__fmaf_ieee_##suffix, float, mode, __builtin_fmaf)         \
  PODIUM_CPU_FUSED(__fma_##suffix, double, mode, __builtin_fma)               \
  PODIUM_CPU_UNARY(__double2float_##suffix, float, double, mode, x)           \
  PODIUM_CPU_UNARY(__int2float_##suffix, float, int, mode, x)                 \
  PODIUM_CPU_UNARY(__uint2float_##suffix, float, unsigned int, mode, x)       \
  PODIUM_CPU_UNARY(__ll2float_##suffix, float, long long, mode, x)            \
  PODIUM_CPU_UNARY(__ull2float_##suffix, float, unsigned long long, mode, x)  \
  PODIUM_CPU_UNARY(__ll2double_##suffix, double, long long, mode, x)          \
  PODIUM_CPU_UNARY(__ull2double_##suffix, double, unsigned long long, mode, x)
PODIUM_CPU_DIRECTED(rd, down)
PODIUM_CPU_DIRECTED(ru, up)
PODIUM_CPU_DIRECTED(rz, zero)
#undef PODIUM_CPU_DIRECTED
#undef PODIUM_CPU_FUSED
#undef PODIUM_CPU_BINARY
#undef PODIUM_CPU_UNARY

#define PODIUM_CPU_TO_INTEGER(name, from, suffix, to, low, past_high, least, greatest)                   \
  static inline to name##_rn(from x) {                                                                   \
    return podium_cpu::saturated<to, from>(__builtin_rint##suffix(x), low, past_high, least, greatest);  \
  }                                                                                                      \
  static inline to name##_rz(from x) {                                                                   \
    return podium_cpu::saturated<to, from>(__builtin_trunc##suffix(x), low, past_high, least, greatest); \
  }                                                                                                      \
  static inline to name##_ru(from x) {                                                                   \
    return podium_cpu::saturated<to, from>(__builtin_ceil##suffix(x), low, past_high, least, greatest);  \
  }                                                                                                      \
  static inline to name##_rd(from x) {                                                                   \
    return podium_cpu::saturated<to, from>(__builtin_floor##suffix(x), low, past_high, least, greatest); \
  }
#define PODIUM_CPU_TO_INTEGERS(name, from, suffix)                                                                \
  PODIUM_CPU_TO_INTEGER(name##int, from, suffix, int, -2147483648.0f, 2147483648.0f, -2147483647 - 1, 2147483647) \
  PODIUM_CPU_TO_INTEGER(name##uint, from, suffix, unsigned int, 0, 4294967296.0f, 0u, ~0u)                        \
  PODIUM_CPU_TO_INTEGER(name##ll, from, suffix, long long, -9223372036854775808.0f, 9223372036854775808.0f,       \
                        -9223372036854775807ll - 1, 9223372036854775807ll)                                        \
  PODIUM_CPU_TO_INTEGER(name##ull, from, suffix, unsigned long long, 0, 18446744073709551616.0f, 0ull, ~0ull)
PODIUM_CPU_TO_INTEGERS(__float2, float, f)
PODIUM_CPU_TO_INTEGERS(__double2, double, )
#undef PODIUM_CPU_TO_INTEGERS
#undef PODIUM_CPU_TO_INTEGER

#endif
