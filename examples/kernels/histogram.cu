// How many values fall into each of `bins` equal parts of [low, low + bins / scale); others are not counted.
// Each block counts in shared memory (bins * sizeof(unsigned int) bytes, given at the launch), and adds what it has to
// `counts` at its end. `counts` is zero before the launch.
extern "C" __global__ void histogram(const float* __restrict__ values, int n, float low, float scale, int bins,
                                     unsigned int* __restrict__ counts)
{
    extern __shared__ unsigned int mine[];

    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x)
        mine[bin] = 0;
    __syncthreads();

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const float position = floorf((values[i] - low) * scale);
        if (position >= 0.0f && position < bins)
            atomicAdd(&mine[static_cast<int>(position)], 1u);
    }
    __syncthreads();

    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x)
        if (mine[bin] > 0)
            atomicAdd(&counts[bin], mine[bin]);
}
