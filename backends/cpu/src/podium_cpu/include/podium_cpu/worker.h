// What a thread of the system needs to run blocks: stacks for their threads, and dynamic shared memory.
#ifndef PODIUM_CPU_WORKER_H
#define PODIUM_CPU_WORKER_H

#include "../podium_cpu_launch.h"
#include "standard.h"
#include "switch.h"

namespace podium_cpu {

static constexpr uint32_t warp_threads = 32;
static constexpr uint32_t max_warps = PODIUM_CPU_MAX_THREADS / 32;
static constexpr uint32_t runtime_version = 1;  // rises with every change to `worker` or `runtime`
static constexpr uint32_t slab_stacks = 32;
static constexpr size_t stack_bytes = 256 << 10;

// A stack, and the thread of a block that is suspended on it.
struct fiber {
  void *context;
  fiber *next;  // in the queue that it stands in
  char *stack;  // its lowest address, or null
};

struct queue {
  fiber *first, *last;
};

// What a thread brings to a warp function and takes from it.
struct lane {
  uint64_t value, result;
  void (*finish)(lane *lanes, uint32_t participants);
  const void *site;  // where __activemask was called, else null
  fiber *waiting;    // null for the thread that runs
  uint32_t mask, source;
};

struct warp {
  uint32_t exited;   // lanes that have returned from the kernel, or never were
  uint32_t pending;  // lanes inside a warp function
};

struct worker {
  fiber fibers[PODIUM_CPU_MAX_THREADS + 1];
  lane lanes[PODIUM_CPU_MAX_THREADS];
  warp warps[max_warps];
  char *dynamic;  // dynamic shared memory, of the greatest size there is
  void *home;     // the context that the launch came from
  stack_bounds home_bounds;
  void (*threads)(worker &);  // runs the threads of the block that nobody has started yet
  void *const *parameters;
  int status;

  // The block that runs. Before a first thread waits, only `size` and `started` count.
  uint32_t size;     // its threads
  uint32_t started;  // how many of them were started, in order
  uint32_t live;     // how many have not returned
  uint32_t arrived;  // how many wait at the barrier
  uint32_t votes, result;
  uint32_t used;  // how many fibers it has
  fiber *current;
  queue ready, waiting;
};

// Kernels are compiled one by one, and each library could make its own workers; the driver has all of them use those
// of the first that is loaded, so that a thread of the system holds one set of stacks.
struct runtime {
  uint32_t version, worker_bytes;
  worker *(*current)();
};

static thread_local worker *own_worker;
static os::thread_key worker_key;
static int worker_key_state;  // 0 before, 1 while, and 2 after the key is made

static inline char *map(size_t bytes) {
  void *address = os::map(nullptr, bytes, os::read_write, os::private_anonymous, -1, 0);
  return reinterpret_cast<intptr_t>(address) == -1 ? nullptr : static_cast<char *>(address);
}

static inline void delete_worker(void *address) {
  worker *w = static_cast<worker *>(address);
  for (size_t i = 0; i <= PODIUM_CPU_MAX_THREADS; i += slab_stacks)
    if (w->fibers[i].stack)
      os::unmap(w->fibers[i].stack, slab_stacks * stack_bytes);
  os::unmap(w->dynamic, PODIUM_CPU_MAX_SHARED);
  os::unmap(w, sizeof(worker));
}

static inline void ensure_worker_key() {
  int before = 0;
  if (__atomic_compare_exchange_n(&worker_key_state, &before, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    os::make_key(&worker_key, delete_worker);
    __atomic_store_n(&worker_key_state, 2, __ATOMIC_RELEASE);
  }
  while (__atomic_load_n(&worker_key_state, __ATOMIC_ACQUIRE) != 2) {
  }
}

static inline __attribute__((noinline)) worker *new_worker() {
  worker *w = reinterpret_cast<worker *>(map(sizeof(worker)));
  if (!w)
    return nullptr;
  w->dynamic = map(PODIUM_CPU_MAX_SHARED);
  if (!w->dynamic) {
    os::unmap(w, sizeof(worker));
    return nullptr;
  }
  ensure_worker_key();
  os::set_key(worker_key, w);  // has the worker deleted when the thread ends
  return own_worker = w;
}

static inline worker *current_worker() { return own_worker ? own_worker : new_worker(); }

static const runtime own_runtime = {runtime_version, sizeof(worker), current_worker};
static const runtime *shared_runtime = &own_runtime;

// Give a fiber a stack, unless it has one. Stacks are made many at a time.
static inline bool ensure_stack(worker &w, uint32_t index) {
  if (w.fibers[index].stack)
    return true;
  const uint32_t first = index - index % slab_stacks;
  char *slab = map(slab_stacks * stack_bytes);
  if (!slab)
    return false;
  const size_t guard = size_t(os::page_size());
  for (uint32_t i = 0; i < slab_stacks && first + i <= PODIUM_CPU_MAX_THREADS; ++i) {
    w.fibers[first + i].stack = slab + i * stack_bytes;
    // A system may be out of mappings, of which each guard page takes one; a stack without one still works.
    os::protect(slab + i * stack_bytes, guard, os::none);
  }
  return true;
}

static inline stack_bounds bounds_of(const fiber &f) { return stack_bounds{f.stack, stack_bytes}; }

// Have a fiber call `function(w)` when it is switched to.
static inline void reset_fiber(worker &w, uint32_t index, void (*function)(void *)) {
  fiber &f = w.fibers[index];
  forget_frames(bounds_of(f));
  // Stacks lie at multiples of a power of two; without this shift their tops would share a few lines of the cache.
  char *top = f.stack + stack_bytes - (index % 61) * 64;
  f.context = new_context(f.stack, top, function, &w);
}

}  // namespace podium_cpu

// Called by the driver when it loads the library: with null to ask for the runtime, else to hand it another's.
extern "C" __attribute__((visibility("default"))) const void *podium_cpu_attach(const void *address) {
  const podium_cpu::runtime *other = static_cast<const podium_cpu::runtime *>(address);
  if (other && other->version == podium_cpu::own_runtime.version &&
      other->worker_bytes == podium_cpu::own_runtime.worker_bytes)
    podium_cpu::shared_runtime = other;
  return podium_cpu::shared_runtime;
}

#endif
