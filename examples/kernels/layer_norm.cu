// Layer normalisation: each row gets mean 0 and variance 1, and then a scale and a shift for each column.
// One warp for each row, and blockDim.y rows in a block of (32, rows): no shared memory and no barrier.
// Mean and variance come from one pass (Welford's method), which does not lose digits as a sum of squares would.
struct Moments {
    float count;
    float mean;
    float squares;  // sum of the squared differences from the mean
};

__device__ __forceinline__ Moments merge(Moments a, Moments b)
{
    const float count = a.count + b.count;
    if (count == 0.0f)
        return a;
    const float delta = b.mean - a.mean;
    const float part = b.count / count;
    return {count, a.mean + delta * part, a.squares + b.squares + delta * delta * a.count * part};
}

template <typename T>
__global__ void layer_norm(const T* __restrict__ in, const float* __restrict__ gamma, const float* __restrict__ beta,
                           T* __restrict__ out, int rows, int columns, float epsilon)
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows)
        return;  // the whole warp
    const T* const x = in + static_cast<size_t>(row) * columns;
    T* const y = out + static_cast<size_t>(row) * columns;

    Moments m = {0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < columns; i += 32) {
        const float value = static_cast<float>(x[i]);
        const float delta = value - m.mean;
        m.count += 1.0f;
        m.mean += delta / m.count;
        m.squares += delta * (value - m.mean);
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        m = merge(m, {__shfl_xor_sync(0xffffffff, m.count, step), __shfl_xor_sync(0xffffffff, m.mean, step),
                      __shfl_xor_sync(0xffffffff, m.squares, step)});

    const float scale = rsqrtf(m.squares / columns + epsilon);
    for (int i = threadIdx.x; i < columns; i += 32)
        y[i] = static_cast<T>((static_cast<float>(x[i]) - m.mean) * scale * __ldg(&gamma[i]) + __ldg(&beta[i]));
}
