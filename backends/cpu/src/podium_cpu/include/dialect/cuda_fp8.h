// Numbers of eight bits: conversions to and from them. To compute with one, it is converted.
#ifndef PODIUM_CPU_CUDA_FP8_H
#define PODIUM_CPU_CUDA_FP8_H

#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;

enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

namespace podium_cpu {

// Rounded to nearest even. The format with four bits of exponent has no infinities, and one not-a-number of each sign.
static inline unsigned char encode_fp8(double x, __nv_saturation_t saturation, __nv_fp8_interpretation_t format) {
  const int bits = format == __NV_E4M3 ? 3 : 2, least = format == __NV_E4M3 ? -6 : -14;
  const double greatest = format == __NV_E4M3 ? 448 : 57344, size = fabs(x);
  const unsigned char sign = __builtin_signbit(x) ? 0x80 : 0, greatest_code = format == __NV_E4M3 ? 0x7e : 0x7b;
  if (x != x) return 0x7f;
  int exponent = least;
  if (size > 0 && size <= 2 * greatest) exponent = max(least, ilogb(size));
  const double units = size <= 2 * greatest ? rint(ldexp(size, bits - exponent)) : 0;
  if (size > 2 * greatest || ldexp(units, exponent - bits) > greatest) {
    if (saturation == __NV_SATFINITE) return sign | greatest_code;
    return format == __NV_E4M3 ? sign | 0x7f : sign | 0x7c;
  }
  // Above the smallest exponent the first bit is not stored; a carry out of the last ones is right by itself.
  return static_cast<unsigned char>(sign | ((exponent - least) * (1 << bits) + static_cast<int>(units)));
}

static inline float decode_fp8(unsigned char code, __nv_fp8_interpretation_t format) {
  const int bits = format == __NV_E4M3 ? 3 : 2, least = format == __NV_E4M3 ? -6 : -14, rest = code & 0x7f;
  if (format == __NV_E4M3 ? rest == 0x7f : rest > 0x7c) return __uint_as_float(0x7fc00000u);
  const int exponent = rest >> bits, fraction = rest & ((1 << bits) - 1);
  float size = exponent ? ldexpf(static_cast<float>(fraction + (1 << bits)), exponent - 1 + least - bits)
                        : ldexpf(static_cast<float>(fraction), least - bits);
  if (format == __NV_E5M2 && rest == 0x7c) size = __uint_as_float(0x7f800000u);
  return code & 0x80 ? -size : size;
}

}  // namespace podium_cpu

static inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturation,
                                                        __nv_fp8_interpretation_t format) {
  return podium_cpu::encode_fp8(x, saturation, format);
}
static inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturation,
                                                       __nv_fp8_interpretation_t format) {
  return podium_cpu::encode_fp8(x, saturation, format);
}
static inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 v, __nv_saturation_t saturation,
                                                             __nv_fp8_interpretation_t format) {
  return static_cast<unsigned short>(podium_cpu::encode_fp8(v.x, saturation, format) |
                                     podium_cpu::encode_fp8(v.y, saturation, format) << 8);
}
static inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 v, __nv_saturation_t saturation,
                                                            __nv_fp8_interpretation_t format) {
  return __nv_cvt_double2_to_fp8x2(double2{v.x, v.y}, saturation, format);
}
static inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturation,
                                                         __nv_fp8_interpretation_t format) {
  return podium_cpu::encode_fp8(float(__half(x)), saturation, format);
}
static inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw v, __nv_saturation_t saturation,
                                                              __nv_fp8_interpretation_t format) {
  const __half2 pair(v);
  return __nv_cvt_float2_to_fp8x2(__half22float2(pair), saturation, format);
}
static inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t saturation,
                                                             __nv_fp8_interpretation_t format) {
  return podium_cpu::encode_fp8(float(__nv_bfloat16(x)), saturation, format);
}
static inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t format) {
  return __half(podium_cpu::decode_fp8(x, format));
}
static inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t format) {
  return __half2(__half(podium_cpu::decode_fp8(x & 0xff, format)), __half(podium_cpu::decode_fp8(x >> 8, format)));
}

#define PODIUM_CPU_FP8(name, format)                                                                                  \
  struct __nv_fp8_##name {                                                                                            \
    __nv_fp8_storage_t __x;                                                                                           \
    __nv_fp8_##name() = default;                                                                                      \
    template <class T>                                                                                                \
    explicit __nv_fp8_##name(const T &x)                                                                              \
        : __x(podium_cpu::encode_fp8(podium_cpu::number_of(x), __NV_SATFINITE, format)) {}                            \
    explicit operator float() const { return podium_cpu::decode_fp8(__x, format); }                                   \
    explicit operator double() const { return podium_cpu::decode_fp8(__x, format); }                                  \
    explicit operator __half() const { return __half(podium_cpu::decode_fp8(__x, format)); }                          \
    explicit operator __nv_bfloat16() const { return __nv_bfloat16(podium_cpu::decode_fp8(__x, format)); }            \
    explicit operator bool() const { return (__x & 0x7f) != 0; }                                                      \
    explicit operator int() const { return __float2int_rz(podium_cpu::decode_fp8(__x, format)); }                     \
    explicit operator unsigned int() const { return __float2uint_rz(podium_cpu::decode_fp8(__x, format)); }           \
  };                                                                                                                  \
  struct __attribute__((aligned(2))) __nv_fp8x2_##name {                                                              \
    __nv_fp8x2_storage_t __x;                                                                                         \
    __nv_fp8x2_##name() = default;                                                                                    \
    explicit __nv_fp8x2_##name(float2 v) : __x(__nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, format)) {}                \
    explicit __nv_fp8x2_##name(double2 v) : __x(__nv_cvt_double2_to_fp8x2(v, __NV_SATFINITE, format)) {}              \
    explicit __nv_fp8x2_##name(__half2 v) : __x(__nv_cvt_halfraw2_to_fp8x2(v, __NV_SATFINITE, format)) {}             \
    explicit operator float2() const {                                                                                \
      return float2{podium_cpu::decode_fp8(__x & 0xff, format), podium_cpu::decode_fp8(__x >> 8, format)};            \
    }                                                                                                                 \
    explicit operator __half2() const { return __half2(__nv_cvt_fp8x2_to_halfraw2(__x, format)); }                    \
  };                                                                                                                  \
  struct __attribute__((aligned(4))) __nv_fp8x4_##name {                                                              \
    __nv_fp8x4_storage_t __x;                                                                                         \
    __nv_fp8x4_##name() = default;                                                                                    \
    explicit __nv_fp8x4_##name(float4 v)                                                                              \
        : __x(__nv_cvt_float2_to_fp8x2(float2{v.x, v.y}, __NV_SATFINITE, format) |                                    \
              static_cast<unsigned int>(__nv_cvt_float2_to_fp8x2(float2{v.z, v.w}, __NV_SATFINITE, format)) << 16) {} \
    explicit operator float4() const {                                                                                \
      return float4{podium_cpu::decode_fp8(__x & 0xff, format), podium_cpu::decode_fp8(__x >> 8 & 0xff, format),      \
                    podium_cpu::decode_fp8(__x >> 16 & 0xff, format), podium_cpu::decode_fp8(__x >> 24, format)};     \
    }                                                                                                                 \
  };

namespace podium_cpu {
static inline double number_of(const __half &x) { return float(x); }
static inline double number_of(const __nv_bfloat16 &x) { return float(x); }
template <class T>
static inline double number_of(const T &x) {
  return static_cast<double>(x);
}
}  // namespace podium_cpu

PODIUM_CPU_FP8(e4m3, __NV_E4M3)
PODIUM_CPU_FP8(e5m2, __NV_E5M2)
#undef PODIUM_CPU_FP8

#endif
