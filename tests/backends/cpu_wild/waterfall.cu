// Style: lanes that take turns, by asking who is here.
extern "C" __global__ void turns(int* order, int* next)
{
    // each lane in turn, the lowest first
    for (;;) {
        const unsigned int active = __activemask();
        if ((threadIdx.x & 31) == __ffs(active) - 1) {
            order[threadIdx.x] = atomicAdd(next, 1);
            break;
        }
    }
}

// one round for each distinct value
extern "C" __global__ void waterfall(const int* keys, int* rounds, int* groups)
{
    const int key = keys[threadIdx.x];
    int round = 0;
    bool done = false;
    while (!done) {
        const unsigned int active = __activemask();
        const int leader = __ffs(active) - 1;
        const int chosen = __shfl_sync(active, key, leader);
        const unsigned int same = __match_any_sync(active, key);
        ++round;
        if (chosen == key) {
            groups[threadIdx.x] = __popc(same);
            done = true;
        }
    }
    rounds[threadIdx.x] = round;
}

// the mask is computed before the branch, as it should be
extern "C" __global__ void partition(const int* in, int* positives, int* others, int* counts, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    const bool there = i < n;
    const unsigned int present = __ballot_sync(0xffffffff, there);
    if (!there) return;
    const int value = in[i];
    const unsigned int positive = __ballot_sync(present, value > 0);
    const unsigned int mine = value > 0 ? positive : present & ~positive;
    int* to = value > 0 ? positives : others;
    int base = 0;
    if (lane == __ffs(mine) - 1) base = atomicAdd(&counts[value > 0 ? 0 : 1], __popc(mine));
    base = __shfl_sync(mine, base, __ffs(mine) - 1);
    to[base + __popc(mine & ((1u << lane) - 1))] = value;
}

// loops in which lanes drop out one by one, with a mask that shrinks
extern "C" __global__ void shrinking(const int* counts, int* sums)
{
    const int lane = threadIdx.x & 31;
    const int count = counts[threadIdx.x];
    unsigned int mask = __ballot_sync(0xffffffff, count > 0);
    int sum = 0;
    for (int i = 0; i < count; ++i) {
        sum += __popc(mask);
        mask = __ballot_sync(mask, i + 1 < count);
    }
    sums[threadIdx.x] = sum;
    (void)lane;
}

// shuffles of all kinds within tiles of 8, whose lanes are at different places
extern "C" __global__ void tiles(const double* in, double* out)
{
    const int lane = threadIdx.x & 31, tile = lane / 8;
    const unsigned int mask = 0xffu << (8 * tile);
    double v = in[threadIdx.x];
    if (tile == 0) {
        for (int k = 4; k; k >>= 1) v += __shfl_xor_sync(mask, v, k, 8);
    } else if (tile == 1) {
        v = __shfl_sync(mask, v, -1, 8);  // counts from the end
    } else if (tile == 2) {
        for (int k = 1; k < 8; k *= 2) {
            const double o = __shfl_up_sync(mask, v, k, 8);
            if (lane % 8 >= k) v += o;
        }
    } else {
        v = __shfl_down_sync(mask, v, 3, 8);
        int all;
        if (__match_all_sync(mask, tile, &all) != mask || !all) v = -1;
    }
    out[threadIdx.x] = v;
}

// a lock that each warp takes as a whole
extern "C" __global__ void warp_lock(int* lock, volatile int* total)
{
    if ((threadIdx.x & 31) == 0)
        while (atomicCAS(lock, 0, 1) != 0) __nanosleep(20);
    __syncwarp();
    __threadfence();
    for (int turn = 0; turn < 32; ++turn) {
        if ((threadIdx.x & 31) == turn) *total = *total + 1;
        __syncwarp();
    }
    __threadfence();
    __syncwarp();
    if ((threadIdx.x & 31) == 0) atomicExch(lock, 0);
}
