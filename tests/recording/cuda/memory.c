/* Memory: which addresses live, and where their contents are. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"

#define GRANULE 512 /* of the device's addresses */

/*
 * Device memory has addresses that the host cannot read, as on a real machine: a reserved part of the address space with
 * no rights. The contents lie elsewhere. Addresses are used again only when all have been, so that old ones are known.
 */
static struct { CUdeviceptr base, end, next; } region;
static struct range **ranges; /* by address */
static size_t range_count, range_capacity;
static uint64_t number;

static bool reserve(void) {
    /* As much as the system and its tools allow. */
    for (size_t size = (size_t)1 << 42; !region.base && size >= (size_t)1 << 30; size >>= 2) {
        void *at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) continue;
        region.base = region.next = (CUdeviceptr)(uintptr_t)at;
        region.end = region.base + size;
    }
    return region.base != 0;
}

static uint8_t *contents(size_t size) {
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* The place of the first range that ends behind an address. */
static size_t place(CUdeviceptr address) {
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle]->base + ranges[middle]->size <= address) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void insert(struct range *range) {
    if (range_count == range_capacity) {
        range_capacity = range_capacity ? range_capacity * 2 : 64;
        ranges = realloc(ranges, range_capacity * sizeof *ranges);
        if (!ranges) abort();
    }
    size_t at = place(range->base);
    memmove(ranges + at + 1, ranges + at, (range_count - at) * sizeof *ranges);
    ranges[at] = range;
    range_count++;
}

static CUdeviceptr device_address(size_t size, size_t alignment) {
    if (!region.base && !reserve()) return 0;
    for (int round = 0; round < 2; round++) {
        CUdeviceptr at = (region.next + alignment - 1) / alignment * alignment;
        for (size_t i = place(at); i < range_count && ranges[i]->base < at + size; i++)
            at = (ranges[i]->base + ranges[i]->size + alignment - 1) / alignment * alignment;
        if (at + size <= region.end) {
            region.next = at + size;
            return at;
        }
        region.next = region.base;
    }
    return 0;
}

bool memory_is_stale(CUdeviceptr address) {
    return address >= region.base && address < region.end && !memory_find(address);
}

CUresult memory_allocate(struct context *context, size_t size, size_t alignment, enum memory memory,
                         struct range **out) {
    REQUIRE(size, CUDA_ERROR_INVALID_VALUE);
    bool on_device = memory == MEMORY_DEVICE;
    struct device *device = on_device ? &devices[context->device] : NULL;
    if (device && (size > device->total || device->used > device->total - size)) return CUDA_ERROR_OUT_OF_MEMORY;
    REQUIRE(size <= (size_t)1 << 44, CUDA_ERROR_OUT_OF_MEMORY);
    uint8_t *bytes = contents(size);
    REQUIRE(bytes, CUDA_ERROR_OUT_OF_MEMORY);
    size_t step = alignment > GRANULE ? alignment : GRANULE;
    CUdeviceptr base = on_device ? device_address(size, step) : (CUdeviceptr)(uintptr_t)bytes;
    if (!base) {
        munmap(bytes, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct range *range = calloc(1, sizeof *range);
    if (!range) abort();
    range->base = base;
    range->size = size;
    range->bytes = bytes;
    range->memory = memory;
    range->context = context;
    range->device = context ? context->device : 0;
    range->number = ++number;
    if (device) device->used += size;
    insert(range);
    *out = range;
    return CUDA_SUCCESS;
}

struct range *memory_register(struct context *context, void *at, size_t size, unsigned flags) {
    struct range *range = calloc(1, sizeof *range);
    if (!range) abort();
    range->base = (CUdeviceptr)(uintptr_t)at;
    range->size = size;
    range->bytes = at;
    range->memory = MEMORY_REGISTERED;
    range->context = context;
    range->device = context->device;
    range->flags = flags;
    range->number = ++number;
    insert(range);
    return range;
}

void memory_free(struct range *range) {
    size_t at = place(range->base);
    memmove(ranges + at, ranges + at + 1, (range_count - at - 1) * sizeof *ranges);
    range_count--;
    if (range->memory == MEMORY_DEVICE) devices[range->device].used -= range->size;
    if (range->pool) range->pool->used -= range->size;
    if (range->memory != MEMORY_REGISTERED) munmap(range->bytes, range->size);
    free(range);
}

struct range *memory_find(CUdeviceptr address) {
    size_t at = place(address);
    return at < range_count && ranges[at]->base <= address ? ranges[at] : NULL;
}

struct range *memory_find_base(CUdeviceptr address) {
    struct range *range = memory_find(address);
    return range && range->base == address ? range : NULL;
}

bool memory_overlaps(CUdeviceptr address, size_t size) {
    size_t at = place(address);
    return at < range_count && ranges[at]->base < address + size;
}

static void free_where(bool (*matches)(const struct range *, const void *), const void *detail) {
    for (size_t i = range_count; i-- > 0;)
        if (matches(ranges[i], detail)) memory_free(ranges[i]);
}

static bool of_context(const struct range *range, const void *context) { return range->context == context; }
static bool of_graph(const struct range *range, const void *graph) { return range->graph == graph; }
static bool of_pool(const struct range *range, const void *pool) { return range->pool == pool; }
static bool all(const struct range *range, const void *detail) {
    (void)range, (void)detail;
    return true;
}

void memory_free_of(struct context *context) { free_where(of_context, context); }
void memory_free_graph(void *graph) { free_where(of_graph, graph); }
void memory_free_pool(struct pool *pool) { free_where(of_pool, pool); }
void memory_reset(void) { free_where(all, NULL); }
uint64_t memory_live(void) { return range_count; }

uint64_t memory_live_bytes(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < range_count; i++) sum += ranges[i]->size;
    return sum;
}

CUresult memory_device_bytes(CUdeviceptr address, size_t size, struct context *context, uint8_t **bytes) {
    struct range *range = memory_find(address);
    REQUIRE(range && size <= range->base + range->size - address, CUDA_ERROR_INVALID_VALUE);
    (void)context;
    *bytes = range->bytes + (address - range->base);
    return CUDA_SUCCESS;
}

CUresult memory_any_bytes(CUdeviceptr address, size_t size, struct context *context, uint8_t **bytes) {
    struct range *range = memory_find(address);
    if (range) return memory_device_bytes(address, size, context, bytes);
    REQUIRE(address && !memory_is_stale(address), CUDA_ERROR_INVALID_VALUE);
    *bytes = (uint8_t *)(uintptr_t)address; /* the host's own memory */
    return CUDA_SUCCESS;
}
