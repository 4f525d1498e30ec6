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

#include <math.h>
#include <stddef.h>
#include <stdint.h>

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
}

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

namespace podium_cpu {
namespace os {

typedef unsigned int thread_key;

void *map(void *, size_t, int, int, int, long) __asm__("mmap");
int unmap(void *, size_t) __asm__("munmap");
int protect(void *, size_t, int) __asm__("mprotect");
int page_size() __asm__("getpagesize");
int make_key(thread_key *, void (*)(void *)) __asm__("pthread_key_create");
int set_key(thread_key, const void *) __asm__("pthread_setspecific");
int print(int, const char *, ...) __asm__("dprintf");

static constexpr int none = 0, read_write = 1 | 2, private_anonymous = 0x2 | 0x20 | 0x4000 | 0x20000;

}  // namespace os
}  // namespace podium_cpu

#else

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

namespace podium_cpu {
namespace os {

typedef pthread_key_t thread_key;

static inline void *map(void *address, size_t bytes, int access, int flags, int file, long offset) {
  return mmap(address, bytes, access, flags, file, offset);
}
static inline int unmap(void *address, size_t bytes) { return munmap(address, bytes); }
static inline int protect(void *address, size_t bytes, int access) { return mprotect(address, bytes, access); }
static inline int page_size() { return getpagesize(); }
static inline int make_key(thread_key *key, void (*end)(void *)) { return pthread_key_create(key, end); }
static inline int set_key(thread_key key, const void *value) { return pthread_setspecific(key, value); }
template <class... T>
static inline int print(int file, const char *format, T... values) {
  return dprintf(file, format, values...);
}

static constexpr int none = PROT_NONE, read_write = PROT_READ | PROT_WRITE, private_anonymous = MAP_PRIVATE | MAP_ANON;

}  // namespace os
}  // namespace podium_cpu

#endif

#endif
