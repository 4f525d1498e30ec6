// Half precision: 5 bits of exponent, 10 of fraction.
#ifndef PODIUM_CPU_CUDA_FP16_H
#define PODIUM_CPU_CUDA_FP16_H

#include "../podium_cpu/short_float.h"

namespace podium_cpu {

#if defined(__aarch64__)
#define PODIUM_CPU_HALF __fp16
#elif defined(__F16C__) && defined(__clang__) && __clang_major__ >= 15
#define PODIUM_CPU_HALF _Float16
#elif defined(__F16C__) && !defined(__clang__) && __GNUC__ >= 12
#define PODIUM_CPU_HALF _Float16
#endif

#ifdef PODIUM_CPU_HALF
// The compiler has the type, and the processor its conversions.
static inline unsigned short encode_half(float x) {
  return bit_copy<unsigned short>(static_cast<PODIUM_CPU_HALF>(x));
}
static inline float decode_half(unsigned short bits) { return static_cast<float>(bit_copy<PODIUM_CPU_HALF>(bits)); }
#undef PODIUM_CPU_HALF
#else
static inline unsigned short encode_half(float x) {
  const unsigned int bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u)
    return static_cast<unsigned short>(sign | 0x7e00u | (size >> 13 & 0x3ffu));
  if (size >= 0x477ff000u)  // 65520 and more round to infinity
    return static_cast<unsigned short>(sign | 0x7c00u);
  if (size < 0x38800000u) {
    // Below 2**-14 the last bit is worth 2**-24. That is also the last bit of a number in [1/2, 1).
    const float shifted = __uint_as_float(size) + 0.5f;
    return static_cast<unsigned short>(sign | (__float_as_uint(shifted) - 0x3f000000u));
  }
  const unsigned int odd = size >> 13 & 1;
  return static_cast<unsigned short>(sign | ((size - 0x38000000u + 0xfffu + odd) >> 13));
}
static inline float decode_half(unsigned short bits) {
  const unsigned int sign = static_cast<unsigned int>(bits & 0x8000u) << 16, size = bits & 0x7fffu;
  if (size >= 0x7c00u)
    return __uint_as_float(sign | 0x7f800000u | size << 13);
  if (size < 0x400u)
    return copysignf(static_cast<float>(size) * 5.9604644775390625e-8f, __uint_as_float(sign));
  return __uint_as_float(sign | ((size << 13) + 0x38000000u));
}
#endif

}  // namespace podium_cpu

PODIUM_CPU_SHORT_CLASS(__half, podium_cpu::encode_half, podium_cpu::decode_half)
PODIUM_CPU_SHORT_FUNCTIONS(__half)
PODIUM_CPU_SHORT_CONVERSIONS(__half, half, half2)

typedef __half half;
typedef __half2 half2;

static inline half2 __halves2half2(const half &x, const half &y) { return half2(x, y); }
static inline half2 make_half2(const half &x, const half &y) { return half2(x, y); }

#define CUDART_INF_FP16 __ushort_as_half(static_cast<unsigned short>(0x7c00u))
#define CUDART_NAN_FP16 __ushort_as_half(static_cast<unsigned short>(0x7fffu))
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(static_cast<unsigned short>(0x0001u))
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(static_cast<unsigned short>(0x7bffu))
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x8000u))
#define CUDART_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x0000u))
#define CUDART_ONE_FP16 __ushort_as_half(static_cast<unsigned short>(0x3c00u))

#endif
