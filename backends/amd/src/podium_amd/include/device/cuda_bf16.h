// __nv_bfloat16, the first half of a float: hipRTC has no type by this name. Arithmetic is that of float, rounded.
#pragma once

struct __nv_bfloat16 {
  unsigned short bits;

  __nv_bfloat16() = default;
  __device__ __nv_bfloat16(float value) {
    const unsigned int all = __builtin_bit_cast(unsigned int, value);
    if ((all & 0x7fffffffu) > 0x7f800000u)
      bits = static_cast<unsigned short>(all >> 16 | 0x40u);
    else
      bits = static_cast<unsigned short>((all + 0x7fffu + (all >> 16 & 1u)) >> 16);
  }
  __device__ __nv_bfloat16(double value) : __nv_bfloat16(static_cast<float>(value)) {}
  __device__ __nv_bfloat16(int value) : __nv_bfloat16(static_cast<float>(value)) {}
  __device__ operator float() const { return __builtin_bit_cast(float, static_cast<unsigned int>(bits) << 16); }

  __device__ __nv_bfloat16 &operator+=(__nv_bfloat16 other) { return *this = float(*this) + float(other); }
  __device__ __nv_bfloat16 &operator-=(__nv_bfloat16 other) { return *this = float(*this) - float(other); }
  __device__ __nv_bfloat16 &operator*=(__nv_bfloat16 other) { return *this = float(*this) * float(other); }
  __device__ __nv_bfloat16 &operator/=(__nv_bfloat16 other) { return *this = float(*this) / float(other); }
};
PODIUM_AMD_DEVICE __nv_bfloat16 operator+(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) + float(b); }
PODIUM_AMD_DEVICE __nv_bfloat16 operator-(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) - float(b); }
PODIUM_AMD_DEVICE __nv_bfloat16 operator*(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) * float(b); }
PODIUM_AMD_DEVICE __nv_bfloat16 operator/(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) / float(b); }
PODIUM_AMD_DEVICE __nv_bfloat16 operator-(__nv_bfloat16 a) { return -float(a); }
PODIUM_AMD_DEVICE bool operator==(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) == float(b); }
PODIUM_AMD_DEVICE bool operator!=(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) != float(b); }
PODIUM_AMD_DEVICE bool operator<(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) < float(b); }
PODIUM_AMD_DEVICE bool operator>(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) > float(b); }
PODIUM_AMD_DEVICE bool operator<=(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) <= float(b); }
PODIUM_AMD_DEVICE bool operator>=(__nv_bfloat16 a, __nv_bfloat16 b) { return float(a) >= float(b); }

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

PODIUM_AMD_DEVICE __nv_bfloat16 __float2bfloat16(float value) { return value; }
PODIUM_AMD_DEVICE __nv_bfloat16 __float2bfloat16_rn(float value) { return value; }
PODIUM_AMD_DEVICE __nv_bfloat16 __double2bfloat16(double value) { return value; }
PODIUM_AMD_DEVICE float __bfloat162float(__nv_bfloat16 value) { return value; }
PODIUM_AMD_DEVICE __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  __nv_bfloat16 value;
  value.bits = bits;
  return value;
}
PODIUM_AMD_DEVICE unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
PODIUM_AMD_DEVICE __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
PODIUM_AMD_DEVICE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
PODIUM_AMD_DEVICE float __low2float(__nv_bfloat162 pair) { return pair.x; }
PODIUM_AMD_DEVICE float __high2float(__nv_bfloat162 pair) { return pair.y; }
PODIUM_AMD_DEVICE float2 __bfloat1622float2(__nv_bfloat162 pair) { return make_float2(pair.x, pair.y); }
PODIUM_AMD_DEVICE __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b) { return a + b; }
PODIUM_AMD_DEVICE __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b) { return a - b; }
PODIUM_AMD_DEVICE __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b) { return a * b; }
PODIUM_AMD_DEVICE __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  return fmaf(float(a), float(b), float(c));
}
