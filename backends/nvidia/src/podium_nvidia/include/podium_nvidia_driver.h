/* The part of the CUDA driver that launches need, declared by hand: users have no CUDA headers.
 *
 * Names and layouts are those of cuda.h, with podium's prefix; tests/backends/test_nvidia_header.py compares them.
 * Nothing is linked: podium_nvidia.launcher gives the addresses when a launcher is loaded.
 */
#ifndef PODIUM_NVIDIA_DRIVER_H
#define PODIUM_NVIDIA_DRIVER_H

#include "podium_lock.h"

#define PODIUM_NVIDIA_LEGACY_STREAM 0
#define PODIUM_NVIDIA_PER_THREAD_STREAM 2

enum podium_nvidia_status {
    PODIUM_NVIDIA_SUCCESS = 0,
    PODIUM_NVIDIA_INVALID_CONTEXT = 201,
    PODIUM_NVIDIA_CONTEXT_IS_DESTROYED = 709,
    PODIUM_NVIDIA_NOT_SUPPORTED = 801,
    PODIUM_NVIDIA_STREAM_CAPTURE_UNSUPPORTED = 900,
    PODIUM_NVIDIA_UNKNOWN = 999
};

enum podium_nvidia_pointer_attribute {
    PODIUM_NVIDIA_MEMORY_TYPE = 2,
    PODIUM_NVIDIA_IS_MANAGED = 8,
    PODIUM_NVIDIA_DEVICE_ORDINAL = 9
};
enum podium_nvidia_memory_type {
    PODIUM_NVIDIA_HOST_MEMORY = 1,
    PODIUM_NVIDIA_DEVICE_MEMORY = 2
};

enum podium_nvidia_attribute_id {
    PODIUM_NVIDIA_COOPERATIVE = 2,
    PODIUM_NVIDIA_CLUSTER_DIMENSION = 4,
    PODIUM_NVIDIA_PROGRAMMATIC_STREAM_SERIALIZATION = 6
};

/* CUlaunchAttribute; the values that are set are words. */
struct podium_nvidia_attribute {
    int id;
    char padding[4];
    uint32_t value[16];
};

/* CUlaunchConfig */
struct podium_nvidia_config {
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared;
    void *stream;
    struct podium_nvidia_attribute *attributes;
    unsigned int attribute_count;
};

#define PODIUM_NVIDIA_ASSERT(name, condition) typedef char podium_nvidia_##name[(condition) ? 1 : -1]
PODIUM_NVIDIA_ASSERT(attribute_size, sizeof(struct podium_nvidia_attribute) == 72);
PODIUM_NVIDIA_ASSERT(config_size, sizeof(struct podium_nvidia_config) == 32 + 3 * sizeof(void *));
PODIUM_NVIDIA_ASSERT(word_size, sizeof(unsigned int) == 4 && sizeof(void *) == 8);

/* In the order in which podium_nvidia.launcher.entry_points gives the addresses. */
static struct podium_nvidia_driver {
    int (*launch)(void *function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
                  unsigned int bz, unsigned int shared, void *stream, void **parameters, void **extra);
    int (*launch_ex)(const struct podium_nvidia_config *config, void *function, void **parameters, void **extra);
    int (*launch_cooperative)(void *function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
                              unsigned int by, unsigned int bz, unsigned int shared, void *stream, void **parameters);
    int (*is_capturing)(void *stream, int *state);
    int (*get_device)(int *device);
    int (*get_current)(void **context);
    int (*set_current)(void *context);
    int (*push_current)(void *context);
    int (*pop_current)(void **context);
    int (*pointer_attributes)(unsigned int count, const int *attributes, void **values, uint64_t address);
    int (*launch_graph)(void *graph, void *stream);
} podium_nvidia;
#define PODIUM_NVIDIA_FUNCTIONS 11
PODIUM_NVIDIA_ASSERT(driver_size, sizeof podium_nvidia == PODIUM_NVIDIA_FUNCTIONS * sizeof(void *));

static int podium_nvidia_uses_libraries; /* kernels belong to no context */
static int podium_nvidia_has_one_device; /* so that whatever context is current is one of it */
static PyObject *podium_nvidia_primary;  /* podium_nvidia.launcher.primary_context */
static PyObject *podium_nvidia_mark;     /* podium_nvidia.launcher.mark_captured */

/* DLPack: 2 is CUDA, 3 is host memory pinned for it, 13 is managed memory. */
static int podium_driver_reaches(int32_t device_type) {
    return device_type == 2 || device_type == 3 || device_type == 13;
}

static const char *podium_driver_open(void) {
    const char *problem = "podium_nvidia.launcher.entry_points() failed";
    void *addresses[PODIUM_NVIDIA_FUNCTIONS];
    PyObject *launcher = PyImport_ImportModule("podium_nvidia.launcher");
    PyObject *function = launcher == NULL ? NULL : PyObject_GetAttrString(launcher, "entry_points");
    PyObject *numbers = function == NULL ? NULL : PyObject_Vectorcall(function, NULL, 0, NULL);
    if (numbers != NULL) {
        podium_nvidia_primary = PyObject_GetAttrString(launcher, "primary_context");
        podium_nvidia_mark = PyObject_GetAttrString(launcher, "mark_captured");
    }
    if (podium_nvidia_primary != NULL && podium_nvidia_mark != NULL &&
        PyTuple_Size(numbers) == PODIUM_NVIDIA_FUNCTIONS + 2) {
        for (int index = 0; index < PODIUM_NVIDIA_FUNCTIONS; index++)
            addresses[index] = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(PyTuple_GetItem(numbers, index));
        memcpy(&podium_nvidia, addresses, sizeof addresses);
        podium_nvidia_uses_libraries =
            PyLong_AsUnsignedLongLong(PyTuple_GetItem(numbers, PODIUM_NVIDIA_FUNCTIONS)) != 0;
        podium_nvidia_has_one_device =
            PyLong_AsUnsignedLongLong(PyTuple_GetItem(numbers, PODIUM_NVIDIA_FUNCTIONS + 1)) == 1;
        if (PyErr_Occurred() == NULL) problem = NULL;
    }
    Py_DecRef(numbers);
    Py_DecRef(function);
    Py_DecRef(launcher);
    return problem;
}

/* The device of the context that is current, or 0. What else there is to say of it, the launch says. */
static int podium_driver_device(void) {
    int device = 0;
    if (podium_nvidia_has_one_device) return 0;
    return podium_nvidia.get_device(&device) == PODIUM_NVIDIA_SUCCESS ? device : 0;
}

/* What podium_nvidia.memory.pointer_device says, where a context is current. */
static int podium_driver_pointer(uint64_t address, int32_t *device_type, int32_t *device) {
    static const int wanted[] = {PODIUM_NVIDIA_MEMORY_TYPE, PODIUM_NVIDIA_IS_MANAGED, PODIUM_NVIDIA_DEVICE_ORDINAL};
    unsigned int kind = 0, managed = 0;
    int ordinal = 0;
    void *places[] = {&kind, &managed, &ordinal};
    if (podium_nvidia.pointer_attributes == NULL) return -1;
    PyThreadState *thread = podium_leave();
    int status = podium_nvidia.pointer_attributes(3, wanted, places, address);
    podium_return(thread);
    if (status != PODIUM_NVIDIA_SUCCESS) return -1;
    *device = ordinal;
    if (managed != 0)
        *device_type = 13;
    else if (kind == PODIUM_NVIDIA_DEVICE_MEMORY)
        *device_type = 2;
    else if (kind == PODIUM_NVIDIA_HOST_MEMORY)
        *device_type = 3;
    else
        return -1;
    return 0;
}

static void podium_nvidia_add(struct podium_nvidia_config *config, int id, const uint32_t *value) {
    struct podium_nvidia_attribute *attribute = &config->attributes[config->attribute_count++];
    memset(attribute, 0, sizeof *attribute);
    attribute->id = id;
    memcpy(attribute->value, value, 3 * sizeof *value);
}

PODIUM_ASIDE static int podium_nvidia_launch_ex(const struct podium_shape *shape, void *stream, void *function, void **parameters) {
    struct podium_nvidia_attribute attributes[3 + PODIUM_ATTRIBUTES];
    struct podium_nvidia_config config;
    const uint32_t on[3] = {1, 0, 0};
    memset(&config, 0, sizeof config);
    memcpy(config.grid, shape->grid, sizeof config.grid);
    memcpy(config.block, shape->block, sizeof config.block);
    config.shared = (unsigned int)shape->shared;
    config.stream = stream;
    config.attributes = attributes;
    if (shape->cluster[0] != 1 || shape->cluster[1] != 1 || shape->cluster[2] != 1)
        podium_nvidia_add(&config, PODIUM_NVIDIA_CLUSTER_DIMENSION, shape->cluster);
    if (shape->flags & PODIUM_COOPERATIVE) podium_nvidia_add(&config, PODIUM_NVIDIA_COOPERATIVE, on);
    if (shape->flags & PODIUM_DEPENDENT)
        podium_nvidia_add(&config, PODIUM_NVIDIA_PROGRAMMATIC_STREAM_SERIALIZATION, on);
    for (uint32_t index = 0; index < shape->attribute_count; index++)
        podium_nvidia_add(&config, (int)shape->attributes[index].key, shape->attributes[index].value);
    if (podium_nvidia.launch_ex != NULL) return podium_nvidia.launch_ex(&config, function, parameters, NULL);
    if (config.attribute_count == 1 && (shape->flags & PODIUM_COOPERATIVE) && podium_nvidia.launch_cooperative != NULL)
        return podium_nvidia.launch_cooperative(function, config.grid[0], config.grid[1], config.grid[2],
                                                config.block[0], config.block[1], config.block[2], config.shared,
                                                stream, parameters);
    return PODIUM_NVIDIA_NOT_SUPPORTED; /* Driver.check says so before it comes to this */
}

/* A graph may launch the kernel for as long as the process lives: its code must not be unloaded. */
PODIUM_APART static int podium_nvidia_captured(uint64_t function) {
    static uint64_t last;
    if (function == last) return PODIUM_NVIDIA_SUCCESS;
    PyObject *number = PyLong_FromUnsignedLongLong(function), *done = NULL;
    if (number != NULL) done = PyObject_Vectorcall(podium_nvidia_mark, &number, 1, NULL);
    Py_DecRef(number);
    Py_DecRef(done);
    if (done == NULL) {
        PyErr_Clear();
        return PODIUM_NVIDIA_UNKNOWN;
    }
    last = function;
    return PODIUM_NVIDIA_SUCCESS;
}

/* Launch in the current context, without the interpreter lock, and tell whether the stream is being captured. */
static int podium_nvidia_launch(const struct podium_shape *shape, void *stream, void *function, void **parameters,
                                int *capturing) {
    const uint32_t *grid = shape->grid, *block = shape->block;
    int status;
    if (PODIUM_UNLIKELY(shape->flags != 0 || shape->attribute_count != 0 || shape->cluster[0] != 1 ||
                        shape->cluster[1] != 1 || shape->cluster[2] != 1))
        status = podium_nvidia_launch_ex(shape, stream, function, parameters);
    else
        status = podium_nvidia.launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                      (unsigned int)shape->shared, stream, parameters, NULL);
    if (status != PODIUM_NVIDIA_SUCCESS || stream == NULL) return status; /* the legacy stream is never captured */
    if (podium_nvidia.is_capturing(stream, capturing) != PODIUM_NVIDIA_SUCCESS) *capturing = 0;
    return PODIUM_NVIDIA_SUCCESS;
}

/* The primary context of a device; NULL if it cannot be had. */
PODIUM_APART static void *podium_nvidia_primary_of(int device) {
    static void *known[16];
    if (device < 16 && known[device] != NULL) return known[device];
    PyObject *number = PyLong_FromLongLong(device), *found = NULL;
    void *context = NULL;
    if (number != NULL) found = PyObject_Vectorcall(podium_nvidia_primary, &number, 1, NULL);
    if (found != NULL) context = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(found);
    Py_DecRef(number);
    Py_DecRef(found);
    if (PyErr_Occurred() != NULL) {
        PyErr_Clear(); /* the driver says it again */
        return NULL;
    }
    if (device < 16) known[device] = context;
    return context;
}

/* Launch where no context of the device is current: in its primary one. A thread that had none keeps it. */
PODIUM_APART static int podium_nvidia_launch_elsewhere(const struct podium_shape *shape, int device, int status, void *stream,
                                          void *function, void **parameters, int *capturing) {
    void *previous;
    int had_none = status == PODIUM_NVIDIA_INVALID_CONTEXT || status == PODIUM_NVIDIA_CONTEXT_IS_DESTROYED;
    if (status != PODIUM_NVIDIA_SUCCESS && !had_none) return status;
    void *context = podium_nvidia_primary_of(device);
    if (context == NULL) return PODIUM_NVIDIA_INVALID_CONTEXT;
    PyThreadState *thread = podium_leave();
    status = had_none ? podium_nvidia.set_current(context) : podium_nvidia.push_current(context);
    if (status == PODIUM_NVIDIA_SUCCESS) {
        status = podium_nvidia_launch(shape, stream, function, parameters, capturing);
        if (!had_none) {
            int popped = podium_nvidia.pop_current(&previous);
            if (status == PODIUM_NVIDIA_SUCCESS) status = popped;
        }
    }
    podium_return(thread);
    return status;
}

/* Whether a kernel can be launched in the current context of its device. */
static int podium_nvidia_is_here(int device) {
    void *current = NULL, *context;
    if (podium_nvidia_uses_libraries) return 1;
    context = podium_nvidia_primary_of(device);
    return podium_nvidia.get_current(&current) == PODIUM_NVIDIA_SUCCESS && current == context;
}

/* Launch in the current context if it is one of the device; else in the primary one. */
static int podium_driver_launch(const struct podium_shape *shape, int device, uint64_t stream, uint64_t function,
                                void **parameters) {
    int current = 0, capturing = 0, status = PODIUM_NVIDIA_SUCCESS, asked = PODIUM_NVIDIA_SUCCESS;
    void *queue = (void *)(uintptr_t)stream, *kernel = (void *)(uintptr_t)function;
    /* Without a context a launch in the default stream fails by itself, which is found out cheaper than by asking. */
    int is_asked = !podium_nvidia_has_one_device || !podium_nvidia_uses_libraries || queue != NULL || device != 0;
    if (is_asked) asked = podium_nvidia.get_device(&current);
    if (asked == PODIUM_NVIDIA_SUCCESS && current == device && podium_nvidia_is_here(device)) {
        PyThreadState *thread = podium_leave();
        status = podium_nvidia_launch(shape, queue, kernel, parameters, &capturing);
        podium_return(thread);
        if (PODIUM_UNLIKELY(status != PODIUM_NVIDIA_SUCCESS) && !is_asked) asked = podium_nvidia.get_device(&current);
        if (asked == PODIUM_NVIDIA_SUCCESS)
            return PODIUM_UNLIKELY(capturing) ? podium_nvidia_captured(function) : status;
    }
    status = podium_nvidia_launch_elsewhere(shape, device, asked, queue, kernel, parameters, &capturing);
    return capturing && status == PODIUM_NVIDIA_SUCCESS ? podium_nvidia_captured(function) : status;
}

/* Launch a graph if a context of its device is current; else Python sees to that. In a stream that is captured the driver
 * would refuse it, and end the capture. */
static int podium_driver_launch_graph(uint64_t graph, int device, uint64_t stream) {
    int current = 0, capturing = 0, status = podium_nvidia.get_device(&current);
    void *queue = (void *)(uintptr_t)stream;
    if (status != PODIUM_NVIDIA_SUCCESS) return status;
    if (current != device) return PODIUM_NVIDIA_INVALID_CONTEXT;
    PyThreadState *thread = podium_leave();
    if (stream != 0) status = podium_nvidia.is_capturing(queue, &capturing);
    if (status == PODIUM_NVIDIA_SUCCESS && capturing) status = PODIUM_NVIDIA_STREAM_CAPTURE_UNSUPPORTED;
    if (status == PODIUM_NVIDIA_SUCCESS) status = podium_nvidia.launch_graph((void *)(uintptr_t)graph, queue);
    podium_return(thread);
    return status;
}

#endif
