// Style: signal processing. A Fourier transform in shared memory, a template over its length, with complex numbers as
// float2 and operators, recursion in templates for the small transforms, and twiddles by sincospif.
__device__ __forceinline__ float2 operator+(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ __forceinline__ float2 operator-(float2 a, float2 b) { return {a.x - b.x, a.y - b.y}; }
__device__ __forceinline__ float2 operator*(float2 a, float2 b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }

template <int N>
struct Radix {
    static __device__ __forceinline__ void transform(float2 (&v)[N])
    {
        float2 even[N / 2], odd[N / 2];
#pragma unroll
        for (int i = 0; i < N / 2; ++i) even[i] = v[2 * i], odd[i] = v[2 * i + 1];
        Radix<N / 2>::transform(even);
        Radix<N / 2>::transform(odd);
#pragma unroll
        for (int i = 0; i < N / 2; ++i) {
            float2 w;
            sincospif(-2.0f * i / N, &w.y, &w.x);
            const float2 turned = w * odd[i];
            v[i] = even[i] + turned;
            v[i + N / 2] = even[i] - turned;
        }
    }
};

template <>
struct Radix<1> {
    static __device__ __forceinline__ void transform(float2 (&)[1]) {}
};

// LENGTH = RADIX to some power; the block has LENGTH / RADIX threads
template <int LENGTH, int RADIX>
__device__ void transform(const float2* __restrict__ in, float2* __restrict__ out)
{
    constexpr int THREADS = LENGTH / RADIX;
    __shared__ float2 line[2][LENGTH];
    const int t = threadIdx.x;
    int from = 0;
    for (int i = t; i < LENGTH; i += THREADS) line[from][i] = in[blockIdx.x * LENGTH + i];

    for (int done = 1; done < LENGTH; done *= RADIX) {
        __syncthreads();
        float2 v[RADIX];
        const int k = t % done;
#pragma unroll
        for (int r = 0; r < RADIX; ++r) {
            float2 w;
            sincospif(-2.0f * r * k / (done * RADIX), &w.y, &w.x);
            v[r] = w * line[from][t + r * THREADS];
        }
        Radix<RADIX>::transform(v);
        const int base = (t / done) * done * RADIX + k;
#pragma unroll
        for (int r = 0; r < RADIX; ++r) line[from ^ 1][base + r * done] = v[r];
        from ^= 1;
    }
    __syncthreads();
    for (int i = t; i < LENGTH; i += THREADS) out[blockIdx.x * LENGTH + i] = line[from][i];
}

extern "C" __global__ void fft_512(const float2* in, float2* out) { transform<512, 8>(in, out); }
extern "C" __global__ void fft_256(const float2* in, float2* out) { transform<256, 4>(in, out); }
