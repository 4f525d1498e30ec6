/* What stands in front of each kernel's source. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <utility>

struct dim3 { unsigned x, y, z; };
static thread_local dim3 gridDim, blockDim, blockIdx, threadIdx;
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline
#define __restrict__ __restrict
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }

/* What the device does not have. */
#define __shared__ _Pragma("GCC error \"abacus has no __shared__ memory\"")
void __syncthreads() = delete;
template <typename T, typename... Values> T atomicAdd(T *, Values...) = delete;

/* Reads each parameter through its address, as the type that the kernel declares. */
template <typename... T, size_t... I>
static void abacus_unpack(void (*kernel)(T...), void **p, std::index_sequence<I...>) {
    kernel(*static_cast<T *>(p[I])...);
}
template <typename... T>
static void abacus_call(void (*kernel)(T...), void **p) { abacus_unpack(kernel, p, std::index_sequence_for<T...>()); }

/* What the runtime calls for a launch; behind the symbol stands the kernel, which may have commas in its name. */
#define ABACUS_ENTRY(symbol, ...)                                                                                      \
    extern "C" __attribute__((visibility("default"))) int symbol(const uint32_t *g, const uint32_t *b, void **p) {     \
        gridDim = {g[0], g[1], g[2]};                                                                                  \
        blockDim = {b[0], b[1], b[2]};                                                                                 \
        for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)                                                     \
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)                                                     \
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++)                                                     \
        for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)                                                 \
        for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)                                                 \
        for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++)                                                 \
            abacus_call(__VA_ARGS__, p);                                                                               \
        return 0;                                                                                                      \
    }
