/* The record of launches: a ring, so that any number of them needs the same memory. */
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "state.h"

#define KEPT 256

static struct recorded *ring;
static uint64_t capacity, count;

static void *grown(void *memory, uint32_t *have, uint32_t want, size_t size) {
    if (want <= *have) return memory;
    memory = realloc(memory, want * size);
    if (!memory) abort();
    *have = want;
    return memory;
}

/* Makes room for the bytes and the parameters that `launch` says there are. */
static void reserve(struct recorded *recorded) {
    const struct launch *launch = &recorded->launch;
    recorded->bytes = grown(recorded->bytes, &recorded->byte_capacity, launch->parameter_bytes, 1);
    recorded->parameters = grown(recorded->parameters, &recorded->parameter_capacity, launch->parameter_count,
                                 sizeof *recorded->parameters);
}

void record_begin(struct recorded *recorded, const struct kernel_info *info) {
    recorded->launch.parameter_bytes = info->parameter_bytes;
    recorded->launch.parameter_count = info->parameter_count;
    reserve(recorded);
    if (info->parameter_bytes) memset(recorded->bytes, 0, info->parameter_bytes);
    if (info->parameter_count)
        memcpy(recorded->parameters, info->parameters, info->parameter_count * sizeof *info->parameters);
}

void record_copy(struct recorded *to, const struct recorded *from) {
    to->launch = from->launch;
    reserve(to);
    if (from->launch.parameter_bytes) memcpy(to->bytes, from->bytes, from->launch.parameter_bytes);
    if (from->launch.parameter_count)
        memcpy(to->parameters, from->parameters, from->launch.parameter_count * sizeof *from->parameters);
}

void record_clear(struct recorded *recorded) {
    free(recorded->bytes);
    free(recorded->parameters);
    memset(recorded, 0, sizeof *recorded);
}

static void resize(uint64_t wanted) {
    for (uint64_t i = 0; i < capacity; i++) record_clear(&ring[i]);
    free(ring);
    ring = calloc(wanted, sizeof *ring);
    if (!ring) abort();
    capacity = wanted;
}

void record_note(const struct recorded *recorded) {
    if (!capacity) resize(KEPT);
    struct recorded *slot = &ring[count % capacity];
    record_copy(slot, recorded);
    slot->launch.sequence = ++count;
}

void record_launch(const struct recorded *recorded) {
    struct device *device = &devices[recorded->launch.device];
    struct context *context = object_find((void *)(uintptr_t)recorded->launch.context, KIND_CONTEXT);
    record_note(recorded);
    if (context && device->armed_fault) {
        context->pending_fault = device->armed_fault;
        device->armed_fault = CUDA_SUCCESS;
    }
}

void record_reset(void) {
    for (uint64_t i = 0; i < capacity; i++) record_clear(&ring[i]);
    count = 0;
}

uint64_t podium_recording_launch_count(void) {
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    return count;
}

void podium_recording_keep(uint64_t launches) {
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    resize(launches ? launches : 1);
    count = 0;
}

int podium_recording_launch(uint64_t sequence, void *launch, void *bytes, size_t byte_capacity, void *parameters,
                            size_t parameter_capacity) {
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    if (!sequence || sequence > count || count - sequence >= capacity) return 0;
    const struct recorded *slot = &ring[(sequence - 1) % capacity];
    memcpy(launch, &slot->launch, sizeof slot->launch);
    size_t size = slot->launch.parameter_bytes, room = parameter_capacity;
    if (bytes && size) memcpy(bytes, slot->bytes, size < byte_capacity ? size : byte_capacity);
    if (room > slot->launch.parameter_count) room = slot->launch.parameter_count;
    if (parameters && room) memcpy(parameters, slot->parameters, room * sizeof *slot->parameters);
    return 1;
}
