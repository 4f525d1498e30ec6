// Names of CUDA's dialect that hipRTC has not, or has otherwise: each is used once.
#include <assert.h>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math_constants.h>

struct pair { double a; int b[3]; };
struct big { double a; char c; };

extern "C" __global__ void warps(int *x, unsigned long long *wide) {
    const unsigned int all = 0xffffffff;
    for (int offset = warpSize / 2; offset > 0; offset /= 2) x[0] += __shfl_down_sync(all, x[0], offset);
    x[1] = __shfl_sync(all, x[1], 0) + __shfl_up_sync(all, x[2], 1) + __shfl_xor_sync(-1, x[3], 16) + __shfl_sync(all, x[4], 1, 8);
    x[5] = __ballot_sync(all, x[5]) + __any_sync(all, x[6]) + __all_sync(all, x[7]) + __popc(__activemask());
    wide[0] = __ballot_sync(~0ull, x[8]) + __match_any_sync(~0ull, x[9]);
    int whole;
    x[10] = __match_any_sync(all, x[10]) + __match_all_sync(all, wide[1], &whole) + whole;
    x[11] = __reduce_add_sync(all, x[11]) + __reduce_max_sync(all, x[12]) + __reduce_xor_sync(all, x[13]);
    __syncwarp();
    __syncwarp(0xff);
    x[14] = __syncthreads_count(x[14]) + __syncthreads_or(x[15]);
}

extern "C" __global__ void values(int *x, double *d, __half *h, __nv_bfloat16 *b, void *raw) {
    big *s = static_cast<big *>(raw);
    d[0] = __shfl_down_sync(~0ull, d[1], 2);
    h[0] = __shfl_sync(0xffffffff, h[1], 0);
    b[0] = __shfl_xor_sync(-1, b[1], 4);
    s[0] = __shfl_up_sync(0xffffffff, s[1], 1, 16);
    b[2] = b[1] * b[0] + __float2bfloat16(2.f) - b[3] / b[4];
    b[2] += b[0] < b[1] ? b[0] : b[1];
    h[2] = __float2half(__half2float(h[1]) * 2) + h[0] * h[3];
    atomicAdd_block(x, 1);
    __stcg(d + 3, __ldcs(d + 2) + __bfloat162float(b[0]));
    const float4 f = __ldg(reinterpret_cast<const float4 *>(d));
    d[4] = f.x + f.w + static_cast<float>(b[2]);
}

extern "C" __global__ void __launch_bounds__(256) rest(float *y, const float *__restrict__ x, int n, uint32_t u, int64_t q) {
    extern __shared__ float s[];
    __align__(16) __shared__ float t[4];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(i < n);
    t[i & 3] = x[i];
    s[i] = i < n ? rsqrtf(x[i]) + __expf(x[i]) + __fdividef(x[i], 3.f) + __saturatef(x[i]) : INFINITY;
    __syncthreads();
    __threadfence_block();
    atomicMax(reinterpret_cast<int *>(s), static_cast<int>(INT32_MAX & u));
    y[i] = s[i ^ 1] + t[0] + FLT_MAX + CUDART_PI_F + M_PI + __int_as_float(static_cast<int>(q)) + UINT64_MAX;
    if (isnan(y[i])) __trap();
    __nanosleep(20);
    printf("%d\n", i);
}

namespace names {
__device__ int counter[3];
template <typename T, int N> __global__ void __launch_bounds__(128) templated(T *x) { x[N] = T(counter[1]); }
}  // namespace names
__constant__ float table[4] = {1, 2, 3, 4};

extern "C" __global__ void layout(float *a, bool b, double c, signed char d, pair e, unsigned short f, const long long *g, __half h) {
    if (b) a[0] = c + d + e.a + e.b[2] + f + g[0] + __half2float(h) + table[d];
}
