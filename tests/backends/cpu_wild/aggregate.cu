// Style: warp-level tricks. Lanes that happen to be together find their peers, and one of them does the atomic.
__device__ __forceinline__ int lane_id() { return threadIdx.x & 31; }

__device__ int aggregated_increment(int* counter)
{
    const unsigned int active = __activemask();
    const int leader = __ffs(active) - 1;
    int base;
    if (lane_id() == leader)
        base = atomicAdd(counter, __popc(active));
    base = __shfl_sync(active, base, leader);
    return base + __popc(active & ((1u << lane_id()) - 1u));
}

// Keep the numbers that `n` steps of 3n + 1 or n / 2 bring to 1, in any order: lanes leave the loop at different times.
extern "C" __global__ void keep_short(const int* numbers, int n, int most, int* kept, int* count)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int number = numbers[i], steps = 0;
        while (number != 1) {
            if (++steps > most) break;
            number = (number & 1) ? 3 * number + 1 : number >> 1;
        }
        if (steps > most) continue;
        kept[aggregated_increment(count)] = numbers[i];
    }
}

// The sum over the lanes of `peers`, in the lowest of them: each round halves the lanes that still hold a part of it.
// All lanes of `active` come here, each with the peers of its own group.
__device__ int reduce_peers(unsigned int active, unsigned int peers, int value)
{
    const int lane = lane_id();
    int position = __popc(peers & ((1u << lane) - 1u));
    peers &= 0xfffffffeu << lane;
    while (__any_sync(active, peers)) {
        const int next = __ffs(peers);
        const int other = __shfl_sync(active, value, next - 1);
        if (next) value += other;
        peers &= __ballot_sync(active, !(position & 1));
        position >>= 1;
    }
    return value;
}

extern "C" __global__ void sum_by_key(const int* keys, const int* values, int n, int* sums)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int key = keys[i];
    if (key < 0) return;

    const unsigned int active = __activemask();
    const unsigned int peers = __match_any_sync(active, key);
    const int sum = reduce_peers(active, peers, values[i]);
    if (lane_id() == __ffs(peers) - 1) atomicAdd(sums + key, sum);
}
