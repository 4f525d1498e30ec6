// Copies of tiles by tensor memory access, as the tests of tensor maps run them; each is one block and one tile.
#include <cuda.h>

__device__ unsigned shared_address(const void *place) { return static_cast<unsigned>(__cvta_generic_to_shared(place)); }

// A barrier that counts the bytes of a copy; one thread of the block begins, all wait.
struct Arrival {
    unsigned long long state;

    __device__ void expect(unsigned bytes) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&state)) : "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state)), "r"(bytes)
                     : "memory");
    }

    __device__ void wait() {
        unsigned done = 0;
        while (!done)
            asm volatile("{\n.reg .pred p;\n"
                         "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                         "selp.u32 %0, 1, 0, p;\n}"
                         : "=r"(done)
                         : "r"(shared_address(&state))
                         : "memory");
    }
};

// The tile, and behind it the barrier: all shared memory is dynamic, so that the tile lies at its beginning.
extern __shared__ __align__(1024) unsigned tile[];

__device__ Arrival &arrival(int words) { return *reinterpret_cast<Arrival *>(tile + words); }

__device__ unsigned barrier_address(int words) { return shared_address(&arrival(words)); }

__device__ void give(unsigned *out, int words) {
    __syncthreads();
    arrival(words).wait();
    for (int i = threadIdx.x; i < words; i += blockDim.x) out[i] = tile[i];
}

extern "C" __global__ void read_2d(const __grid_constant__ CUtensorMap map, int x, int y, int words, unsigned *out) {
    if (threadIdx.x == 0) {
        arrival(words).expect(4 * words);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];"
                     ::"r"(shared_address(tile)), "l"(&map), "r"(x), "r"(y), "r"(barrier_address(words)) : "memory");
    }
    give(out, words);
}

extern "C" __global__ void read_3d(const __grid_constant__ CUtensorMap map, int x, int y, int z, int words,
                                   unsigned *out) {
    if (threadIdx.x == 0) {
        arrival(words).expect(4 * words);
        asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
            "[%0], [%1, {%2, %3, %4}], [%5];"
            ::"r"(shared_address(tile)), "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier_address(words)) : "memory");
    }
    give(out, words);
}

extern "C" __global__ void read_columns(const __grid_constant__ CUtensorMap map, int w, int h, int n, int off_w,
                                        int off_h, int words, unsigned *out) {
    if (threadIdx.x == 0) {
        arrival(words).expect(4 * words);
        asm volatile(
            "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
            "[%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(shared_address(tile)), "l"(&map), "r"(0), "r"(w), "r"(h),
            "r"(n), "r"(barrier_address(words)), "h"((unsigned short)off_w), "h"((unsigned short)off_h) : "memory");
    }
    give(out, words);
}

extern "C" __global__ void write_2d(const __grid_constant__ CUtensorMap map, int x, int y, int words) {
    for (int i = threadIdx.x; i < words; i += blockDim.x) tile[i] = i;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(x),
                     "r"(y), "r"(shared_address(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
    }
}
