// In the style of samples for AMD's GPUs.
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
#include <hip/hip_cooperative_groups.h>

#define WIDTH 32
#define HIP_1D_KERNEL_LOOP(i, n) for (size_t i = hipBlockIdx_x * hipBlockDim_x + hipThreadIdx_x; i < (n); i += hipBlockDim_x * hipGridDim_x)

#if defined(__HIP_DEVICE_COMPILE__) && defined(__gfx90a__)
#define LANE() __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0))
#else
#define LANE() __lane_id()
#endif

__global__ void matrixTranspose(float* out, float* in, const int width) {
    HIP_DYNAMIC_SHARED(float, sharedMem);
    int x = hipBlockDim_x * hipBlockIdx_x + hipThreadIdx_x;
    int y = hipBlockDim_y * hipBlockIdx_y + hipThreadIdx_y;
    sharedMem[y * width + x] = in[x * width + y];
    __syncthreads();
    out[y * width + x] = sharedMem[y * width + x];
}

__global__ void transposeByShuffles(float* out, float* in, const int width) {
    int x = hipBlockDim_x * hipBlockIdx_x + hipThreadIdx_x;
    float val = in[x];
    for (int i = 0; i < width; i++) {
        for (int j = 0; j < width; j++) out[i * width + j] = __shfl(val, j * width + i);
    }
}

template <typename T>
__global__ void vector_square(T* C_d, const T* A_d, size_t N) {
    HIP_1D_KERNEL_LOOP(i, N) { C_d[i] = A_d[i] * A_d[i]; }
}

__global__ void bit_extract_kernel(uint32_t* C_d, const uint32_t* A_d, size_t N) {
    HIP_1D_KERNEL_LOOP(i, N) { C_d[i] = ((A_d[i] & 0xf00) >> 8); }
}

__global__ void countPositives(const int* in, unsigned long long* masks, int* count, int n) {
    const int i = threadIdx.x + blockIdx.x * blockDim.x;
    const int predicate = i < n && in[i] > 0;
    unsigned long long ballot = __ballot(predicate);
    if (LANE() == 0) {
        masks[i / warpSize] = ballot;
        __hip_atomic_fetch_add(count, __popcll(ballot), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    }
    if (__all(predicate == 0) && __any(1) && LANE() == 0) unsafeAtomicAdd(count, 1000);
}

extern "C" __global__ void dotHalf(const __half* a, const __half* b, float* out, int n) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += __half2float(a[i]) * __half2float(b[i]);
#pragma unroll
    for (int offset = warpSize >> 1; offset > 0; offset >>= 1) sum += __shfl_xor(sum, offset);
    auto tile = cooperative_groups::tiled_partition<32>(cooperative_groups::this_thread_block());
    if (tile.thread_rank() == 0) atomicAdd(out, sum);
}
