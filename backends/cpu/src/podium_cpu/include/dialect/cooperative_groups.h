// Cooperative groups: a block, tiles of it of up to a warp, the lanes that are together, and the grid.
#ifndef PODIUM_CPU_COOPERATIVE_GROUPS_H
#define PODIUM_CPU_COOPERATIVE_GROUPS_H

#include "../podium_cpu.h"

namespace podium_cpu {

static inline dim3 thread_position() { return dim3(alone(threadIdx.x), alone(threadIdx.y), alone(threadIdx.z)); }
static inline dim3 block_position() { return dim3(alone(blockIdx.x), alone(blockIdx.y), alone(blockIdx.z)); }
static inline dim3 block_shape() { return dim3(alone(blockDim.x), alone(blockDim.y), alone(blockDim.z)); }
static inline dim3 grid_shape() { return dim3(alone(gridDim.x), alone(gridDim.y), alone(gridDim.z)); }
static inline uint32_t block_threads() { return blockDim.x * blockDim.y * blockDim.z; }
static inline uint64_t grid_blocks() { return uint64_t(gridDim.x) * gridDim.y * gridDim.z; }
static inline uint64_t linear_block() {
  return blockIdx.x + uint64_t(gridDim.x) * (blockIdx.y + uint64_t(gridDim.y) * blockIdx.z);
}

// The number of a mask's lanes below a lane; the lane with a number; and the bits at a mask's lanes, moved together.
static inline uint32_t rank_in(uint32_t mask, uint32_t lane) { return __popc(mask & ((1u << lane) - 1)); }
static inline uint32_t lane_of(uint32_t mask, uint32_t rank) {
  for (; rank && mask; --rank) mask &= mask - 1;
  return mask ? __builtin_ctz(mask) : 0;
}
static inline uint32_t packed(uint32_t mask, uint32_t bits) {
  uint32_t result = 0;
  for (uint32_t rank = 0; mask; mask &= mask - 1, ++rank) result |= (bits >> __builtin_ctz(mask) & 1) << rank;
  return result;
}

// Lanes that meet leave the addresses of what they bring. None of them goes on before all has been read and written.
template <class T>
struct bringing {
  const T *value;
  T *result;
};

template <instruction, class T>
static inline void finish_large_shuffle(lane *lanes, uint32_t participants) {
  for (uint32_t rest = participants; rest; rest &= rest - 1) {
    const lane &l = lanes[__builtin_ctz(rest)];
    void *result = reinterpret_cast<bringing<T> *>(uintptr_t(l.value))->result;
    if (participants >> l.source & 1)
      memcpy(result, reinterpret_cast<bringing<T> *>(uintptr_t(lanes[l.source].value))->value, sizeof(T));
    else
      memset(result, 0, sizeof(T));
  }
}

template <bool large, instruction which>
struct shuffler {
  template <class T>
  static T shuffle(uint32_t mask, const T &value, uint32_t source, const site &at) {
    return podium_cpu::shuffle<which>(mask, value, source, at);
  }
};
template <instruction which>
struct shuffler<true, which> {
  template <class T>
  static T shuffle(uint32_t mask, const T &value, uint32_t source, const site &at) {
    T result = value;
    bringing<T> mine = {&value, &result};
    meet(mask, uintptr_t(&mine), source, finish_large_shuffle<which, T>, at);
    return result;
  }
};

// A value of any size, from a lane of the warp.
template <instruction which, class T>
static inline T shuffle_any(uint32_t mask, const T &value, uint32_t source, const site &at) {
  return shuffler<(sizeof(T) > 8), which>::shuffle(mask, value, source, at);
}

template <bool possible, class T>
struct only {};
template <class T>
struct only<true, T> {
  typedef T type;
};

}  // namespace podium_cpu

namespace cooperative_groups {

class thread_group;
class thread_block;
class grid_group;
static inline thread_group tiled_partition(const thread_group &, unsigned int);
static inline thread_block this_thread_block();
static inline grid_group this_grid();

// A group of any kind. Groups up to a warp have a mask of lanes.
class thread_group {
 protected:
  enum kind { block_kind, lanes_kind, grid_kind };
  kind k;
  uint32_t mask, lanes;

  thread_group(kind k, uint32_t mask, uint32_t lanes) : k(k), mask(mask), lanes(lanes) {}

  friend class thread_block;
  friend thread_group tiled_partition(const thread_group &, unsigned int);

 public:
  unsigned long long size() const {
    return k == lanes_kind   ? lanes
           : k == block_kind ? podium_cpu::block_threads()
                             : podium_cpu::grid_blocks() * podium_cpu::block_threads();
  }
  unsigned long long num_threads() const { return size(); }
  unsigned long long thread_rank() const {
    if (k == lanes_kind) return podium_cpu::rank_in(mask, podium_cpu::own_lane());
    const uint32_t linear = podium_cpu::linear_thread();
    return k == block_kind ? linear : podium_cpu::linear_block() * podium_cpu::block_threads() + linear;
  }
  void sync(PODIUM_CPU_SITE) const;
  bool is_valid() const { return true; }
};

struct arrival_token {};

class thread_block : public thread_group {
  thread_block() : thread_group(block_kind, 0, 0) {}
  friend thread_block this_thread_block();

 public:
  typedef cooperative_groups::arrival_token arrival_token;

  static void sync(podium_cpu::numbered n, PODIUM_CPU_SITE) {
    podium_cpu::barrier(false, "sync() of a thread_block", podium_file, podium_line, n);
  }
  static void sync(PODIUM_CPU_SITE) { sync(podium_cpu::numbered{podium_cpu::no_number}, podium_file, podium_line); }
  // To arrive early is to promise less than to wait for all, so the waiting does for both.
  static arrival_token barrier_arrive() { return arrival_token(); }
  static void barrier_wait(arrival_token, PODIUM_CPU_SITE) { sync(podium_file, podium_line); }
  static unsigned int thread_rank() { return podium_cpu::linear_thread(); }
  static unsigned int size() { return podium_cpu::block_threads(); }
  static unsigned int num_threads() { return size(); }
  static dim3 group_index() { return podium_cpu::block_position(); }
  static dim3 thread_index() { return podium_cpu::thread_position(); }
  static dim3 group_dim() { return podium_cpu::block_shape(); }
  static dim3 dim_threads() { return podium_cpu::block_shape(); }
};

static inline thread_block this_thread_block() { return thread_block(); }

class grid_group : public thread_group {
  grid_group() : thread_group(grid_kind, 0, 0) {}
  friend grid_group this_grid();

 public:
  typedef cooperative_groups::arrival_token arrival_token;

  // Only the blocks of a cooperative launch can wait for each other.
  static bool is_valid() { return podium_cpu::is_cooperative(); }
  static void sync(PODIUM_CPU_SITE) { podium_cpu::grid_barrier("sync() of a grid_group", podium_file, podium_line); }
  static arrival_token barrier_arrive() { return arrival_token(); }
  static void barrier_wait(arrival_token, PODIUM_CPU_SITE) { sync(podium_file, podium_line); }
  static unsigned long long thread_rank() {
    return podium_cpu::linear_block() * podium_cpu::block_threads() + podium_cpu::linear_thread();
  }
  static unsigned long long size() { return podium_cpu::grid_blocks() * podium_cpu::block_threads(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long num_blocks() { return podium_cpu::grid_blocks(); }
  static unsigned long long block_rank() { return podium_cpu::linear_block(); }
  static dim3 block_index() { return podium_cpu::block_position(); }
  static dim3 dim_blocks() { return podium_cpu::grid_shape(); }
  static dim3 group_dim() { return podium_cpu::grid_shape(); }
};

static inline grid_group this_grid() { return grid_group(); }

// What tiles and coalesced groups have in common.
class lane_group : public thread_group {
 protected:
  uint32_t group_number, group_count;

  lane_group(uint32_t mask, uint32_t lanes, uint32_t number, uint32_t count)
      : thread_group(lanes_kind, mask, lanes), group_number(number), group_count(count) {}

 public:
  unsigned int meta_group_rank() const { return group_number; }
  unsigned int meta_group_size() const { return group_count; }
  unsigned int thread_rank() const { return podium_cpu::rank_in(mask, podium_cpu::own_lane()); }
  void sync(PODIUM_CPU_SITE) const { __syncwarp(mask, podium_file, podium_line); }
  int any(int predicate, PODIUM_CPU_SITE) const { return __any_sync(mask, predicate, podium_file, podium_line); }
  int all(int predicate, PODIUM_CPU_SITE) const { return __all_sync(mask, predicate, podium_file, podium_line); }
  unsigned int ballot(int predicate, PODIUM_CPU_SITE) const {
    return podium_cpu::packed(mask, __ballot_sync(mask, predicate, podium_file, podium_line));
  }
  template <class T>
  unsigned int match_any(T value, PODIUM_CPU_SITE) const {
    return podium_cpu::packed(mask, __match_any_sync(mask, value, podium_file, podium_line));
  }
  template <class T>
  unsigned int match_all(T value, int &all, PODIUM_CPU_SITE) const {
    return podium_cpu::packed(mask, __match_all_sync(mask, value, &all, podium_file, podium_line));
  }

  // The lanes of the group, for functions on groups.
  uint32_t podium_mask() const { return mask; }
};

template <unsigned int n, class Parent = void>
class thread_block_tile;

template <unsigned int n>
class thread_block_tile<n, void> : public lane_group {
  static_assert(n >= 1 && n <= 32 && (n & (n - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

  static uint32_t own_mask() {
    const uint32_t all = n == 32 ? ~0u : (1u << n % 32) - 1;
    return all << (podium_cpu::own_lane() & ~(n - 1));
  }

 protected:
  thread_block_tile(uint32_t number, uint32_t count) : lane_group(own_mask(), n, number, count) {}

 public:
  static constexpr unsigned int size() { return n; }
  static constexpr unsigned int num_threads() { return n; }
  static unsigned int thread_rank() { return podium_cpu::own_lane() & (n - 1); }

  template <class T>
  T shfl(T value, int rank, PODIUM_CPU_SITE) const {
    const uint32_t from = (podium_cpu::own_lane() & ~(n - 1)) | (uint32_t(rank) & (n - 1));
    return podium_cpu::shuffle_any<podium_cpu::indexed>(mask, value, from,
                                                        PODIUM_CPU_AT("shfl() of a cooperative group"));
  }
  template <class T>
  T shfl_up(T value, unsigned int delta, PODIUM_CPU_SITE) const {
    const uint32_t lane = podium_cpu::own_lane();
    const uint32_t from = delta > thread_rank() ? lane : lane - delta;
    return podium_cpu::shuffle_any<podium_cpu::upwards>(mask, value, from,
                                                        PODIUM_CPU_AT("shfl_up() of a cooperative group"));
  }
  template <class T>
  T shfl_down(T value, unsigned int delta, PODIUM_CPU_SITE) const {
    const uint32_t lane = podium_cpu::own_lane();
    const uint32_t from = delta >= n - thread_rank() ? lane : lane + delta;
    return podium_cpu::shuffle_any<podium_cpu::downwards>(mask, value, from,
                                                          PODIUM_CPU_AT("shfl_down() of a cooperative group"));
  }
  template <class T>
  T shfl_xor(T value, unsigned int bits, PODIUM_CPU_SITE) const {
    const uint32_t lane = podium_cpu::own_lane();
    const uint32_t from = bits < n ? lane ^ bits : lane;
    return podium_cpu::shuffle_any<podium_cpu::crosswise>(mask, value, from,
                                                          PODIUM_CPU_AT("shfl_xor() of a cooperative group"));
  }
};

template <unsigned int n, class Parent>
class thread_block_tile : public thread_block_tile<n, void> {
 public:
  thread_block_tile(uint32_t number, uint32_t count) : thread_block_tile<n, void>(number, count) {}
};

class coalesced_group : public lane_group {
 public:
  explicit coalesced_group(uint32_t mask, uint32_t number = 0, uint32_t count = 1)
      : lane_group(mask, uint32_t(__popc(mask)), number, count) {}

  unsigned int size() const { return lanes; }
  unsigned int num_threads() const { return lanes; }

  template <class T>
  T shfl(T value, unsigned int rank, PODIUM_CPU_SITE) const {
    const uint32_t from = podium_cpu::lane_of(mask, rank);
    return podium_cpu::shuffle_any<podium_cpu::indexed>(mask, value, from,
                                                        PODIUM_CPU_AT("shfl() of a cooperative group"));
  }
  template <class T>
  T shfl_up(T value, unsigned int delta, PODIUM_CPU_SITE) const {
    const uint32_t rank = thread_rank();
    const uint32_t from = podium_cpu::lane_of(mask, delta > rank ? rank : rank - delta);
    return podium_cpu::shuffle_any<podium_cpu::upwards>(mask, value, from,
                                                        PODIUM_CPU_AT("shfl_up() of a cooperative group"));
  }
  template <class T>
  T shfl_down(T value, unsigned int delta, PODIUM_CPU_SITE) const {
    const uint32_t rank = thread_rank();
    const uint32_t from = podium_cpu::lane_of(mask, delta >= lanes - rank ? rank : rank + delta);
    return podium_cpu::shuffle_any<podium_cpu::downwards>(mask, value, from,
                                                          PODIUM_CPU_AT("shfl_down() of a cooperative group"));
  }
};

// Inlined, since the place of the call tells which lanes are together.
static inline __attribute__((always_inline)) coalesced_group coalesced_threads(PODIUM_CPU_SITE) {
  return coalesced_group(__activemask(podium_file, podium_line));
}

static inline thread_block_tile<1, void> this_thread() { return thread_block_tile<1, thread_block>(0, 1); }

template <unsigned int n>
static inline typename podium_cpu::only<(n <= 32), thread_block_tile<n, thread_block>>::type tiled_partition(
    const thread_block &block) {
  return thread_block_tile<n, thread_block>(block.thread_rank() / n, (block.size() + n - 1) / n);
}
template <unsigned int n, unsigned int m, class Parent>
static inline typename podium_cpu::only<(n <= m), thread_block_tile<n, thread_block_tile<m, Parent>>>::type
tiled_partition(const thread_block_tile<m, Parent> &tile) {
  return thread_block_tile<n, thread_block_tile<m, Parent>>(tile.thread_rank() / n, m / n);
}
// Tiles of several warps would need barriers of their own: they are refused where they are asked for.
template <unsigned int n>
typename podium_cpu::only<(n > 32), thread_group>::type tiled_partition(const thread_block &) = delete;

static inline coalesced_group tiled_partition(const coalesced_group &group, unsigned int n) {
  const uint32_t number = group.thread_rank() / n, all = group.podium_mask();
  uint32_t mask = 0, rank = 0;
  for (uint32_t rest = all; rest; rest &= rest - 1, ++rank)
    if (rank / n == number) mask |= rest & -rest;
  return coalesced_group(mask, number, (group.size() + n - 1) / n);
}
static inline thread_group tiled_partition(const thread_group &group, unsigned int n) {
  if (group.k == thread_group::lanes_kind) return tiled_partition(coalesced_group(group.mask), n);
  const uint32_t lane = podium_cpu::own_lane();
  return thread_group(thread_group::lanes_kind, (n >= 32 ? ~0u : (1u << n) - 1) << (lane & ~(n - 1)), n);
}

// The lanes of a group that have the same label, or the same answer.
template <class Group, class Label>
static inline coalesced_group labeled_partition(const Group &group, Label label, PODIUM_CPU_SITE) {
  const uint32_t all = group.podium_mask(), mask = __match_any_sync(all, label, podium_file, podium_line);
  const uint32_t first = mask & -mask;
  const uint32_t firsts = __ballot_sync(all, 1u << podium_cpu::own_lane() == first, podium_file, podium_line);
  return coalesced_group(mask, uint32_t(__popc(firsts & (first - 1))), uint32_t(__popc(firsts)));
}
template <class Group>
static inline coalesced_group binary_partition(const Group &group, bool predicate, PODIUM_CPU_SITE) {
  const uint32_t all = group.podium_mask(), yes = __ballot_sync(all, predicate, podium_file, podium_line);
  return coalesced_group(predicate ? yes : all & ~yes, predicate, 2);
}

inline void thread_group::sync(const char *podium_file, int podium_line) const {
  if (k == lanes_kind)
    __syncwarp(mask, podium_file, podium_line);
  else if (k == block_kind)
    thread_block::sync(podium_file, podium_line);
  else
    grid_group::sync(podium_file, podium_line);
}

template <class Group>
static inline void sync(const Group &group, PODIUM_CPU_SITE) {
  group.sync(podium_file, podium_line);
}
static inline void sync(podium_cpu::numbered n, const thread_block &, PODIUM_CPU_SITE) {
  thread_block::sync(n, podium_file, podium_line);
}
template <class Group>
static inline auto thread_rank(const Group &group) -> decltype(group.thread_rank()) {
  return group.thread_rank();
}
template <class Group>
static inline auto group_size(const Group &group) -> decltype(group.size()) {
  return group.size();
}

// One thread of the group calls a function. Nobody waits for it, but who wants its result.
template <class Group, class Function, class... Arguments>
static inline void invoke_one(const Group &group, Function &&function, Arguments &&...arguments) {
  if (group.thread_rank() == 0) function(static_cast<Arguments &&>(arguments)...);
}
template <class Group, class Function, class... Arguments>
static inline auto invoke_one_broadcast(const Group &group, Function &&function, Arguments &&...arguments)
    -> decltype(function(static_cast<Arguments &&>(arguments)...)) {
  decltype(function(static_cast<Arguments &&>(arguments)...)) result;
  if (group.thread_rank() == 0) result = function(static_cast<Arguments &&>(arguments)...);
  return group.shfl(result, 0);
}

}  // namespace cooperative_groups

#endif
