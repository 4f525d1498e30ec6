// One pass of a radix sort: keys are put in order of four of their bits, and keys that are equal there keep their order.
// Eight passes, from the lowest bits up, sort 32-bit keys. A pass is three launches:
//
//   count_digits  each block counts its keys by digit          counts[digit * blocks + block]
//   scan_counts   one block turns counts into where to write   exclusive prefix sums over all of counts
//   scatter       each block writes its keys where they belong
//
// A block has THREADS threads and as many keys.

static constexpr int DIGITS = 16;

__device__ __forceinline__ int digit_of(unsigned int key, int shift) { return key >> shift & (DIGITS - 1); }

extern "C" __global__ void count_digits(const unsigned int* __restrict__ keys, int n, int shift,
                                        unsigned int* __restrict__ counts)
{
    __shared__ unsigned int mine[DIGITS];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (threadIdx.x < DIGITS)
        mine[threadIdx.x] = 0;
    __syncthreads();
    if (i < n)
        atomicAdd(&mine[digit_of(keys[i], shift)], 1u);
    __syncthreads();
    if (threadIdx.x < DIGITS)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = mine[threadIdx.x];
}

// One block; blockDim.x * sizeof(unsigned int) bytes of shared memory.
extern "C" __global__ void scan_counts(unsigned int* counts, int n)
{
    extern __shared__ unsigned int sums[];
    const int thread = threadIdx.x, threads = blockDim.x;

    unsigned int before = 0;
    for (int start = 0; start < n; start += threads) {
        const int i = start + thread;
        const unsigned int value = i < n ? counts[i] : 0;
        sums[thread] = value;
        __syncthreads();
        for (int distance = 1; distance < threads; distance *= 2) {
            const unsigned int other = thread >= distance ? sums[thread - distance] : 0;
            __syncthreads();
            sums[thread] += other;
            __syncthreads();
        }
        if (i < n)
            counts[i] = before + sums[thread] - value;
        before += sums[threads - 1];
        __syncthreads();  // before anybody writes to sums again
    }
}

template <int THREADS>
__global__ void scatter(const unsigned int* __restrict__ in, unsigned int* __restrict__ out, int n, int shift,
                        const unsigned int* __restrict__ offsets)
{
    static_assert(THREADS % 32 == 0 && THREADS >= DIGITS, "whole warps, and a thread for each digit");
    constexpr int WARPS = THREADS / 32;
    __shared__ unsigned int first[WARPS][DIGITS];  // where each warp writes its first key with a digit

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const bool present = i < n;
    const unsigned int key = present ? in[i] : 0;
    const int digit = digit_of(key, shift);

    // The lanes that have a key with the same digit.
    unsigned int peers = __ballot_sync(0xffffffff, present);
#pragma unroll
    for (int bit = 1; bit < DIGITS; bit *= 2) {
        const unsigned int set = __ballot_sync(0xffffffff, (digit & bit) != 0);
        peers &= (digit & bit) != 0 ? set : ~set;
    }
    const int rank = __popc(peers & ((1u << lane) - 1));

    if (lane < DIGITS)
        first[warp][lane] = 0;
    __syncwarp();
    if (present && rank == 0)
        first[warp][digit] = __popc(peers);
    __syncthreads();

    if (threadIdx.x < DIGITS) {
        unsigned int next = offsets[threadIdx.x * gridDim.x + blockIdx.x];
        for (int w = 0; w < WARPS; ++w) {
            const unsigned int keys = first[w][threadIdx.x];
            first[w][threadIdx.x] = next;
            next += keys;
        }
    }
    __syncthreads();

    if (present)
        out[first[warp][digit] + rank] = key;
}
