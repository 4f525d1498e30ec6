// Running blocks. Their threads run one after another as a plain loop, until one of them has to wait for others: it is
// suspended where it is, and a fresh stack carries on the loop. So a kernel that never waits costs no switch, and no
// one needs to know beforehand whether it does.
#ifndef PODIUM_CPU_LAUNCH_IMPLEMENTATION_H
#define PODIUM_CPU_LAUNCH_IMPLEMENTATION_H

#include "vectors.h"
#include "worker.h"

// As long as nobody takes their addresses, the compiler can keep them in registers for the length of a loop. So they are
// never copied as a whole here.
static thread_local uint3 threadIdx;
static thread_local uint3 blockIdx;
static thread_local dim3 blockDim;
static thread_local dim3 gridDim;
static constexpr int warpSize = 32;

namespace podium_cpu {

static thread_local worker *here;   // the worker of the launch
static thread_local bool switched;  // whether a thread of this block has waited, or could have

// A value that the compiler cannot copy together with its neighbours, which would take their common address.
static inline uint32_t alone(uint32_t value) {
  __asm__("" : "+r"(value));
  return value;
}

static inline uint32_t linear_thread() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

static inline void push(queue &q, fiber *f) {
  f->next = nullptr;
  if (q.first)
    q.last->next = f;
  else
    q.first = f;
  q.last = f;
}

static inline fiber *pop(queue &q) {
  fiber *f = q.first;
  if (f)
    q.first = f->next;
  return f;
}

static inline void append(queue &q, queue &more) {
  if (!more.first)
    return;
  if (q.first)
    q.last->next = more.first;
  else
    q.first = more.first;
  q.last = more.last;
  more.first = nullptr;
}

// End the launch from wherever it is. The stacks of the block are abandoned as they are.
[[noreturn]] static inline __attribute__((noinline)) void stop(int status) {
  worker &w = *here;
  w.status = status;
  void *abandoned;
  switch_stack(&abandoned, w.home, w.home_bounds);
  __builtin_unreachable();
}

static inline void run_fiber(void *address);
static inline bool release_converged(worker &w);  // in warp.h
static inline void release_after_exit(worker &w, uint32_t linear);

// Go on with another thread of the block, and return when this one is resumed. Those that have run already come first,
// which keeps few stacks in use, unless a fresh one is asked for.
static inline __attribute__((noinline)) void suspend(worker &w, bool fresh = false) {
  fiber *self = w.current, *next = fresh && w.started < w.size ? nullptr : pop(w.ready);
  if (!next) {
    if (w.started < w.size) {
      if (!ensure_stack(w, w.used))
        stop(PODIUM_CPU_ERROR_OUT_OF_MEMORY);
      reset_fiber(w, w.used, run_fiber);
      next = &w.fibers[w.used++];
    } else if (release_converged(w)) {
      next = pop(w.ready);
    } else {
      stop(PODIUM_CPU_ERROR_BARRIER);
    }
  }
  if (next == self)
    return;
  const uint32_t x = alone(threadIdx.x), y = alone(threadIdx.y), z = alone(threadIdx.z);
  w.current = next;
  if (next->next) {
    // Stacks lie far apart. While the next thread runs, the one behind it is fetched, which halves the time of a switch.
    const char *top = static_cast<const char *>(next->next->context);
    for (int line = 0; line < 3; ++line)
      __builtin_prefetch(top + 64 * line);
  }
  switch_stack(&self->context, next->context, bounds_of(*next));
  threadIdx.x = x;
  threadIdx.y = y;
  threadIdx.z = z;
}

// Called by whatever may make a thread wait, before it does: from the first time on, the block is accounted for.
static inline uint32_t enter(worker &w) {
  const uint32_t linear = linear_thread();
  if (!switched) {
    switched = true;
    w.live = w.size - linear;  // the threads before this one have returned
    w.arrived = w.votes = 0;
    w.ready.first = w.waiting.first = nullptr;
    for (uint32_t i = 0; i < max_warps; ++i) {
      const uint32_t first = i * warp_threads;
      uint32_t absent = 0;
      if (linear > first)
        absent = linear - first < warp_threads ? (1u << (linear - first)) - 1 : ~0u;
      if (w.size < first + warp_threads)
        absent |= w.size <= first ? ~0u : ~0u << (w.size - first);
      w.warps[i].exited = absent;
      w.warps[i].pending = 0;
    }
  }
  if (linear >= w.started)
    w.started = linear + 1;
  return linear;
}

static inline void release_barrier(worker &w) {
  w.result = w.votes;
  w.arrived = w.votes = 0;
  append(w.ready, w.waiting);
}

// Account for a thread that has returned from the kernel in a block where threads wait. A barrier no longer needs it.
static inline __attribute__((noinline)) void exit_thread(worker &w) {
  const uint32_t linear = linear_thread();
  if (linear >= w.started)
    w.started = linear + 1;
  --w.live;
  w.warps[linear / warp_threads].exited |= 1u << linear % warp_threads;
  release_after_exit(w, linear);
  if (w.live && w.arrived == w.live)
    release_barrier(w);
}

// The base of every stack but the first.
static inline void run_fiber(void *address) {
  begin_stack();
  worker &w = *static_cast<worker *>(address);
  w.threads(w);
  if (w.live == 0)
    push(w.ready, &w.fibers[0]);  // it waits for the block to end
  suspend(w);
  __builtin_unreachable();
}

// The base of the first stack: all blocks, in order.
static inline void run_grid(void *address) {
  worker &w = *static_cast<worker *>(address);
  w.home_bounds = begin_stack();
  for (uint32_t z = 0; z < gridDim.z; ++z)
    for (uint32_t y = 0; y < gridDim.y; ++y)
      for (uint32_t x = 0; x < gridDim.x; ++x) {
        blockIdx.x = alone(x);
        blockIdx.y = alone(y);
        blockIdx.z = alone(z);
        switched = false;
        w.started = 0;
        w.used = 1;
        w.current = &w.fibers[0];
        w.threads(w);
        if (switched && w.live)
          suspend(w);
      }
  stop(PODIUM_CPU_SUCCESS);
}

static inline __attribute__((noinline)) int run(const podium_cpu_launch *launch, void *const *parameters,
                                         void (*threads)(worker &)) {
  const uint64_t size = uint64_t(launch->block[0]) * launch->block[1] * launch->block[2];
  if (size == 0 || size > PODIUM_CPU_MAX_THREADS || launch->block[0] > PODIUM_CPU_MAX_THREADS ||
      launch->block[1] > PODIUM_CPU_MAX_THREADS || launch->shared > PODIUM_CPU_MAX_SHARED)
    return PODIUM_CPU_ERROR_INVALID_VALUE;
  if (launch->grid[0] == 0 || launch->grid[1] == 0 || launch->grid[2] == 0)
    return PODIUM_CPU_SUCCESS;
  worker *w = shared_runtime->current();
  if (!w || !ensure_stack(*w, 0))
    return PODIUM_CPU_ERROR_OUT_OF_MEMORY;
  here = w;
  blockDim.x = alone(launch->block[0]);
  blockDim.y = alone(launch->block[1]);
  blockDim.z = alone(launch->block[2]);
  gridDim.x = alone(launch->grid[0]);
  gridDim.y = alone(launch->grid[1]);
  gridDim.z = alone(launch->grid[2]);
  w->size = uint32_t(size);
  w->threads = threads;
  w->parameters = parameters;
  reset_fiber(*w, 0, run_grid);
  switch_stack(&w->home, w->fibers[0].context, bounds_of(w->fibers[0]));
  return w->status;
}

}  // namespace podium_cpu

#endif
