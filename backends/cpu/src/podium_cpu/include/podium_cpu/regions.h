// What kernels use that run a whole block in one call, as loops over its threads. The word PODIUM_CPU_FIBERS in a source or
// its options keeps all kernels from it.
#ifndef PODIUM_CPU_REGIONS_H
#define PODIUM_CPU_REGIONS_H

#include "launch.h"

namespace podium_regions {

template <class T>
struct bare {
  typedef T type;
};
template <class T>
struct bare<const T> {
  typedef T type;
};
template <class T, size_t n>
struct bare<const T[n]> {
  typedef typename bare<const T>::type type[n];
};

// A variable of each thread. They lie side by side, and nobody constructs them before their kernel does.
template <class T>
struct slots {
  static_assert(__is_trivially_copyable(T), "it cannot be kept in one region for another");
  static_assert(sizeof(T) <= 2048, "all of them are on one stack");
  slots() {}
  union {
    alignas(64) typename bare<T>::type data[PODIUM_CPU_MAX_THREADS];
  };
};

template <class T, size_t n>
static inline void keep(T (&to)[n], const T (&from)[n]) {
  memcpy(static_cast<void *>(to), from, sizeof(to));
}

// Whether any thread is left of a block.
static inline bool any(const unsigned char *live, size_t threads) { return __builtin_memchr(live, 1, threads); }

// A sum that begins again past the end of its type.
template <class T>
static inline T later(T start, T distance) {
  return sizeof(T) > 4 ? T(uint64_t(start) + uint64_t(distance)) : T(uint32_t(start) + uint32_t(distance));
}

// How many of the numbers from `first` on are in once they have gone a distance, which those are that stand in front of
// all others.
template <class T, class Predicate>
static inline uint32_t reach(T first, T distance, uint32_t count, const Predicate &is_in) {
  const T last = later(first, T(count - 1));
  if (is_in(later(last, distance), last))
    return count & 2047;
  uint32_t low = 0, high = count - 1;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    const T start = later(first, T(middle));
    if (is_in(later(start, distance), start))
      low = middle + 1;
    else
      high = middle;
  }
  return low & 2047;  // as small as a compiler wants to know it
}

// Called at a barrier that threads come to on ways of their own: all that have not returned must be there.
static inline __attribute__((noinline, unused)) void meet(const unsigned char *here, const unsigned char *live,
                                                           uint32_t threads, const char *what, const char *file,
                                                           int line) {
  uint32_t present = 0, missing = 0, first = threads, absent = threads;
  for (uint32_t i = threads; i-- > 0;) {
    if (here[i])
      ++present, first = i;
    else if (!live || live[i])
      ++missing, absent = i;
  }
  if (!missing)
    return;
  const uint32_t x = blockDim.x, y = blockDim.y;
  char text[400];
  podium_cpu::os::format(text, sizeof text,
                         "in block (%u,%u,%u) %u of %u threads do%s not come to %s (%s:%d), such as thread (%u,%u,%u)"
                         "; %u wait%s there, such as thread (%u,%u,%u)",
                         blockIdx.x, blockIdx.y, blockIdx.z, missing, threads, missing == 1 ? "es" : "", what, file,
                         line, absent % x, absent / x % y, absent / x / y, present, present == 1 ? "s" : "", first % x,
                         first / x % y, first / x / y);
  podium_cpu::stop(PODIUM_CPU_ERROR_BARRIER, text);
}

}  // namespace podium_regions

#endif
