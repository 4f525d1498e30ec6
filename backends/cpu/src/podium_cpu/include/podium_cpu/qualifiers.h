// The words that the dialect adds to declarations.
#ifndef PODIUM_CPU_QUALIFIERS_H
#define PODIUM_CPU_QUALIFIERS_H

#define __device__
#define __host__
#define __managed__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#ifdef _LIBCPP_NOINLINE  // libc++ writes that word where it means the compiler's
#undef _LIBCPP_NOINLINE
#define _LIBCPP_NOINLINE __attribute__((noinline))
#endif
#define __inline_hint__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __cluster_dims__(...) _Pragma("GCC error \"__cluster_dims__ is not for the CPU\"")
#define __block_size__(...) _Pragma("GCC error \"__block_size__ is not for the CPU\"")
#define __maxnreg__(...)

#define __brkpt() __trap()
#define __prof_trigger(counter) static_cast<void>(counter)

// A block runs on one thread of the system, so what belongs to a block can belong to that thread. Declarations of
// dynamic shared memory and kernels are rewritten before they come here, and the rewriting needs to see the words.
// The sanitizers see the bounds of variables that all threads have in common, and of no others.
#ifndef PODIUM_CPU_KEEP_WORDS
#define __global__
#ifdef PODIUM_CPU_SANITIZE
#define __shared__ static
#else
#define __shared__ thread_local
#endif
#endif

#if !defined(__has_builtin)
#define PODIUM_CPU_NO_ASSUME 1
#elif !__has_builtin(__builtin_assume)
#define PODIUM_CPU_NO_ASSUME 1
#endif
#ifdef PODIUM_CPU_NO_ASSUME
#define __builtin_assume(condition) \
  do {                              \
    if (!(condition))               \
      __builtin_unreachable();      \
  } while (0)
#endif

#endif
