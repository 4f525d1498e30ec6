// The little of the system that stands behind the dialect. Each header costs every compilation, and each name in one is
// a name that no kernel can have: so there are few, and functions of the system are declared under names of their own.
#ifndef PODIUM_CPU_STANDARD_H
#define PODIUM_CPU_STANDARD_H

#if defined(__has_include)
#if __has_include(<bits/c++config.h>)
#include <bits/c++config.h>
// libstdc++ adds Bessel functions and the like to <math.h> from C++17 on, which takes more time to compile than all
// the rest of this backend.
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#endif
#endif

#if __cplusplus > 201703L && defined(_GLIBCXX_RELEASE)
// From C++20 on it also has a lerp outside of std, as many a kernel has one of its own.
#define lerp podium_cpu_lerp
#include <math.h>
#undef lerp
namespace std {
template <class A, class B, class T>
constexpr auto lerp(A a, B b, T t) noexcept -> decltype(podium_cpu_lerp(a, b, t)) {
  return podium_cpu_lerp(a, b, t);
}
}  // namespace std
#else
#include <math.h>
#endif
#include <stddef.h>
#include <stdint.h>
#ifndef __linux__
#include <time.h>
#endif

#ifdef __THROW
#define PODIUM_CPU_NOTHROW __THROW
#else
#define PODIUM_CPU_NOTHROW
#endif

// What the dialect itself has of the C library.
extern "C" {
int printf(const char *, ...);
void *malloc(size_t) PODIUM_CPU_NOTHROW;
void free(void *) PODIUM_CPU_NOTHROW;
void *memcpy(void *, const void *, size_t) PODIUM_CPU_NOTHROW;
void *memmove(void *, const void *, size_t) PODIUM_CPU_NOTHROW;
void *memset(void *, int, size_t) PODIUM_CPU_NOTHROW;
int memcmp(const void *, const void *, size_t) PODIUM_CPU_NOTHROW;
#ifdef __linux__
typedef long clock_t;
clock_t clock() PODIUM_CPU_NOTHROW;
#endif
}

#ifdef __APPLE__
#define PODIUM_CPU_SYMBOL(name) __asm__("_" name)
#else
#define PODIUM_CPU_SYMBOL(name) __asm__(name)
#endif

namespace podium_cpu {
namespace os {

int print(int file, const char *format, ...) PODIUM_CPU_SYMBOL("dprintf");
int format(char *text, size_t bytes, const char *format, ...) PODIUM_CPU_SYMBOL("snprintf");

}  // namespace os
}  // namespace podium_cpu

#undef PODIUM_CPU_SYMBOL

#endif
