// Barriers of a block, memory fences, and the ways to end a kernel early.
#ifndef PODIUM_CPU_BARRIER_H
#define PODIUM_CPU_BARRIER_H

#include "launch.h"

namespace podium_cpu {

// Wait until all threads of the block that have not returned are at a barrier; return how many came with a vote.
static inline __attribute__((noinline)) uint32_t barrier(bool vote) {
  worker &w = *here;
  enter(w);
  w.votes += vote;
  if (++w.arrived == w.live) {
    release_barrier(w);
  } else {
    push(w.waiting, w.current);
    suspend(w);
  }
  return w.result;
}

}  // namespace podium_cpu

static inline void __syncthreads() { podium_cpu::barrier(false); }
static inline int __syncthreads_count(int predicate) { return int(podium_cpu::barrier(predicate != 0)); }
static inline int __syncthreads_or(int predicate) { return podium_cpu::barrier(predicate != 0) != 0; }
static inline int __syncthreads_and(int predicate) { return podium_cpu::barrier(predicate == 0) == 0; }

// The threads of a block share one thread of the system: only the compiler could mix up their accesses.
static inline void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// Let the other threads of the block run: a thread that sleeps waits for what another one does.
static inline void __nanosleep(unsigned int) {
  podium_cpu::worker &w = *podium_cpu::here;
  podium_cpu::enter(w);
  podium_cpu::push(w.ready, w.current);
  podium_cpu::suspend(w, true);
}

[[noreturn]] static inline void __trap() { podium_cpu::stop(PODIUM_CPU_ERROR_TRAP); }

namespace podium_cpu {

[[noreturn]] static inline __attribute__((noinline, cold, unused)) void fail_assertion(const char *expression,
                                                                                const char *file, int line,
                                                                                const char *function) {
  os::print(2, "%s:%d: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file, line, function,
            blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, expression);
  stop(PODIUM_CPU_ERROR_ASSERT);
}

}  // namespace podium_cpu

// A failed assertion ends the launch, not the process.
#ifdef NDEBUG
#define assert(...) static_cast<void>(0)
#else
#define assert(...) \
  ((__VA_ARGS__) ? static_cast<void>(0) : podium_cpu::fail_assertion(#__VA_ARGS__, __FILE__, __LINE__, __func__))
#endif

#endif
