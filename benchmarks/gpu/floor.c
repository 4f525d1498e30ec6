/* What no launch with arrays of a library can be below: its own functions, by which it tells where three arrays are and
 * which stream is current, and the driver's call. Nothing is checked, and nothing is kept. */
#include "podium_dlpack.h"
#include "podium_python.h"

typedef int (*launch_kernel)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared, void *stream, void **parameters, void **extra);

static launch_kernel driver_call;
static void *function;
static unsigned block;
static int32_t device_type;
static const struct podium_exchange *table;

/* setup(call, function, block, device type, table) */
static PyObject *setup(PyObject *module, PyObject *arguments) {
    (void)module;
    uint64_t number[4];
    for (int index = 0; index < 4; index++)
        number[index] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(arguments, index));
    if (PyErr_Occurred()) return NULL;
    driver_call = (launch_kernel)(uintptr_t)number[0];
    function = (void *)(uintptr_t)number[1];
    block = (unsigned)number[2];
    device_type = (int32_t)number[3];
    table = PyCapsule_GetPointer(PyTuple_GetItem(arguments, 4), "dlpack_exchange_api");
    if (table == NULL) return NULL;
    Py_IncRef(Py_None);
    return Py_None;
}

static int launch_once(PyObject *const *arguments, int is_locked) {
    uint64_t value[4];
    void *parameters[4], *stream = NULL;
    for (int index = 0; index < 3; index++) {
        struct podium_tensor tensor;
        if (table->tensor_from_object(arguments[index], &tensor) != 0) return -1;
        value[index] = (uint64_t)(uintptr_t)tensor.data + tensor.byte_offset;
        parameters[index] = &value[index];
    }
    if (!podium_unsigned_int(arguments[3], &value[3])) return -1;
    parameters[3] = &value[3];
    if (table->current_stream(device_type, 0, &stream) != 0) return -1;
    PyThreadState *thread = is_locked ? NULL : PyEval_SaveThread();
    int status = driver_call(function, 1, 1, 1, block, 1, 1, 0, stream, parameters, NULL);
    if (!is_locked) PyEval_RestoreThread(thread);
    return status;
}

static PyObject *outcome(int status) {
    if (status != 0) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_SystemError, "the launch gave status %d", status);
        return NULL;
    }
    Py_IncRef(Py_None);
    return Py_None;
}

/* loop(a, b, c, n, launches): all of them from here */
static PyObject *loop(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module, (void)count;
    int status = 0;
    uint64_t launches;
    if (!podium_unsigned_int(arguments[4], &launches)) return outcome(-1);
    while (launches-- > 0 && status == 0) status = launch_once(arguments, 1);
    return outcome(status);
}

/* launch(a, b, c, n): one, without the interpreter lock while the driver is called */
static PyObject *launch(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module, (void)count;
    return outcome(launch_once(arguments, 0));
}

static PyMethodDef methods[] = {
    {"setup", setup, METH_VARARGS, NULL},
    {"loop", (PyCFunction)(void (*)(void))loop, METH_FASTCALL, NULL},
    {"launch", (PyCFunction)(void (*)(void))launch, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "podium_benchmark_floor", NULL, 0, methods, slots, NULL, NULL, NULL};

PODIUM_EXPORT PyObject *PyInit_podium_benchmark_floor(void);
PODIUM_EXPORT PyObject *PyInit_podium_benchmark_floor(void) { return PyModuleDef_Init(&definition); }
