// Copies by a group. They are made at once, and waiting for them is waiting for the group.
#ifndef PODIUM_CPU_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#define PODIUM_CPU_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H

#include "../cooperative_groups.h"

namespace cuda {

// A size with the alignment that both places have.
template <size_t alignment>
struct aligned_size_t {
  size_t value;
  explicit aligned_size_t(size_t size) : value(size) {}
  operator size_t() const { return value; }
};

}  // namespace cuda

namespace podium_cpu {

template <class Group>
static inline void copy_together(const Group &group, void *to, const void *from, size_t bytes) {
  const size_t share = 16 * ((bytes / 16 + group.size()) / group.size()), first = share * group.thread_rank();
  if (first < bytes)
    memcpy(static_cast<char *>(to) + first, static_cast<const char *>(from) + first,
           bytes - first < share ? bytes - first : share);
}

}  // namespace podium_cpu

namespace cooperative_groups {

template <class Group, class T, class U>
static inline void memcpy_async(const Group &group, T *to, const U *from, size_t bytes) {
  podium_cpu::copy_together(group, to, from, bytes);
}
template <class Group, class T, class U, size_t alignment>
static inline void memcpy_async(const Group &group, T *to, const U *from, cuda::aligned_size_t<alignment> bytes) {
  podium_cpu::copy_together(group, to, from, bytes);
}
// With numbers of elements: as many as both have.
template <class Group, class T>
static inline void memcpy_async(const Group &group, T *to, size_t to_count, const T *from, size_t from_count) {
  podium_cpu::copy_together(group, to, from, sizeof(T) * (to_count < from_count ? to_count : from_count));
}

template <class Group>
static inline void wait(const Group &group, PODIUM_CPU_SITE) {
  group.sync(podium_file, podium_line);
}
template <unsigned int stages, class Group>
static inline void wait_prior(const Group &group, PODIUM_CPU_SITE) {
  group.sync(podium_file, podium_line);
}

}  // namespace cooperative_groups

#endif
