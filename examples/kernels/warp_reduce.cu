// The sum of an array: shuffles within each warp, one value for each warp in shared memory, one atomic for each block.
// `out` is zero before the launch. Blocks are a multiple of 32 threads, at most 1024.
__device__ __forceinline__ float warp_sum(float value)
{
    for (int offset = warpSize / 2; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffff, value, offset);
    return value;  // of all lanes, in lane 0
}

extern "C" __global__ void warp_reduce(const float* __restrict__ in, float* __restrict__ out, int n)
{
    __shared__ float sums[32];
    const int lane = threadIdx.x % warpSize;
    const int warp = threadIdx.x / warpSize;

    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];

    sum = warp_sum(sum);
    if (lane == 0)
        sums[warp] = sum;
    __syncthreads();

    if (warp == 0) {
        sum = lane < blockDim.x / warpSize ? sums[lane] : 0.0f;
        sum = warp_sum(sum);
        if (lane == 0)
            atomicAdd(out, sum);
    }
}
