/* Export of podium's own arrays as DLPack capsules.
 *
 * This is C because a consumer may give memory back at any moment: while an exception is on its way, while the
 * interpreter ends, or from a thread that Python does not know. Layouts are those of dlpack.h 1.x.
 */
#include <stdint.h>
#include <stdlib.h>

#include "podium_dlpack.h"
#include "podium_python.h"

/* One export. What the consumer sees is one of the two structures at its start. */
struct export {
    union {
        struct podium_managed managed;
        struct podium_versioned versioned;
    } as;
    PyObject *owner;
    int64_t axes[]; /* the shape, then the strides */
};

static void release(void *address) {
    struct export *self = address;
    if (Py_IsInitialized()) { /* else the owner went with the interpreter */
        PyGILState_STATE state = PyGILState_Ensure();
        Py_DecRef(self->owner);
        PyGILState_Release(state);
    }
    free(self);
}

/* A consumer that takes the memory over renames the capsule; what still has its first name was not taken over. */
static void destroy(PyObject *capsule) {
    const char *names[] = {"dltensor", "dltensor_versioned"};
    for (int which = 0; which < 2; which++)
        if (PyCapsule_IsValid(capsule, names[which])) release(PyCapsule_GetPointer(capsule, names[which]));
}

static int read_integer(PyObject *tuple, Py_ssize_t index, int64_t *out) {
    PyObject *item = PyTuple_GetItem(tuple, index);
    if (item == NULL) return -1;
    *out = PyLong_AsLongLong(item);
    return PyErr_Occurred() ? -1 : 0;
}

/* export(owner, (address, device type, device, code, bits, versioned), shape) -> capsule */
static PyObject *export(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *owner = PyTuple_GetItem(arguments, 0), *numbers = PyTuple_GetItem(arguments, 1);
    PyObject *shape = PyTuple_GetItem(arguments, 2);
    if (owner == NULL || numbers == NULL || shape == NULL) return NULL;
    int64_t number[6];
    for (int index = 0; index < 6; index++)
        if (read_integer(numbers, index, &number[index]) < 0) return NULL;
    Py_ssize_t axes = PyTuple_Size(shape);
    if (axes < 0) return NULL;
    struct export *self = calloc(1, sizeof *self + 2 * (size_t)(axes ? axes : 1) * sizeof(int64_t));
    if (self == NULL) {
        PyErr_SetString(PyExc_MemoryError, "podium: no memory for a DLPack export");
        return NULL;
    }
    int64_t step = 1;
    for (Py_ssize_t axis = axes - 1; axis >= 0; axis--) {
        if (read_integer(shape, axis, &self->axes[axis]) < 0) {
            free(self);
            return NULL;
        }
        self->axes[axes + axis] = step;
        step *= self->axes[axis];
    }
    int versioned = number[5] != 0;
    struct podium_tensor *tensor = versioned ? &self->as.versioned.tensor : &self->as.managed.tensor;
    tensor->data = (void *)(uintptr_t)number[0];
    tensor->device.type = (int32_t)number[1];
    tensor->device.index = (int32_t)number[2];
    tensor->dtype.code = (uint8_t)number[3];
    tensor->dtype.bits = (uint8_t)number[4];
    tensor->dtype.lanes = 1;
    tensor->ndim = (int32_t)axes;
    tensor->shape = self->axes;
    tensor->strides = self->axes + axes;
    if (versioned) {
        self->as.versioned.major = 1;
        self->as.versioned.deleter = release;
    } else {
        self->as.managed.deleter = release;
    }
    Py_IncRef(owner);
    self->owner = owner;
    PyObject *capsule = PyCapsule_New(self, versioned ? "dltensor_versioned" : "dltensor", destroy);
    if (capsule == NULL) release(self);
    return capsule;
}

static PyMethodDef methods[] = {
    {"export", export, METH_VARARGS, "Make a DLPack capsule of memory that an object owns."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "podium_dlpack", "DLPack export.", 0, methods, slots, NULL,
                                 NULL,                  NULL};

PODIUM_EXPORT PyObject *PyInit_podium_dlpack(void);
PODIUM_EXPORT PyObject *PyInit_podium_dlpack(void) { return PyModuleDef_Init(&definition); }
