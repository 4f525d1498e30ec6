// Several small integers in a word of 32 bits: products that are summed, operations on each half or byte, and the steps
// of dynamic programming.
#ifndef PODIUM_CPU_SIMD_H
#define PODIUM_CPU_SIMD_H

#include "math.h"
#include "vectors.h"

namespace podium_cpu {

// The i-th of the elements of a word.
template <class Element>
static inline constexpr int element(unsigned int word, int i) {
  return static_cast<Element>(word >> 8 * static_cast<int>(sizeof(Element)) * i);
}

// A value that stops at the ends of the element's range.
template <class Element>
struct range {
  enum { is_signed = static_cast<Element>(-1) < 0, bits = 8 * sizeof(Element) - is_signed };
  enum { greatest = (1 << bits) - 1, least = is_signed ? -(1 << bits) : 0 };
};
template <class Element>
static inline constexpr int clamped(int x) {
  return x < range<Element>::least      ? static_cast<int>(range<Element>::least)
         : x > range<Element>::greatest ? static_cast<int>(range<Element>::greatest)
                                        : x;
}

template <class Element>
static inline unsigned int differences(unsigned int x, unsigned int y) {
  unsigned int sum = 0;
  for (int i = 0; i * sizeof(Element) < 4; ++i) {
    const int difference = element<Element>(x, i) - element<Element>(y, i);
    sum += static_cast<unsigned int>(difference < 0 ? -difference : difference);
  }
  return sum;
}

// The sum of products of four bytes; of two halves with two bytes from the first one on. It wraps.
template <class Element, class Sum>
static inline Sum dot4(unsigned int x, unsigned int y, Sum sum) {
  unsigned int result = static_cast<unsigned int>(sum);
  for (int i = 0; i < 4; ++i) result += static_cast<unsigned int>(element<Element>(x, i) * element<Element>(y, i));
  return static_cast<Sum>(result);
}
template <class Half, class Byte, class Sum>
static inline Sum dot2(unsigned int x, unsigned int y, int first, Sum sum) {
  unsigned int result = static_cast<unsigned int>(sum);
  for (int i = 0; i < 2; ++i) result += static_cast<unsigned int>(element<Half>(x, i) * element<Byte>(y, first + i));
  return static_cast<Sum>(result);
}

}  // namespace podium_cpu

static inline int __dp4a(int x, int y, int sum) {
  return podium_cpu::dot4<signed char>(static_cast<unsigned int>(x), static_cast<unsigned int>(y), sum);
}
static inline unsigned int __dp4a(unsigned int x, unsigned int y, unsigned int sum) {
  return podium_cpu::dot4<unsigned char>(x, y, sum);
}
static inline int __dp4a(char4 x, char4 y, int sum) {
  return __dp4a(podium_cpu::bit_copy<int>(x), podium_cpu::bit_copy<int>(y), sum);
}
static inline unsigned int __dp4a(uchar4 x, uchar4 y, unsigned int sum) {
  return __dp4a(podium_cpu::bit_copy<unsigned int>(x), podium_cpu::bit_copy<unsigned int>(y), sum);
}
#define PODIUM_CPU_DOT2(name, first)                                                                               \
  static inline int name(int x, int y, int sum) {                                                                  \
    return podium_cpu::dot2<short, signed char>(static_cast<unsigned int>(x), static_cast<unsigned int>(y), first, \
                                                sum);                                                              \
  }                                                                                                                \
  static inline unsigned int name(unsigned int x, unsigned int y, unsigned int sum) {                              \
    return podium_cpu::dot2<unsigned short, unsigned char>(x, y, first, sum);                                      \
  }                                                                                                                \
  static inline int name(short2 x, char4 y, int sum) {                                                             \
    return name(podium_cpu::bit_copy<int>(x), podium_cpu::bit_copy<int>(y), sum);                                  \
  }                                                                                                                \
  static inline unsigned int name(ushort2 x, uchar4 y, unsigned int sum) {                                         \
    return name(podium_cpu::bit_copy<unsigned int>(x), podium_cpu::bit_copy<unsigned int>(y), sum);                \
  }
PODIUM_CPU_DOT2(__dp2a_lo, 0)
PODIUM_CPU_DOT2(__dp2a_hi, 2)
#undef PODIUM_CPU_DOT2

// A function of the elements a and b of two words. What it gives is cut to the element's size.
#define PODIUM_CPU_EACH(name, small, ...)                                                    \
  static inline unsigned int name(unsigned int x, unsigned int y) {                          \
    const int bits = 8 * sizeof(small);                                                      \
    unsigned int result = 0;                                                                 \
    for (int i = 0; i * bits < 32; ++i) {                                                    \
      const int a = podium_cpu::element<small>(x, i), b = podium_cpu::element<small>(y, i);  \
      result |= (static_cast<unsigned int>(__VA_ARGS__) & (~0u >> (32 - bits))) << bits * i; \
    }                                                                                        \
    return result;                                                                           \
  }
#define PODIUM_CPU_EACH_OF_ONE(name, small, ...)                                             \
  static inline unsigned int name(unsigned int x) {                                          \
    const int bits = 8 * sizeof(small);                                                      \
    unsigned int result = 0;                                                                 \
    for (int i = 0; i * bits < 32; ++i) {                                                    \
      const int a = podium_cpu::element<small>(x, i);                                        \
      result |= (static_cast<unsigned int>(__VA_ARGS__) & (~0u >> (32 - bits))) << bits * i; \
    }                                                                                        \
    return result;                                                                           \
  }
// Comparisons: all bits of an element, or the lowest one.
#define PODIUM_CPU_COMPARE(name, count, element, sign)             \
  PODIUM_CPU_EACH(__vcmp##name##count, element, a sign b ? -1 : 0) \
  PODIUM_CPU_EACH(__vset##name##count, element, a sign b ? 1 : 0)
#define PODIUM_CPU_WORDS(count, small, natural)                                              \
  PODIUM_CPU_EACH_OF_ONE(__vabs##count, small, a < 0 ? -a : a)                               \
  PODIUM_CPU_EACH_OF_ONE(__vabsss##count, small, podium_cpu::clamped<small>(a < 0 ? -a : a)) \
  PODIUM_CPU_EACH_OF_ONE(__vneg##count, small, -a)                                           \
  PODIUM_CPU_EACH_OF_ONE(__vnegss##count, small, podium_cpu::clamped<small>(-a))             \
  PODIUM_CPU_EACH(__vadd##count, natural, a + b)                                             \
  PODIUM_CPU_EACH(__vsub##count, natural, a - b)                                             \
  PODIUM_CPU_EACH(__vaddss##count, small, podium_cpu::clamped<small>(a + b))                 \
  PODIUM_CPU_EACH(__vsubss##count, small, podium_cpu::clamped<small>(a - b))                 \
  PODIUM_CPU_EACH(__vaddus##count, natural, podium_cpu::clamped<natural>(a + b))             \
  PODIUM_CPU_EACH(__vsubus##count, natural, podium_cpu::clamped<natural>(a - b))             \
  PODIUM_CPU_EACH(__vavgs##count, small, (a + b + (a + b >= 0)) >> 1)                        \
  PODIUM_CPU_EACH(__vavgu##count, natural, (a + b + 1) >> 1)                                 \
  PODIUM_CPU_EACH(__vhaddu##count, natural, (a + b) >> 1)                                    \
  PODIUM_CPU_EACH(__vabsdiffs##count, small, a < b ? b - a : a - b)                          \
  PODIUM_CPU_EACH(__vabsdiffu##count, natural, a < b ? b - a : a - b)                        \
  PODIUM_CPU_EACH(__vmaxs##count, small, a < b ? b : a)                                      \
  PODIUM_CPU_EACH(__vmaxu##count, natural, a < b ? b : a)                                    \
  PODIUM_CPU_EACH(__vmins##count, small, b < a ? b : a)                                      \
  PODIUM_CPU_EACH(__vminu##count, natural, b < a ? b : a)                                    \
  PODIUM_CPU_COMPARE(eq, count, natural, ==)                                                 \
  PODIUM_CPU_COMPARE(ne, count, natural, !=)                                                 \
  PODIUM_CPU_COMPARE(ges, count, small, >=)                                                  \
  PODIUM_CPU_COMPARE(geu, count, natural, >=)                                                \
  PODIUM_CPU_COMPARE(gts, count, small, >)                                                   \
  PODIUM_CPU_COMPARE(gtu, count, natural, >)                                                 \
  PODIUM_CPU_COMPARE(les, count, small, <=)                                                  \
  PODIUM_CPU_COMPARE(leu, count, natural, <=)                                                \
  PODIUM_CPU_COMPARE(lts, count, small, <)                                                   \
  PODIUM_CPU_COMPARE(ltu, count, natural, <)                                                 \
  static inline unsigned int __vsads##count(unsigned int x, unsigned int y) {                \
    return podium_cpu::differences<small>(x, y);                                             \
  }                                                                                          \
  static inline unsigned int __vsadu##count(unsigned int x, unsigned int y) {                \
    return podium_cpu::differences<natural>(x, y);                                           \
  }
PODIUM_CPU_WORDS(2, short, unsigned short)
PODIUM_CPU_WORDS(4, signed char, unsigned char)
#undef PODIUM_CPU_WORDS
#undef PODIUM_CPU_COMPARE

// The steps of dynamic programming: of sums and maxima, with nothing below zero where the name says relu.
PODIUM_CPU_EACH(__vimax_s16x2_relu, short, (a < b ? b : a) < 0 ? 0 : a < b ? b : a)
PODIUM_CPU_EACH(__vimin_s16x2_relu, short, (b < a ? b : a) < 0 ? 0 : b < a ? b : a)
#undef PODIUM_CPU_EACH_OF_ONE
#undef PODIUM_CPU_EACH

static inline int __vimax_s32_relu(int a, int b) { return max(max(a, b), 0); }
static inline int __vimin_s32_relu(int a, int b) { return max(min(a, b), 0); }

#define PODIUM_CPU_STEPS(name, type, least, greatest, sum)                                           \
  static inline type __vimax3_##name(type a, type b, type c) { return greatest(greatest(a, b), c); } \
  static inline type __vimin3_##name(type a, type b, type c) { return least(least(a, b), c); }       \
  static inline type __viaddmax_##name(type a, type b, type c) { return greatest(sum(a, b), c); }    \
  static inline type __viaddmin_##name(type a, type b, type c) { return least(sum(a, b), c); }
#define PODIUM_CPU_STEPS_ABOVE_ZERO(name, type, greatest)                                                             \
  static inline type __vimax3_##name##_relu(type a, type b, type c) { return greatest(__vimax3_##name(a, b, c), 0); } \
  static inline type __vimin3_##name##_relu(type a, type b, type c) { return greatest(__vimin3_##name(a, b, c), 0); } \
  static inline type __viaddmax_##name##_relu(type a, type b, type c) {                                               \
    return greatest(__viaddmax_##name(a, b, c), 0);                                                                   \
  }                                                                                                                   \
  static inline type __viaddmin_##name##_relu(type a, type b, type c) {                                               \
    return greatest(__viaddmin_##name(a, b, c), 0);                                                                   \
  }
// The greater or lesser of two, and whether it is the first.
#define PODIUM_CPU_CHOICES(name, type)                                                                  \
  static inline type __vibmax_##name(type a, type b, bool *first) { return (*first = a >= b) ? a : b; } \
  static inline type __vibmin_##name(type a, type b, bool *first) { return (*first = a <= b) ? a : b; }
#define PODIUM_CPU_CHOICES_OF_TWO(name, small, greatest, least)                                       \
  static inline unsigned int __vibmax_##name(unsigned int a, unsigned int b, bool *high, bool *low) { \
    *high = podium_cpu::element<small>(a, 1) >= podium_cpu::element<small>(b, 1);                     \
    *low = podium_cpu::element<small>(a, 0) >= podium_cpu::element<small>(b, 0);                      \
    return greatest(a, b);                                                                            \
  }                                                                                                   \
  static inline unsigned int __vibmin_##name(unsigned int a, unsigned int b, bool *high, bool *low) { \
    *high = podium_cpu::element<small>(a, 1) <= podium_cpu::element<small>(b, 1);                     \
    *low = podium_cpu::element<small>(a, 0) <= podium_cpu::element<small>(b, 0);                      \
    return least(a, b);                                                                               \
  }
namespace podium_cpu {
static inline int sum(int a, int b) {
  return static_cast<int>(static_cast<unsigned int>(a) + static_cast<unsigned int>(b));
}
static inline unsigned int sum(unsigned int a, unsigned int b) { return a + b; }
}  // namespace podium_cpu
PODIUM_CPU_STEPS(s32, int, min, max, podium_cpu::sum)
PODIUM_CPU_STEPS(u32, unsigned int, min, max, podium_cpu::sum)
PODIUM_CPU_STEPS(s16x2, unsigned int, __vmins2, __vmaxs2, __vadd2)
PODIUM_CPU_STEPS(u16x2, unsigned int, __vminu2, __vmaxu2, __vadd2)
PODIUM_CPU_STEPS_ABOVE_ZERO(s32, int, max)
PODIUM_CPU_STEPS_ABOVE_ZERO(s16x2, unsigned int, __vmaxs2)
PODIUM_CPU_CHOICES(s32, int)
PODIUM_CPU_CHOICES(u32, unsigned int)
PODIUM_CPU_CHOICES_OF_TWO(s16x2, short, __vmaxs2, __vmins2)
PODIUM_CPU_CHOICES_OF_TWO(u16x2, unsigned short, __vmaxu2, __vminu2)
#undef PODIUM_CPU_CHOICES_OF_TWO
#undef PODIUM_CPU_CHOICES
#undef PODIUM_CPU_STEPS_ABOVE_ZERO
#undef PODIUM_CPU_STEPS

#endif
