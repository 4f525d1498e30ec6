// What a thread of the system needs to run blocks: stacks for their threads, and dynamic shared memory.
#ifndef PODIUM_CPU_WORKER_H
#define PODIUM_CPU_WORKER_H

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "../include/podium_cpu/runtime.h"
#include "switch.h"

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif
#ifndef MAP_STACK
#define MAP_STACK 0
#endif

namespace podium_cpu {

// A block's threads run on its worker's first stack until one of them waits, so that one must hold what a kernel has in
// local memory, and recursion. Memory comes as it is touched.
#ifdef PODIUM_CPU_ADDRESS_SANITIZER
static constexpr size_t first_stack_bytes = 4 << 20;  // all of it is cleared for the sanitizer at each launch
#else
static constexpr size_t first_stack_bytes = 64 << 20;
#endif
static constexpr size_t stack_bytes = 256 << 10, guard_bytes = 16 << 10;
static constexpr uint32_t slab_stacks = 32;
static constexpr size_t signal_stack_bytes = 64 << 10;
static constexpr uint32_t max_workers = 4096;
static constexpr size_t detail_bytes = 480;

// A stack, and the thread of a block that is suspended on it; a line of the cache, which no other fiber shares.
struct alignas(64) fiber {
  void *context;
  fiber *next;  // in the queue that it stands in
  char *stack;  // its lowest address, or null
  const site *at;  // where the thread waits, on its own stack; null while it does not
  uint32_t thread;
  void *tag;
};

struct queue {
  fiber *first, *last;
};

struct warp {
  uint32_t exited;   // lanes that have returned from the kernel, or never were
  uint32_t pending;  // lanes inside a warp function
};

struct job;

struct worker : block {
  fiber fibers[PODIUM_CPU_MAX_THREADS + 1];
  lane own_lanes[PODIUM_CPU_MAX_THREADS];
  departure own_departures[PODIUM_CPU_MAX_THREADS];
  warp warps[max_warps];
  void *home;  // the context that the launch came from
  stack_facts home_facts;
  const kernel *code;
  job *running;
  volatile bool in_kernel;  // whether the thread may be taken out of what it does, by a signal
  bool abort_wanted;        // whether a signal is on its way that does so; atomic
  bool main_thread;         // of the process
  bool taken;               // by a thread
  bool had_block;           // of a cooperative launch
  pthread_t thread;
  long thread_id;           // as Linux numbers threads
  char *signal_stack;  // null if the thread had one of its own

  // The block that runs, from the first time that one of its threads may wait.
  uint32_t live;     // how many have not returned
  uint32_t arrived;  // how many wait at the barrier
  uint32_t votes, result;
  const site *meeting;  // where the first of them does
  int meeting_number;   // the number of that barrier, if it has one; else 0, which none has
  bool apart;           // whether others wait at another one
  uint32_t used;      // how many fibers it has
  bool grid_waiting;  // whether the barrier is one of the grid
  fiber *current;
  queue ready, waiting;
};

static worker *workers[max_workers];  // never given back: signal handlers look at them
static pthread_mutex_t workers_lock = PTHREAD_MUTEX_INITIALIZER;
static thread_local worker *own_worker;
static pthread_key_t worker_key;  // the same; signal handlers may read this, and not a thread_local
static pthread_once_t worker_key_once = PTHREAD_ONCE_INIT;

static inline char *map(size_t bytes) {
  void *address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK,
                       -1, 0);
  return address == MAP_FAILED ? nullptr : static_cast<char *>(address);
}

static inline void identify_thread(worker &w) {
  w.thread = pthread_self();
#ifdef __linux__
  w.thread_id = syscall(SYS_gettid);
  w.main_thread = w.thread_id == getpid();
#else
  w.main_thread = pthread_main_np();
#endif
}

// Faults may be those of a stack that is full, so they are handled on another one.
static void give_signal_stack(worker &w) {
  stack_t present;
  if (sigaltstack(nullptr, &present) != 0 || !(present.ss_flags & SS_DISABLE))
    return;
  if (!w.signal_stack && !(w.signal_stack = map(signal_stack_bytes)))
    return;
  stack_t wanted = {};
  wanted.ss_sp = w.signal_stack;
  wanted.ss_size = signal_stack_bytes;
  sigaltstack(&wanted, nullptr);
}

static void release_worker(void *address) {
  worker *w = static_cast<worker *>(address);
  stack_t present;
  if (w->signal_stack && sigaltstack(nullptr, &present) == 0 && present.ss_sp == w->signal_stack) {
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  own_worker = nullptr;
  pthread_mutex_lock(&workers_lock);
  w->taken = false;
  pthread_mutex_unlock(&workers_lock);
}

static void make_worker_key() { pthread_key_create(&worker_key, release_worker); }

static worker *make_worker() {
  char *memory = map(sizeof(worker));
  if (!memory)
    return nullptr;
  worker *w = reinterpret_cast<worker *>(memory);
  w->dynamic = map(PODIUM_CPU_MAX_SHARED);
  w->fibers[0].stack = map(first_stack_bytes);
  w->lanes = w->own_lanes;
  w->departures = w->own_departures;
  if (!w->dynamic || !w->fibers[0].stack) {
    if (w->dynamic)
      munmap(w->dynamic, PODIUM_CPU_MAX_SHARED);
    munmap(memory, sizeof(worker));
    return nullptr;
  }
  mprotect(w->fibers[0].stack, 4 * guard_bytes, PROT_NONE);
  return w;
}

// Take a worker that no thread has any more, or make one.
static __attribute__((noinline)) worker *take_worker() {
  pthread_once(&worker_key_once, make_worker_key);
  pthread_mutex_lock(&workers_lock);
  worker *w = nullptr;
  for (uint32_t i = 0; i < max_workers && !w; ++i) {
    if (!workers[i])
      __atomic_store_n(&workers[i], make_worker(), __ATOMIC_RELEASE);
    if (!workers[i])
      break;
    if (!workers[i]->taken)
      w = workers[i];
  }
  if (w) {
    w->taken = true;
    identify_thread(*w);
  }
  pthread_mutex_unlock(&workers_lock);
  if (!w)
    return nullptr;
  give_signal_stack(*w);
  pthread_setspecific(worker_key, w);
  return own_worker = w;
}

static inline worker *current_worker() { return own_worker ? own_worker : take_worker(); }

// Give a fiber a stack, unless it has one. Stacks are made many at a time.
static bool ensure_stack(worker &w, uint32_t index) {
  if (w.fibers[index].stack)
    return true;
  const uint32_t first = index - (index - 1) % slab_stacks;  // the first of all has its own
  char *slab = map(slab_stacks * stack_bytes);
  if (!slab)
    return false;
  for (uint32_t i = 0; i < slab_stacks && first + i <= PODIUM_CPU_MAX_THREADS; ++i) {
    w.fibers[first + i].stack = slab + i * stack_bytes;
    // A system may be out of mappings, of which each guard takes one; a stack without one still works.
    mprotect(slab + i * stack_bytes, guard_bytes, PROT_NONE);
  }
  return true;
}

static inline size_t stack_size(const worker &w, const fiber &f) {
  return &f == &w.fibers[0] ? first_stack_bytes : stack_bytes;
}

static inline stack_facts facts_of(const worker &w, const fiber &f) {
  return stack_facts{f.stack, stack_size(w, f), f.tag};
}

// Have a fiber call `function(w)` when it is switched to.
static void reset_fiber(worker &w, uint32_t index, void (*function)(void *)) {
  fiber &f = w.fibers[index];
  stack_facts facts = facts_of(w, f);
  forget_frames(facts);
  f.tag = facts.tag;
  // Stacks lie at multiples of a power of two; without this shift their tops would share a few lines of the cache.
  char *top = f.stack + stack_size(w, f) - (index % 61) * 64;
  f.context = new_context(f.stack, top, function, &w);
}

// Tell whether an address is in the guard below one of a worker's stacks.
static bool is_in_guard(const worker &w, const char *address) {
  if (address >= w.fibers[0].stack && address < w.fibers[0].stack + 4 * guard_bytes)
    return true;
  for (uint32_t i = 1; i <= PODIUM_CPU_MAX_THREADS; ++i)
    if (w.fibers[i].stack && address >= w.fibers[i].stack && address < w.fibers[i].stack + guard_bytes)
      return true;
  return false;
}

}  // namespace podium_cpu

#endif
