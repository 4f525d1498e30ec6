// Inclusive prefix sums in one launch: each block scans a tile and learns from the blocks before it, which may not have
// ended yet, what comes before its tile ("decoupled look-back").
//
// A block says in states[tile] what it knows: the sum of its tile, and later the sum of everything up to the end of its
// tile. Flag and value are one word of 64 bits, written and read as a whole, so that no fence is needed.
// Tiles are handed out in the order in which blocks start: who waits, waits for a block that runs.
// Before the launch, states and ticket are zero.

typedef unsigned long long State;

static constexpr State UNKNOWN = 0, TILE_SUM = 1, PREFIX = 2;

__device__ __forceinline__ State pack(State flag, unsigned int value) { return flag << 32 | value; }

__device__ __forceinline__ void publish(State* state, State flag, unsigned int value)
{
    atomicExch(state, pack(flag, value));
}

// The sum of all tiles before this one. Called by one thread.
__device__ unsigned int look_back(State* states, int tile)
{
    unsigned int sum = 0;
    for (int before = tile - 1; before >= 0; --before) {
        State state;
        do
            state = atomicAdd(&states[before], 0ull);
        while (state >> 32 == UNKNOWN);
        sum += static_cast<unsigned int>(state);
        if (state >> 32 == PREFIX)
            break;
    }
    return sum;
}

// Prefix sums over the threads of a block.
template <int THREADS>
__device__ unsigned int scan_block(unsigned int value)
{
    __shared__ unsigned int warps[THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    for (int distance = 1; distance < 32; distance *= 2) {
        const unsigned int other = __shfl_up_sync(0xffffffff, value, distance);
        if (lane >= distance)
            value += other;
    }
    if (lane == 31)
        warps[warp] = value;
    __syncthreads();

    if (warp == 0) {
        unsigned int sum = lane < THREADS / 32 ? warps[lane] : 0;
        for (int distance = 1; distance < 32; distance *= 2) {
            const unsigned int other = __shfl_up_sync(0xffffffff, sum, distance);
            if (lane >= distance)
                sum += other;
        }
        if (lane < THREADS / 32)
            warps[lane] = sum;
    }
    __syncthreads();

    return warp > 0 ? value + warps[warp - 1] : value;
}

// A tile is THREADS * ITEMS elements; there are as many blocks as tiles, of THREADS threads.
template <int THREADS, int ITEMS>
__global__ void inclusive_scan(const unsigned int* __restrict__ in, unsigned int* __restrict__ out, int n,
                               State* states, unsigned int* ticket)
{
    __shared__ unsigned int exchange[THREADS * ITEMS];
    __shared__ unsigned int before;
    __shared__ int tile;

    if (threadIdx.x == 0)
        tile = atomicAdd(ticket, 1u);
    __syncthreads();
    const int first = tile * THREADS * ITEMS;

    // Neighbouring threads load neighbouring elements; each thread then takes ITEMS in a row.
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        const int i = item * THREADS + threadIdx.x;
        exchange[i] = first + i < n ? in[first + i] : 0;
    }
    __syncthreads();

    unsigned int values[ITEMS];
    unsigned int sum = 0;
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        sum += exchange[threadIdx.x * ITEMS + item];
        values[item] = sum;
    }

    const unsigned int up_to_here = scan_block<THREADS>(sum);

    if (threadIdx.x == THREADS - 1) {
        if (tile > 0)
            publish(&states[tile], TILE_SUM, up_to_here);
        before = look_back(states, tile);
        publish(&states[tile], PREFIX, before + up_to_here);
    }
    __syncthreads();

    const unsigned int offset = before + up_to_here - sum;
#pragma unroll
    for (int item = 0; item < ITEMS; ++item)
        exchange[threadIdx.x * ITEMS + item] = offset + values[item];
    __syncthreads();

#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        const int i = item * THREADS + threadIdx.x;
        if (first + i < n)
            out[first + i] = exchange[i];
    }
}
