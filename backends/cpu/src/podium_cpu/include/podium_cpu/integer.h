// Integer intrinsics, casts of bits, loads and stores with cache hints, and the clock.
#ifndef PODIUM_CPU_INTEGER_H
#define PODIUM_CPU_INTEGER_H

#include "atomic.h"
#include "vectors.h"

static inline int __popc(unsigned int x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned int>(x)) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }

static inline unsigned int __brev(unsigned int x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
static inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned int>(x))) << 32 |
         __brev(static_cast<unsigned int>(x >> 32));
}

// Each of the four low digits of the selector picks a byte of y:x; its top bit asks for copies of that byte's sign.
static inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
  const unsigned long long both = static_cast<unsigned long long>(y) << 32 | x;
  unsigned int result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned int digit = selector >> 4 * i & 15;
    unsigned int byte = static_cast<unsigned int>(both >> 8 * (digit & 7)) & 255;
    if (digit & 8)
      byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}

static inline int __mulhi(int x, int y) { return static_cast<int>(static_cast<long long>(x) * y >> 32); }
static inline unsigned int __umulhi(unsigned int x, unsigned int y) {
  return static_cast<unsigned int>(static_cast<unsigned long long>(x) * y >> 32);
}
static inline long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
static inline int __mul24(int x, int y) {
  return static_cast<int>(static_cast<unsigned int>(static_cast<int>(static_cast<unsigned int>(x) << 8) >> 8) *
                          static_cast<unsigned int>(static_cast<int>(static_cast<unsigned int>(y) << 8) >> 8));
}
static inline unsigned int __umul24(unsigned int x, unsigned int y) { return (x & 0xffffffu) * (y & 0xffffffu); }
static inline unsigned int __sad(int x, int y, unsigned int z) {
  return z + (x > y ? static_cast<unsigned int>(x) - static_cast<unsigned int>(y)
                    : static_cast<unsigned int>(y) - static_cast<unsigned int>(x));
}
static inline unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) { return z + (x > y ? x - y : y - x); }
static inline int __hadd(int x, int y) { return static_cast<int>((static_cast<long long>(x) + y) >> 1); }
static inline int __rhadd(int x, int y) { return static_cast<int>((static_cast<long long>(x) + y + 1) >> 1); }
static inline unsigned int __uhadd(unsigned int x, unsigned int y) { return (x & y) + ((x ^ y) >> 1); }
static inline unsigned int __urhadd(unsigned int x, unsigned int y) { return (x | y) - ((x ^ y) >> 1); }

static inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
  return static_cast<unsigned int>((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31) >> 32);
}
static inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
  return static_cast<unsigned int>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}
static inline unsigned int __funnelshift_lc(unsigned int low, unsigned int high, unsigned int shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
static inline unsigned int __funnelshift_rc(unsigned int low, unsigned int high, unsigned int shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

// The place of a bit that is set: the offset-th from the base on, upwards or downwards; all ones if there is none.
static inline unsigned int __fns(unsigned int mask, unsigned int base, int offset) {
  int left = offset < 0 ? -offset : offset, place = static_cast<int>(base);
  for (; place >= 0 && place < 32; place += offset < 0 ? -1 : 1)
    if ((mask >> place & 1) && (left == 0 || --left == 0))
      return static_cast<unsigned int>(place);
    else if (offset == 0)
      break;
  return ~0u;
}

static inline int __float_as_int(float x) { return podium_cpu::bit_copy<int>(x); }
static inline unsigned int __float_as_uint(float x) { return podium_cpu::bit_copy<unsigned int>(x); }
static inline float __int_as_float(int x) { return podium_cpu::bit_copy<float>(x); }
static inline float __uint_as_float(unsigned int x) { return podium_cpu::bit_copy<float>(x); }
static inline long long __double_as_longlong(double x) { return podium_cpu::bit_copy<long long>(x); }
static inline double __longlong_as_double(long long x) { return podium_cpu::bit_copy<double>(x); }
static inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
static inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
static inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(static_cast<unsigned long long>(static_cast<unsigned int>(high))
                                                         << 32 | static_cast<unsigned int>(low)));
}

// The hints say which caches of a GPU to use.
#define PODIUM_CPU_LOAD(name)              \
  template <class T>                       \
  static inline T name(const T *address) { \
    return *address;                       \
  }
PODIUM_CPU_LOAD(__ldg)
PODIUM_CPU_LOAD(__ldcg)
PODIUM_CPU_LOAD(__ldca)
PODIUM_CPU_LOAD(__ldcs)
PODIUM_CPU_LOAD(__ldlu)
PODIUM_CPU_LOAD(__ldcv)
#undef PODIUM_CPU_LOAD

#define PODIUM_CPU_STORE(name)                                                         \
  template <class T>                                                                   \
  static inline void name(T *address, typename podium_cpu::same<T>::type const value) { \
    *address = value;                                                                  \
  }
PODIUM_CPU_STORE(__stwb)
PODIUM_CPU_STORE(__stcg)
PODIUM_CPU_STORE(__stcs)
PODIUM_CPU_STORE(__stwt)
#undef PODIUM_CPU_STORE

static inline long long clock64() {
#if defined(__x86_64__) || defined(__i386__)
  return static_cast<long long>(__builtin_ia32_rdtsc());
#elif defined(__aarch64__)
  long long ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}

#endif
