// Prefix sums over the threads of a group.
#ifndef PODIUM_CPU_COOPERATIVE_GROUPS_SCAN_H
#define PODIUM_CPU_COOPERATIVE_GROUPS_SCAN_H

#include "reduce.h"

namespace podium_cpu {

template <class T, class Operation, bool inclusive>
static inline void finish_scan(lane *lanes, uint32_t participants) {
  T total = T();
  bool first = true;
  for (uint32_t rest = participants; rest; rest &= rest - 1, first = false) {
    folding<T, Operation> &each = folding_of<T, Operation>(lanes[__builtin_ctz(rest)]);
    const T before = total;
    total = first ? each.value : (*each.operation)(total, each.value);
    each.result = inclusive ? total : before;
  }
}

template <bool inclusive, class T, class Operation>
static inline T scan(uint32_t mask, T value, Operation operation, const site &at) {
  folding<T, Operation> mine = {value, value, &operation};
  meet(mask, uintptr_t(&mine), 0, finish_scan<T, Operation, inclusive>, at);
  return mine.result;
}

}  // namespace podium_cpu

namespace cooperative_groups {

template <class Group, class T, class Operation = plus<T>>
static inline T inclusive_scan(const Group &group, T value, Operation operation = Operation(), PODIUM_CPU_SITE) {
  return podium_cpu::scan<true>(group.podium_mask(), value, operation,
                                PODIUM_CPU_AT("inclusive_scan() of a cooperative group"));
}
// The first thread gets T().
template <class Group, class T, class Operation = plus<T>>
static inline T exclusive_scan(const Group &group, T value, Operation operation = Operation(), PODIUM_CPU_SITE) {
  return podium_cpu::scan<false>(group.podium_mask(), value, operation,
                                 PODIUM_CPU_AT("exclusive_scan() of a cooperative group"));
}

}  // namespace cooperative_groups

#endif
