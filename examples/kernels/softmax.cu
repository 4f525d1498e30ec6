// Softmax over the rows of a matrix, one block for each row. One pass finds the largest element and the sum of the
// exponentials together ("online"): where a larger element turns up, the sum so far is scaled down.
// NVRTC has no <math.h>, and so no INFINITY.
__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

struct Partial {
    float largest;
    float sum;  // of exp(x - largest)
};

__device__ __forceinline__ Partial merge(Partial a, Partial b)
{
    const float largest = fmaxf(a.largest, b.largest);
    if (largest == minus_infinity())
        return {largest, 0.0f};
    return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}

__device__ __forceinline__ Partial merge_warp(Partial p)
{
    for (int step = 16; step > 0; step /= 2)
        p = merge(p, {__shfl_xor_sync(0xffffffff, p.largest, step), __shfl_xor_sync(0xffffffff, p.sum, step)});
    return p;
}

// THREADS is a multiple of 32, at most 1024
template <typename T, int THREADS>
__global__ void softmax(const T* __restrict__ in, T* __restrict__ out, int columns)
{
    static_assert(THREADS % 32 == 0 && THREADS <= 1024, "whole warps, of which one merges what the others found");
    __shared__ Partial partials[THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const T* const row = in + static_cast<size_t>(blockIdx.x) * columns;
    T* const result = out + static_cast<size_t>(blockIdx.x) * columns;

    Partial p = {minus_infinity(), 0.0f};
    for (int i = threadIdx.x; i < columns; i += THREADS) {
        const float x = row[i];
        if (x > p.largest) {
            p.sum *= expf(p.largest - x);
            p.largest = x;
        }
        if (p.largest > minus_infinity())
            p.sum += expf(x - p.largest);
    }

    p = merge_warp(p);
    if (lane == 0)
        partials[warp] = p;
    __syncthreads();
    p = lane < THREADS / 32 ? partials[lane] : Partial{minus_infinity(), 0.0f};
    p = merge_warp(p);

    const float scale = 1.0f / p.sum;
    for (int i = threadIdx.x; i < columns; i += THREADS)
        result[i] = static_cast<T>(expf(static_cast<float>(row[i]) - p.largest) * scale);
}
