// Style: counter-based random numbers (Philox 4x32, ten rounds) as a class with operators, for a Monte Carlo estimate.
class Philox {
public:
    __host__ __device__ Philox(unsigned long long seed, unsigned long long sequence)
        : counter_(make_uint4(0u, 0u, (unsigned int)sequence, (unsigned int)(sequence >> 32))),
          key_(make_uint2((unsigned int)seed, (unsigned int)(seed >> 32)))
    {
    }

    __device__ uint4 operator()()
    {
        uint4 c = counter_;
        uint2 k = key_;
#pragma unroll
        for (int round = 0; round < 10; ++round) {
            c = one_round(c, k);
            k.x += kWeyl0;
            k.y += kWeyl1;
        }
        if (!++counter_.x) ++counter_.y;
        return c;
    }

private:
    static const unsigned int kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
    static constexpr unsigned int kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;

    static __device__ uint4 one_round(uint4 c, uint2 k)
    {
        const unsigned int high0 = __umulhi(kMultiplier0, c.x), low0 = kMultiplier0 * c.x;
        const unsigned int high1 = __umulhi(kMultiplier1, c.z), low1 = kMultiplier1 * c.z;
        return make_uint4(high1 ^ c.y ^ k.x, low1, high0 ^ c.w ^ k.y, low0);
    }

    uint4 counter_;
    uint2 key_;
};

__device__ __forceinline__ float to_uniform(unsigned int bits) { return (bits >> 8) * (1.0f / 16777216.0f); }

extern "C" __global__ void raw_numbers(uint4* out, int n, int rounds, unsigned long long seed)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Philox random(seed, i);
    for (int r = 0; r < rounds; ++r) out[i * rounds + r] = random();
}

// How many of 2 * `draws` points for each thread lie within the circle.
extern "C" __global__ void inside_circle(int threads, int draws, unsigned long long seed, unsigned long long* inside)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int hits = 0;
    if (i < threads) {
        Philox random(seed, i);
        for (int d = 0; d < draws; ++d) {
            const uint4 bits = random();
            const float2 p = make_float2(to_uniform(bits.x), to_uniform(bits.y));
            const float2 q = make_float2(to_uniform(bits.z), to_uniform(bits.w));
            hits += p.x * p.x + p.y * p.y < 1.0f;
            hits += q.x * q.x + q.y * q.y < 1.0f;
        }
    }
    hits = __reduce_add_sync(0xffffffffu, hits);
    if ((threadIdx.x & 31) == 0) atomicAdd(inside, (unsigned long long)hits);
}
