/* Objects behind handles. A handle is the number of a slot and of its use, so that one that is over is never valid. */
#include <stdlib.h>

#include "state.h"

struct slot {
    struct object *object;
    uint64_t use;
};
static struct slot *slots;
static size_t slot_count, slot_capacity;
static size_t *free_slots, free_count;
static uint64_t live[KIND_COUNT], created[KIND_COUNT];

#define USES_BEGIN UINT64_C(0x5a00)
#define SLOT_BITS 24

void *object_create(enum kind kind, size_t size, struct context *context, void (*destroy)(struct object *)) {
    size_t number;
    if (free_count) {
        number = free_slots[--free_count];
    } else {
        if (slot_count == slot_capacity) {
            slot_capacity = slot_capacity ? slot_capacity * 2 : 256;
            slots = realloc(slots, slot_capacity * sizeof *slots);
            free_slots = realloc(free_slots, slot_capacity * sizeof *free_slots);
            if (!slots || !free_slots) abort();
        }
        number = slot_count++;
        slots[number].use = USES_BEGIN;
    }
    struct object *object = calloc(1, size);
    if (!object) abort();
    object->kind = kind;
    object->context = context;
    object->destroy = destroy;
    object->handle = slots[number].use << SLOT_BITS | (number + 1) << 4;
    slots[number].object = object;
    live[kind]++;
    created[kind]++;
    return object;
}

void *object_find(const void *handle, enum kind kind) {
    uint64_t value = (uint64_t)(uintptr_t)handle;
    uint64_t number = ((value & ((UINT64_C(1) << SLOT_BITS) - 1)) >> 4) - 1;
    if (number >= slot_count) return NULL;
    struct object *object = slots[number].object;
    return object && object->handle == value && object->kind == kind ? object : NULL;
}

void object_destroy(void *pointer) {
    struct object *object = pointer;
    size_t number = (size_t)((object->handle & ((UINT64_C(1) << SLOT_BITS) - 1)) >> 4) - 1;
    slots[number].object = NULL;
    slots[number].use++;
    live[object->kind]--;
    if (object->destroy) object->destroy(object);
    free(object);
    free_slots[free_count++] = number;
}

static void destroy_where(bool (*matches)(const struct object *, const void *), const void *detail) {
    /* What one of them owns may go with it, so each is looked at anew. */
    for (size_t i = 0; i < slot_count; i++)
        if (slots[i].object && matches(slots[i].object, detail)) object_destroy(slots[i].object);
}

static bool belongs(const struct object *object, const void *context) {
    return object->context == context && object->kind != KIND_CONTEXT;
}

static bool any(const struct object *object, const void *detail) {
    (void)object, (void)detail;
    return true;
}

void object_destroy_of(struct context *context) { destroy_where(belongs, context); }
void object_destroy_all(void) { destroy_where(any, NULL); }
uint64_t object_live(enum kind kind) { return live[kind]; }
uint64_t object_created(enum kind kind) { return created[kind]; }

void object_each(enum kind kind, void (*visit)(struct object *object, void *detail), void *detail) {
    for (size_t i = 0; i < slot_count; i++)
        if (slots[i].object && slots[i].object->kind == kind) visit(slots[i].object, detail);
}
