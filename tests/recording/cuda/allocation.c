/* Entries that allocate and free memory, and that say what lies at an address. */
#include <stdlib.h>
#include <string.h>

#include "memory.h"

CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    ENTER(cuMemGetInfo_v2);
    struct context *context;
    CHECK(context_current(&context));
    const struct device *device = &devices[context->device];
    if (available) *available = device->total - device->used;
    if (total) *total = device->total;
    return CUDA_SUCCESS;
}

static CUresult allocate(size_t size, enum memory memory, unsigned flags, CUdeviceptr *out) {
    struct context *context;
    struct range *range;
    CHECK(context_current(&context));
    REQUIRE(out && size, CUDA_ERROR_INVALID_VALUE);
    CHECK(capture_allows_unsafe());
    CHECK(memory_allocate(context, size, 1, memory, &range));
    range->flags = flags;
    *out = range->base;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
    ENTER(cuMemAlloc_v2);
    return allocate(size, MEMORY_DEVICE, 0, out);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element) {
    ENTER(cuMemAllocPitch_v2);
    REQUIRE(pitch && width && height && (element == 4 || element == 8 || element == 16), CUDA_ERROR_INVALID_VALUE);
    *pitch = (width + 511) / 512 * 512;
    return allocate(*pitch * height, MEMORY_DEVICE, 0, out);
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags) {
    ENTER(cuMemAllocManaged);
    REQUIRE(flags == 1 || flags == 2, CUDA_ERROR_INVALID_VALUE);
    return allocate(size, MEMORY_MANAGED, flags, out);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
    ENTER(cuMemFree_v2);
    struct context *context;
    CHECK(context_current(&context));
    CHECK(capture_allows_unsafe());
    if (!address) return CUDA_SUCCESS;
    struct range *range = memory_find_base(address);
    REQUIRE(range && (range->memory == MEMORY_DEVICE || range->memory == MEMORY_MANAGED), CUDA_ERROR_INVALID_VALUE);
    memory_free(range);
    return CUDA_SUCCESS;
}

static CUresult allocate_pinned(void **out, size_t size, unsigned flags) {
    CUdeviceptr address;
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    *out = NULL;
    if (!size) return CUDA_SUCCESS;
    CHECK(allocate(size, MEMORY_PINNED, flags, &address));
    *out = (void *)(uintptr_t)address;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **out, size_t size) {
    ENTER(cuMemAllocHost_v2);
    return allocate_pinned(out, size, 0);
}

CUresult cuMemHostAlloc(void **out, size_t size, unsigned flags) {
    ENTER(cuMemHostAlloc);
    REQUIRE(flags <= 7, CUDA_ERROR_INVALID_VALUE);
    return allocate_pinned(out, size, flags);
}

static CUresult find_host(const void *at, enum memory memory, bool base, CUresult otherwise, struct range **range) {
    struct context *context;
    CHECK(context_current(&context));
    *range = memory_find((CUdeviceptr)(uintptr_t)at);
    REQUIRE(*range && (*range)->memory == memory && (!base || (*range)->bytes == at), otherwise);
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *at) {
    ENTER(cuMemFreeHost);
    struct range *range;
    if (!at) return CUDA_SUCCESS;
    CHECK(find_host(at, MEMORY_PINNED, true, CUDA_ERROR_INVALID_VALUE, &range));
    CHECK(capture_allows_unsafe());
    memory_free(range);
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *at, size_t size, unsigned flags) {
    ENTER(cuMemHostRegister_v2);
    struct context *context;
    CHECK(context_current(&context));
    REQUIRE(at && size && flags <= 15, CUDA_ERROR_INVALID_VALUE);
    CHECK(capture_allows_unsafe());
    REQUIRE(!memory_overlaps((CUdeviceptr)(uintptr_t)at, size), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    memory_register(context, at, size, flags);
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *at) {
    ENTER(cuMemHostUnregister);
    struct range *range;
    CHECK(find_host(at, MEMORY_REGISTERED, true, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, &range));
    memory_free(range);
    return CUDA_SUCCESS;
}

static CUresult find_pinned(const void *at, struct range **range) {
    if (!find_host(at, MEMORY_PINNED, false, CUDA_ERROR_INVALID_VALUE, range)) return CUDA_SUCCESS;
    return find_host(at, MEMORY_REGISTERED, false, CUDA_ERROR_INVALID_VALUE, range);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *at, unsigned flags) {
    ENTER(cuMemHostGetDevicePointer_v2);
    struct range *range;
    REQUIRE(out && !flags, CUDA_ERROR_INVALID_VALUE);
    CHECK(find_pinned(at, &range));
    *out = (CUdeviceptr)(uintptr_t)at;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned *flags, void *at) {
    ENTER(cuMemHostGetFlags);
    struct range *range;
    REQUIRE(flags, CUDA_ERROR_INVALID_VALUE);
    CHECK(find_pinned(at, &range));
    *flags = range->flags | 2; /* mapped: all pinned memory is, where addresses are unified */
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address) {
    ENTER(cuMemGetAddressRange_v2);
    struct context *context;
    CHECK(context_current(&context));
    struct range *range = memory_find(address);
    REQUIRE(range, CUDA_ERROR_NOT_FOUND);
    if (base) *base = range->base;
    if (size) *size = range->size;
    return CUDA_SUCCESS;
}

/* ---- what lies at an address ---- */

static void put_int(void *out, int value) { memcpy(out, &value, sizeof value); }
static void put_long(void *out, uint64_t value) { memcpy(out, &value, sizeof value); }

static CUresult describe(const struct range *range, CUpointer_attribute attribute, CUdeviceptr address, void *out) {
    bool on_host = range->memory != MEMORY_DEVICE;
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        put_long(out, range->context && !range->pool ? range->context->object.handle : 0);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put_int(out, range->memory == MEMORY_DEVICE || range->memory == MEMORY_MANAGED ? CU_MEMORYTYPE_DEVICE
                                                                                       : CU_MEMORYTYPE_HOST);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        put_long(out, address);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        REQUIRE(on_host, CUDA_ERROR_INVALID_VALUE);
        put_long(out, address);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        put_int(out, 0);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        put_long(out, range->number);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        put_int(out, range->memory == MEMORY_MANAGED);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put_int(out, range->device);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        put_long(out, range->base);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        put_long(out, range->size);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        put_int(out, 1);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        put_long(out, range->pool ? range->pool->object.handle : 0);
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr address) {
    ENTER(cuPointerGetAttribute);
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    struct range *range = memory_find(address);
    REQUIRE(range, CUDA_ERROR_INVALID_VALUE);
    return describe(range, attribute, address, out);
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **out, CUdeviceptr address) {
    ENTER(cuPointerGetAttributes);
    REQUIRE(count && attributes && out, CUDA_ERROR_INVALID_VALUE);
    struct range *range = memory_find(address);
    for (unsigned i = 0; i < count; i++) {
        /* An address that the driver does not know is none of its own: the answers are zeros, and no error. */
        if (range && !describe(range, attributes[i], address, out[i])) continue;
        if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) put_int(out[i], -2);
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
                 attributes[i] == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || attributes[i] == CU_POINTER_ATTRIBUTE_MAPPED)
            put_int(out[i], 0);
        else put_long(out[i], attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER && !range ? address : 0);
    }
    return CUDA_SUCCESS;
}
