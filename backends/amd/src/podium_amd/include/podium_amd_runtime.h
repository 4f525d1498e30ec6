/* The part of the HIP runtime that launches need, declared by hand: users have no HIP headers.
 *
 * Names and layouts are those of hip_runtime_api.h, with podium's prefix; tests/backends/test_amd_header.py compares them.
 * Nothing is linked: podium_amd.launcher gives the addresses when a launcher is loaded.
 */
#ifndef PODIUM_AMD_RUNTIME_H
#define PODIUM_AMD_RUNTIME_H

#include "podium_lock.h"

#define PODIUM_AMD_DEFAULT_STREAM 0
#define PODIUM_AMD_DEFAULT_ALIAS 1 /* CUDA's number of it, which older versions of HIP take for an address */
#define PODIUM_AMD_PER_THREAD_STREAM 2

enum podium_amd_status {
    PODIUM_AMD_SUCCESS = 0,
    PODIUM_AMD_INVALID_VALUE = 1,
    PODIUM_AMD_NOT_SUPPORTED = 801,
    PODIUM_AMD_UNKNOWN = 999
};

/* hipMemoryType: HIP 5 counted otherwise */
enum podium_amd_memory_type {
    PODIUM_AMD_5_DEVICE_MEMORY = 1,
    PODIUM_AMD_DEVICE_MEMORY = 2
};

enum podium_amd_attribute_id {
    PODIUM_AMD_COOPERATIVE = 2
};

/* hipLaunchAttribute; the values that are set are words. */
struct podium_amd_attribute {
    int id;
    char padding[4];
    uint32_t value[16];
};

/* HIP_LAUNCH_CONFIG */
struct podium_amd_config {
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared;
    void *stream;
    struct podium_amd_attribute *attributes;
    unsigned int attribute_count;
};

/* hipPointerAttribute_t, with room for what later versions add */
struct podium_amd_pointer {
    int type;
    int device;
    void *device_pointer;
    void *host_pointer;
    int managed;
    unsigned int flags;
    uint64_t room[4];
};

#define PODIUM_AMD_ASSERT(name, condition) typedef char podium_amd_##name[(condition) ? 1 : -1]
PODIUM_AMD_ASSERT(attribute_size, sizeof(struct podium_amd_attribute) == 72);
PODIUM_AMD_ASSERT(config_size, sizeof(struct podium_amd_config) == 56);
PODIUM_AMD_ASSERT(pointer_size, sizeof(struct podium_amd_pointer) == 64);
PODIUM_AMD_ASSERT(word_size, sizeof(unsigned int) == 4 && sizeof(void *) == 8);

/* In the order in which podium_amd.launcher.entry_points gives the addresses. */
static struct podium_amd_runtime {
    int (*launch)(void *function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
                  unsigned int bz, unsigned int shared, void *stream, void **parameters, void **extra);
    int (*launch_cooperative)(void *function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                              unsigned int by, unsigned int bz, unsigned int shared, void *stream, void **parameters);
    int (*launch_ex)(const struct podium_amd_config *config, void *function, void **parameters, void **extra);
    int (*is_capturing)(void *stream, int *state);
    int (*get_device)(int *device);
    int (*set_device)(int device);
    int (*pointer_attributes)(struct podium_amd_pointer *found, const void *address);
    int (*take_last_error)(void);
} podium_amd;
#define PODIUM_AMD_FUNCTIONS 8
PODIUM_AMD_ASSERT(runtime_size, sizeof podium_amd == PODIUM_AMD_FUNCTIONS * sizeof(void *));

static int podium_amd_version;     /* the major version of HIP: 5, 6 or 7 */
static PyObject *podium_amd_mark; /* podium_amd.launcher.mark_captured */

/* DLPack: 10 is ROCm, 11 is host memory pinned for it. */
static int podium_driver_reaches(int32_t device_type) { return device_type == 10 || device_type == 11; }

static const char *podium_driver_open(void) {
    const char *problem = "podium_amd.launcher.entry_points() failed";
    void *addresses[PODIUM_AMD_FUNCTIONS];
    PyObject *launcher = PyImport_ImportModule("podium_amd.launcher");
    PyObject *function = launcher == NULL ? NULL : PyObject_GetAttrString(launcher, "entry_points");
    PyObject *numbers = function == NULL ? NULL : PyObject_Vectorcall(function, NULL, 0, NULL);
    if (numbers != NULL) podium_amd_mark = PyObject_GetAttrString(launcher, "mark_captured");
    if (podium_amd_mark != NULL && PyTuple_Size(numbers) == PODIUM_AMD_FUNCTIONS + 1) {
        for (int index = 0; index < PODIUM_AMD_FUNCTIONS; index++)
            addresses[index] = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(PyTuple_GetItem(numbers, index));
        memcpy(&podium_amd, addresses, sizeof addresses);
        podium_amd_version = (int)PyLong_AsUnsignedLongLong(PyTuple_GetItem(numbers, PODIUM_AMD_FUNCTIONS));
        if (PyErr_Occurred() == NULL) problem = NULL;
    }
    Py_DecRef(numbers);
    Py_DecRef(function);
    Py_DecRef(launcher);
    return problem;
}

/* The device that is current in this thread, or 0. What else there is to say of it, the launch says. */
static int podium_driver_device(void) {
    int device = 0;
    return podium_amd.get_device(&device) == PODIUM_AMD_SUCCESS ? device : 0;
}

/* What podium_amd.memory.pointer_device says of memory of a device; the rest is for Python. */
static int podium_driver_pointer(uint64_t address, int32_t *device_type, int32_t *device) {
    struct podium_amd_pointer found;
    memset(&found, 0, sizeof found);
    PyThreadState *thread = podium_leave();
    int status = podium_amd.pointer_attributes(&found, (const void *)(uintptr_t)address);
    if (status != PODIUM_AMD_SUCCESS) podium_amd.take_last_error();
    podium_return(thread);
    if (status != PODIUM_AMD_SUCCESS) return -1;
    if (found.type != (podium_amd_version == 5 ? PODIUM_AMD_5_DEVICE_MEMORY : PODIUM_AMD_DEVICE_MEMORY)) return -1;
    *device_type = 10;
    *device = found.device;
    return 0;
}

static void podium_amd_add(struct podium_amd_config *config, int id, const uint32_t *value) {
    struct podium_amd_attribute *attribute = &config->attributes[config->attribute_count++];
    memset(attribute, 0, sizeof *attribute);
    attribute->id = id;
    memcpy(attribute->value, value, 3 * sizeof *value);
}

static int podium_amd_launch_ex(const struct podium_shape *shape, void *stream, void *function, void **parameters) {
    struct podium_amd_attribute attributes[1 + PODIUM_ATTRIBUTES];
    struct podium_amd_config config;
    const uint32_t on[3] = {1, 0, 0};
    if (podium_amd.launch_ex == NULL) return PODIUM_AMD_NOT_SUPPORTED; /* Driver.check says so before it comes to this */
    memset(&config, 0, sizeof config);
    memcpy(config.grid, shape->grid, sizeof config.grid);
    memcpy(config.block, shape->block, sizeof config.block);
    config.shared = (unsigned int)shape->shared;
    config.stream = stream;
    config.attributes = attributes;
    if (shape->flags & PODIUM_COOPERATIVE) podium_amd_add(&config, PODIUM_AMD_COOPERATIVE, on);
    for (uint32_t index = 0; index < shape->attribute_count; index++)
        podium_amd_add(&config, (int)shape->attributes[index].key, shape->attributes[index].value);
    return podium_amd.launch_ex(&config, function, parameters, NULL);
}

/* A graph may launch the kernel for as long as the process lives: its code must not be unloaded. */
static int podium_amd_captured(uint64_t function) {
    static uint64_t last;
    if (function == last) return PODIUM_AMD_SUCCESS;
    PyObject *number = PyLong_FromUnsignedLongLong(function), *done = NULL;
    if (number != NULL) done = PyObject_Vectorcall(podium_amd_mark, &number, 1, NULL);
    Py_DecRef(number);
    Py_DecRef(done);
    if (done == NULL) {
        PyErr_Clear();
        return PODIUM_AMD_UNKNOWN;
    }
    last = function;
    return PODIUM_AMD_SUCCESS;
}

/* Launch on the current device, without the interpreter lock, and tell whether the stream is being captured. */
static int podium_amd_launch(const struct podium_shape *shape, void *stream, void *function, void **parameters,
                             int *capturing) {
    const uint32_t *grid = shape->grid, *block = shape->block;
    unsigned int shared = (unsigned int)shape->shared;
    int status, is_cooperative = (shape->flags & PODIUM_COOPERATIVE) != 0;
    if (PODIUM_UNLIKELY(shape->attribute_count != 0 || (is_cooperative && podium_amd.launch_cooperative == NULL)))
        status = podium_amd_launch_ex(shape, stream, function, parameters);
    else if (PODIUM_UNLIKELY(is_cooperative))
        status = podium_amd.launch_cooperative(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared,
                                               stream, parameters);
    else
        status = podium_amd.launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream,
                                   parameters, NULL);
    if (status != PODIUM_AMD_SUCCESS || stream == NULL) return status; /* the default stream is never captured */
    if (podium_amd.is_capturing(stream, capturing) != PODIUM_AMD_SUCCESS) *capturing = 0;
    return PODIUM_AMD_SUCCESS;
}

static int podium_driver_launch(const struct podium_shape *shape, int device, uint64_t stream, uint64_t function,
                                void **parameters) {
    int current = 0, capturing = 0, status = podium_amd.get_device(&current);
    if (stream == PODIUM_AMD_DEFAULT_ALIAS) stream = PODIUM_AMD_DEFAULT_STREAM;
    void *queue = (void *)(uintptr_t)stream, *kernel = (void *)(uintptr_t)function;
    if (PODIUM_UNLIKELY(status != PODIUM_AMD_SUCCESS)) return status;
    PyThreadState *thread = podium_leave();
    if (PODIUM_UNLIKELY(current != device)) status = podium_amd.set_device(device);
    if (status == PODIUM_AMD_SUCCESS) {
        status = podium_amd_launch(shape, queue, kernel, parameters, &capturing);
        if (PODIUM_UNLIKELY(current != device)) {
            int restored = podium_amd.set_device(current);
            if (status == PODIUM_AMD_SUCCESS) status = restored;
        }
    }
    podium_return(thread);
    return PODIUM_UNLIKELY(capturing) && status == PODIUM_AMD_SUCCESS ? podium_amd_captured(function) : status;
}

#endif
