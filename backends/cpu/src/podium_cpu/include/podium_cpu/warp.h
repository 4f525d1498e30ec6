// Functions of a warp: 32 threads of a block with consecutive indices.
#ifndef PODIUM_CPU_WARP_H
#define PODIUM_CPU_WARP_H

#include "launch.h"

namespace podium_cpu {

// End the warp function that `participants` are in.
static inline void release_lanes(worker &w, warp &p, lane *lanes, uint32_t participants) {
  p.pending &= ~participants;
  for (uint32_t rest = participants; rest; rest &= rest - 1) {
    lane &l = lanes[__builtin_ctz(rest)];
    if (l.waiting)
      push(w.ready, l.waiting);
  }
}

// End a warp function if all that its mask names are in it; lanes that have returned from the kernel are not waited for.
static inline bool try_release(worker &w, warp &p, lane *lanes, const lane &model) {
  const uint32_t participants = (model.site ? ~0u : model.mask) & ~p.exited;
  if ((p.pending & participants) != participants)
    return false;
  for (uint32_t rest = participants; rest; rest &= rest - 1) {
    const lane &l = lanes[__builtin_ctz(rest)];
    if (l.mask != model.mask || l.finish != model.finish || l.site != model.site)
      return false;
  }
  model.finish(lanes, participants);
  release_lanes(w, p, lanes, participants);
  return true;
}

static inline void release_after_exit(worker &w, uint32_t linear) {
  warp &p = w.warps[linear / warp_threads];
  lane *lanes = w.lanes + linear / warp_threads * warp_threads;
  for (uint32_t rest = p.pending; rest; rest &= rest - 1) {
    const uint32_t first = __builtin_ctz(rest);
    if (p.pending >> first & 1)
      try_release(w, p, lanes, lanes[first]);
  }
}

// Nobody can go on. Lanes that ask which lanes are with them have waited for others long enough: those that ask at the
// same place are together. Of several places in a warp one goes on, the first in memory, as the others may still be
// joined by its lanes.
static inline bool release_converged(worker &w) {
  bool released = false;
  for (uint32_t i = 0; i < max_warps; ++i) {
    warp &p = w.warps[i];
    lane *lanes = w.lanes + i * warp_threads;
    const void *site = nullptr;
    for (uint32_t rest = p.pending; rest; rest &= rest - 1) {
      const void *other = lanes[__builtin_ctz(rest)].site;
      if (other && (!site || other < site))
        site = other;
    }
    if (!site)
      continue;
    uint32_t together = 0;
    for (uint32_t rest = p.pending; rest; rest &= rest - 1)
      if (lanes[__builtin_ctz(rest)].site == site)
        together |= rest & -rest;
    lanes[__builtin_ctz(together)].finish(lanes, together);
    release_lanes(w, p, lanes, together);
    released = true;
  }
  return released;
}

// Meet the other lanes of the mask. The last to come has `finish` put every lane's result beside its value, before any
// of them goes on and brings its next value.
static inline __attribute__((noinline)) uint64_t meet(uint32_t mask, uint64_t value, uint32_t source,
                                               void (*finish)(lane *, uint32_t), const void *site = nullptr) {
  worker &w = *here;
  const uint32_t linear = enter(w), index = linear % warp_threads;
  warp &p = w.warps[linear / warp_threads];
  lane *lanes = w.lanes + (linear - index);
  lane &self = lanes[index];
  if (!site && !(mask >> index & 1))
    stop(PODIUM_CPU_ERROR_MASK);
  self.value = value;
  self.finish = finish;
  self.site = site;
  self.waiting = nullptr;
  self.mask = mask;
  self.source = source;
  p.pending |= 1u << index;
  if (!try_release(w, p, lanes, self)) {
    self.waiting = w.current;
    suspend(w);
  }
  return self.result;
}

static inline void finish_nothing(lane *, uint32_t) {}

static inline void finish_shuffle(lane *lanes, uint32_t participants) {
  for (uint32_t rest = participants; rest; rest &= rest - 1) {
    lane &l = lanes[__builtin_ctz(rest)];
    // What comes from a lane that does not take part is undefined; here it is the lane's own value.
    l.result = participants >> l.source & 1 ? lanes[l.source].value : l.value;
  }
}

// The lanes with a true predicate, and above them the lanes that took part.
static inline void finish_ballot(lane *lanes, uint32_t participants) {
  uint64_t result = uint64_t(participants) << 32;
  for (uint32_t rest = participants; rest; rest &= rest - 1)
    if (lanes[__builtin_ctz(rest)].value)
      result |= rest & -rest;
  for (uint32_t rest = participants; rest; rest &= rest - 1)
    lanes[__builtin_ctz(rest)].result = result;
}

// For each lane the lanes with its value, and above them the lanes that took part.
static inline void finish_match(lane *lanes, uint32_t participants) {
  for (uint32_t rest = participants; rest; rest &= rest - 1) {
    lane &l = lanes[__builtin_ctz(rest)];
    l.result = uint64_t(participants) << 32;
    for (uint32_t other = participants; other; other &= other - 1)
      if (lanes[__builtin_ctz(other)].value == l.value)
        l.result |= other & -other;
  }
}

template <class Operation>
static inline void finish_reduce(lane *lanes, uint32_t participants) {
  const uint32_t first = __builtin_ctz(participants);
  uint64_t result = lanes[first].value;
  for (uint32_t rest = participants & (participants - 1); rest; rest &= rest - 1)
    result = Operation::apply(result, lanes[__builtin_ctz(rest)].value);
  for (uint32_t rest = participants; rest; rest &= rest - 1)
    lanes[__builtin_ctz(rest)].result = result;
}

template <class T>
static inline T shuffle(uint32_t mask, T value, uint32_t source) {
  static_assert(sizeof(T) <= 8, "a shuffle moves values of at most eight bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  bits = meet(mask, bits, source, finish_shuffle);
  memcpy(static_cast<void *>(&value), &bits, sizeof(T));
  return value;
}

static inline uint32_t own_lane() { return linear_thread() % warp_threads; }

}  // namespace podium_cpu

static inline void __syncwarp(unsigned int mask = 0xffffffffu) {
  podium_cpu::meet(mask, 0, 0, podium_cpu::finish_nothing);
}

template <class T>
static inline T __shfl_sync(unsigned int mask, T value, int source, int width = 32) {
  const int lane = int(podium_cpu::own_lane());
  return podium_cpu::shuffle(mask, value, uint32_t((lane & ~(width - 1)) | (source & (width - 1))));
}

template <class T>
static inline T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32) {
  const uint32_t lane = podium_cpu::own_lane(), within = lane & uint32_t(width - 1);
  return podium_cpu::shuffle(mask, value, delta > within ? lane : lane - delta);
}

template <class T>
static inline T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32) {
  const uint32_t lane = podium_cpu::own_lane(), within = lane & uint32_t(width - 1);
  return podium_cpu::shuffle(mask, value, delta >= uint32_t(width) - within ? lane : lane + delta);
}

template <class T>
static inline T __shfl_xor_sync(unsigned int mask, T value, int lane_mask, int width = 32) {
  const uint32_t lane = podium_cpu::own_lane(), source = lane ^ uint32_t(lane_mask);
  return podium_cpu::shuffle(mask, value, source > (lane | uint32_t(width - 1)) ? lane : source);
}

static inline unsigned int __ballot_sync(unsigned int mask, int predicate) {
  return uint32_t(podium_cpu::meet(mask, predicate != 0, 0, podium_cpu::finish_ballot));
}
static inline int __any_sync(unsigned int mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
static inline int __all_sync(unsigned int mask, int predicate) { return __ballot_sync(mask, predicate == 0) == 0; }

template <class T>
static inline unsigned int __match_any_sync(unsigned int mask, T value) {
  static_assert(sizeof(T) <= 8, "a match compares values of at most eight bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  return uint32_t(podium_cpu::meet(mask, bits, 0, podium_cpu::finish_match));
}

template <class T>
static inline unsigned int __match_all_sync(unsigned int mask, T value, int *all) {
  static_assert(sizeof(T) <= 8, "a match compares values of at most eight bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  const uint64_t result = podium_cpu::meet(mask, bits, 0, podium_cpu::finish_match);
  *all = uint32_t(result) == uint32_t(result >> 32);
  return *all ? uint32_t(result) : 0;
}

#define PODIUM_CPU_REDUCE(name, type, expression)                                                      \
  namespace podium_cpu {                                                                               \
  struct name##_##type {                                                                               \
    static uint64_t apply(uint64_t left, uint64_t right) {                                             \
      const type a = type(left), b = type(right);                                                      \
      return uint64_t(expression);                                                                     \
    }                                                                                                  \
  };                                                                                                   \
  }                                                                                                    \
  static inline type __reduce_##name##_sync(unsigned int mask, type value) {                           \
    return type(podium_cpu::meet(mask, uint64_t(value), 0,                                             \
                                 podium_cpu::finish_reduce<podium_cpu::name##_##type>));               \
  }

typedef unsigned int podium_cpu_unsigned;
PODIUM_CPU_REDUCE(add, podium_cpu_unsigned, a + b)
PODIUM_CPU_REDUCE(min, podium_cpu_unsigned, a < b ? a : b)
PODIUM_CPU_REDUCE(max, podium_cpu_unsigned, a > b ? a : b)
PODIUM_CPU_REDUCE(and, podium_cpu_unsigned, a & b)
PODIUM_CPU_REDUCE(or, podium_cpu_unsigned, a | b)
PODIUM_CPU_REDUCE(xor, podium_cpu_unsigned, a ^ b)
PODIUM_CPU_REDUCE(add, int, unsigned(a) + unsigned(b))
PODIUM_CPU_REDUCE(min, int, a < b ? a : b)
PODIUM_CPU_REDUCE(max, int, a > b ? a : b)
#undef PODIUM_CPU_REDUCE

namespace podium_cpu {

static inline void finish_active(lane *lanes, uint32_t participants) {
  for (uint32_t rest = participants; rest; rest &= rest - 1)
    lanes[__builtin_ctz(rest)].result = participants;
}

// Not inlined, so that the address it returns to tells one place from another.
static inline __attribute__((noinline)) unsigned int active_mask() {
  return uint32_t(meet(0, 0, 0, finish_active, __builtin_return_address(0)));
}

}  // namespace podium_cpu

// The lanes that reach this place together: those that come here before all others have to wait for something else.
static inline __attribute__((always_inline)) unsigned int __activemask() { return podium_cpu::active_mask(); }

#endif
