/* Memory: that of devices is the host's own, so that twins of kernels can work on it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "state.h"

struct range {
    uint8_t *base;
    size_t size;
    enum memory memory;
    int device;
    unsigned flags;
    struct range *next;
};
static struct range *ranges;

static struct range *find(const void *address) {
    for (struct range *range = ranges; range; range = range->next)
        if ((const uint8_t *)address >= range->base && (const uint8_t *)address < range->base + range->size) return range;
    return NULL;
}

uint64_t memory_live(void) {
    uint64_t live = 0;
    for (struct range *range = ranges; range; range = range->next) live++;
    return live;
}

uint64_t memory_live_bytes(void) {
    uint64_t bytes = 0;
    for (struct range *range = ranges; range; range = range->next) bytes += range->size;
    return bytes;
}

hipError_t memory_allocate(void **out, size_t size, enum memory memory) {
    struct device *device = &devices[current_device];
    REQUIRE(out, hipErrorInvalidValue);
    *out = NULL;
    if (!size) return hipSuccess;
    REQUIRE(size <= device->total && (memory == MEMORY_HOST || device->used <= device->total - size), hipErrorOutOfMemory);
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(base != MAP_FAILED, hipErrorOutOfMemory);
    struct range *range = calloc(1, sizeof *range);
    if (!range) abort();
    *range = (struct range){base, size, memory, current_device, 0, ranges};
    ranges = range;
    if (memory != MEMORY_HOST) device->used += size;
    *out = base;
    return hipSuccess;
}

static void forget(struct range *range) {
    struct range **place = &ranges;
    while (*place != range) place = &(*place)->next;
    *place = range->next;
    if (range->memory != MEMORY_HOST) devices[range->device].used -= range->size;
    munmap(range->base, range->size);
    free(range);
}

hipError_t memory_free(void *at, bool host) {
    struct range *range = find(at);
    if (!at) return hipSuccess;
    REQUIRE(range && range->base == at && (range->memory == MEMORY_HOST) == host, hipErrorInvalidValue);
    hipError_t pending = devices[range->device].pending; /* to free is to wait, and to learn what has failed */
    forget(range);
    return host ? hipSuccess : pending;
}

void memory_reset(void) {
    while (ranges) forget(ranges);
}

/* ---- HIP's functions ---- */

static hipError_t information(size_t *available, size_t *total) {
    REQUIRE(available && total, hipErrorInvalidValue);
    *total = devices[current_device].total;
    *available = *total - devices[current_device].used;
    return hipSuccess;
}

hipError_t hipMemGetInfo(size_t *available, size_t *total) { CALL(hipMemGetInfo, information(available, total)); }
hipError_t hipMalloc(void **out, size_t size) { CALL(hipMalloc, memory_allocate(out, size, MEMORY_DEVICE)); }
hipError_t hipFree(void *at) { CALL(hipFree, memory_free(at, false)); }
hipError_t hipHostFree(void *at) { CALL(hipHostFree, memory_free(at, true)); }

hipError_t hipMallocManaged(void **out, size_t size, unsigned flags) {
    CALL(hipMallocManaged, flags == 1 || flags == 2 ? memory_allocate(out, size, MEMORY_MANAGED) : hipErrorInvalidValue);
}

static hipError_t in_order(void **out, size_t size, hipStream_t handle) {
    const struct stream *stream = stream_find(handle);
    REQUIRE(stream, hipErrorInvalidHandle);
    int device = current_device;
    current_device = (uintptr_t)handle <= 2 ? device : stream->device;
    hipError_t status = memory_allocate(out, size, MEMORY_DEVICE);
    current_device = device;
    return status;
}

hipError_t hipMallocAsync(void **out, size_t size, hipStream_t stream) { CALL(hipMallocAsync, in_order(out, size, stream)); }

static hipError_t free_in_order(void *at, hipStream_t stream) {
    struct range *range = find(at);
    REQUIRE(stream_find(stream), hipErrorInvalidHandle);
    REQUIRE(range && range->base == at && range->memory != MEMORY_HOST, hipErrorInvalidValue);
    forget(range);
    return hipSuccess;
}

hipError_t hipFreeAsync(void *at, hipStream_t stream) { CALL(hipFreeAsync, free_in_order(at, stream)); }

static hipError_t pinned(void **out, size_t size, unsigned flags) {
    CHECK(memory_allocate(out, size, MEMORY_HOST));
    if (*out) find(*out)->flags = flags;
    return hipSuccess;
}

hipError_t hipHostMalloc(void **out, size_t size, unsigned flags) { CALL(hipHostMalloc, pinned(out, size, flags)); }

static hipError_t device_address(void **out, void *host, unsigned flags) {
    REQUIRE(out && host && !flags && find(host), hipErrorInvalidValue);
    *out = host;
    return hipSuccess;
}

hipError_t hipHostGetDevicePointer(void **out, void *host, unsigned flags) {
    CALL(hipHostGetDevicePointer, device_address(out, host, flags));
}

static hipError_t address_range(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t at) {
    const struct range *range = find(at);
    REQUIRE(range, hipErrorNotFound);
    if (base) *base = range->base;
    if (size) *size = range->size;
    return hipSuccess;
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t at) {
    CALL(hipMemGetAddressRange, address_range(base, size, at));
}

static hipMemoryType type(const struct range *range) {
#if RECORDING_HIP_MAJOR >= 6
    if (!range) return hipMemoryTypeUnregistered;
    if (range->memory == MEMORY_MANAGED) return hipMemoryTypeManaged;
#endif
    return range && range->memory != MEMORY_HOST ? hipMemoryTypeDevice : hipMemoryTypeHost;
}

static hipError_t attributes(hipPointerAttribute_t *out, const void *address) {
    const struct range *range = find(address);
    REQUIRE(out && address, hipErrorInvalidValue);
    /* Memory that HIP has not heard of is an error before 6, and has a type of its own from 6 on. */
    REQUIRE(range || RECORDING_HIP_MAJOR >= 6, hipErrorInvalidValue);
    memset(out, 0, sizeof *out);
#if RECORDING_HIP_MAJOR >= 6
    out->type = type(range);
#else
    out->memoryType = type(range);
#endif
    out->device = range ? range->device : -2;
    if (!range) return hipSuccess;
    out->devicePointer = (void *)(uintptr_t)address;
    out->hostPointer = range->memory == MEMORY_DEVICE ? NULL : (void *)(uintptr_t)address;
    out->isManaged = range->memory == MEMORY_MANAGED;
    out->allocationFlags = range->flags;
    return hipSuccess;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *out, const void *address) {
    CALL(hipPointerGetAttributes, attributes(out, address));
}

static hipError_t attribute(void *out, hipPointer_attribute which, const void *address) {
    const struct range *range = find(address);
    REQUIRE(out, hipErrorInvalidValue);
    REQUIRE(range, hipErrorInvalidValue);
    void *host = range->memory == MEMORY_DEVICE ? NULL : (void *)(uintptr_t)address;
    switch ((int)which) {
    case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE: *(hipMemoryType *)out = type(range); return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER: *(const void **)out = address; return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)out = host;
        return host ? hipSuccess : hipErrorInvalidValue;
    case HIP_POINTER_ATTRIBUTE_IS_MANAGED: *(bool *)out = range->memory == MEMORY_MANAGED; return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)out = range->device; return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(void **)out = range->base; return hipSuccess;
    case HIP_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)out = range->size; return hipSuccess;
    default: return hipErrorInvalidValue;
    }
}

hipError_t hipPointerGetAttribute(void *out, hipPointer_attribute which, hipDeviceptr_t address) {
    CALL(hipPointerGetAttribute, attribute(out, which, address));
}

static hipError_t many(unsigned count, const hipPointer_attribute *which, void **out, const void *address) {
    REQUIRE(count && which && out, hipErrorInvalidValue);
    for (unsigned i = 0; i < count; i++) {
        int none = 0;
        /* What there is no answer to is 0, and no error. */
        if (attribute(out[i], which[i], address)) memcpy(out[i], &none, sizeof none);
    }
    return hipSuccess;
}

hipError_t hipDrvPointerGetAttributes(unsigned count, hipPointer_attribute *which, void **out, hipDeviceptr_t address) {
    CALL(hipDrvPointerGetAttributes, many(count, which, out, address));
}
