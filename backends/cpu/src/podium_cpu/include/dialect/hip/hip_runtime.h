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

#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];

// The older warp functions take part with the lanes that are there.
static inline __attribute__((always_inline)) unsigned long long __ballot(int predicate) {
  return __ballot_sync(__activemask(), predicate);
}
static inline __attribute__((always_inline)) int __any(int predicate) {
  return __any_sync(__activemask(), predicate);
}
static inline __attribute__((always_inline)) int __all(int predicate) {
  return __all_sync(__activemask(), predicate);
}
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

#endif
