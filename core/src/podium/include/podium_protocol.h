/* Arrays that are asked through methods in Python: `__dlpack__`, and `__cuda_array_interface__`.
 *
 * C asks the methods and reads the answers, which is most of what a launch with such an array costs. It takes what is
 * plain; for all else, and for whatever is wrong, podium._arrays asks again. Functions here return 0, or -1 where Python
 * is to decide; then there is no exception but an interrupt, or another one that is no error.
 */
#ifndef PODIUM_PROTOCOL_H
#define PODIUM_PROTOCOL_H

#include "podium_launch.h"

/* The names that launches ask for, as Python strings. */
enum podium_name {
    PODIUM_PLACE,
    PODIUM_CUDA_STREAM,
    PODIUM_DLPACK_DEVICE,
    PODIUM_DLPACK,
    PODIUM_INTERFACE,
    PODIUM_DATA,
    PODIUM_AXES,
    PODIUM_STRIDES,
    PODIUM_TYPESTR,
    PODIUM_MASK,
    PODIUM_STREAM,
    PODIUM_DRIVER,
    PODIUM_DEVICE,
    PODIUM_NAMES
};
static PyObject *podium_names[PODIUM_NAMES];
static PyObject *podium_export_keywords; /* ("max_version", "stream") */
static PyObject *podium_export_version;  /* (1, 1) */

static int podium_intern_names(void) {
    static const char *const texts[PODIUM_NAMES] = {
        "_podium_place", "__cuda_stream__", "__dlpack_device__", "__dlpack__", "__cuda_array_interface__", "data",
        "shape", "strides", "typestr", "mask", "stream", "driver", "device"};
    for (int index = 0; index < PODIUM_NAMES; index++)
        if ((podium_names[index] = PyUnicode_InternFromString(texts[index])) == NULL) return -1;
    podium_export_keywords = Py_BuildValue("(ss)", "max_version", "stream");
    podium_export_version = Py_BuildValue("(ii)", 1, 1);
    return podium_export_keywords == NULL || podium_export_version == NULL ? -1 : 0;
}

static int podium_left_to_python(PyObject *object) {
    podium_forget_error();
    Py_DecRef(object);
    return -1;
}

/* Read a pair of ints that have no sign, or fit in 60 bits. */
static int podium_read_pair(PyObject *pair, int64_t *first, int64_t *second) {
    if (pair == NULL || !PODIUM_IS_TUPLE(pair) || PyTuple_Size(pair) != 2) return -1;
    PyObject *one = PyTuple_GetItem(pair, 0), *two = PyTuple_GetItem(pair, 1);
    return PODIUM_IS_INT(one) && PODIUM_IS_INT(two) && podium_short_int(one, first) && podium_short_int(two, second) ? 0 : -1;
}

/* The stream that the owner of an array shall make wait for its work, in DLPack's numbering; asked once a launch. */
static PyObject *podium_export_stream(struct podium_call *call, int32_t device) {
    if (call->export_stream != NULL) return call->export_device == device ? call->export_stream : NULL;
    const uint64_t numbers[] = {(uint64_t)device, call->given == NULL ? 0 : *call->given};
    PyObject *stream = podium_call_integers(call->launcher->export_stream, call->given == NULL ? 1 : 2, numbers);
    if (stream == NULL) return NULL;
    call->keep[call->kept++] = call->export_stream = stream; /* there is room for one object beside the arguments' */
    call->export_device = device;
    return stream;
}

/* Whether the strides of a tensor, in elements, are those of C order; an axis of length 1 may have any. */
PODIUM_UNUSED PODIUM_ASIDE static int podium_has_order_of_c(const struct podium_tensor *tensor) {
    int64_t expected = 1;
    int contiguous = 1;
    for (int32_t axis = tensor->ndim - 1; axis >= 0; axis--) {
        if (tensor->shape[axis] == 0) return 1;
        if (tensor->shape[axis] != 1 && tensor->strides[axis] != expected) contiguous = 0;
        expected *= tensor->shape[axis];
    }
    return contiguous;
}

PODIUM_INLINE int podium_is_contiguous(const struct podium_tensor *tensor) {
    if (tensor->strides == NULL || (tensor->ndim == 1 && tensor->strides[0] == 1)) return 1;
    return podium_has_order_of_c(tensor);
}

static int podium_from_dlpack(struct podium_call *call, PyObject *value, int writable, uint64_t *out) {
    int64_t type, device;
    PyObject *method = PyObject_GetAttr(value, podium_names[PODIUM_DLPACK_DEVICE]);
    PyObject *pair = method == NULL ? NULL : PyObject_Vectorcall(method, NULL, 0, NULL);
    Py_DecRef(method);
    if (podium_read_pair(pair, &type, &device) < 0 || device < 0 || device > INT32_MAX || type < 0 || type > INT32_MAX)
        return podium_left_to_python(pair);
    Py_DecRef(pair);
    if (podium_is_host((int32_t)type) || !podium_driver_reaches((int32_t)type)) return -1;
    PyObject *stream = podium_export_stream(call, (int32_t)device);
    if (stream == NULL) return podium_left_to_python(NULL);
    if ((method = PyObject_GetAttr(value, podium_names[PODIUM_DLPACK])) == NULL) return podium_left_to_python(NULL);
    PyObject *arguments[2] = {podium_export_version, stream};
    PyObject *capsule = PyObject_Vectorcall(method, arguments, 0, podium_export_keywords);
    Py_DecRef(method);
    if (capsule == NULL) return podium_left_to_python(NULL);
    const struct podium_tensor *tensor = NULL;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        const struct podium_versioned *versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (!writable || (versioned->flags & PODIUM_READ_ONLY) == 0) tensor = &versioned->tensor;
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        tensor = &((const struct podium_managed *)PyCapsule_GetPointer(capsule, "dltensor"))->tensor;
    }
    if (tensor == NULL || tensor->device.index < 0 || podium_is_host(tensor->device.type) ||
        !podium_driver_reaches(tensor->device.type) || (call->launcher->contiguous && !podium_is_contiguous(tensor)))
        return podium_left_to_python(capsule);
    *out = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
    if (!podium_is_anywhere(tensor->device.type)) podium_on_device(call, tensor->device.index);
    podium_on_pending(call, call->given != NULL ? *call->given : podium_driver_stream((int)device)); /* as it was told */
    call->keep[call->kept++] = capsule; /* what it exports lives as long */
    return 0;
}

#if PODIUM_DRIVER_POINTER
/* Whether the text names an element type with as many bytes as its digits say, in this machine's byte order. */
static int podium_is_plain_typestr(PyObject *text) {
    Py_ssize_t length = 0;
    const char *letters = PODIUM_IS_TEXT(text) ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
    if (letters == NULL || length < 3 || strchr("<|=", letters[0]) == NULL || strchr("biufcV", letters[1]) == NULL) return 0;
    return strspn(letters + 2, "0123456789") == (size_t)length - 2;
}

/* Whether a key is missing, or None is under it. */
static int podium_is_absent(PyObject *dict, enum podium_name name) {
    PyObject *value = PyDict_GetItemWithError(dict, podium_names[name]);
    return value == NULL || value == Py_None;
}

/* Whether the interface of an array has a stream; there is an exception afterwards only if it is an interrupt. */
static int podium_tells_stream(PyObject *array) {
    PyObject *dict = PyObject_GetAttr(array, podium_names[PODIUM_INTERFACE]);
    int tells = dict != NULL && PODIUM_IS_DICT(dict) && !podium_is_absent(dict, PODIUM_STREAM);
    podium_forget_error();
    Py_DecRef(dict);
    return tells;
}

static int podium_from_interface(struct podium_call *call, PyObject *value, int writable, uint64_t *out) {
    uint64_t address = 0, stream = 0;
    int32_t type = 2, device = -1; /* DLPack's number for CUDA */
    PyObject *dict = PyObject_GetAttr(value, podium_names[PODIUM_INTERFACE]);
    if (dict == NULL || !PODIUM_IS_DICT(dict)) return podium_left_to_python(dict);
    PyObject *data = PyDict_GetItemWithError(dict, podium_names[PODIUM_DATA]);
    PyObject *shape = PyDict_GetItemWithError(dict, podium_names[PODIUM_AXES]);
    PyObject *typestr = PyDict_GetItemWithError(dict, podium_names[PODIUM_TYPESTR]);
    PyObject *queue = PyDict_GetItemWithError(dict, podium_names[PODIUM_STREAM]);
    if (data == NULL || !PODIUM_IS_TUPLE(data) || PyTuple_Size(data) != 2 || shape == NULL || !PODIUM_IS_TUPLE(shape) ||
        typestr == NULL || !podium_is_plain_typestr(typestr) || !podium_is_absent(dict, PODIUM_STRIDES) ||
        !podium_is_absent(dict, PODIUM_MASK))
        return podium_left_to_python(dict);
    PyObject *number = PyTuple_GetItem(data, 0), *readonly = PyTuple_GetItem(data, 1);
    int has_stream = queue != NULL && queue != Py_None;
    if (!PODIUM_IS_INT(number) || !podium_unsigned_int(number, &address) || (readonly != Py_False && (readonly != Py_True || writable)) ||
        (has_stream && (!PODIUM_IS_INT(queue) || !podium_unsigned_int(queue, &stream))))
        return podium_left_to_python(dict);
    Py_DecRef(dict); /* the memory is the array's, which the caller holds */
    if (address != 0 && podium_driver_pointer(address, &type, &device) < 0) return -1;
    if (!podium_driver_reaches(type)) return -1;
    if (!podium_is_anywhere(type)) podium_on_device(call, device);
    if (has_stream) podium_on_pending(call, stream);
    if (has_stream && !call->has_stream) {
        call->stream = stream;
        call->has_stream = 1;
    }
    *out = address;
    return 0;
}
#endif

#endif
