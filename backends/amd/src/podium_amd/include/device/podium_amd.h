// What the CUDA dialect has and hipRTC has not: podium_amd.compiler puts it in front of every source.
//
// Warps. A warp has warpSize threads, 64 on some devices and 32 on others. Masks of 64 bits are of the whole warp. A mask
// of 32 bits, as CUDA's are, is of the 32 lanes among which the caller is: votes, matches and __shfl_sync stay in that
// half, so that text for warps of 32 threads means the same here. __shfl_up_sync, __shfl_down_sync and __shfl_xor_sync
// go over the whole warp: steps below 32 give the same, and loops that begin with warpSize / 2 need it.
#pragma once

#define __CUDACC_RTC__ 1

#include "podium_amd_integers.h"

#ifndef __grid_constant__
#define __grid_constant__
#endif
#ifndef __align__
#define __align__(bytes) __attribute__((aligned(bytes)))
#endif
#undef __managed__
#define __managed__ podium_amd_has_no_managed_variables

#define __trap() __builtin_trap()
#define __nanosleep(nanoseconds) __builtin_amdgcn_s_sleep(1)
#define __brkpt() __builtin_trap()

#define PODIUM_AMD_DEVICE static __device__ inline __attribute__((always_inline))

namespace podium_amd {

template <class T> struct wide { typedef unsigned int mask; enum { lanes = 32 }; };
template <> struct wide<unsigned long> { typedef unsigned long long mask; enum { lanes = 64 }; };
template <> struct wide<unsigned long long> : wide<unsigned long> {};
template <> struct wide<long> : wide<unsigned long> {};
template <> struct wide<long long> : wide<unsigned long> {};

// The first lane of those that a mask of this type is of.
template <class M> PODIUM_AMD_DEVICE unsigned int first_lane() {
  return wide<M>::lanes == 32 ? __lane_id() & ~31u : 0u;
}
template <class M> PODIUM_AMD_DEVICE typename wide<M>::mask vote(unsigned long long lanes) {
  return static_cast<typename wide<M>::mask>(lanes >> first_lane<M>());
}

// A value of any size goes from lane to lane in words.
template <class T, class F> PODIUM_AMD_DEVICE T by_words(T value, F move) {
  union words {
    T value;
    int word[(sizeof(T) + 3) / 4];
    __device__ words() {}
    __device__ ~words() {}
  } all;
  all.word[sizeof all.word / sizeof all.word[0] - 1] = 0;
  __builtin_memcpy(&all.value, &value, sizeof value);
  for (int &word : all.word) word = move(word);
  return all.value;
}

template <class M, class T> PODIUM_AMD_DEVICE T shfl_sync(M, T value, int source, int width = wide<M>::lanes) {
  const int lanes = width < warpSize ? width : warpSize;
  return by_words(value, [=](int word) { return __shfl(word, source, lanes); });
}
template <class M, class T> PODIUM_AMD_DEVICE T shfl_up_sync(M, T value, unsigned int delta, int width = warpSize) {
  return by_words(value, [=](int word) { return __shfl_up(word, delta, width); });
}
template <class M, class T> PODIUM_AMD_DEVICE T shfl_down_sync(M, T value, unsigned int delta, int width = warpSize) {
  return by_words(value, [=](int word) { return __shfl_down(word, delta, width); });
}
template <class M, class T> PODIUM_AMD_DEVICE T shfl_xor_sync(M, T value, int lane_mask, int width = warpSize) {
  return by_words(value, [=](int word) { return __shfl_xor(word, lane_mask, width); });
}

template <class M> PODIUM_AMD_DEVICE typename wide<M>::mask ballot_sync(M mask, int predicate) {
  return vote<M>(__ballot(predicate)) & static_cast<typename wide<M>::mask>(mask);
}
template <class M> PODIUM_AMD_DEVICE int any_sync(M mask, int predicate) { return ballot_sync(mask, predicate) != 0; }
template <class M> PODIUM_AMD_DEVICE int all_sync(M mask, int predicate) { return ballot_sync(mask, !predicate) == 0; }

PODIUM_AMD_DEVICE unsigned int activemask() { return vote<unsigned int>(__ballot(1)); }

// Threads of a warp go on together; the fences keep the compiler from moving accesses over it.
template <class M> PODIUM_AMD_DEVICE void syncwarp(M) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
PODIUM_AMD_DEVICE void syncwarp() { syncwarp(0u); }

template <class T> PODIUM_AMD_DEVICE bool same_bits(const T &one, const T &other) {
  const char *its = reinterpret_cast<const char *>(&one), *others = reinterpret_cast<const char *>(&other);
  for (unsigned int i = 0; i < sizeof one; i++)
    if (its[i] != others[i]) return false;
  return true;
}
template <class M, class T> PODIUM_AMD_DEVICE typename wide<M>::mask match_any_sync(M mask, T value) {
  typedef typename wide<M>::mask lanes;
  lanes result = 0;
  for (lanes left = static_cast<lanes>(mask) & vote<M>(__ballot(1)); left != 0;) {
    const int leader = __builtin_ctzll(left);
    const T its = shfl_sync(mask, value, leader);
    const bool equal = same_bits(its, value);
    const lanes same = ballot_sync(mask, equal);
    if (equal) result = same;
    left &= ~same & ~(lanes(1) << leader);
  }
  return result;
}
template <class M, class T> PODIUM_AMD_DEVICE typename wide<M>::mask match_all_sync(M mask, T value, int *predicate) {
  typedef typename wide<M>::mask lanes;
  const lanes all = static_cast<lanes>(mask) & vote<M>(__ballot(1));
  const T its = shfl_sync(mask, value, __builtin_ctzll(all));
  *predicate = ballot_sync(mask, same_bits(its, value)) == all;
  return *predicate ? all : 0;
}

template <class M, class T, class F> PODIUM_AMD_DEVICE T reduce(M mask, T value, F join) {
  typedef typename wide<M>::mask lanes;
  lanes left = static_cast<lanes>(mask) & vote<M>(__ballot(1));
  T result = shfl_sync(mask, value, __builtin_ctzll(left));
  for (left &= left - 1; left != 0; left &= left - 1) result = join(result, shfl_sync(mask, value, __builtin_ctzll(left)));
  return result;
}
template <class M, class T> PODIUM_AMD_DEVICE T reduce_add_sync(M mask, T value) {
  return reduce(mask, value, [](T a, T b) { return T(a + b); });
}
template <class M, class T> PODIUM_AMD_DEVICE T reduce_min_sync(M mask, T value) {
  return reduce(mask, value, [](T a, T b) { return b < a ? b : a; });
}
template <class M, class T> PODIUM_AMD_DEVICE T reduce_max_sync(M mask, T value) {
  return reduce(mask, value, [](T a, T b) { return a < b ? b : a; });
}
template <class M, class T> PODIUM_AMD_DEVICE T reduce_and_sync(M mask, T value) {
  return reduce(mask, value, [](T a, T b) { return T(a & b); });
}
template <class M, class T> PODIUM_AMD_DEVICE T reduce_or_sync(M mask, T value) {
  return reduce(mask, value, [](T a, T b) { return T(a | b); });
}
template <class M, class T> PODIUM_AMD_DEVICE T reduce_xor_sync(M mask, T value) {
  return reduce(mask, value, [](T a, T b) { return T(a ^ b); });
}

// Loads and stores with hints for CUDA's caches: the hints have no meaning here.
template <class T> PODIUM_AMD_DEVICE T load(const T *place) { return *place; }
template <class T, class V> PODIUM_AMD_DEVICE void store(T *place, V value) { *place = value; }

}  // namespace podium_amd

// Macros, since later versions of HIP have some of these names, for masks of 64 bits only.
#define __shfl_sync podium_amd::shfl_sync
#define __shfl_up_sync podium_amd::shfl_up_sync
#define __shfl_down_sync podium_amd::shfl_down_sync
#define __shfl_xor_sync podium_amd::shfl_xor_sync
#define __ballot_sync podium_amd::ballot_sync
#define __any_sync podium_amd::any_sync
#define __all_sync podium_amd::all_sync
#define __activemask podium_amd::activemask
#define __syncwarp podium_amd::syncwarp
#define __match_any_sync podium_amd::match_any_sync
#define __match_all_sync podium_amd::match_all_sync
#define __reduce_add_sync podium_amd::reduce_add_sync
#define __reduce_min_sync podium_amd::reduce_min_sync
#define __reduce_max_sync podium_amd::reduce_max_sync
#define __reduce_and_sync podium_amd::reduce_and_sync
#define __reduce_or_sync podium_amd::reduce_or_sync
#define __reduce_xor_sync podium_amd::reduce_xor_sync
#define __ldg podium_amd::load
#define __ldca podium_amd::load
#define __ldcg podium_amd::load
#define __ldcs podium_amd::load
#define __ldcv podium_amd::load
#define __ldlu podium_amd::load
#define __stcg podium_amd::store
#define __stcs podium_amd::store
#define __stwb podium_amd::store
#define __stwt podium_amd::store

// Within a block or the system, what holds on the device holds as well.
#define atomicAdd_block atomicAdd
#define atomicSub_block atomicSub
#define atomicExch_block atomicExch
#define atomicMin_block atomicMin
#define atomicMax_block atomicMax
#define atomicAnd_block atomicAnd
#define atomicOr_block atomicOr
#define atomicXor_block atomicXor
#define atomicCAS_block atomicCAS
