// Set every element of an array; other examples clear their counters with it.
template <typename T>
__global__ void fill(T* __restrict__ x, T value, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] = value;
}
