// Style: lock-free structures. Connected components by union-find with compare-and-swap on the parents; and a hash
// table of 64-bit slots with open addressing, counters in it, and a lock for each bucket that is taken lane by lane.
__device__ int root_of(volatile int* parent, int i)
{
    int p = parent[i];
    while (p != parent[p]) {
        const int grand = parent[p];
        parent[i] = grand;  // halve the path; others may do the same
        i = p;
        p = grand;
    }
    return p;
}

extern "C" __global__ void unite(const int2* __restrict__ edges, int n, int* parent)
{
    const int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= n) return;
    int a = edges[e].x, b = edges[e].y;
    for (;;) {
        a = root_of(parent, a);
        b = root_of(parent, b);
        if (a == b) break;
        if (a < b) {
            const int t = a;
            a = b, b = t;
        }
        if (atomicCAS(&parent[a], a, b) == a) break;
    }
}

extern "C" __global__ void flatten(int* parent, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) parent[i] = root_of(parent, i);
}

#define EMPTY 0xffffffffffffffffull

extern "C" __global__ void count_keys(const unsigned int* keys, int n, unsigned long long* slots, unsigned int mask)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned int key = keys[i];
    unsigned int h = key;
    h ^= h >> 16, h *= 0x85ebca6bu, h ^= h >> 13, h *= 0xc2b2ae35u, h ^= h >> 16;
    for (unsigned int probe = h & mask;; probe = (probe + 1) & mask) {
        unsigned long long old = slots[probe];
        if (old == EMPTY) old = atomicCAS(&slots[probe], EMPTY, (unsigned long long)key << 32);
        if (old == EMPTY || old >> 32 == key) {
            atomicAdd(&slots[probe], 1ull);
            return;
        }
    }
}

// A list that is not safe for several writers, behind a lock.
extern "C" __global__ void under_lock(const unsigned int* keys, int n, int* locks, int* sizes, unsigned int* lists,
                                      int buckets, int capacity)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int bucket = keys[i] % buckets;
    bool done = false;
    while (!done) {
        if (atomicCAS(&locks[bucket], 0, 1) == 0) {
            __threadfence();
            volatile int* size = &sizes[bucket];
            const int at = *size;
            ((volatile unsigned int*)lists)[bucket * capacity + at] = keys[i];
            *size = at + 1;
            __threadfence();
            atomicExch(&locks[bucket], 0);
            done = true;
        }
    }
}
