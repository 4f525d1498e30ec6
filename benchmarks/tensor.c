/* Arrays of a library with DLPack's exchange table, which take as little time to tell where they are as any can. */
#include "podium_dlpack.h"
#include "podium_python.h"

#ifndef DEVICE_TYPE
#define DEVICE_TYPE 12 /* DLPack's number; those of the fake driver */
#define STREAM 64
#endif

struct tensor {
    PyObject_HEAD
    void *data;
    int64_t shape[1], strides[1];
};

static int tensor_from_object(void *object, struct podium_tensor *out) {
    struct tensor *self = object;
    out->data = self->data;
    out->device.type = DEVICE_TYPE;
    out->device.index = 0;
    out->ndim = 1;
    out->dtype.code = 2;
    out->dtype.bits = 32;
    out->dtype.lanes = 1;
    out->shape = self->shape;
    out->strides = self->strides;
    out->byte_offset = 0;
    return 0;
}

static int current_stream(int32_t device_type, int32_t device, void **stream) {
    (void)device_type, (void)device;
    *stream = (void *)STREAM;
    return 0;
}

static struct podium_exchange table = {1, 3, NULL, NULL, NULL, NULL, tensor_from_object, current_stream};

static PyObject *tensor_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)arguments, (void)keywords;
    PyObject *(*allocate)(PyTypeObject *, Py_ssize_t);
    *(void **)&allocate = PyType_GetSlot(type, Py_tp_alloc);
    struct tensor *self = (struct tensor *)allocate(type, 0);
    if (self == NULL) return NULL;
    self->data = (void *)4096;
    self->shape[0] = 4;
    self->strides[0] = 1;
    return (PyObject *)self;
}

static PyType_Slot slots[] = {{Py_tp_new, (void *)tensor_new}, {0, NULL}};
static PyType_Spec spec = {"podium_benchmark_tensor.Tensor", sizeof(struct tensor), 0, Py_TPFLAGS_DEFAULT, slots};

static int execute(PyObject *module) {
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    PyObject *capsule = PyCapsule_New(&table, "dlpack_exchange_api", NULL);
    int result = type == NULL || capsule == NULL ? -1 : PyModule_AddObjectRef(module, "Tensor", type);
    if (result == 0) result = PyModule_AddObjectRef(module, "table", capsule);
    Py_DecRef(type);
    Py_DecRef(capsule);
    return result;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "podium_benchmark_tensor", NULL, 0, NULL, module_slots, NULL, NULL,
                                 NULL};

PODIUM_EXPORT PyObject *PyInit_podium_benchmark_tensor(void);
PODIUM_EXPORT PyObject *PyInit_podium_benchmark_tensor(void) { return PyModuleDef_Init(&definition); }
