// Sources for all backends may name the header of either vendor; here are the names that only HIP has.
#pragma once

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

// NVRTC declares these, in a form that no GPU has any more.
#define __ballot(predicate) __ballot_sync(__activemask(), predicate)
#define __any(predicate) __any_sync(__activemask(), predicate)
#define __all(predicate) __all_sync(__activemask(), predicate)

template <class T>
static __device__ __forceinline__ T __shfl(T value, int source, int width = 32) {
  return __shfl_sync(__activemask(), value, source, width);
}
template <class T>
static __device__ __forceinline__ T __shfl_up(T value, unsigned int delta, int width = 32) {
  return __shfl_up_sync(__activemask(), value, delta, width);
}
template <class T>
static __device__ __forceinline__ T __shfl_down(T value, unsigned int delta, int width = 32) {
  return __shfl_down_sync(__activemask(), value, delta, width);
}
template <class T>
static __device__ __forceinline__ T __shfl_xor(T value, int mask, int width = 32) {
  return __shfl_xor_sync(__activemask(), value, mask, width);
}
