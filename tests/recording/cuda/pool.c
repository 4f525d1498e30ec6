/* Pools: memory that is allocated and freed in the order of a stream. */
#include <stdlib.h>
#include <string.h>

#include "memory.h"

static void destroy_pool(struct object *object) {
    struct pool *pool = (struct pool *)object;
    memory_free_pool(pool);
    if (devices[pool->device].current_pool == pool) devices[pool->device].current_pool = NULL;
    if (devices[pool->device].default_pool == pool) devices[pool->device].default_pool = NULL;
}

static struct pool *new_pool(CUdevice device, bool is_default) {
    struct pool *pool = object_create(KIND_POOL, sizeof *pool, NULL, destroy_pool);
    pool->device = device;
    pool->is_default = is_default;
    for (int i = 0; i < 3; i++) pool->reuse[i] = 1;
    pool->access = UINT32_C(1) << device;
    return pool;
}

struct pool *pool_default(CUdevice device) {
    if (!devices[device].default_pool) devices[device].default_pool = new_pool(device, true);
    return devices[device].default_pool;
}

static struct pool *pool_current(CUdevice device) {
    return devices[device].current_pool ? devices[device].current_pool : pool_default(device);
}

static CUresult check_device(CUdevice device, const void *out) {
    REQUIRE(device_valid(device), CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(devices[device].attribute[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED], CUDA_ERROR_NOT_SUPPORTED);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) {
    ENTER(cuDeviceGetDefaultMemPool);
    CHECK(check_device(device, out));
    *out = HANDLE(pool_default(device));
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device) {
    ENTER(cuDeviceGetMemPool);
    CHECK(check_device(device, out));
    *out = HANDLE(pool_current(device));
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
    ENTER(cuDeviceSetMemPool);
    struct pool *pool = object_find(handle, KIND_POOL);
    CHECK(check_device(device, handle));
    REQUIRE(pool && pool->device == device, CUDA_ERROR_INVALID_VALUE);
    devices[device].current_pool = pool;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *properties) {
    ENTER(cuMemPoolCreate);
    REQUIRE(out && properties && properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE,
            CUDA_ERROR_INVALID_VALUE);
    CHECK(check_device(properties->location.id, out));
    *out = HANDLE(new_pool(properties->location.id, false));
    return CUDA_SUCCESS;
}

static CUresult find_pool(CUmemoryPool handle, struct pool **pool) {
    *pool = object_find(handle, KIND_POOL);
    return *pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    ENTER(cuMemPoolDestroy);
    struct pool *pool;
    CHECK(find_pool(handle, &pool));
    REQUIRE(!pool->is_default, CUDA_ERROR_INVALID_VALUE);
    object_destroy(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
    ENTER(cuMemPoolTrimTo);
    struct pool *pool;
    (void)keep;
    return find_pool(handle, &pool);
}

/* The first three attributes are ints, the others 64 bits. */
CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
    ENTER(cuMemPoolSetAttribute);
    struct pool *pool;
    uint64_t number;
    CHECK(find_pool(handle, &pool));
    REQUIRE(value && attribute >= 1 && attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH, CUDA_ERROR_INVALID_VALUE);
    if (attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
        memcpy(&pool->reuse[attribute - 1], value, sizeof pool->reuse[0]);
        return CUDA_SUCCESS;
    }
    memcpy(&number, value, sizeof number);
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        pool->threshold = number;
        return CUDA_SUCCESS;
    }
    REQUIRE((attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) && !number,
            CUDA_ERROR_INVALID_VALUE);
    pool->used_high = pool->used;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
    ENTER(cuMemPoolGetAttribute);
    struct pool *pool;
    CHECK(find_pool(handle, &pool));
    REQUIRE(value && attribute >= 1 && attribute <= CU_MEMPOOL_ATTR_USED_MEM_HIGH, CUDA_ERROR_INVALID_VALUE);
    if (attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
        memcpy(value, &pool->reuse[attribute - 1], sizeof pool->reuse[0]);
        return CUDA_SUCCESS;
    }
    uint64_t number = attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? pool->threshold
                      : attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ||
                              attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
                          ? pool->used
                          : pool->used_high;
    memcpy(value, &number, sizeof number);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *accesses, size_t count) {
    ENTER(cuMemPoolSetAccess);
    struct pool *pool;
    CHECK(find_pool(handle, &pool));
    REQUIRE(accesses || !count, CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        CUdevice device = accesses[i].location.id;
        REQUIRE(device_valid(device), CUDA_ERROR_INVALID_DEVICE);
        REQUIRE(device == pool->device || devices[device].reachable >> pool->device & 1,
                CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
        if (accesses[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) pool->access &= ~(UINT32_C(1) << device);
        else pool->access |= UINT32_C(1) << device;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *out, CUmemoryPool handle, CUmemLocation *location) {
    ENTER(cuMemPoolGetAccess);
    struct pool *pool;
    CHECK(find_pool(handle, &pool));
    REQUIRE(out && location && device_valid(location->id), CUDA_ERROR_INVALID_VALUE);
    *out = pool->access >> location->id & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* ---- allocations in a stream's order ---- */

static CUresult allocate(CUdeviceptr *out, size_t size, CUstream stream_handle, struct pool *pool) {
    struct context *context;
    struct stream *stream;
    struct node *node = NULL;
    struct range *range;
    CHECK(context_current(&context));
    CHECK(stream_find(stream_handle, context, &stream));
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    *out = 0;
    if (!size) return CUDA_SUCCESS;
    if (!pool) pool = pool_current(stream->object.context->device);
    CHECK(stream_enqueue(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &node));
    CHECK(memory_allocate(stream->object.context, size, 1, MEMORY_DEVICE, &range));
    if (node) {
        range->graph = node->graph;
    } else {
        range->pool = pool;
        pool->used += size;
        if (pool->used > pool->used_high) pool->used_high = pool->used;
    }
    *out = range->base;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream) {
    ENTER(cuMemAllocAsync);
    return allocate(out, size, stream, NULL);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool handle, CUstream stream) {
    ENTER(cuMemAllocFromPoolAsync);
    struct pool *pool;
    CHECK(find_pool(handle, &pool));
    return allocate(out, size, stream, pool);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream_handle) {
    ENTER(cuMemFreeAsync);
    struct context *context;
    struct stream *stream;
    struct node *node = NULL;
    CHECK(context_current(&context));
    CHECK(stream_find(stream_handle, context, &stream));
    struct range *range = memory_find_base(address);
    REQUIRE(range && range->memory == MEMORY_DEVICE, CUDA_ERROR_INVALID_VALUE);
    CHECK(stream_enqueue(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, &node));
    /* A graph's own memory lives as long as the graph: each run allocates it again, at the same address. */
    if (node) {
        REQUIRE(range->graph == node->graph, CUDA_ERROR_INVALID_VALUE);
        return CUDA_SUCCESS;
    }
    memory_free(range);
    return CUDA_SUCCESS;
}
