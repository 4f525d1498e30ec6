/* Entries that copy and fill memory. What is asked for is done at once, unless it is captured. */
#include <string.h>

#include "memory.h"

struct work {
    struct context *context;
    struct stream *stream;
    bool captured;
};

/* A copy without a stream is one on the legacy stream, which is waited for. */
static CUresult begin(struct work *work, bool has_stream, CUstream handle, CUgraphNodeType type) {
    struct node *node = NULL;
    CHECK(context_current(&work->context));
    CHECK(stream_find(has_stream ? handle : NULL, work->context, &work->stream));
    if (!has_stream) CHECK(capture_allows_synchronize(work->stream));
    CHECK(stream_enqueue(work->stream, type, &node));
    work->captured = node != NULL;
    return CUDA_SUCCESS;
}

static CUresult copy(const struct work *work, CUdeviceptr to, bool to_host, CUdeviceptr from, bool from_host,
                     size_t size) {
    uint8_t *target, *source;
    if (!size) return CUDA_SUCCESS;
    CHECK((to_host ? memory_any_bytes : memory_device_bytes)(to, size, work->context, &target));
    CHECK((from_host ? memory_any_bytes : memory_device_bytes)(from, size, work->context, &source));
    if (!work->captured) memmove(target, source, size);
    return CUDA_SUCCESS;
}

static CUresult fill(const struct work *work, CUdeviceptr to, const void *pattern, size_t width, size_t count) {
    uint8_t *target;
    if (!count) return CUDA_SUCCESS;
    REQUIRE(to % width == 0, CUDA_ERROR_INVALID_VALUE);
    CHECK(memory_device_bytes(to, width * count, work->context, &target));
    for (size_t i = 0; i < count && !work->captured; i++) memcpy(target + i * width, pattern, width);
    return CUDA_SUCCESS;
}

#define POINTER(host) ((CUdeviceptr)(uintptr_t)(host))
#define BEGIN(symbol, has_stream, stream, type) \
    ENTER(symbol);                              \
    struct work work;                           \
    CHECK(begin(&work, has_stream, stream, type))

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
    BEGIN(cuMemcpy, false, NULL, CU_GRAPH_NODE_TYPE_MEMCPY);
    return copy(&work, to, true, from, true, size);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
    BEGIN(cuMemcpyHtoD_v2, false, NULL, CU_GRAPH_NODE_TYPE_MEMCPY);
    return copy(&work, to, false, POINTER(from), true, size);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size) {
    BEGIN(cuMemcpyDtoH_v2, false, NULL, CU_GRAPH_NODE_TYPE_MEMCPY);
    return copy(&work, POINTER(to), true, from, false, size);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size) {
    BEGIN(cuMemcpyDtoD_v2, false, NULL, CU_GRAPH_NODE_TYPE_MEMCPY);
    return copy(&work, to, false, from, false, size);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size) {
    BEGIN(cuMemcpyPeer, false, NULL, CU_GRAPH_NODE_TYPE_MEMCPY);
    REQUIRE(object_find(to_context, KIND_CONTEXT) && object_find(from_context, KIND_CONTEXT),
            CUDA_ERROR_INVALID_CONTEXT);
    return copy(&work, to, false, from, false, size);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    BEGIN(cuMemcpyAsync, true, stream, CU_GRAPH_NODE_TYPE_MEMCPY);
    return copy(&work, to, true, from, true, size);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    BEGIN(cuMemcpyHtoDAsync_v2, true, stream, CU_GRAPH_NODE_TYPE_MEMCPY);
    return copy(&work, to, false, POINTER(from), true, size);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    BEGIN(cuMemcpyDtoHAsync_v2, true, stream, CU_GRAPH_NODE_TYPE_MEMCPY);
    return copy(&work, POINTER(to), true, from, false, size);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    BEGIN(cuMemcpyDtoDAsync_v2, true, stream, CU_GRAPH_NODE_TYPE_MEMCPY);
    return copy(&work, to, false, from, false, size);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size,
                           CUstream stream) {
    BEGIN(cuMemcpyPeerAsync, true, stream, CU_GRAPH_NODE_TYPE_MEMCPY);
    REQUIRE(object_find(to_context, KIND_CONTEXT) && object_find(from_context, KIND_CONTEXT),
            CUDA_ERROR_INVALID_CONTEXT);
    return copy(&work, to, false, from, false, size);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
    BEGIN(cuMemsetD8_v2, false, NULL, CU_GRAPH_NODE_TYPE_MEMSET);
    return fill(&work, to, &value, sizeof value, count);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
    BEGIN(cuMemsetD16_v2, false, NULL, CU_GRAPH_NODE_TYPE_MEMSET);
    return fill(&work, to, &value, sizeof value, count);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
    BEGIN(cuMemsetD32_v2, false, NULL, CU_GRAPH_NODE_TYPE_MEMSET);
    return fill(&work, to, &value, sizeof value, count);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    BEGIN(cuMemsetD8Async, true, stream, CU_GRAPH_NODE_TYPE_MEMSET);
    return fill(&work, to, &value, sizeof value, count);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    BEGIN(cuMemsetD16Async, true, stream, CU_GRAPH_NODE_TYPE_MEMSET);
    return fill(&work, to, &value, sizeof value, count);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    BEGIN(cuMemsetD32Async, true, stream, CU_GRAPH_NODE_TYPE_MEMSET);
    return fill(&work, to, &value, sizeof value, count);
}
