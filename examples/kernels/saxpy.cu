// y = a * x + y: one element for each thread, and four at a time.
extern "C" __global__ void saxpy(int n, float a, const float* __restrict__ x, float* __restrict__ y)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

// The arrays are aligned to 16 bytes, as an allocation is. A grid of any size serves: each thread goes on by the number
// of threads there are. The last n % 4 elements are left to the first threads.
extern "C" __global__ void saxpy_float4(int n, float a, const float* __restrict__ x, float* __restrict__ y)
{
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    const int threads = gridDim.x * blockDim.x;
    const int vectors = n / 4;

    const float4* x4 = reinterpret_cast<const float4*>(x);
    float4* y4 = reinterpret_cast<float4*>(y);
    for (int i = first; i < vectors; i += threads) {
        const float4 p = x4[i];
        float4 q = y4[i];
        q.x = a * p.x + q.x;
        q.y = a * p.y + q.y;
        q.z = a * p.z + q.z;
        q.w = a * p.w + q.w;
        y4[i] = q;
    }

    for (int i = 4 * vectors + first; i < n; i += threads)
        y[i] = a * x[i] + y[i];
}
