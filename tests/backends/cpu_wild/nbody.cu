// Style: the classic of the samples, float4 bodies in tiles of dynamic shared memory, with operators for vectors.
inline __device__ float3 operator-(float4 a, float4 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
inline __device__ float3& operator+=(float3& a, const float3& b)
{
    a.x += b.x, a.y += b.y, a.z += b.z;
    return a;
}
inline __device__ float3 operator*(const float3& a, float s) { return {a.x * s, a.y * s, a.z * s}; }
inline __device__ float dot(const float3& a, const float3& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

extern __shared__ float4 shared_bodies[];

__device__ float3 pull(float3 acceleration, float4 mine, float4 other, float softening)
{
    const float3 r = other - mine;
    const float square = dot(r, r) + softening;
    const float inverse = rsqrtf(square);
    acceleration += r * (other.w * inverse * inverse * inverse);
    return acceleration;
}

template <int UNROLL>
__device__ float3 tile_pull(float4 mine, float3 acceleration, int bodies, float softening)
{
#pragma unroll UNROLL
    for (int j = 0; j < bodies; j++) acceleration = pull(acceleration, mine, shared_bodies[j], softening);
    return acceleration;
}

extern "C" __global__ void accelerations(const float4* __restrict__ bodies, float3* __restrict__ result, int n,
                                         float softening)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 mine = bodies[min(i, n - 1)];
    float3 acceleration = {0.0f, 0.0f, 0.0f};
    for (int tile = 0; tile * (int)blockDim.x < n; tile++) {
        const int j = tile * blockDim.x + threadIdx.x;
        shared_bodies[threadIdx.x] = j < n ? bodies[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        acceleration = tile_pull<4>(mine, acceleration, min((int)blockDim.x, n - tile * (int)blockDim.x), softening);
        __syncthreads();
    }
    if (i < n) result[i] = acceleration;
}
