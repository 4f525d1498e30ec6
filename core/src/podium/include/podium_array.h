/* Arrays as pointer arguments: the address, the device and the stream of what speaks a protocol that C can read. */
#ifndef PODIUM_ARRAY_H
#define PODIUM_ARRAY_H

#include "podium_protocol.h"
#include "podium_reader.h"

/* What the array types seen last can do: an exchange table or NULL, whether its arrays say their place as podium's own
 * do, and whether a buffer of theirs is an array. numpy's integers are buffers as well, but as an argument they are
 * addresses. A type is kept alive by its row. */
#define PODIUM_ARRAY_TYPES 16
static struct podium_array_type {
    PyTypeObject *type;
    const struct podium_exchange *exchange;
    int has_place, is_buffer, has_dlpack, has_interface, has_reader, tells_stream;
} podium_array_types[PODIUM_ARRAY_TYPES];
static unsigned podium_array_type_count; /* how many were entered, ever */

/* The last array of a table that was on a device; its type is kept alive. Most launches are given nothing else. */
static struct podium_array_seen podium_seen;

static void podium_see(PyObject *value, const struct podium_exchange *table, int has_reader, const struct podium_tensor *tensor) {
    PyTypeObject *old = podium_seen.type;
    Py_IncRef((PyObject *)PODIUM_TYPE(value));
    podium_seen = (struct podium_array_seen){PODIUM_TYPE(value), table, tensor->device.type, tensor->device.index, 0, {0, 0}};
    if (has_reader) podium_seen.has_reader = podium_can_read(value, tensor, podium_seen.own_device);
    Py_DecRef((PyObject *)old); /* last, since it may run other code */
}

static const struct podium_exchange *podium_find_exchange(PyTypeObject *type) {
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    const struct podium_exchange *exchange = NULL;
    if (capsule != NULL) {
        exchange = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
        Py_DecRef(capsule);
    }
    if (exchange == NULL) PyErr_Clear(); /* no table, or not one of this kind: the slow path knows other ways */
    if (exchange != NULL && (exchange->major != 1 || exchange->tensor_from_object == NULL)) exchange = NULL;
    return exchange;
}

static int podium_has(PyTypeObject *type, const char *name) {
    PyObject *attribute = PyObject_GetAttrString((PyObject *)type, name);
    if (attribute == NULL) PyErr_Clear();
    Py_DecRef(attribute);
    return attribute != NULL;
}

/* Enter the type of an array; code that runs meanwhile may enter others, up to the point that this one is gone again. */
PODIUM_APART static void podium_enter_array_type(PyObject *array) {
    PyTypeObject *type = PODIUM_TYPE(array);
    struct podium_array_type made = {type, NULL, podium_has(type, "_podium_place"), 0, 0, 0, 0, 0};
    /* For Python are arrays that have podium's own way to say where they are, and numpy's masked ones, for the mask. */
    if (!podium_has(type, "_podium_location") && !podium_has(type, "harden_mask")) {
        made.exchange = podium_find_exchange(type);
        made.has_dlpack = podium_has(type, "__dlpack__");
        made.is_buffer = !podium_has(type, "__index__") || made.has_dlpack;
        made.has_dlpack = made.has_dlpack && podium_has(type, "__dlpack_device__");
        made.has_interface = podium_has(type, "__cuda_array_interface__");
#if PODIUM_DRIVER_POINTER
        if (made.exchange == NULL && made.has_dlpack && made.has_interface && podium_driver_reaches(2))
            made.tells_stream = podium_tells_stream(array);
#endif
        /* last, since an interrupt in it is left for the caller */
        made.has_reader = made.exchange != NULL && podium_find_reader(type);
    }
    struct podium_array_type *row = &podium_array_types[podium_array_type_count++ % PODIUM_ARRAY_TYPES];
    PyTypeObject *old = row->type;
    Py_IncRef((PyObject *)type);
    *row = made;
    Py_DecRef((PyObject *)old);
}

static const struct podium_array_type *podium_array_type_of(const PyTypeObject *type) {
    for (int row = 0; row < PODIUM_ARRAY_TYPES; row++)
        if (podium_array_types[row].type == type) return &podium_array_types[row];
    return NULL;
}

/* Whether a buffer's elements are plain data: no Python references, no bare pointer, no byte order of their own. */
PODIUM_UNUSED static int podium_is_plain(const char *format) {
    return format == NULL || strpbrk(format, "OP>!") == NULL;
}

/* Read where one of podium's own arrays is, if it has said so: podium._memory packs it. They are contiguous, and written
 * to by whoever has them. */
static int podium_place(struct podium_call *call, PyObject *value, uint64_t *out) {
    struct {
        uint64_t address;
        int32_t device_type, device;
    } place;
    char *data = NULL;
    Py_ssize_t length = 0;
    PyObject *packed = PyObject_GetAttr(value, podium_names[PODIUM_PLACE]);
    if (packed == NULL || PyBytes_AsStringAndSize(packed, &data, &length) < 0) PyErr_Clear();
    int found = (size_t)length == sizeof place;
    if (found) memcpy(&place, data, sizeof place);
    Py_DecRef(packed);
    if (!found || PODIUM_UNLIKELY(!podium_driver_reaches(place.device_type))) return -1;
    if (!podium_is_anywhere(place.device_type)) podium_on_device(call, place.device);
    *out = place.address;
    return 0;
}

/* Find an array that has no exchange table. What is called may give the row of its type to another one. */
static int podium_array_without_table(struct podium_call *call, int index, PyObject *value, int writable, uint64_t *out,
                                      const struct podium_array_type type) {
    if (type.has_place && podium_place(call, value, out) == 0) return 0;
#if PODIUM_HOST_MEMORY
    Py_buffer *buffer = &call->buffer[call->buffers];
    int layout = call->launcher->contiguous ? PyBUF_C_CONTIGUOUS : PyBUF_STRIDES;
    if (type.is_buffer && PyObject_GetBuffer(value, buffer, layout | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) == 0) {
        call->buffers++; /* released after the launch, so that nobody resizes the memory under it */
        if (podium_is_plain(buffer->format)) {
            *out = (uint64_t)(uintptr_t)buffer->buf;
            return 0;
        }
    }
    if (!podium_forget_error()) return -1;
#endif
    /* DLPack tells no stream of the library's; where the launch names one, it is told that. */
    if (type.has_dlpack && !(type.tells_stream && call->given == NULL)) {
        if (podium_from_dlpack(call, value, writable, out) == 0) return 0;
    }
#if PODIUM_DRIVER_POINTER
    else if (type.has_interface && podium_from_interface(call, value, writable, out) == 0) return 0;
#endif
    return podium_forget_error() ? podium_locate(call, index, value, out) : -1;
}

/* Note where an array is, and whose stream may be asked for. */
static void podium_note(struct podium_call *call, const struct podium_exchange *exchange, int32_t device_type, int32_t device) {
    if (!podium_is_anywhere(device_type)) podium_on_device(call, device);
    if (call->exchange == NULL && !call->has_stream && !podium_is_host(device_type) && exchange->current_stream != NULL) {
        call->exchange = exchange;
        call->device_type = device_type;
    }
}

/* Note what the arrays like the one seen last have told, before another one does, or at the end. */
static void podium_settle(struct podium_call *call) {
    if (!call->has_seen) return;
    call->has_seen = 0;
    podium_note(call, call->seen.table, call->seen.device_type, call->seen.device);
}

/* Look at what a table says of an array. */
PODIUM_ASIDE static int podium_examine(struct podium_call *call, int index, const struct podium_exchange *exchange,
                                       int has_reader, const struct podium_tensor *tensor, uint64_t *out) {
    PyObject *value = call->arguments[index];
    podium_settle(call);
    if (PODIUM_UNLIKELY(!podium_driver_reaches(tensor->device.type) ||
                        (call->launcher->contiguous && !podium_is_contiguous(tensor))))
        return podium_locate(call, index, value, out);
    podium_note(call, exchange, tensor->device.type, tensor->device.index);
    if (!podium_is_anywhere(tensor->device.type)) podium_see(value, exchange, has_reader, tensor);
    *out = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
    return 0;
}

/* A library that tells nothing of an array may have said why. */
PODIUM_APART static int podium_untold(struct podium_call *call, int index, uint64_t *out) {
    podium_settle(call);
    return podium_forget_error() ? podium_locate(call, index, call->arguments[index], out) : -1;
}

/* Find an array of any type. */
PODIUM_ASIDE static int podium_array(struct podium_call *call, int index, PyObject *value, int writable, uint64_t *out) {
    podium_settle(call);
    const struct podium_array_type *type = podium_array_type_of(PODIUM_TYPE(value));
    if (PODIUM_UNLIKELY(type == NULL)) {
        podium_enter_array_type(value);
        if (PyErr_Occurred() != NULL) return -1;
        if ((type = podium_array_type_of(PODIUM_TYPE(value))) == NULL) return podium_locate(call, index, value, out);
    }
    const struct podium_exchange *exchange = type->exchange;
    int has_reader = type->has_reader;
    struct podium_tensor tensor;
    /* such as parameters of a model among tensors */
    if (has_reader && call->seen.has_reader && exchange == call->seen.table && podium_read_tensor(call, value, out)) {
        call->has_seen = 1;
        return 0;
    }
    if (exchange == NULL) return podium_array_without_table(call, index, value, writable, out, *type);
    if (PODIUM_UNLIKELY(exchange->tensor_from_object(value, &tensor) != 0)) return podium_untold(call, index, out);
    return podium_examine(call, index, exchange, has_reader, &tensor, out);
}

int podium_pointer(struct podium_call *call, int index, PyObject *value, int writable, uint64_t *out) {
    if (PODIUM_TYPE(value) == call->seen.type) {
        struct podium_tensor tensor;
        if (call->seen.has_reader && podium_read_tensor(call, value, out)) {
            call->has_seen = 1;
            return 0;
        }
        if (PODIUM_UNLIKELY(call->seen.table->tensor_from_object(value, &tensor) != 0)) return podium_untold(call, index, out);
        if (PODIUM_UNLIKELY(tensor.device.type != call->seen.device_type || tensor.device.index != call->seen.device ||
                            (call->launcher->contiguous && !podium_is_contiguous(&tensor))))
            return podium_examine(call, index, call->seen.table, call->seen.has_reader, &tensor, out);
        call->has_seen = 1;
        *out = (uint64_t)(uintptr_t)tensor.data + tensor.byte_offset;
        return 0;
    }
    if (value == Py_None) {
        *out = 0;
        return 0;
    }
    if (PODIUM_IS_INT(value)) return podium_unsigned_int(value, out) ? 0 : podium_locate(call, index, value, out);
    return podium_array(call, index, value, writable, out);
}

#endif
