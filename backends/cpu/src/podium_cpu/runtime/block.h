// The threads of a block that wait for each other: at barriers, in warp functions, for the grid.
#ifndef PODIUM_CPU_BLOCK_H
#define PODIUM_CPU_BLOCK_H

#include "divergence.h"

namespace podium_cpu {

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

static void run_fiber(void *address);
static bool release_converged(worker &w);

// Find a thread to go on with where none is ready: a fresh one, or lanes that have waited for others long enough.
static __attribute__((noinline)) fiber *next_fiber(worker &w) {
  if (w.started < w.size) {
    if (!ensure_stack(w, w.used))
      stop(w, PODIUM_CPU_ERROR_OUT_OF_MEMORY, nullptr);
    reset_fiber(w, w.used, run_fiber);
    w.fibers[w.used].at = nullptr;
    return &w.fibers[w.used++];
  }
  if (!release_converged(w))
    stop_deadlock(w);
  return pop(w.ready);
}

// Go on with another thread of the block, and return when this one is resumed. Those that have run already come first,
// which keeps few stacks in use, unless a fresh one is asked for.
static inline __attribute__((always_inline)) void suspend(worker &w, bool fresh = false) {
  fiber *self = w.current, *next = fresh && w.started < w.size ? nullptr : pop(w.ready);
  if (__builtin_expect(!next, 0))
    next = next_fiber(w);
  if (next == self)
    return;
  w.current = next;
  if (next->next) {
    // Stacks lie far apart. While the next thread runs, the one behind it is fetched, which halves the time of a switch.
    const char *top = static_cast<const char *>(next->next->context);
    for (int line = 0; line < 3; ++line)
      __builtin_prefetch(top + 64 * line);
  }
  switch_stack(&self->context, next->context, facts_of(w, *next));
}

static inline __attribute__((always_inline)) void wait_at(worker &w, uint32_t thread, const site &at) {
  w.current->at = &at;
  w.current->thread = thread;
  fiber *self = w.current;
  suspend(w);
  self->at = nullptr;
}

static inline void start_thread(worker &w, uint32_t thread) {
  if (thread >= w.started)
    w.started = thread + 1;
}

// From here on the block is accounted for.
static void begin_waiting(block &b, uint32_t thread) {
  worker &w = static_cast<worker &>(b);
  w.live = w.size - thread;  // the threads before this one have returned
  w.arrived = w.votes = 0;
  w.meeting_number = 0;
  w.apart = w.grid_waiting = false;
  w.used = 1;
  w.current = &w.fibers[0];
  w.current->at = nullptr;
  w.ready.first = w.waiting.first = nullptr;
  for (uint32_t i = 0; i < max_warps; ++i) {
    const uint32_t first = i * warp_threads;
    uint32_t absent = 0;
    if (thread > first)
      absent = thread - first < warp_threads ? (1u << (thread - first)) - 1 : ~0u;
    if (w.size < first + warp_threads)
      absent |= w.size <= first ? ~0u : ~0u << (w.size - first);
    w.warps[i].exited = absent;
    w.warps[i].pending = 0;
  }
}

// ---- the grid ----

static void release_grid(job &j) {
  if (j.grid_arrived && j.grid_arrived + j.grid_left >= j.blocks) {
    j.grid_arrived = 0;
    ++j.grid_generation;
    pthread_cond_broadcast(&j.grid_moved);
  }
}

static void wait_for_grid(worker &w) {
  job &j = *w.running;
  w.in_kernel = false;
  pthread_mutex_lock(&j.grid_lock);
  const uint32_t generation = j.grid_generation;
  ++j.grid_arrived;
  release_grid(j);
  while (j.grid_generation == generation && !is_cancelled(j)) {
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;  // whoever cancels the launch may be a signal handler, which cannot wake anybody
    if (until.tv_nsec >= 1000000000) {
      until.tv_nsec -= 1000000000;
      ++until.tv_sec;
    }
    pthread_cond_timedwait(&j.grid_moved, &j.grid_lock, &until);
  }
  pthread_mutex_unlock(&j.grid_lock);
  if (is_cancelled(j))
    leave(w);
  w.in_kernel = true;
}

// A block that has ended is not waited for.
static void leave_grid(job &j) {
  pthread_mutex_lock(&j.grid_lock);
  ++j.grid_left;
  release_grid(j);
  pthread_mutex_unlock(&j.grid_lock);
}

// ---- the block ----

static void release_barrier(worker &w) {
  if (__builtin_expect(is_divergent(w), 0))
    stop_divergent(w);
  if (w.grid_waiting) {
    w.grid_waiting = false;
    wait_for_grid(w);
  }
  w.result = w.votes;
  w.arrived = w.votes = 0;
  w.meeting_number = 0;
  append(w.ready, w.waiting);
}

static inline __attribute__((always_inline)) uint32_t arrive(worker &w, uint32_t thread, const site &at) {
  if (++w.arrived == w.live) {
    w.current->at = &at;
    w.current->thread = thread;
    release_barrier(w);
    w.current->at = nullptr;
  } else {
    push(w.waiting, w.current);
    wait_at(w, thread, at);
  }
  return w.result;
}

// Arrive as the first, or at what may be another barrier than that of the others.
static __attribute__((noinline)) uint32_t arrive_apart(worker &w, uint32_t thread, const site &at) {
  if (w.arrived == 0) {
    w.meeting = &at;
    w.meeting_number = at.number == no_number ? 0 : at.number;
  } else if (!is_same(*w.meeting, at)) {
    w.apart = true;
  }
  return arrive(w, thread, at);
}

static uint32_t barrier(block &b, uint32_t thread, uint32_t vote, const site &at) {
  worker &w = static_cast<worker &>(b);
  start_thread(w, thread);
  w.votes += vote;
  if (__builtin_expect(at.number != w.meeting_number, 0))
    return arrive_apart(w, thread, at);
  return arrive(w, thread, at);
}

static void grid_barrier(block &b, uint32_t thread, const site &at) {
  worker &w = static_cast<worker &>(b);
  if (!w.launch->cooperative) {
    fail(*w.running, PODIUM_CPU_ERROR_GRID_BARRIER, "at %s (%s:%d)", at.what, at.file, at.line);
    leave(w);
  }
  w.grid_waiting = true;
  barrier(b, thread, 0, at);
}

static void yield(block &b, uint32_t thread) {
  worker &w = static_cast<worker &>(b);
  start_thread(w, thread);
  push(w.ready, w.current);
  suspend(w, true);
}

// ---- the warp ----

// End the warp function that `participants` are in.
static void release_lanes(worker &w, warp &p, lane *lanes, uint32_t participants) {
  p.pending &= ~participants;
  queue released = {nullptr, nullptr};
  for (uint32_t rest = participants; rest; rest &= rest - 1)
    if (fiber *f = static_cast<fiber *>(lanes[__builtin_ctz(rest)].waiting)) {
      if (released.first)
        released.last->next = f;
      else
        released.first = f;
      released.last = f;
    }
  if (released.first)
    released.last->next = nullptr;
  append(w.ready, released);
}

// End a warp function if all that its mask names are in it; lanes that have returned from the kernel are not waited for.
static bool try_release(worker &w, warp &p, lane *lanes, const lane &model) {
  const uint32_t participants = (model.place ? ~0u : model.mask) & ~p.exited;
  if ((p.pending & participants) != participants)
    return false;
  for (uint32_t rest = participants; rest; rest &= rest - 1) {
    const lane &l = lanes[__builtin_ctz(rest)];
    if (l.mask != model.mask || l.finish != model.finish || l.place != model.place)
      return false;
  }
  model.finish(lanes, participants);
  release_lanes(w, p, lanes, participants);
  return true;
}

// Nobody can go on. Lanes that ask which lanes are with them have waited for others long enough: those that ask at the
// same place are together. Of several places in a warp one goes on, the first in memory, as the others may still be
// joined by its lanes.
static bool release_converged(worker &w) {
  bool released = false;
  for (uint32_t i = 0; i < max_warps; ++i) {
    warp &p = w.warps[i];
    lane *lanes = w.lanes + i * warp_threads;
    const void *place = nullptr;
    for (uint32_t rest = p.pending; rest; rest &= rest - 1) {
      const void *other = lanes[__builtin_ctz(rest)].place;
      if (other && (!place || other < place))
        place = other;
    }
    if (!place)
      continue;
    uint32_t together = 0;
    for (uint32_t rest = p.pending; rest; rest &= rest - 1)
      if (lanes[__builtin_ctz(rest)].place == place)
        together |= rest & -rest;
    lanes[__builtin_ctz(together)].finish(lanes, together);
    release_lanes(w, p, lanes, together);
    released = true;
  }
  return released;
}

// Meet the other lanes of the mask. The last to come has `finish` put every lane's result beside its value, before any
// of them goes on and brings its next value.
static void meet(block &b, uint32_t thread, const site &at) {
  worker &w = static_cast<worker &>(b);
  start_thread(w, thread);
  const uint32_t index = thread % warp_threads;
  warp &p = w.warps[thread / warp_threads];
  lane *lanes = w.lanes + (thread - index), &self = lanes[index];
  if (!self.place && !(self.mask >> index & 1)) {
    fail(*w.running, PODIUM_CPU_ERROR_MASK, "lane %u called %s (%s:%d) with the mask %#x", index, at.what, at.file,
         at.line, self.mask);
    leave(w);
  }
  self.waiting = nullptr;
  p.pending |= 1u << index;
  if (!try_release(w, p, lanes, self)) {
    self.waiting = w.current;
    wait_at(w, thread, at);
  }
}

// ---- the end ----

// Account for a thread that has returned from the kernel in a block where threads wait. Nobody waits for it any more.
static void exit_thread(block &b, uint32_t thread) {
  worker &w = static_cast<worker &>(b);
  start_thread(w, thread);
  --w.live;
  warp &p = w.warps[thread / warp_threads];
  lane *lanes = w.lanes + thread / warp_threads * warp_threads;
  p.exited |= 1u << thread % warp_threads;
  for (uint32_t rest = p.pending; rest; rest &= rest - 1) {
    const uint32_t first = uint32_t(__builtin_ctz(rest));
    if (p.pending >> first & 1)
      try_release(w, p, lanes, lanes[first]);
  }
  if (w.live && w.arrived == w.live)
    release_barrier(w);
}

// The base of every stack but the first.
static void run_fiber(void *address) {
  begin_stack();
  worker &w = *static_cast<worker *>(address);
  w.code->threads(w);
  if (w.live == 0)
    push(w.ready, &w.fibers[0]);  // it waits for the block to end
  suspend(w);
  __builtin_unreachable();
}

static void finish_block(block &b) {
  worker &w = static_cast<worker &>(b);
  if (w.live)
    suspend(w);
}

}  // namespace podium_cpu

#endif
