// What HIP adds to the dialect.
#ifndef PODIUM_CPU_HIP_RUNTIME_H
#define PODIUM_CPU_HIP_RUNTIME_H

#include "../../podium_cpu.h"

#define hipThreadIdx_x (threadIdx.x)
#define hipThreadIdx_y (threadIdx.y)
#define hipThreadIdx_z (threadIdx.z)
#define hipBlockIdx_x (blockIdx.x)
#define hipBlockIdx_y (blockIdx.y)
#define hipBlockIdx_z (blockIdx.z)
#define hipBlockDim_x (blockDim.x)
#define hipBlockDim_y (blockDim.y)
#define hipBlockDim_z (blockDim.z)
#define hipGridDim_x (gridDim.x)
#define hipGridDim_y (gridDim.y)
#define hipGridDim_z (gridDim.z)

#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];

// The older warp functions take part with the lanes that are there.
static inline __attribute__((always_inline)) unsigned long long __ballot(int predicate) {
  return __ballot_sync(__activemask(), predicate);
}
static inline __attribute__((always_inline)) int __any(int predicate) { return __any_sync(__activemask(), predicate); }
static inline __attribute__((always_inline)) int __all(int predicate) { return __all_sync(__activemask(), predicate); }
template <class T>
static inline __attribute__((always_inline)) T __shfl(T value, int source, int width = 32) {
  return __shfl_sync(__activemask(), value, source, width);
}
template <class T>
static inline __attribute__((always_inline)) T __shfl_up(T value, unsigned int delta, int width = 32) {
  return __shfl_up_sync(__activemask(), value, delta, width);
}
template <class T>
static inline __attribute__((always_inline)) T __shfl_down(T value, unsigned int delta, int width = 32) {
  return __shfl_down_sync(__activemask(), value, delta, width);
}
template <class T>
static inline __attribute__((always_inline)) T __shfl_xor(T value, int lane_mask, int width = 32) {
  return __shfl_xor_sync(__activemask(), value, lane_mask, width);
}

static inline unsigned int __lane_id() { return podium_cpu::own_lane(); }

static inline long long wall_clock64() { return clock64(); }
static inline long long __clock64() { return clock64(); }

// Atomics with an order and a scope, in the words of the compiler for AMD's GPUs.
#define __HIP_MEMORY_SCOPE_SINGLETHREAD 1
#define __HIP_MEMORY_SCOPE_WAVEFRONT 2
#define __HIP_MEMORY_SCOPE_WORKGROUP 3
#define __HIP_MEMORY_SCOPE_AGENT 4
#define __HIP_MEMORY_SCOPE_SYSTEM 5
#define __hip_atomic_load(address, order, scope) __atomic_load_n(address, order)
#define __hip_atomic_store(address, value, order, scope) __atomic_store_n(address, value, order)
#define __hip_atomic_exchange(address, value, order, scope) __atomic_exchange_n(address, value, order)
#define __hip_atomic_compare_exchange_strong(address, expected, value, success, failure, scope) \
  __atomic_compare_exchange_n(address, expected, value, false, success, failure)
#define __hip_atomic_fetch_add(address, value, order, scope) atomicAdd(address, value)
#define __hip_atomic_fetch_min(address, value, order, scope) atomicMin(address, value)
#define __hip_atomic_fetch_max(address, value, order, scope) atomicMax(address, value)
#define __hip_atomic_fetch_and(address, value, order, scope) __atomic_fetch_and(address, value, order)
#define __hip_atomic_fetch_or(address, value, order, scope) __atomic_fetch_or(address, value, order)
#define __hip_atomic_fetch_xor(address, value, order, scope) __atomic_fetch_xor(address, value, order)
template <class T>
static inline T unsafeAtomicAdd(T *address, typename podium_cpu::same<T>::type value) {
  return atomicAdd(address, value);
}
template <class T>
static inline T safeAtomicAdd(T *address, typename podium_cpu::same<T>::type value) {
  return atomicAdd(address, value);
}

#endif
