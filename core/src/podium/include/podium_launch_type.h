/* The Python type `Launch`: a kernel bound to a grid and a block, launch(*args). */
#ifndef PODIUM_LAUNCH_TYPE_H
#define PODIUM_LAUNCH_TYPE_H

#include "podium_launcher_type.h"

/* A bound launch keeps the functions of the first devices; those of others are asked for each time. */
#define PODIUM_DEVICES 16

struct podium_launch {
    PyObject_HEAD
    vectorcallfunc call;
    struct podium_launcher *launcher;
    uint64_t epoch, stream;
    int has_stream;
    int32_t stream_device; /* -1 if the stream does not tell */
    struct podium_shape shape;
    uint64_t functions[PODIUM_DEVICES];
    PyObject *prepare; /* (device, stream) -> function, or None if the grid is empty; checks limits, loads */
    PyObject *slow;    /* (*args, **keywords): the whole launch */
    PyObject *attributes; /* bytes: those that the shape has the address of */
};

/* Ask for the function of a device; 1 if the grid is empty. */
PODIUM_APART static int podium_prepare(struct podium_launch *self, int device, uint64_t stream, uint64_t *function) {
    uint64_t epoch = self->launcher->epoch; /* what is unloaded during the call, by another thread, is not kept */
    PODIUM_ADD(self->launcher->under_way, 1);
    PyObject *found = podium_call_integers(self->prepare, 2, (uint64_t[]){(uint64_t)device, stream});
    PODIUM_ADD(self->launcher->under_way, -1); /* the lock is kept from here to where it is counted again */
    if (found == NULL) return -1;
    int empty = found == Py_None;
    if (!empty) *function = PyLong_AsUnsignedLongLong(found);
    Py_DecRef(found);
    if (PyErr_Occurred()) return -1;
    if (!empty && device < PODIUM_DEVICES && self->launcher->epoch == epoch) self->functions[device] = *function;
    return empty;
}

/* Whether a stream is podium's own and of another driver; one of this driver tells its device. The type that was seen last
 * is kept alive. */
static int podium_is_of_another(PyObject *stream, PyObject *driver, int32_t *device) {
    static PyTypeObject *seen;
    static int is_own;
    PyTypeObject *type = (PyTypeObject *)PODIUM_TYPE(stream);
    if (type != seen) {
        PyTypeObject *old = seen;
        is_own = podium_has(type, "_podium_stream");
        Py_IncRef((PyObject *)type);
        seen = type;
        Py_DecRef((PyObject *)old); /* last, since it may run other code */
    }
    if (!is_own) return 0;
    PyObject *found = PyObject_GetAttr(stream, podium_names[PODIUM_DRIVER]);
    if (found == NULL) PyErr_Clear();
    Py_DecRef(found);
    if (found != driver) return 1;
    PyObject *number = PyObject_GetAttr(stream, podium_names[PODIUM_DEVICE]);
    *device = number == NULL ? -1 : (int32_t)PyLong_AsLongLong(number);
    Py_DecRef(number);
    if (PyErr_Occurred() == NULL) return 0;
    PyErr_Clear();
    return 1;
}

/* Read the stream of an object with the method __cuda_stream__; returns as `podium_explicit_stream` does. */
PODIUM_ASIDE static int podium_stream_of(PyObject *driver, PyObject *value, uint64_t *stream, int32_t *device) {
    if (podium_is_of_another(value, driver, device)) return 1;
    PyObject *method = PyObject_GetAttr(value, podium_names[PODIUM_CUDA_STREAM]);
    if (method == NULL) return podium_forget_error() ? 1 : -1;
    PyObject *pair = PODIUM_IS_TUPLE(method) ? NULL : PyObject_Vectorcall(method, NULL, 0, NULL);
    int result = PODIUM_IS_TUPLE(method) ? 1 : pair == NULL ? -1 : 1;
    Py_DecRef(method);
    if (pair == NULL) return result;
    uint64_t version = 1;
    if (PODIUM_IS_TUPLE(pair) && PyTuple_Size(pair) == 2) {
        PyObject *first = PyTuple_GetItem(pair, 0), *second = PyTuple_GetItem(pair, 1);
        if (PODIUM_IS_INT(first) && PODIUM_IS_INT(second) && podium_unsigned_int(first, &version) && version == 0 &&
            podium_unsigned_int(second, stream))
            result = 0;
    }
    Py_DecRef(pair);
    return result;
}

/* Read the stream of a launch that is given nothing else by name: an int, None, or an object with the method
 * __cuda_stream__. Returns 1 if it is left to Python, which also says what is wrong with it. */
PODIUM_ASIDE static int podium_explicit_stream(PyObject *driver, PyObject *names, PyObject *value, int *has_stream,
                                  uint64_t *stream, int32_t *device) {
    if (PyTuple_Size(names) != 1 || PyTuple_GetItem(names, 0) != podium_names[PODIUM_STREAM]) return 1;
    if (value == Py_None) return 0;
    *has_stream = 1;
    *device = -1;
    if (PODIUM_IS_INT(value)) return podium_unsigned_int(value, stream) ? 0 : 1;
    return podium_stream_of(driver, value, stream, device);
}

static PyObject *podium_launch_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *keywords) {
    struct podium_launch *self = (struct podium_launch *)callable;
    struct podium_launcher *launcher = self->launcher;
    int has_stream = self->has_stream;
    int32_t place = self->stream_device;
    uint64_t stream = self->stream;
    int is_slow = launcher->state->attended || PyVectorcall_NARGS(flags) != PODIUM_ARGUMENTS;
    if (keywords != NULL && !is_slow) {
        is_slow = podium_explicit_stream(launcher->driver, keywords, args[PODIUM_ARGUMENTS], &has_stream, &stream, &place);
        if (is_slow < 0) return NULL;
    }
    if (PODIUM_UNLIKELY(is_slow))
        return PyObject_Vectorcall(self->slow, args, (size_t)PyVectorcall_NARGS(flags), keywords);

    PODIUM_CALL(call, values, launcher, args);
    PyObject *result = NULL;
    if (has_stream) call.given = &stream;
    if (podium_gather(&call, args, values) < 0) goto done;
    if (PODIUM_UNLIKELY(place >= 0 && place != call.device)) {
        if (call.device >= 0) call.mixed = 1;
        call.device = place;
    }
    if (PODIUM_UNLIKELY(call.mixed)) {
        result = PyObject_Vectorcall(self->slow, args, (size_t)PyVectorcall_NARGS(flags), keywords);
        goto done;
    }
    int device = call.device < 0 ? podium_driver_device() : call.device;
    if (PODIUM_UNLIKELY(self->epoch != launcher->epoch)) {
        memset(self->functions, 0, sizeof self->functions);
        self->epoch = launcher->epoch;
    }
    void *current = NULL;
    if (has_stream) {
        /* known */
    } else if (!PODIUM_HOST_MEMORY && call.exchange != NULL && call.exchange->current_stream(call.device_type, device, &current) == 0) {
        stream = (uint64_t)(uintptr_t)current;
    } else {
        if (call.exchange != NULL) PyErr_Clear(); /* a library that cannot tell its stream: the next one's, or the driver's own */
        stream = call.has_stream ? call.stream : podium_driver_stream(device);
    }
    if (podium_must_wait(&call, stream)) {
        result = PyObject_Vectorcall(self->slow, args, (size_t)PyVectorcall_NARGS(flags), keywords);
        goto done;
    }
    uint64_t function = device < PODIUM_DEVICES ? self->functions[device] : 0;
    if (PODIUM_UNLIKELY(function == 0)) {
        int empty = podium_prepare(self, device, stream, &function);
        if (empty != 0) {
            if (empty > 0) {
                result = podium_none();
            }
            goto done;
        }
    }
    result = podium_fire(&call, &self->shape, device, stream, function, values);
done:
    podium_release(&call);
    return result;
}

/* Launch(launcher, prepare, slow, config): `config` has the attributes that podium_launcher_new reads, and a stream. */
static PyObject *podium_launch_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)keywords;
    PyObject *item[4];
    for (int index = 0; index < 4; index++)
        if ((item[index] = PyTuple_GetItem(arguments, index)) == NULL) return NULL;
    if (PODIUM_TYPE(item[0]) != podium_launcher_type) {
        PyErr_SetString(PyExc_TypeError, "podium: a Launch is made from a Launcher of the same module");
        return NULL;
    }
    PyObject *(*allocate)(PyTypeObject *, Py_ssize_t);
    *(void **)&allocate = PyType_GetSlot(type, Py_tp_alloc);
    struct podium_launch *self = (struct podium_launch *)allocate(type, 0);
    if (self == NULL) return NULL;
    self->call = podium_cleared_call;
    for (int index = 0; index < 3; index++) Py_IncRef(item[index]);
    self->launcher = (struct podium_launcher *)item[0];
    self->prepare = item[1];
    self->slow = item[2];
    self->shape = self->launcher->shape;
    uint64_t flags = 0;
    PyObject *stream = PyObject_GetAttrString(item[3], "stream");
    if (stream != NULL && stream != Py_None) {
        self->has_stream = 1;
        self->stream = PyLong_AsUnsignedLongLong(stream);
    }
    Py_DecRef(stream);
    PyObject *place = PyObject_GetAttrString(item[3], "stream_device");
    self->stream_device = place == NULL || place == Py_None ? -1 : (int32_t)PyLong_AsLongLong(place);
    Py_DecRef(place);
    if (PyErr_Occurred() || (self->attributes = podium_read_attributes(item[3], &self->shape)) == NULL ||
        podium_read(item[3], "flags", &flags) < 0 ||
        podium_read(item[3], "shared", &self->shape.shared) < 0 ||
        podium_read_tuple(item[3], "grid", 3, self->shape.grid) < 0 ||
        podium_read_tuple(item[3], "block", 3, self->shape.block) < 0 ||
        podium_read_tuple(item[3], "cluster", 3, self->shape.cluster) < 0) {
        Py_DecRef((PyObject *)self);
        return NULL;
    }
    self->shape.flags = (uint32_t)flags;
    self->epoch = self->launcher->epoch;
    self->call = podium_launch_call;
    return (PyObject *)self;
}

static int podium_launch_traverse(PyObject *object, visitproc visit, void *argument) {
    struct podium_launch *self = (struct podium_launch *)object;
    PODIUM_VISIT(PODIUM_TYPE(object));
    PODIUM_VISIT(self->launcher);
    PODIUM_VISIT(self->prepare);
    PODIUM_VISIT(self->slow);
    PODIUM_VISIT(self->attributes);
    return 0;
}

static int podium_launch_clear(PyObject *object) {
    struct podium_launch *self = (struct podium_launch *)object;
    self->call = podium_cleared_call;
    PODIUM_CLEAR(self->launcher);
    PODIUM_CLEAR(self->prepare);
    PODIUM_CLEAR(self->slow);
    PODIUM_CLEAR(self->attributes);
    return 0;
}

/* The repr of the interpreted launch, whose method the slow path is. */
static PyObject *podium_launch_repr(PyObject *object) {
    PyObject *slow = ((struct podium_launch *)object)->slow;
    if (slow == NULL) return podium_cleared_call(object, NULL, 0, NULL);
    PyObject *twin = PyObject_GetAttrString(slow, "__self__");
    PyObject *text = twin == NULL ? NULL : PyObject_Repr(twin);
    Py_DecRef(twin);
    return text;
}

static void podium_launch_dealloc(PyObject *object) { podium_free(object, podium_launch_clear); }

static PyMemberDef podium_launch_members[] = {
    {"__vectorcalloffset__", PODIUM_MEMBER_SSIZE, offsetof(struct podium_launch, call), PODIUM_MEMBER_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot podium_launch_slots[] = {
    {Py_tp_doc, (void *)"launch(*args): a kernel bound to a grid and a block"},
    {Py_tp_new, (void *)podium_launch_new},
    {Py_tp_repr, (void *)podium_launch_repr},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_dealloc, (void *)podium_launch_dealloc},
    {Py_tp_traverse, (void *)podium_launch_traverse},
    {Py_tp_clear, (void *)podium_launch_clear},
    {Py_tp_members, podium_launch_members},
    {0, NULL},
};
static PyType_Spec podium_launch_spec = {
    "podium_launcher.Launch", sizeof(struct podium_launch), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, podium_launch_slots};

#endif
