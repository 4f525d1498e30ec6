/* What podium looks at in PyTorch, in small: tensors with an exchange table, and the library's C functions that read them.
 *
 *   TensorBase(data, device type of DLPack, device, element type, is contiguous, trouble)
 *
 * element type: PyTorch's number; 13 and above are none that DLPack has. trouble: 1 a tensor of another kind, 2 its address
 * cannot be read, 3 the functions say another address than the table.
 *
 * pretend(mode) makes it another library than podium expects: 1 the handle is in an object twice, 2 it is not there, 3
 * every tensor is said to be contiguous, 4 none of the functions works.
 */
#include "podium_dlpack.h"
#include "podium_python.h"

#ifndef STREAM
#define STREAM 64
#endif

enum { TWICE = 1, NOWHERE, ALIKE, FAILING };
static int64_t mode;

PODIUM_EXPORT const void *_ZTVN3c1010TensorImplE[4];

struct impl {
    const void *kind;
    uint64_t data;
    int64_t device_type, device, element, is_contiguous, trouble;
    int64_t shape[2], strides[2];
};

struct tensor {
    PyObject_HEAD
    void *other;
    struct impl *handle;
    struct impl impl;
};

static int64_t asked, told; /* how often the functions gave an address, and the table a tensor */

static int own_type(int64_t type) { return type == 2 ? 1 : (int)type + 8; }

#define HANDLE const struct impl *self = *(struct impl *const *)handle

PODIUM_EXPORT int32_t aoti_torch_get_data_ptr(const void *handle, void **out);
PODIUM_EXPORT int32_t aoti_torch_get_data_ptr(const void *handle, void **out) {
    HANDLE;
    asked++;
    *out = (void *)(uintptr_t)(self->data + (self->trouble == 3));
    return self->trouble == 2 || mode == FAILING;
}

#define FIELD(name, type, value)                                                                                       \
    PODIUM_EXPORT int32_t name(const void *handle, type *out);                                                          \
    PODIUM_EXPORT int32_t name(const void *handle, type *out) {                                                         \
        HANDLE;                                                                                                        \
        *out = (type)(value);                                                                                          \
        return mode == FAILING;                                                                                        \
    }
FIELD(aoti_torch_get_device_type, int32_t, own_type(self->device_type))
FIELD(aoti_torch_get_device_index, int32_t, self->device)
FIELD(aoti_torch_get_dtype, int32_t, self->element)
FIELD(aoti_torch_is_contiguous, _Bool, self->is_contiguous != 0 || mode == ALIKE)

static int tensor_from_object(void *object, struct podium_tensor *out) {
    struct impl *self = ((struct tensor *)object)->handle;
    told++;
    if (self->trouble == 1 || self->trouble == 2 || self->element > 12) {
        PyErr_SetString(PyExc_TypeError, "the library does not tell");
        return -1;
    }
    *out = (struct podium_tensor){.data = (void *)(uintptr_t)self->data, .ndim = 2, .dtype = {2, 32, 1}};
    out->device.type = (int32_t)self->device_type;
    out->device.index = (int32_t)self->device;
    out->shape = self->shape;
    out->strides = self->strides;
    return 0;
}

static int current_stream(int32_t device_type, int32_t device, void **stream) {
    (void)device_type, (void)device;
    *stream = (void *)STREAM;
    return 0;
}

static struct podium_exchange table = {1, 3, NULL, NULL, NULL, NULL, tensor_from_object, current_stream};

static PyObject *tensor_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)keywords;
    int64_t number[6];
    for (int index = 0; index < 6; index++) {
        PyObject *item = PyTuple_GetItem(arguments, index);
        if (item == NULL) return NULL;
        number[index] = PyLong_AsLongLong(item);
    }
    if (PyErr_Occurred()) return NULL;
    PyObject *(*allocate)(PyTypeObject *, Py_ssize_t);
    *(void **)&allocate = PyType_GetSlot(type, Py_tp_alloc);
    struct tensor *self = (struct tensor *)allocate(type, 0);
    if (self == NULL) return NULL;
    self->handle = &self->impl;
    self->other = mode == TWICE ? self->handle : NULL;
    self->impl = (struct impl){number[5] == 1 ? NULL : &_ZTVN3c1010TensorImplE[2], (uint64_t)number[0], number[1], number[2],
                               number[3], number[4], number[5], {2, 2}, {2, 1}};
    if (!number[4]) self->impl.strides[0] = 1;
    return (PyObject *)self;
}

/* move(tensor, data, device type, device): as an assignment to `tensor.data` does */
static PyObject *move(PyObject *module, PyObject *arguments) {
    (void)module;
    struct tensor *self = (struct tensor *)PyTuple_GetItem(arguments, 0);
    int64_t number[3];
    for (int index = 0; index < 3; index++) number[index] = PyLong_AsLongLong(PyTuple_GetItem(arguments, index + 1));
    if (PyErr_Occurred()) return NULL;
    self->impl.data = (uint64_t)number[0];
    self->impl.device_type = number[1];
    self->impl.device = number[2];
    Py_IncRef(Py_None);
    return Py_None;
}

static PyObject *pretend(PyObject *module, PyObject *number) {
    (void)module;
    mode = PyLong_AsLongLong(number);
    if (PyErr_Occurred()) return NULL;
    Py_IncRef(Py_None);
    return Py_None;
}

static PyObject *counts(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    return Py_BuildValue("(LL)", (long long)asked, (long long)told);
}

static PyObject *get_cdata(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return PyLong_FromUnsignedLongLong((uint64_t)(uintptr_t)((struct tensor *)self)->handle + (mode == NOWHERE));
}

static PyObject *get_data(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return PyLong_FromUnsignedLongLong(((struct tensor *)self)->handle->data);
}

static PyObject *get_place(PyObject *self, PyObject *nothing) {
    (void)nothing;
    const struct impl *impl = ((struct tensor *)self)->handle;
    return Py_BuildValue("(LLL)", (long long)impl->data, (long long)impl->device_type, (long long)impl->device);
}

static PyMethodDef tensor_methods[] = {
    {"cdata", get_cdata, METH_NOARGS, NULL},
    {"data_ptr", get_data, METH_NOARGS, NULL},
    {"place", get_place, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyMethodDef methods[] = {
    {"move", move, METH_VARARGS, NULL},
    {"pretend", pretend, METH_O, NULL},
    {"counts", counts, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {{Py_tp_new, (void *)tensor_new}, {Py_tp_methods, tensor_methods}, {0, NULL}};
static PyType_Spec spec = {"torchlike.TensorBase", sizeof(struct tensor), 0, Py_TPFLAGS_DEFAULT | (1UL << 10), slots};

static int execute(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    PyObject *capsule = PyCapsule_New(&table, "dlpack_exchange_api", NULL);
    int result = type == NULL || capsule == NULL ? -1 : PyModule_AddObjectRef(module, "TensorBase", type);
    if (result == 0) result = PyModule_AddObjectRef(module, "table", capsule);
    Py_DecRef(type);
    Py_DecRef(capsule);
    return result;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "torchlike", NULL, 0, methods, module_slots, NULL, NULL, NULL};

PODIUM_EXPORT PyObject *PyInit_torchlike(void);
PODIUM_EXPORT PyObject *PyInit_torchlike(void) { return PyModuleDef_Init(&definition); }
