// Reductions over the threads of a group, and the operations that they are called with.
#ifndef PODIUM_CPU_COOPERATIVE_GROUPS_REDUCE_H
#define PODIUM_CPU_COOPERATIVE_GROUPS_REDUCE_H

#include "../cooperative_groups.h"

namespace cooperative_groups {

#define PODIUM_CPU_OPERATION(name, expression)   \
  template <class T = void>                      \
  struct name {                                  \
    template <class U>                           \
    U operator()(const U &a, const U &b) const { \
      return static_cast<U>(expression);         \
    }                                            \
  };
PODIUM_CPU_OPERATION(plus, a + b)
PODIUM_CPU_OPERATION(less, b < a ? b : a)
PODIUM_CPU_OPERATION(greater, a < b ? b : a)
PODIUM_CPU_OPERATION(bit_and, a &b)
PODIUM_CPU_OPERATION(bit_or, a | b)
PODIUM_CPU_OPERATION(bit_xor, a ^ b)
#undef PODIUM_CPU_OPERATION

}  // namespace cooperative_groups

namespace podium_cpu {

// What a thread brings to a reduction or a scan.
template <class T, class Operation>
struct folding {
  T value, result;
  Operation *operation;
};

template <class T, class Operation>
static inline folding<T, Operation> &folding_of(const lane &l) {
  return *reinterpret_cast<folding<T, Operation> *>(uintptr_t(l.value));
}

// In the order of the lanes.
template <class T, class Operation>
static inline void finish_fold(lane *lanes, uint32_t participants) {
  T total = folding_of<T, Operation>(lanes[__builtin_ctz(participants)]).value;
  for (uint32_t rest = participants & (participants - 1); rest; rest &= rest - 1) {
    folding<T, Operation> &each = folding_of<T, Operation>(lanes[__builtin_ctz(rest)]);
    total = (*each.operation)(total, each.value);
  }
  for (uint32_t rest = participants; rest; rest &= rest - 1)
    folding_of<T, Operation>(lanes[__builtin_ctz(rest)]).result = total;
}

}  // namespace podium_cpu

namespace cooperative_groups {

template <class Group, class T, class Operation>
static inline T reduce(const Group &group, T value, Operation operation, PODIUM_CPU_SITE) {
  podium_cpu::folding<T, Operation> mine = {value, value, &operation};
  podium_cpu::meet(group.podium_mask(), uintptr_t(&mine), 0, podium_cpu::finish_fold<T, Operation>,
                   PODIUM_CPU_AT("reduce() of a cooperative group"));
  return mine.result;
}

}  // namespace cooperative_groups

#endif
