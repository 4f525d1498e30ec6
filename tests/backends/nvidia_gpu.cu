// Kernels whose results tell how they were launched.
#include <cooperative_groups.h>

// The size of the cluster and the block's place in it, for each block.
extern "C" __global__ void cluster_shape(unsigned* out) {
    unsigned size[3], place[3];
    asm("mov.u32 %0, %%cluster_nctaid.x; mov.u32 %1, %%cluster_nctaid.y; mov.u32 %2, %%cluster_nctaid.z;"
        : "=r"(size[0]), "=r"(size[1]), "=r"(size[2]));
    asm("mov.u32 %0, %%cluster_ctaid.x; mov.u32 %1, %%cluster_ctaid.y; mov.u32 %2, %%cluster_ctaid.z;"
        : "=r"(place[0]), "=r"(place[1]), "=r"(place[2]));
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    for (int axis = 0; axis < 3; axis++) {
        out[6 * block + axis] = size[axis];
        out[6 * block + 3 + axis] = place[axis];
    }
}

// The sum of what the blocks of a cluster have in their shared memory, read by each of them.
extern "C" __global__ void cluster_sum(int* out) {
    __shared__ int own;
    auto cluster = cooperative_groups::this_cluster();
    own = blockIdx.x;
    cluster.sync();
    int sum = 0;
    for (unsigned rank = 0; rank < cluster.num_blocks(); rank++) sum += *cluster.map_shared_rank(&own, rank);
    out[blockIdx.x] = sum;
    cluster.sync();
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) fixed_cluster(unsigned* out) {
    unsigned size;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
    out[blockIdx.x] = size;
}

// Each block passes a number on to the next, around the grid, as often as there are blocks: a barrier over all of them.
extern "C" __global__ void ring(int* values, int rounds) {
    auto grid = cooperative_groups::this_grid();
    for (int round = 0; round < rounds; round++) {
        int value = values[blockIdx.x];
        grid.sync();
        if (threadIdx.x == 0) values[(blockIdx.x + 1) % gridDim.x] = value + 1;
        grid.sync();
    }
}

// The first kernel waits, for a while, to be told that the second runs; the second is told whether that was seen.
extern "C" __global__ void first(volatile int* flags) {
    asm volatile("griddepcontrol.launch_dependents;");
    long long begin = clock64();
    while (flags[0] == 0 && clock64() - begin < 2000000000) {}
    flags[1] = flags[0];
    __threadfence();
}
extern "C" __global__ void second(volatile int* flags) {
    flags[0] = 1;
    __threadfence();
    asm volatile("griddepcontrol.wait;");
    flags[2] = flags[1];
}

// Fill dynamic shared memory and add it up; `own` is static shared memory beside it.
extern "C" __global__ void fill_shared(unsigned* out, unsigned words) {
    extern __shared__ unsigned dynamic[];
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) dynamic[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned sum = 0;
        for (unsigned i = 0; i < words; i++) sum += dynamic[i];
        out[blockIdx.x] = sum;
    }
}
extern "C" __global__ void fill_both(unsigned* out, unsigned words) {
    extern __shared__ unsigned dynamic[];
    __shared__ unsigned own[256];
    own[threadIdx.x] = threadIdx.x;
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) dynamic[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned sum = 0;
        for (unsigned i = 0; i < words; i++) sum += dynamic[i];
        for (unsigned i = 0; i < 256; i++) sum += own[i];
        out[blockIdx.x] = sum;
    }
}

extern "C" __global__ void add(int* x, int a) { x[blockIdx.x * blockDim.x + threadIdx.x] += a; }

// The same, but a while passes between reading and writing.
extern "C" __global__ void add_slowly(int* x, int a, long long clocks) {
    int value = x[threadIdx.x];
    long long begin = clock64();
    while (clock64() - begin < clocks) {}
    x[threadIdx.x] = value + a;
}

extern "C" __global__ void add_floats(float* x, const float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += y[i];
}

// What Triton's kernels do with scratch memory: each block has its part, by its number in the grid.
extern "C" __global__ void through_scratch(int* out, int* scratch, int* profile) {
    int* own = scratch + 16 * blockIdx.x;
    for (int i = 0; i < 16; i++) own[i] = out[blockIdx.x] + i;
    __threadfence();
    int sum = 0;
    for (int i = 0; i < 16; i++) sum += own[i];
    out[blockIdx.x] = sum + (profile != nullptr);
}

extern "C" __global__ void wild(int* x, long long far) { x[threadIdx.x + far] = 1; }

extern "C" __global__ void wait_for(volatile int* flag, int* out) {
    while (*flag == 0) {}
    *out = 1;
}

struct pair { float a; int b; };
struct alignas(16) wide { unsigned char bytes[48]; };
// Every parameter: where it lies, counted from the first, and its bytes.
#define DUMP(index, p)                                                                         \
    out[2 * index] = (unsigned long long)&p - (unsigned long long)&a;                          \
    out[2 * index + 1] = sizeof(p);                                                            \
    for (unsigned i = 0; i < sizeof(p); i++) bytes[out[2 * index] + i] = ((const unsigned char*)&p)[i];
extern "C" __global__ void dump(const __grid_constant__ signed char a, const __grid_constant__ double b,
                                const __grid_constant__ short c, const __grid_constant__ pair d,
                                const __grid_constant__ unsigned short e, const __grid_constant__ wide f,
                                const __grid_constant__ bool g, const __grid_constant__ unsigned long long h,
                                const __grid_constant__ float i_, unsigned long long* out, unsigned char* bytes) {
    DUMP(0, a) DUMP(1, b) DUMP(2, c) DUMP(3, d) DUMP(4, e) DUMP(5, f) DUMP(6, g) DUMP(7, h) DUMP(8, i_)
}
