// Running blocks. Their threads run one after another as a plain loop, until one of them has to wait for others: it is
// suspended where it is, and a fresh stack carries on the loop. So a kernel that never waits costs no switch, and no
// one needs to know beforehand whether it does.
#ifndef PODIUM_CPU_LAUNCH_IMPLEMENTATION_H
#define PODIUM_CPU_LAUNCH_IMPLEMENTATION_H

#include "runtime.h"
#include "vectors.h"

// As long as nobody takes their addresses, the compiler can keep them in registers for the length of a loop. So they are
// never copied as a whole here.
static thread_local uint3 threadIdx;
static thread_local uint3 blockIdx;
static thread_local dim3 blockDim;
static thread_local dim3 gridDim;
static constexpr int warpSize = 32;

namespace podium_regions {

static thread_local bool whole_block;  // set by a kernel that runs all threads of its block in one call

}

namespace podium_cpu {

static thread_local block *here;    // the block that runs
static thread_local bool switched;  // whether a thread of this block has waited, or could have
// The number of the last barrier that a thread has left behind for good, or 0. It is set wherever a thread leaves a
// kernel whose barriers have numbers: see regions/_marks.py.
static thread_local int past;

// A value that the compiler cannot copy together with its neighbours, which would take their common address.
static inline uint32_t alone(uint32_t value) {
  __asm__("" : "+r"(value));
  return value;
}

static inline uint32_t linear_thread() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

// End the launch from wherever it is. The stacks of the block are abandoned as they are.
[[noreturn]] static inline __attribute__((noinline)) void stop(int status, const char *detail) {
  podium_cpu_runtime->stop(*here, status, detail);
  __builtin_unreachable();
}

// A thread about to do what may let others run; afterwards its index is its own again.
struct waiting_thread {
  block &b;
  uint32_t linear, x, y, z;

  waiting_thread()
      : b(*here), linear(linear_thread()), x(alone(threadIdx.x)), y(alone(threadIdx.y)), z(alone(threadIdx.z)) {
    if (podium_regions::whole_block)
      stop(PODIUM_CPU_ERROR_BARRIER,
           "a thread waits in a function that the kernel's text does not show it to call, in a kernel that was rewritten "
           "to loops; the word PODIUM_CPU_FIBERS in the source or among its defines keeps it as it is");
    if (!switched) {
      switched = true;
      podium_cpu_runtime->begin_waiting(b, linear);
    }
  }
  ~waiting_thread() {
    threadIdx.x = x;
    threadIdx.y = y;
    threadIdx.z = z;
  }
};

static inline void where(uint32_t place[6]) {
  place[0] = alone(blockIdx.x);
  place[1] = alone(blockIdx.y);
  place[2] = alone(blockIdx.z);
  place[3] = alone(threadIdx.x);
  place[4] = alone(threadIdx.y);
  place[5] = alone(threadIdx.z);
}

// Run the blocks that this thread of the system gets; the base of its first stack.
template <void (*threads)(block &)>
static inline void run_blocks(block &b) {
  here = &b;
  blockDim.x = alone(b.launch->block[0]);
  blockDim.y = alone(b.launch->block[1]);
  blockDim.z = alone(b.launch->block[2]);
  gridDim.x = alone(b.launch->grid[0]);
  gridDim.y = alone(b.launch->grid[1]);
  gridDim.z = alone(b.launch->grid[2]);
  uint64_t first;
  while (uint64_t count = podium_cpu_runtime->claim(b, &first)) {
    uint32_t x = uint32_t(first % gridDim.x), y = uint32_t(first / gridDim.x % gridDim.y);
    uint32_t z = uint32_t(first / gridDim.x / gridDim.y);
    for (;;) {
      blockIdx.x = alone(x);
      blockIdx.y = alone(y);
      blockIdx.z = alone(z);
      switched = false;
      b.started = b.departed = 0;
      b.past = 0;
      threads(b);
      if (switched)
        podium_cpu_runtime->finish_block(b);
      if (--count == 0)
        break;
      if (++x == gridDim.x) {
        x = 0;
        if (++y == gridDim.y) {
          y = 0;
          ++z;
        }
      }
    }
  }
  podium_cpu_runtime->leave(b);
}

}  // namespace podium_cpu

#endif
