/* The driver's launch in other ways, and what stands between two launches: a loop in C over each, which reads the clock. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <time.h>

#include "podium_dlpack.h"
#include "podium_python.h"

typedef int (*launch_kernel)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared, void *stream, void **parameters, void **extra);
struct config { /* CUlaunchConfig */
    unsigned grid[3], block[3], shared;
    void *stream, *attributes;
    unsigned count;
};
typedef int (*launch_config)(const struct config *config, void *function, void **parameters, void **extra);

/* What `setup` is given, in this order, before the tensors. */
static struct {
    uint64_t call, found, extended, kernel, function, block, stream, values[4], device_type;
} given;
#define GIVEN 12
static PyObject *tensors[3];
static const struct podium_exchange *table;
static struct { /* struct podium_reader of podium_reader.h */
    uint64_t place, plain, elements;
    int32_t (*data)(const void *, void **);
    int32_t (*device_type)(const void *, int32_t *), (*device_index)(const void *, int32_t *);
    int32_t (*element)(const void *, int32_t *);
    int32_t (*is_contiguous)(const void *, _Bool *);
} reader;
static void *parameters[4];
static _Alignas(64) unsigned char packed[32];
static size_t packed_size = 28; /* three pointers and an int */
static void *extra[] = {(void *)1, packed, (void *)2, &packed_size, (void *)0};

/* setup((the numbers), a, b, c, table, reader) */
static PyObject *setup(PyObject *module, PyObject *arguments) {
    (void)module;
    uint64_t number[GIVEN];
    PyObject *numbers = PyTuple_GetItem(arguments, 0);
    if (numbers == NULL) return NULL;
    for (int index = 0; index < GIVEN; index++) {
        PyObject *item = PyTuple_GetItem(numbers, index);
        if (item == NULL) return NULL;
        number[index] = PyLong_AsUnsignedLongLong(item);
    }
    if (PyErr_Occurred()) return NULL;
    memcpy(&given, number, sizeof given);
    for (int index = 0; index < 4; index++) parameters[index] = &given.values[index];
    memcpy(packed, given.values, packed_size);
    for (int index = 0; index < 3; index++)
        if ((tensors[index] = PyTuple_GetItem(arguments, 1 + index)) == NULL) return NULL;
    for (int index = 0; index < 3; index++) Py_IncRef(tensors[index]);
    PyObject *capsule = PyTuple_GetItem(arguments, 4);
    table = capsule == NULL || capsule == Py_None ? NULL : PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    PyObject *bytes = PyTuple_GetItem(arguments, 5);
    char *data;
    Py_ssize_t length;
    if (bytes != NULL && bytes != Py_None && PyBytes_AsStringAndSize(bytes, &data, &length) == 0 &&
        (size_t)length == sizeof reader)
        memcpy(&reader, data, sizeof reader);
    if (PyErr_Occurred()) return NULL;
    Py_IncRef(Py_None);
    return Py_None;
}

static int with(uint64_t call, uint64_t function, uint64_t stream, void **kernel_parameters, void **more) {
    return ((launch_kernel)(uintptr_t)call)((void *)(uintptr_t)function, 1, 1, 1, (unsigned)given.block, 1, 1, 0,
                                            (void *)(uintptr_t)stream, kernel_parameters, more);
}
static int plain(void) { return with(given.call, given.kernel, 0, parameters, NULL); }
static int found_by_driver(void) { return with(given.found, given.kernel, 0, parameters, NULL); }
static int of_context(void) { return with(given.call, given.function, 0, parameters, NULL); }
static int buffer(void) { return with(given.call, given.kernel, 0, NULL, extra); }
static int buffer_of_context(void) { return with(given.call, given.function, 0, NULL, extra); }
static int by_handle(void) { return with(given.call, given.kernel, 1, parameters, NULL); }
static int other_stream(void) { return with(given.call, given.kernel, given.stream, parameters, NULL); }
static int by_config(void) {
    struct config config = {{1, 1, 1}, {(unsigned)given.block, 1, 1}, 0, NULL, NULL, 0};
    return ((launch_config)(uintptr_t)given.extended)(&config, (void *)(uintptr_t)given.kernel, parameters, NULL);
}
static int unlocked(void) {
    PyThreadState *thread = PyEval_SaveThread();
    int status = plain();
    PyEval_RestoreThread(thread);
    return status;
}
static int ask_tensors(void) {
    for (int index = 0; index < 3; index++) {
        struct podium_tensor tensor;
        if (table->tensor_from_object(tensors[index], &tensor) != 0) return -1;
        given.values[index] = (uint64_t)(uintptr_t)tensor.data + tensor.byte_offset;
    }
    return 0;
}
/* With podium's checks, but for the comparison with what the tensor before said. */
static int read_tensors(void) {
    for (int index = 0; index < 3; index++) {
        const void *handle = (const char *)(const void *)tensors[index] + reader.place;
        int32_t type, device, element;
        _Bool is_contiguous;
        void *data;
        if (**(const uint64_t *const *)handle != reader.plain || reader.device_type(handle, &type) != 0 ||
            reader.device_index(handle, &device) != 0 || reader.element(handle, &element) != 0 ||
            (reader.elements >> element & 1) == 0 || reader.is_contiguous(handle, &is_contiguous) != 0 || !is_contiguous ||
            reader.data(handle, &data) != 0)
            return -1;
        given.values[index] = (uint64_t)(uintptr_t)data;
    }
    return 0;
}
static int ask_stream(void) {
    void *stream;
    return table->current_stream((int32_t)given.device_type, 0, &stream);
}
static int with_tensors(void) { return ask_tensors() == 0 ? plain() : -1; }
static int with_stream(void) { return ask_stream() == 0 ? plain() : -1; }
static int with_both(void) { return ask_tensors() == 0 && ask_stream() == 0 ? plain() : -1; }
static int with_read_tensors(void) { return read_tensors() == 0 ? plain() : -1; }
static int with_all(void) { return ask_tensors() == 0 && ask_stream() == 0 ? unlocked() : -1; }

static int (*const ways[])(void) = {plain,       found_by_driver, of_context,  buffer,    buffer_of_context,
                                    by_handle,   other_stream,    by_config,   unlocked,  with_tensors,
                                    with_stream, with_both,       with_all,    with_read_tensors};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* loop(way, launches) -> seconds for one */
static PyObject *loop(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module, (void)count;
    uint64_t which, launches;
    int status = 0;
    if (!podium_unsigned_int(arguments[0], &which) || which >= sizeof ways / sizeof *ways ||
        !podium_unsigned_int(arguments[1], &launches)) {
        PyErr_SetString(PyExc_SystemError, "there is no such way");
        return NULL;
    }
    int (*way)(void) = ways[which];
    double start = now();
    for (uint64_t index = 0; index < launches && status == 0; index++) status = way();
    double end = now();
    if (status != 0) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_SystemError, "the launch gave status %d", status);
        return NULL;
    }
    return Py_BuildValue("d", (end - start) / (double)launches);
}

static PyMethodDef methods[] = {
    {"setup", setup, METH_VARARGS, NULL},
    {"loop", (PyCFunction)(void (*)(void))loop, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "podium_benchmark_calls", NULL, 0, methods, slots, NULL, NULL, NULL};

PODIUM_EXPORT PyObject *PyInit_podium_benchmark_calls(void);
PODIUM_EXPORT PyObject *PyInit_podium_benchmark_calls(void) { return PyModuleDef_Init(&definition); }
