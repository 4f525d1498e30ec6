// Style: every way in which shared memory can be declared.
template <typename T> struct SharedMemory { __device__ operator T*() { extern __shared__ int raw_memory[]; return (T*)raw_memory; } };
template <> struct SharedMemory<double> { __device__ operator double*() { extern __shared__ double raw_doubles[]; return raw_doubles; } };

template <typename T> __device__ T reversed(T v)
{
    T* s = SharedMemory<T>();
    __syncthreads();
    s[threadIdx.x] = v;
    __syncthreads();
    return s[blockDim.x - 1 - threadIdx.x];
}
template <typename T, int N> __device__ T reversed_static(T v)
{
    __shared__ T s[N];
    __syncthreads();
    s[threadIdx.x] = v;
    __syncthreads();
    return s[blockDim.x - 1 - threadIdx.x];
}

struct Pair { short key; float value; };
__shared__ int at_namespace_scope[64];
namespace deep { namespace down { static __shared__ volatile unsigned char bytes[64]; } }

extern "C" __global__ void forms(double* out)
{
    const unsigned t = threadIdx.x, n = blockDim.x, m = n - 1 - t;
    float __shared__ after_type[64];
    __shared__ float a[64], b[64][2], *p;
    volatile __shared__ int v[64];
    __shared__ volatile int w[64];
    static __shared__ short st[64];
    __shared__ __align__(16) unsigned char raw[64 * sizeof(Pair)];
    alignas(32) __shared__ double aligned[64];
    __shared__ struct { int x; float y; } anonymous[64];
    __shared__ union { int i; float f; } either[64];
    __shared__ Pair pairs[64];
    __shared__ float4 vectors[64];
    __shared__ int (*rows)[4];
    __shared__ int matrix[16][4];
    __shared__ const int* constants;
    __shared__ unsigned int scalar;
    __shared__ bool flag;
    __shared__ Pair *chosen, one;
    constexpr int SIZE = 64;
    __shared__ unsigned long long last[SIZE + 0 * sizeof(int)];
    if (t == 0) {
        p = a; rows = matrix; constants = at_namespace_scope; scalar = 5; flag = true; chosen = &one; one.key = 7; one.value = 0.5f;
    }
    after_type[t] = t; a[t] = 2 * t; b[t][0] = b[t][1] = t; v[t] = t; w[t] = t; st[t] = (short)t;
    reinterpret_cast<Pair*>(raw)[t] = {(short)t, (float)t};
    aligned[t] = t; anonymous[t].x = t; anonymous[t].y = t; either[t].i = t; pairs[t] = {(short)t, 1.0f};
    vectors[t] = make_float4(t, t, t, t); matrix[t / 4][t % 4] = t; at_namespace_scope[t] = t; deep::down::bytes[t] = t; last[t] = t;
    __syncthreads();
    double sum = after_type[m] + p[m] + b[m][1] + v[m] + w[m] + st[m] + reinterpret_cast<Pair*>(raw)[m].value + aligned[m];  // 9m
    sum += anonymous[m].x + anonymous[m].y + either[m].i + pairs[m].key + vectors[m].w + rows[m / 4][m % 4];                // 6m
    sum += constants[m] + deep::down::bytes[m] + last[m];                                                                   // 3m
    sum += scalar + flag + chosen->key + chosen->value + pairs[m].value;                                                    // 14.5
    sum += ((size_t)raw % 16) + ((size_t)aligned % 32) + ((size_t)vectors % 16);
    sum += reversed<int>(t) + reversed<double>(t) + reversed<float>(t) + reversed_static<char, 64>(t) + reversed_static<long long, 64>(t); // 5m
    out[t] = sum;
}

// several arrays in one allocation, by offsets that are computed
extern "C" __global__ void carved(const float* in, float* out, int n)
{
    extern __shared__ float4 everything[];
    float* first = (float*)everything;
    short* second = (short*)&first[n];
    double* third = (double*)(((size_t)&second[n] + 7) / 8 * 8);
    const int t = threadIdx.x;
    if (t < n) first[t] = in[t], second[t] = t, third[t] = 2.0 * in[t];
    __syncthreads();
    if (t < n) out[t] = first[n - 1 - t] + second[(t + 1) % n] + (float)third[t];
}
extern "C" __global__ void __launch_bounds__(1024) volatile_dynamic(int* out)
{
    extern volatile __shared__ int sdata[];
    sdata[threadIdx.x] = threadIdx.x;
    __syncthreads();
    for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) sdata[threadIdx.x] += sdata[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = sdata[0];
}
