/* The record of launches: a ring, so that any number of them needs the same memory. */
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "state.h"

#define KEPT 256

static struct recorded *ring;
static uint64_t capacity, count;

static void *copy(const void *from, size_t size) {
    void *memory = malloc(size ? size : 1);
    if (!memory) abort();
    if (size) memcpy(memory, from, size);
    return memory;
}

void record_copy(struct recorded *to, const struct recorded *from) {
    record_clear(to);
    to->launch = from->launch;
    to->bytes = copy(from->bytes, from->launch.argument_bytes);
    to->arguments = copy(from->arguments, from->launch.argument_count * sizeof *from->arguments);
}

void record_clear(struct recorded *recorded) {
    free(recorded->bytes);
    free(recorded->arguments);
    memset(recorded, 0, sizeof *recorded);
}

static void resize(uint64_t wanted) {
    for (uint64_t i = 0; i < capacity; i++) record_clear(&ring[i]);
    free(ring);
    ring = calloc(wanted, sizeof *ring);
    if (!ring) abort();
    capacity = wanted;
}

void record_launch(const struct recorded *recorded) {
    if (!capacity) resize(KEPT);
    struct recorded *slot = &ring[count % capacity];
    record_copy(slot, recorded);
    slot->launch.sequence = ++count;
}

void record_reset(void) {
    for (uint64_t i = 0; i < capacity; i++) record_clear(&ring[i]);
    count = 0;
}

uint64_t podium_recording_launch_count(void) { return count; }

void podium_recording_keep(uint64_t launches) {
    lock_take();
    resize(launches ? launches : 1);
    count = 0;
    lock_leave();
}

int podium_recording_launch(uint64_t sequence, void *launch, void *bytes, size_t byte_capacity, void *arguments,
                            size_t argument_capacity) {
    lock_take();
    int found = sequence && sequence <= count && count - sequence < capacity;
    if (found) {
        const struct recorded *slot = &ring[(sequence - 1) % capacity];
        size_t size = slot->launch.argument_bytes, room = argument_capacity;
        memcpy(launch, &slot->launch, sizeof slot->launch);
        if (bytes && size) memcpy(bytes, slot->bytes, size < byte_capacity ? size : byte_capacity);
        if (room > slot->launch.argument_count) room = slot->launch.argument_count;
        if (arguments && room) memcpy(arguments, slot->arguments, room * sizeof *slot->arguments);
    }
    lock_leave();
    return found;
}
