/* What the two Python types of a launcher's module share: reading attributes, and garbage collection. */
#ifndef PODIUM_OBJECT_H
#define PODIUM_OBJECT_H

#include "podium_launch.h"

/* What the garbage collector has taken apart can still be reached from another finalizer; it must not crash. */
static PyObject *podium_cleared_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *keywords) {
    (void)callable, (void)args, (void)flags, (void)keywords;
    PyErr_SetString(PyExc_SystemError, "podium: this launcher is not whole: it is being made, or was taken apart by the garbage collector");
    return NULL;
}

#define PODIUM_VISIT(member)                                                                                           \
    do {                                                                                                               \
        if ((member) != NULL) {                                                                                        \
            int podium_visited = visit((PyObject *)(member), argument);                                                \
            if (podium_visited) return podium_visited;                                                                 \
        }                                                                                                              \
    } while (0)

#define PODIUM_CLEAR(member)                                                                                           \
    do {                                                                                                               \
        PyObject *podium_old = (PyObject *)(member);                                                                   \
        (member) = NULL;                                                                                               \
        Py_DecRef(podium_old);                                                                                         \
    } while (0)

static void podium_free(PyObject *object, inquiry clear) {
    PyTypeObject *type = PODIUM_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear(object);
    freefunc release;
    *(void **)&release = PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DecRef((PyObject *)type);
}

static int podium_read(PyObject *owner, const char *name, uint64_t *out) {
    PyObject *value = PyObject_GetAttrString(owner, name);
    if (value == NULL) return -1;
    *out = PyLong_AsUnsignedLongLong(value);
    Py_DecRef(value);
    return PyErr_Occurred() ? -1 : 0;
}

/* Read the launch attributes, which Python has packed into bytes; the shape has the address of what is in them. */
static PyObject *podium_read_attributes(PyObject *owner, struct podium_shape *shape) {
    PyObject *bytes = PyObject_GetAttrString(owner, "_packed_attributes");
    char *data = NULL;
    Py_ssize_t length = 0;
    if (bytes == NULL) return NULL;
    if (PyBytes_AsStringAndSize(bytes, &data, &length) < 0) {
        Py_DecRef(bytes);
        return NULL;
    }
    shape->attribute_count = (uint32_t)((size_t)length / sizeof(struct podium_attribute));
    shape->attributes = (const struct podium_attribute *)(const void *)data;
    return bytes;
}

/* Read `count` integers of a tuple attribute. */
static int podium_read_tuple(PyObject *owner, const char *name, int count, uint32_t *out) {
    PyObject *tuple = PyObject_GetAttrString(owner, name);
    if (tuple == NULL) return -1;
    int result = 0;
    for (int index = 0; index < count && result == 0; index++) {
        PyObject *item = PyTuple_GetItem(tuple, index);
        if (item != NULL) out[index] = (uint32_t)PyLong_AsUnsignedLongLong(item);
        if (item == NULL || PyErr_Occurred()) result = -1;
    }
    Py_DecRef(tuple);
    return result;
}

#endif
