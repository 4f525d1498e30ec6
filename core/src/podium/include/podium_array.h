/* Arrays as pointer arguments: the address, the device and the stream of what speaks a protocol that C can read. */
#ifndef PODIUM_ARRAY_H
#define PODIUM_ARRAY_H

#include "podium_protocol.h"

/* What the array types seen last can do: an exchange table or NULL, whether its arrays say their place as podium's own
 * do, and whether a buffer of theirs is an array. numpy's integers are buffers as well, but as an argument they are
 * addresses. A type is kept alive by its row. */
#define PODIUM_ARRAY_TYPES 16
static struct podium_array_type {
    PyTypeObject *type;
    const struct podium_exchange *exchange;
    int has_place, is_buffer, has_dlpack, has_interface;
} podium_array_types[PODIUM_ARRAY_TYPES];
static unsigned podium_array_type_count; /* how many were entered, ever */

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

/* Enter a type; code that runs meanwhile may enter others, up to the point that this one is gone again. */
PODIUM_APART static void podium_enter_array_type(PyTypeObject *type) {
    struct podium_array_type made = {type, NULL, podium_has(type, "_podium_place"), 0, 0, 0};
    /* For Python are arrays that have podium's own way to say where they are, and numpy's masked ones, for the mask. */
    if (!podium_has(type, "_podium_location") && !podium_has(type, "harden_mask")) {
        made.exchange = podium_find_exchange(type);
        made.has_dlpack = podium_has(type, "__dlpack__");
        made.is_buffer = !podium_has(type, "__index__") || made.has_dlpack;
        made.has_dlpack = made.has_dlpack && podium_has(type, "__dlpack_device__");
        made.has_interface = podium_has(type, "__cuda_array_interface__");
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
PODIUM_ASIDE static int podium_array_without_table(struct podium_call *call, int index, PyObject *value, int writable, uint64_t *out,
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
    if (type.has_dlpack) {
        if (podium_from_dlpack(call, value, writable, out) == 0) return 0;
    }
#if PODIUM_DRIVER_POINTER
    else if (type.has_interface && podium_from_interface(call, value, writable, out) == 0) return 0;
#endif
    return podium_forget_error() ? podium_locate(call, index, value, out) : -1;
}

int podium_pointer(struct podium_call *call, int index, PyObject *value, int writable, uint64_t *out) {
    if (value == Py_None) {
        *out = 0;
        return 0;
    }
    if (PODIUM_IS_INT(value)) return podium_unsigned_int(value, out) ? 0 : podium_locate(call, index, value, out);
    const struct podium_array_type *type = podium_array_type_of(PODIUM_TYPE(value));
    if (PODIUM_UNLIKELY(type == NULL)) {
        podium_enter_array_type(PODIUM_TYPE(value));
        if ((type = podium_array_type_of(PODIUM_TYPE(value))) == NULL) return podium_locate(call, index, value, out);
    }
    const struct podium_exchange *exchange = type->exchange;
    if (exchange == NULL) return podium_array_without_table(call, index, value, writable, out, *type);
    struct podium_tensor tensor;
    if (PODIUM_UNLIKELY(exchange->tensor_from_object(value, &tensor) != 0))
        return podium_forget_error() ? podium_locate(call, index, value, out) : -1;
    int32_t device_type = tensor.device.type;
    if (PODIUM_UNLIKELY(!podium_driver_reaches(device_type) ||
                        (call->launcher->contiguous && !podium_is_contiguous(&tensor))))
        return podium_locate(call, index, value, out);
    if (!podium_is_anywhere(device_type)) podium_on_device(call, tensor.device.index);
    if (call->exchange == NULL && !call->has_stream && !podium_is_host(device_type) && exchange->current_stream != NULL) {
        call->exchange = exchange;
        call->device_type = device_type;
    }
    *out = (uint64_t)(uintptr_t)tensor.data + tensor.byte_offset;
    return 0;
}

#endif
