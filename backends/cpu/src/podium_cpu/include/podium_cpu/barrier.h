// Barriers of a block and of the grid, memory fences, and the ways to end a kernel early.
#ifndef PODIUM_CPU_BARRIER_H
#define PODIUM_CPU_BARRIER_H

#include "launch.h"

// The place of a call in the user's source, as the last parameters of a function that threads wait in.
#define PODIUM_CPU_SITE const char *podium_file = __builtin_FILE(), int podium_line = __builtin_LINE()

namespace podium_cpu {

// The first argument of a barrier whose number is known: see regions/_marks.py.
struct numbered {
  int number;
};

// Wait until all threads of the block that have not returned are at a barrier; return how many came with a vote.
static inline __attribute__((noinline)) uint32_t barrier(bool vote, const char *what, const char *file, int line,
                                                         numbered n) {
  waiting_thread self;
  return podium_cpu_runtime->barrier(self.b, self.linear, vote, site{what, file, line, n.number});
}

// Wait for all threads of all blocks.
static inline __attribute__((noinline)) void grid_barrier(const char *what, const char *file, int line) {
  waiting_thread self;
  podium_cpu_runtime->grid_barrier(self.b, self.linear, site{what, file, line, no_number});
}

static inline bool is_cooperative() { return here->launch->cooperative != 0; }

}  // namespace podium_cpu

static inline void __syncthreads(podium_cpu::numbered n, PODIUM_CPU_SITE) {
  podium_cpu::barrier(false, "__syncthreads()", podium_file, podium_line, n);
}
// What sync() of a thread_block is once its kernel does without the group: see regions/_groups.py.
static inline void podium_block_sync(podium_cpu::numbered n, PODIUM_CPU_SITE) {
  podium_cpu::barrier(false, "sync() of a thread_block", podium_file, podium_line, n);
}
static inline int __syncthreads_count(podium_cpu::numbered n, int predicate, PODIUM_CPU_SITE) {
  return int(podium_cpu::barrier(predicate != 0, "__syncthreads_count()", podium_file, podium_line, n));
}
static inline int __syncthreads_or(podium_cpu::numbered n, int predicate, PODIUM_CPU_SITE) {
  return podium_cpu::barrier(predicate != 0, "__syncthreads_or()", podium_file, podium_line, n) != 0;
}
static inline int __syncthreads_and(podium_cpu::numbered n, int predicate, PODIUM_CPU_SITE) {
  return podium_cpu::barrier(predicate == 0, "__syncthreads_and()", podium_file, podium_line, n) == 0;
}

static inline void __syncthreads(PODIUM_CPU_SITE) {
  __syncthreads(podium_cpu::numbered{podium_cpu::no_number}, podium_file, podium_line);
}
static inline void podium_block_sync(PODIUM_CPU_SITE) {
  podium_block_sync(podium_cpu::numbered{podium_cpu::no_number}, podium_file, podium_line);
}
static inline int __syncthreads_count(int predicate, PODIUM_CPU_SITE) {
  return __syncthreads_count(podium_cpu::numbered{podium_cpu::no_number}, predicate, podium_file, podium_line);
}
static inline int __syncthreads_or(int predicate, PODIUM_CPU_SITE) {
  return __syncthreads_or(podium_cpu::numbered{podium_cpu::no_number}, predicate, podium_file, podium_line);
}
static inline int __syncthreads_and(int predicate, PODIUM_CPU_SITE) {
  return __syncthreads_and(podium_cpu::numbered{podium_cpu::no_number}, predicate, podium_file, podium_line);
}

// The threads of a block share one thread of the system: only the compiler could mix up their accesses.
static inline void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// Let the other threads of the block run: a thread that sleeps waits for what another one does.
static inline void __nanosleep(unsigned int) {
  podium_cpu::waiting_thread self;
  podium_cpu_runtime->yield(self.b, self.linear);
}

[[noreturn]] static inline void __trap() { podium_cpu::stop(PODIUM_CPU_ERROR_TRAP, nullptr); }

namespace podium_cpu {

[[noreturn]] static inline __attribute__((noinline, cold, unused)) void fail_assertion(const char *expression,
                                                                                const char *file, int line,
                                                                                const char *function) {
  char text[400];
  os::format(text, sizeof text, "%s:%d: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.", file, line,
             function, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, expression);
  os::print(2, "%s\n", text);
  stop(PODIUM_CPU_ERROR_ASSERT, text);
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
