/* A library with a DLPack C exchange table. Its arrays are Python objects with an attribute `fields`:
 *   (outcome, data, device type, device, axes, type code, bits, lanes, byte offset, shape..., strides...)
 * outcome: 0 success, 1 failure with an exception, 2 failure without one, 3 success without strides.
 */
#include "podium_dlpack.h"
#include "podium_python.h"

static int64_t axes[64];
static int64_t stream_outcome, stream_value, calls;

static int64_t integer(PyObject *tuple, Py_ssize_t index) {
    PyObject *item = PyTuple_GetItem(tuple, index);
    return item == NULL ? 0 : PyLong_AsLongLong(item);
}

static int tensor_from_object(void *object, struct podium_tensor *tensor) {
    calls++;
    PyObject *fields = PyObject_GetAttrString(object, "fields");
    if (fields == NULL) return -1;
    int64_t outcome = integer(fields, 0);
    tensor->data = (void *)(uintptr_t)integer(fields, 1);
    tensor->device.type = (int32_t)integer(fields, 2);
    tensor->device.index = (int32_t)integer(fields, 3);
    tensor->ndim = (int32_t)integer(fields, 4);
    tensor->dtype.code = (uint8_t)integer(fields, 5);
    tensor->dtype.bits = (uint8_t)integer(fields, 6);
    tensor->dtype.lanes = (uint16_t)integer(fields, 7);
    tensor->byte_offset = (uint64_t)integer(fields, 8);
    for (int axis = 0; axis < tensor->ndim; axis++) {
        axes[axis] = integer(fields, 9 + axis);
        axes[32 + axis] = outcome == 3 ? 0 : integer(fields, 9 + tensor->ndim + axis);
    }
    tensor->shape = axes;
    tensor->strides = outcome == 3 ? NULL : axes + 32;
    Py_DecRef(fields);
    if (outcome == 1) PyErr_SetString(PyExc_TypeError, "the library refuses");
    return outcome == 1 || outcome == 2 || PyErr_Occurred() ? -1 : 0;
}

static int current_stream(int32_t device_type, int32_t device, void **stream) {
    (void)device_type;
    if (stream_outcome == 1) PyErr_SetString(PyExc_TypeError, "the library has no stream");
    *stream = (void *)(uintptr_t)(stream_value + device);
    return stream_outcome ? -1 : 0;
}

static struct podium_exchange tables[] = {
    {1, 3, NULL, NULL, NULL, NULL, tensor_from_object, current_stream},
    {1, 3, NULL, NULL, NULL, NULL, tensor_from_object, NULL},
    {2, 0, NULL, NULL, NULL, NULL, tensor_from_object, current_stream},
    {1, 3, NULL, NULL, NULL, NULL, NULL, current_stream},
};

/* table(index) -> capsule */
static PyObject *table(PyObject *module, PyObject *arguments) {
    (void)module;
    return PyCapsule_New(&tables[integer(arguments, 0)], "dlpack_exchange_api", NULL);
}

/* set_stream(outcome, value): what the library says when it is asked for its current stream */
static PyObject *set_stream(PyObject *module, PyObject *arguments) {
    (void)module;
    stream_outcome = integer(arguments, 0);
    stream_value = integer(arguments, 1);
    Py_IncRef(Py_None);
    return Py_None;
}

static PyObject *count(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    return PyLong_FromLongLong(calls);
}

static PyMethodDef methods[] = {
    {"table", table, METH_VARARGS, "Return one of the exchange tables."},
    {"set_stream", set_stream, METH_VARARGS, "Say what current_stream does."},
    {"count", count, METH_NOARGS, "Return how often an array was asked for."},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "exchange", "Arrays with an exchange table.", 0, methods, slots,
                                 NULL,                  NULL,       NULL};

PODIUM_EXPORT PyObject *PyInit_exchange(void);
PODIUM_EXPORT PyObject *PyInit_exchange(void) { return PyModuleDef_Init(&definition); }
