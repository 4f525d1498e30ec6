// One value out of many, with an operation that the caller chooses: a tree in shared memory.
// Each block leaves one value in out[blockIdx.x]; a second launch with one block reduces those.
// NVRTC has no <math.h>, and so no INFINITY.
__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

template <typename T>
struct Sum {
    static __device__ T identity() { return T(0); }
    __device__ T operator()(T a, T b) const { return a + b; }
};

template <typename T>
struct Largest;

template <>
struct Largest<float> {
    static __device__ float identity() { return minus_infinity(); }
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// blockDim.x == threads, a power of two
template <typename T, template <typename> class Operation, int threads>
__device__ void reduce_block(const T* __restrict__ in, T* __restrict__ out, int n)
{
    __shared__ T partial[threads];
    const Operation<T> combine{};

    T mine = Operation<T>::identity();
    for (int i = blockIdx.x * threads + threadIdx.x; i < n; i += gridDim.x * threads)
        mine = combine(mine, in[i]);
    partial[threadIdx.x] = mine;
    __syncthreads();

    for (int half = threads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            partial[threadIdx.x] = combine(partial[threadIdx.x], partial[threadIdx.x + half]);
        __syncthreads();
    }

    if (threadIdx.x == 0)
        out[blockIdx.x] = partial[0];
}

template <typename T, int threads>
__global__ void reduce_sum(const T* __restrict__ in, T* __restrict__ out, int n)
{
    reduce_block<T, Sum, threads>(in, out, n);
}

template <typename T, int threads>
__global__ void reduce_largest(const T* __restrict__ in, T* __restrict__ out, int n)
{
    reduce_block<T, Largest, threads>(in, out, n);
}
