// The other 16-bit format: the first half of a single-precision number.
#ifndef PODIUM_CPU_CUDA_BF16_H
#define PODIUM_CPU_CUDA_BF16_H

#include "../podium_cpu/short_float.h"

namespace podium_cpu {

static inline unsigned short encode_bfloat16(float x) {
  const unsigned int bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<unsigned short>(bits >> 16 | 0x40u);
  return static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
static inline float decode_bfloat16(unsigned short bits) {
  return __uint_as_float(static_cast<unsigned int>(bits) << 16);
}

}  // namespace podium_cpu

PODIUM_CPU_SHORT_CLASS(__nv_bfloat16, podium_cpu::encode_bfloat16, podium_cpu::decode_bfloat16)
PODIUM_CPU_SHORT_FUNCTIONS(__nv_bfloat16)
PODIUM_CPU_SHORT_CONVERSIONS(__nv_bfloat16, bfloat16, bfloat162)

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

static inline nv_bfloat162 __halves2bfloat162(const nv_bfloat16 &x, const nv_bfloat16 &y) {
  return nv_bfloat162(x, y);
}
static inline nv_bfloat162 make_bfloat162(const nv_bfloat16 &x, const nv_bfloat16 &y) { return nv_bfloat162(x, y); }

#define CUDART_INF_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7f80u))
#define CUDART_NAN_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7fffu))
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0001u))
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7f7fu))
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x8000u))
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0000u))
#define CUDART_ONE_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x3f80u))

#endif
