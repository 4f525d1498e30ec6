/* One launch, once its arguments are converted: scratch memory, the record of launches, the driver call. */
#ifndef PODIUM_FIRE_H
#define PODIUM_FIRE_H

#include "podium_launch.h"

/* Convert the arguments. */
PODIUM_INLINE int podium_gather(struct podium_call *call, PyObject *const *args, struct podium_values *values) {
    if (podium_unpack(call, args, values) < 0) return -1;
    podium_settle(call);
    return 0;
}

PODIUM_ASIDE static void podium_let_go(struct podium_call *call) {
    while (call->kept > 0) Py_DecRef(call->keep[--call->kept]);
    while (call->buffers > 0) PyBuffer_Release(&call->buffer[--call->buffers]);
}

PODIUM_INLINE void podium_release(struct podium_call *call) {
    if (PODIUM_UNLIKELY(call->kept > 0 || call->buffers > 0)) podium_let_go(call);
}

/* Member by member, since compilers clear a structure by an instruction that takes as long as all of this. */
PODIUM_INLINE void podium_begin(struct podium_call *call, struct podium_launcher *launcher, PyObject *const *arguments,
                                PyObject **keep, Py_buffer *buffer) {
    call->launcher = launcher;
    call->arguments = arguments;
    call->device = -1;
    call->mixed = call->has_stream = call->has_seen = call->has_pending = call->kept = call->buffers = 0;
    call->exchange = NULL;
    call->given = NULL;
    call->export_stream = NULL;
    call->seen = podium_seen;
    call->keep = keep;
    call->buffer = buffer;
}

/* Whether an array is not ready before work of another stream than the launch's. */
PODIUM_INLINE int podium_must_wait(const struct podium_call *call, uint64_t stream) {
    return PODIUM_UNLIKELY(call->has_pending) && call->pending != stream;
}

/* Make what one launch needs: the call, and room for the values. */
#define PODIUM_CALL(name, values, of_launcher, of_arguments)                                                           \
    PyObject *podium_keep[PODIUM_POINTERS + PODIUM_SCRATCH + 1];                                                       \
    Py_buffer podium_buffers[PODIUM_HOST_MEMORY ? PODIUM_POINTERS + 1 : 1];                                            \
    unsigned char podium_room[podium_signature.bytes + podium_signature.alignment];                                    \
    uintptr_t podium_place = (uintptr_t)podium_room + podium_signature.alignment - 1;                                  \
    struct podium_values *values = (struct podium_values *)(podium_place & ~(podium_signature.alignment - 1));         \
    struct podium_call name;                                                                                           \
    podium_begin(&name, of_launcher, of_arguments, podium_keep, podium_buffers)

static void podium_record(const struct podium_launcher *launcher, const struct podium_shape *shape, int device,
                          uint64_t stream) {
    struct podium_state *state = launcher->state;
    unsigned slot = (unsigned)(state->launches++ % 64);
    state->recent[slot].kernel = launcher->id;
    state->recent[slot].stream = stream;
    memcpy(state->recent[slot].grid, shape->grid, sizeof shape->grid);
    memcpy(state->recent[slot].block, shape->block, sizeof shape->block);
    state->recent[slot].device = device;
}

PODIUM_APART static int podium_allocate_scratch(struct podium_call *call, const struct podium_shape *shape, int device,
                                   uint64_t stream, struct podium_values *values) {
    uint64_t blocks = (uint64_t)shape->grid[0] * shape->grid[1] * shape->grid[2];
    uint64_t *scratch = (uint64_t *)(void *)((unsigned char *)values + podium_signature.scratch_offset);
    for (int which = 0; which < PODIUM_SCRATCH; which++) {
        PyObject *found =
            podium_call_integers(call->launcher->scratch, 4, (uint64_t[]){(uint64_t)which, blocks, (uint64_t)device, stream});
        if (found == NULL) return -1;
        call->keep[call->kept++] = found;
        PyObject *address = PyTuple_GetItem(found, 0);
        if (address == NULL) return -1;
        scratch[which] = PyLong_AsUnsignedLongLong(address);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

#if PODIUM_HOST_MEMORY
/* Whatever owns host memory could give it back while the stream has not come to the launch. */
PODIUM_ASIDE static int podium_keep_alive(const struct podium_call *call, int device, uint64_t stream) {
    PyObject *objects[2 + PODIUM_ARGUMENTS + PODIUM_POINTERS + PODIUM_SCRATCH + 1];
    size_t count = 2;
    PyObject *result = NULL;
    objects[0] = podium_unsigned_object((uint64_t)device);
    objects[1] = podium_unsigned_object(stream);
    for (int index = 0; index < PODIUM_ARGUMENTS; index++) objects[count++] = call->arguments[index];
    for (int index = 0; index < call->kept; index++) objects[count++] = call->keep[index];
    if (objects[0] != NULL && objects[1] != NULL)
        result = PyObject_Vectorcall(call->launcher->keep_alive, objects, count, NULL);
    Py_DecRef(objects[0]);
    Py_DecRef(objects[1]);
    Py_DecRef(result);
    return result == NULL ? -1 : 0;
}
#endif

/* Raise for a status that the driver has returned. */
PODIUM_APART static PyObject *podium_failed(const struct podium_launcher *launcher, const struct podium_shape *shape,
                                            int status, int device, uint64_t stream) {
    const uint64_t values[] = {(uint32_t)status, shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0],
                               shape->block[1], shape->block[2], (uint64_t)device, stream};
    return podium_call_integers(launcher->failed, 9, values);
}

PODIUM_INLINE PyObject *podium_fire(struct podium_call *call, const struct podium_shape *shape, int device, uint64_t stream,
                             uint64_t function, struct podium_values *values) {
    void *addresses[PODIUM_PARAMETERS + 1];
    struct podium_launcher *launcher = call->launcher;
    PODIUM_ADD(launcher->under_way, 1); /* from now on, unloading leaves the code where it is */
    if (PODIUM_UNLIKELY(PODIUM_SCRATCH != 0) && podium_allocate_scratch(call, shape, device, stream, values) < 0) {
        PODIUM_ADD(launcher->under_way, -1);
        return NULL;
    }
    podium_addresses(values, addresses);
    podium_record(launcher, shape, device, stream);
    int status = podium_driver_launch(shape, device, stream, function, addresses);
    PODIUM_ADD(launcher->under_way, -1);
    if (PODIUM_UNLIKELY(status != 0)) return podium_failed(launcher, shape, status, device, stream);
#if PODIUM_HOST_MEMORY
    if (PODIUM_UNLIKELY(stream != 0) && podium_keep_alive(call, device, stream) < 0) return NULL;
#endif
    return podium_none();
}

#endif
