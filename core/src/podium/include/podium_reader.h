/* Tensors of PyTorch, read without their exchange table: by the C functions that its library has for compiled models.
 *
 * The table fills a whole DLTensor and counts references on the way; these functions read one field each. They are given
 * the place of the handle in the tensor's object. podium._tensor_reader finds all of it in the running process, and only
 * where it is as it should be; whatever is not plain here goes to the exchange table, which says what is wrong with it.
 */
#ifndef PODIUM_READER_H
#define PODIUM_READER_H

#include "podium_launch.h"

/* What podium._tensor_reader packs. The functions return 0, or another status without a Python exception. */
struct podium_reader {
    uint64_t place;    /* of the handle in an object, in bytes */
    uint64_t plain;    /* the first word of what handles of plain tensors have the address of */
    uint64_t elements; /* a bit for each number of an element type that the exchange table takes */
    int32_t (*data)(const void *handle, void **out);
    int32_t (*device_type)(const void *handle, int32_t *out);
    int32_t (*device_index)(const void *handle, int32_t *out);
    int32_t (*element)(const void *handle, int32_t *out);
    int32_t (*is_contiguous)(const void *handle, _Bool *out);
};
static struct podium_reader podium_reader; /* of the process's PyTorch; known when a type has one */

/* Ask Python whether tensors of exactly this type can be read so. */
PODIUM_APART static int podium_find_reader(PyTypeObject *type) {
    PyObject *argument = (PyObject *)type, *found = NULL;
    PyObject *module = PyImport_ImportModule("podium._tensor_reader");
    PyObject *function = module == NULL ? NULL : PyObject_GetAttrString(module, "tensor_reader");
    if (function != NULL) found = PyObject_Vectorcall(function, &argument, 1, NULL);
    char *data = NULL;
    Py_ssize_t length = 0;
    int has_reader = found != NULL && found != Py_None && PyBytes_AsStringAndSize(found, &data, &length) == 0 &&
                     (size_t)length == sizeof podium_reader;
    if (has_reader) memcpy(&podium_reader, data, sizeof podium_reader);
    if (PyErr_Occurred() != NULL) podium_forget_error(); /* the table is always there; Ctrl-C is the caller's */
    Py_DecRef(found);
    Py_DecRef(function);
    Py_DecRef(module);
    return has_reader;
}

PODIUM_INLINE const void *podium_handle_in(const PyObject *value) {
    return (const unsigned char *)(const void *)value + podium_reader.place;
}

/* Whether a handle is that of a tensor with memory, sizes and strides of its own. Others could answer as well, but not
 * what the table says of them. */
PODIUM_INLINE int podium_is_plain_handle(const void *handle) {
    return **(const uint64_t *const *)handle == podium_reader.plain;
}

/* Note the reader's numbers of the device of a tensor that the table has told about, if both say the same of it. */
static int podium_can_read(const PyObject *value, const struct podium_tensor *tensor, int32_t device[2]) {
    const void *handle = podium_handle_in(value);
    void *data = NULL;
    return podium_is_plain_handle(handle) && podium_reader.device_type(handle, &device[0]) == 0 &&
           podium_reader.device_index(handle, &device[1]) == 0 && podium_reader.data(handle, &data) == 0 &&
           (uint64_t)(uintptr_t)data == (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
}

/* Read the address of a tensor that is where the one seen last was; 0 if the exchange table is to be asked. */
PODIUM_INLINE int podium_read_tensor(const struct podium_call *call, const PyObject *value, uint64_t *out) {
    const void *handle = podium_handle_in(value);
    int32_t type, index, element;
    _Bool is_contiguous;
    void *data;
    if (PODIUM_UNLIKELY(!podium_is_plain_handle(handle) || podium_reader.device_type(handle, &type) != 0 ||
                        type != call->seen.own_device[0] || podium_reader.device_index(handle, &index) != 0 ||
                        index != call->seen.own_device[1] || podium_reader.element(handle, &element) != 0 ||
                        (uint32_t)element > 63 || (podium_reader.elements >> element & 1) == 0))
        return 0;
    if (call->launcher->contiguous &&
        PODIUM_UNLIKELY(podium_reader.is_contiguous(handle, &is_contiguous) != 0 || !is_contiguous))
        return 0;
    if (PODIUM_UNLIKELY(podium_reader.data(handle, &data) != 0)) return 0;
    *out = (uint64_t)(uintptr_t)data;
    return 1;
}

#endif
