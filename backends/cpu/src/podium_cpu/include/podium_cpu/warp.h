// Functions of a warp: 32 threads of a block with consecutive indices.
#ifndef PODIUM_CPU_WARP_H
#define PODIUM_CPU_WARP_H

#include "barrier.h"

namespace podium_cpu {

// Wait for the lanes that the mask names, and give each what `finish` makes of all their values.
// `place` is given instead of a mask by a lane that asks which lanes are with it.
static inline __attribute__((noinline)) uint64_t meet(uint32_t mask, uint64_t value, uint32_t source,
                                               void (*finish)(lane *, uint32_t), const site &at,
                                               const void *place = nullptr) {
  waiting_thread thread;
  lane &self = thread.b.lanes[thread.linear];
  self.value = value;
  self.finish = finish;
  self.place = place;
  self.mask = mask;
  self.source = source;
  podium_cpu_runtime->meet(thread.b, thread.linear, at);
  return self.result;
}

static inline void finish_nothing(lane *, uint32_t) {}

// Lanes meet that have the same `finish`. Functions that are other instructions of a GPU, where they do not meet, have
// one of their own, though it does the same.
enum instruction { indexed, upwards, downwards, crosswise, lanes_with, any_lane, all_lanes };

template <instruction>
static inline void finish_shuffle(lane *lanes, uint32_t participants) {
  if (participants == ~0u) {
    for (uint32_t i = 0; i < warp_threads; ++i)
      lanes[i].result = lanes[lanes[i].source].value;
    return;
  }
  for (uint32_t rest = participants; rest; rest &= rest - 1) {
    lane &l = lanes[__builtin_ctz(rest)];
    // What comes from a lane that does not take part is undefined. Sums that are found in the wild rely on a zero.
    l.result = participants >> l.source & 1 ? lanes[l.source].value : 0;
  }
}

// The lanes with a true predicate, and above them the lanes that took part.
template <instruction>
static inline void finish_ballot(lane *lanes, uint32_t participants) {
  uint64_t result = uint64_t(participants) << 32;
  for (uint32_t rest = participants; rest; rest &= rest - 1)
    if (lanes[__builtin_ctz(rest)].value)
      result |= rest & -rest;
  for (uint32_t rest = participants; rest; rest &= rest - 1)
    lanes[__builtin_ctz(rest)].result = result;
}

// For each lane the lanes with its value, and above them the lanes that took part.
template <instruction>
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

template <instruction which, class T>
static inline T shuffle(uint32_t mask, T value, uint32_t source, const site &at) {
  static_assert(sizeof(T) <= 8, "a shuffle moves values of at most eight bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  bits = meet(mask, bits, source, finish_shuffle<which>, at);
  memcpy(static_cast<void *>(&value), &bits, sizeof(T));
  return value;
}

static inline uint32_t own_lane() { return linear_thread() % warp_threads; }

}  // namespace podium_cpu

#define PODIUM_CPU_AT(what) (podium_cpu::site{what, podium_file, podium_line, podium_cpu::no_number})

static inline void __syncwarp(unsigned int mask = 0xffffffffu, PODIUM_CPU_SITE) {
  podium_cpu::meet(mask, 0, 0, podium_cpu::finish_nothing, PODIUM_CPU_AT("__syncwarp()"));
}

template <class T>
static inline T __shfl_sync(unsigned int mask, T value, int source, int width = 32, PODIUM_CPU_SITE) {
  const int lane = int(podium_cpu::own_lane());
  const uint32_t from = uint32_t((lane & ~(width - 1)) | (source & (width - 1)));
  return podium_cpu::shuffle<podium_cpu::indexed>(mask, value, from, PODIUM_CPU_AT("__shfl_sync()"));
}

template <class T>
static inline T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32, PODIUM_CPU_SITE) {
  const uint32_t lane = podium_cpu::own_lane(), within = lane & uint32_t(width - 1);
  return podium_cpu::shuffle<podium_cpu::upwards>(mask, value, delta > within ? lane : lane - delta,
                                                  PODIUM_CPU_AT("__shfl_up_sync()"));
}

template <class T>
static inline T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32, PODIUM_CPU_SITE) {
  const uint32_t lane = podium_cpu::own_lane(), within = lane & uint32_t(width - 1);
  const uint32_t from = delta >= uint32_t(width) - within ? lane : lane + delta;
  return podium_cpu::shuffle<podium_cpu::downwards>(mask, value, from, PODIUM_CPU_AT("__shfl_down_sync()"));
}

template <class T>
static inline T __shfl_xor_sync(unsigned int mask, T value, int lane_mask, int width = 32, PODIUM_CPU_SITE) {
  const uint32_t lane = podium_cpu::own_lane(), source = lane ^ uint32_t(lane_mask);
  return podium_cpu::shuffle<podium_cpu::crosswise>(mask, value, source > (lane | uint32_t(width - 1)) ? lane : source,
                                                    PODIUM_CPU_AT("__shfl_xor_sync()"));
}

namespace podium_cpu {

template <instruction which>
static inline uint32_t ballot(uint32_t mask, bool predicate, const site &at) {
  return uint32_t(meet(mask, predicate, 0, finish_ballot<which>, at));
}

}  // namespace podium_cpu

static inline unsigned int __ballot_sync(unsigned int mask, int predicate, PODIUM_CPU_SITE) {
  return podium_cpu::ballot<podium_cpu::lanes_with>(mask, predicate != 0, PODIUM_CPU_AT("__ballot_sync()"));
}
static inline int __any_sync(unsigned int mask, int predicate, PODIUM_CPU_SITE) {
  return podium_cpu::ballot<podium_cpu::any_lane>(mask, predicate != 0, PODIUM_CPU_AT("__any_sync()")) != 0;
}
static inline int __all_sync(unsigned int mask, int predicate, PODIUM_CPU_SITE) {
  return podium_cpu::ballot<podium_cpu::all_lanes>(mask, predicate == 0, PODIUM_CPU_AT("__all_sync()")) == 0;
}

template <class T>
static inline unsigned int __match_any_sync(unsigned int mask, T value, PODIUM_CPU_SITE) {
  static_assert(sizeof(T) <= 8, "a match compares values of at most eight bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  return uint32_t(podium_cpu::meet(mask, bits, 0, podium_cpu::finish_match<podium_cpu::any_lane>,
                                   PODIUM_CPU_AT("__match_any_sync()")));
}

template <class T>
static inline unsigned int __match_all_sync(unsigned int mask, T value, int *all, PODIUM_CPU_SITE) {
  static_assert(sizeof(T) <= 8, "a match compares values of at most eight bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  const uint64_t result = podium_cpu::meet(mask, bits, 0, podium_cpu::finish_match<podium_cpu::all_lanes>,
                                           PODIUM_CPU_AT("__match_all_sync()"));
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
  static inline type __reduce_##name##_sync(unsigned int mask, type value, PODIUM_CPU_SITE) {          \
    return type(podium_cpu::meet(mask, uint64_t(value), 0,                                             \
                                 podium_cpu::finish_reduce<podium_cpu::name##_##type>,                 \
                                 PODIUM_CPU_AT("__reduce_" #name "_sync()")));                         \
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
static inline __attribute__((noinline)) unsigned int active_mask(const site &at) {
  return uint32_t(meet(0, 0, 0, finish_active, at, __builtin_return_address(0)));
}

}  // namespace podium_cpu

// The lanes that reach this place together: those that come here before all others have to wait for something else.
static inline __attribute__((always_inline)) unsigned int __activemask(PODIUM_CPU_SITE) {
  return podium_cpu::active_mask(PODIUM_CPU_AT("__activemask()"));
}

#endif
