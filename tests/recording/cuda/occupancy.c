/* Occupancy: how many blocks fit, by the rules that NVIDIA publishes for compute capability 9.0. */
#include "state.h"

#define REGISTER_UNIT 256 /* registers are given to a warp in pieces of this size */
#define SHARED_UNIT 128
#define PARTITIONS 4 /* of a multiprocessor; each has a quarter of the registers and of the warps */
#define PORTABLE_CLUSTER 8
#define LARGEST_CLUSTER 16
#define CLUSTER_THREADS 1024 /* of a multiprocessor that clusters can have, as an H200 answers */

static int smaller(int a, int b) { return a < b ? a : b; }

int occupancy_blocks(const struct function *function, CUdevice ordinal, int threads, size_t dynamic) {
    const int *device = devices[ordinal].attribute;
    int warps = (threads + 31) / 32;
    int blocks = device[CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR];
    if (warps < 1 || threads > device[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK]) return 0;
    blocks = smaller(blocks, device[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] / 32 / warps);
    int registers = (function->attribute[CU_FUNC_ATTRIBUTE_NUM_REGS] * 32 + REGISTER_UNIT - 1) / REGISTER_UNIT *
                    REGISTER_UNIT;
    if (registers) {
        int fitting = device[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] / PARTITIONS / registers;
        blocks = smaller(blocks, fitting * PARTITIONS / warps);
    }
    size_t shared = dynamic + (size_t)function->attribute[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] +
                    (size_t)device[CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK];
    shared = (shared + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
    if (shared) {
        size_t fitting = (size_t)device[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] / shared;
        blocks = smaller(blocks, (int)fitting);
    }
    return blocks;
}

/* The cluster of a launch, from its attributes or from the kernel; 1, 1, 1 without one. */
CUresult occupancy_cluster(const CUlaunchConfig *config, const struct function *function, uint32_t cluster[3]) {
    const unsigned grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    const int *attribute = function->attribute;
    for (int i = 0; i < 3; i++) {
        int fixed = attribute[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + i];
        cluster[i] = fixed ? (uint32_t)fixed : 1;
    }
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
        const CUlaunchAttributeValue *value = &config->attrs[i].value;
        const uint32_t wanted[3] = {value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
        for (int j = 0; j < 3; j++) {
            int fixed = attribute[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + j];
            REQUIRE(wanted[j] && (!fixed || (uint32_t)fixed == wanted[j]), CUDA_ERROR_INVALID_CLUSTER_SIZE);
            cluster[j] = wanted[j];
        }
    }
    uint64_t blocks = (uint64_t)cluster[0] * cluster[1] * cluster[2];
    REQUIRE(blocks <= (attribute[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] ? LARGEST_CLUSTER
                                                                                     : PORTABLE_CLUSTER),
            CUDA_ERROR_INVALID_CLUSTER_SIZE);
    for (int i = 0; i < 3; i++) REQUIRE(grid[i] % cluster[i] == 0, CUDA_ERROR_INVALID_CLUSTER_SIZE);
    return CUDA_SUCCESS;
}

int occupancy_clusters(const struct function *function, CUdevice ordinal, const CUlaunchConfig *config) {
    uint32_t cluster[3];
    int threads = (int)(config->blockDimX * config->blockDimY * config->blockDimZ);
    if (occupancy_cluster(config, function, cluster)) return 0;
    int size = (int)(cluster[0] * cluster[1] * cluster[2]);
    int blocks = occupancy_blocks(function, ordinal, threads, config->sharedMemBytes);
    blocks = smaller(blocks, CLUSTER_THREADS / threads);
    return devices[ordinal].attribute[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] * blocks / size;
}

/* ---- entries ---- */

static CUresult find(CUfunction handle, struct function **function, CUdevice *device) {
    struct context *context;
    CHECK(context_current(&context));
    CHECK(function_resolve(handle, context, function));
    *device = context->device;
    return CUDA_SUCCESS;
}

static CUresult active_blocks(int *blocks, CUfunction handle, int threads, size_t dynamic, unsigned flags) {
    struct function *function;
    CUdevice device;
    CHECK(find(handle, &function, &device));
    REQUIRE(blocks && threads > 0 && flags <= 1, CUDA_ERROR_INVALID_VALUE);
    *blocks = dynamic > (size_t)function->attribute[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES]
                  ? 0
                  : occupancy_blocks(function, device, threads, dynamic);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t dynamic) {
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    return active_blocks(blocks, function, threads, dynamic, 0);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int threads,
                                                              size_t dynamic, unsigned flags) {
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
    return active_blocks(blocks, function, threads, dynamic, flags);
}

/* The block with the most threads at work on a multiprocessor; of equals, the largest. */
static CUresult potential_block(int *grid, int *block, CUfunction handle, CUoccupancyB2DSize size_of, size_t dynamic,
                                int limit, unsigned flags) {
    struct function *function;
    CUdevice device;
    CHECK(find(handle, &function, &device));
    REQUIRE(grid && block && limit >= 0 && flags <= 1, CUDA_ERROR_INVALID_VALUE);
    int most = function->attribute[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK], best = 0;
    if (limit && limit < most) most = limit;
    for (int threads = (most + 31) / 32 * 32; threads > 0; threads -= 32) {
        int tried = smaller(threads, most);
        int blocks = occupancy_blocks(function, device, tried, size_of ? size_of(tried) : dynamic);
        if (blocks * tried <= best) continue;
        best = blocks * tried;
        *block = tried;
        *grid = blocks * devices[device].attribute[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
    }
    return best ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function, CUoccupancyB2DSize size_of,
                                          size_t dynamic, int limit) {
    ENTER(cuOccupancyMaxPotentialBlockSize);
    return potential_block(grid, block, function, size_of, dynamic, limit, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
                                                   CUoccupancyB2DSize size_of, size_t dynamic, int limit,
                                                   unsigned flags) {
    ENTER(cuOccupancyMaxPotentialBlockSizeWithFlags);
    return potential_block(grid, block, function, size_of, dynamic, limit, flags);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction handle, int blocks, int threads) {
    ENTER(cuOccupancyAvailableDynamicSMemPerBlock);
    struct function *function;
    CUdevice device;
    CHECK(find(handle, &function, &device));
    REQUIRE(bytes && blocks > 0 && threads > 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(occupancy_blocks(function, device, threads, 0) >= blocks, CUDA_ERROR_INVALID_VALUE);
    *bytes = 0;
    size_t most = (size_t)function->attribute[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
    for (size_t step = SHARED_UNIT; *bytes + step <= most; *bytes += step)
        if (occupancy_blocks(function, device, threads, *bytes + step) < blocks) break;
    return CUDA_SUCCESS;
}

static CUresult find_for_clusters(CUfunction handle, const CUlaunchConfig *config, const void *out,
                                  struct function **function, CUdevice *device) {
    CHECK(find(handle, function, device));
    REQUIRE(config && out, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(devices[*device].attribute[CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH], CUDA_ERROR_NOT_SUPPORTED);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction handle, const CUlaunchConfig *config) {
    ENTER(cuOccupancyMaxPotentialClusterSize);
    struct function *function;
    CUdevice device;
    uint32_t cluster[3];
    CHECK(find_for_clusters(handle, config, size, &function, &device));
    CHECK(occupancy_cluster(config, function, cluster));
    *size = function->attribute[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED] ? LARGEST_CLUSTER
                                                                                   : PORTABLE_CLUSTER;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction handle, const CUlaunchConfig *config) {
    ENTER(cuOccupancyMaxActiveClusters);
    struct function *function;
    CUdevice device;
    uint32_t cluster[3];
    CHECK(find_for_clusters(handle, config, count, &function, &device));
    CHECK(occupancy_cluster(config, function, cluster));
    *count = occupancy_clusters(function, device, config);
    return CUDA_SUCCESS;
}
