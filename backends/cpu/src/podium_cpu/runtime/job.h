// A launch while it runs: which blocks are left, who runs them, and what became of it.
#ifndef PODIUM_CPU_JOB_H
#define PODIUM_CPU_JOB_H

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "worker.h"

namespace podium_cpu {

struct job {
  const podium_cpu_launch *launch;
  const kernel *code;
  void *const *parameters;
  uint64_t blocks;
  worker *owner;
  bool shared_out;  // whether threads of the pool may join; before, only the owner looks at it
  uint64_t next;    // the first block that nobody has claimed
  uint64_t start;   // when the first block began, in nanoseconds
  uint32_t others;  // threads that have joined
  job *below;       // in the list of those that may be joined

  bool cancelled;
  int status;
  char detail[detail_bytes];

  // Of cooperative launches: blocks that wait for the grid, and that have ended.
  pthread_mutex_t grid_lock;
  pthread_cond_t grid_moved;
  uint32_t grid_arrived, grid_left, grid_generation;
};

static constexpr uint64_t piece_nanoseconds = 20000;   // what a thread claims takes at least so long, if there is enough
static constexpr uint64_t share_nanoseconds = 60000;   // what is left must take so long to be worth waking a thread
static constexpr uint64_t pieces_per_thread = 4;

static inline uint64_t nanoseconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return uint64_t(time.tv_sec) * 1000000000u + uint64_t(time.tv_nsec);
}

static void request_abort(job &j, bool own_thread_too);  // in signals.h

// Note what went wrong, if it is the first that does, and have everybody stop.
static void fail(job &j, int status, const char *format, ...) {
  int before = PODIUM_CPU_SUCCESS;
  if (!__atomic_compare_exchange_n(&j.status, &before, status, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return;
  if (format) {
    va_list values;
    va_start(values, format);
    vsnprintf(j.detail, sizeof j.detail, format, values);
    va_end(values);
  }
  __atomic_store_n(&j.cancelled, true, __ATOMIC_RELEASE);
  request_abort(j, false);
}

static inline bool is_cancelled(const job &j) { return __atomic_load_n(&j.cancelled, __ATOMIC_ACQUIRE); }

// Go back to where the launch came from. The stacks of the block are abandoned as they are.
[[noreturn]] static void leave(block &b) {
  worker &w = static_cast<worker &>(b);
  w.in_kernel = false;
  void *abandoned;
  switch_stack(&abandoned, w.home, w.home_facts);
  __builtin_unreachable();
}

[[noreturn]] static void stop(block &b, int status, const char *detail) {
  worker &w = static_cast<worker &>(b);
  w.in_kernel = false;
  fail(*w.running, status, detail ? "%s" : nullptr, detail);
  leave(b);
}

#ifdef PODIUM_CPU_SANITIZE
static void open_dynamic(worker &w);  // in sanitizer.h
static void open_stacks(worker &w);
#else
static inline void open_dynamic(worker &) {}
static inline void open_stacks(worker &) {}
#endif

static void first_stack(void *address) {
  worker &w = *static_cast<worker *>(address);
  void *const tag = w.home_facts.tag;
  w.home_facts = begin_stack();
  w.home_facts.tag = tag;
  w.code->blocks(w);
}

// Run blocks of a job until there are none left.
static void participate(worker &w, job &j) {
  w.size = j.launch->block[0] * j.launch->block[1] * j.launch->block[2];
  w.launch = j.launch;
  w.parameters = j.parameters;
  w.code = j.code;
  w.had_block = false;
  __atomic_store_n(&w.abort_wanted, false, __ATOMIC_RELAXED);
  __atomic_store_n(&w.running, &j, __ATOMIC_RELEASE);
  open_dynamic(w);
  reset_fiber(w, 0, first_stack);
  w.home_facts.tag = own_tag();
  switch_stack(&w.home, w.fibers[0].context, facts_of(w, w.fibers[0]));
  __atomic_store_n(&w.running, static_cast<job *>(nullptr), __ATOMIC_RELEASE);
  if (is_cancelled(j))
    open_stacks(w);
}

static uint64_t claim_shared(job &j, uint64_t threads, uint64_t *first) {
  uint64_t next = __atomic_load_n(&j.next, __ATOMIC_RELAXED);
  while (next < j.blocks) {
    const uint64_t left = j.blocks - next, piece = left / (pieces_per_thread * threads), count = piece ? piece : 1;
    if (__atomic_compare_exchange_n(&j.next, &next, next + count, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      *first = next;
      return count;
    }
  }
  return 0;
}

static uint32_t pool_threads();   // in pool.h
static bool share_out(job &j, uint32_t threads);

// The owner runs alone at first, since waking another thread takes longer than many a launch, and looks at the clock.
static uint64_t claim_alone(job &j, uint64_t *first) {
  const uint64_t left = j.blocks - j.next;
  uint64_t count = 1;
  if (j.next) {
    const uint64_t past = nanoseconds(CLOCK_MONOTONIC) - j.start;
    const double each = double(past ? past : 1) / double(j.next);
    // To wake a thread costs the one that does it some microseconds as well, so no more are woken than have work.
    const double useful = each * double(left) / double(share_nanoseconds);
    const uint32_t others = pool_threads() - 1;
    if (useful > 1 && others && share_out(j, useful < others ? uint32_t(useful) : others))
      return claim_shared(j, pool_threads(), first);
    count = uint64_t(double(piece_nanoseconds) / each);
  } else if (j.blocks > 1) {
    j.start = nanoseconds(CLOCK_MONOTONIC);
  }
  count = count < 1 ? 1 : count > left ? left : count;
  *first = j.next;
  j.next += count;
  return count;
}

// In a cooperative launch each thread of the system has one block.
static uint64_t claim_grid_block(worker &w, job &j, uint64_t *first) {
  if (w.had_block)
    return 0;
  w.had_block = true;
  *first = __atomic_fetch_add(&j.next, 1, __ATOMIC_RELAXED);
  return 1;
}

static uint64_t claim(block &b, uint64_t *first) {
  worker &w = static_cast<worker &>(b);
  job &j = *w.running;
  w.in_kernel = false;
  uint64_t count = 0;
  if (is_cancelled(j))
    return 0;
  if (j.launch->cooperative)
    count = claim_grid_block(w, j, first);
  else if (j.shared_out || &w != j.owner)
    count = claim_shared(j, pool_threads(), first);
  else if (j.next < j.blocks)
    count = claim_alone(j, first);
  if (count == 0)
    return 0;
  w.in_kernel = true;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (is_cancelled(j)) {  // the signal may have come before there was something to take the thread out of
    w.in_kernel = false;
    return 0;
  }
  return count;
}

}  // namespace podium_cpu

#endif
