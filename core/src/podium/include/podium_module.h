/* The Python module of a launcher; a backend's file includes this at its end.
 *
 * By then these exist: `podium_driver_*` of the backend, and, generated for the signature:
 *   PODIUM_ARGUMENTS      how many arguments a call has
 *   PODIUM_POINTERS       how many of them are pointers
 *   PODIUM_SCRATCH        how many scratch pointers follow them, which the caller does not pass
 *   PODIUM_PARAMETERS     how many parameters the kernel has
 *   struct podium_values  the C values of the parameters
 *   podium_unpack         fills them from the arguments
 *   podium_addresses      fills the array of their addresses
 *
 * The module has two types. `Launcher(owner)` is the low-level one: launcher(grid_x, grid_y, grid_z, stream, function,
 * *args). `Launch(launcher, ...)` is a kernel bound to a grid and a block: launch(*args). Both are vectorcall: a launch
 * makes no Python object of its own.
 */
#ifndef PODIUM_MODULE_H
#define PODIUM_MODULE_H

#include "podium_launch.h"

/* A bound launch keeps the functions of the first devices; those of others are asked for each time. */
#define PODIUM_DEVICES 16

struct podium_launch {
    PyObject_HEAD
    vectorcallfunc call;
    struct podium_launcher *launcher;
    PyObject *prepare; /* (device, stream) -> function, or None if the grid is empty; checks limits, loads */
    PyObject *slow;    /* (*args, **keywords): the whole launch */
    struct podium_shape shape;
    int has_stream;
    uint64_t stream;
    uint64_t epoch;
    uint64_t functions[PODIUM_DEVICES];
};

/* ---- one launch ------------------------------------------------------------------------------------------------ */

static void podium_release(struct podium_call *call) {
    while (call->kept > 0) Py_DecRef(call->keep[--call->kept]);
    while (call->buffers > 0) PyBuffer_Release(&call->buffer[--call->buffers]);
}

static PyTypeObject *podium_launcher_type;

/* What the garbage collector has taken apart can still be reached from another finalizer; it must not crash. */
static PyObject *podium_cleared_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *keywords) {
    (void)callable, (void)args, (void)flags, (void)keywords;
    PyErr_SetString(PyExc_SystemError, "podium: this launcher has been taken apart by the garbage collector");
    return NULL;
}

#define PODIUM_CALL(name, of_launcher)                                                                                 \
    PyObject *podium_keep[PODIUM_POINTERS + PODIUM_SCRATCH + 1];                                                       \
    Py_buffer podium_buffers[PODIUM_HOST_MEMORY ? PODIUM_POINTERS + 1 : 1];                                            \
    struct podium_call name = {                                                                                        \
        .launcher = of_launcher, .device = -1, .keep = podium_keep, .buffer = podium_buffers}

static void podium_record(const struct podium_launcher *launcher, const struct podium_shape *shape, int device,
                          uint64_t stream) {
    struct podium_state *state = launcher->state;
    unsigned slot = (unsigned)(state->launches++ % 64);
    state->recent[slot].kernel = launcher->id;
    state->recent[slot].stream = stream;
    memcpy(state->recent[slot].grid, shape->grid, sizeof shape->grid);
    memcpy(state->recent[slot].block, shape->block, sizeof shape->block);
    state->recent[slot].device = device;
}

static PyObject *podium_unsigned_object(uint64_t value) { return PyLong_FromUnsignedLongLong(value); }

/* Call a Python function with integers. */
static PyObject *podium_call_integers(PyObject *function, int count, const uint64_t *values) {
    PyObject *arguments[12];
    int made = 0;
    while (made < count && (arguments[made] = podium_unsigned_object(values[made])) != NULL) made++;
    PyObject *result = made == count ? PyObject_Vectorcall(function, arguments, (size_t)count, NULL) : NULL;
    while (made > 0) Py_DecRef(arguments[--made]);
    return result;
}

#if PODIUM_SCRATCH
static int podium_allocate_scratch(struct podium_call *call, const struct podium_shape *shape, int device,
                                   uint64_t stream, struct podium_values *values) {
    uint64_t blocks = (uint64_t)shape->grid[0] * shape->grid[1] * shape->grid[2];
    for (int which = 0; which < PODIUM_SCRATCH; which++) {
        PyObject *found =
            podium_call_integers(call->launcher->scratch, 4, (uint64_t[]){(uint64_t)which, blocks, (uint64_t)device, stream});
        if (found == NULL) return -1;
        call->keep[call->kept++] = found;
        PyObject *address = PyTuple_GetItem(found, 0);
        if (address == NULL) return -1;
        values->scratch[which] = PyLong_AsUnsignedLongLong(address);
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}
#endif

static PyObject *podium_fire(struct podium_call *call, const struct podium_shape *shape, int device, uint64_t stream,
                             uint64_t function, struct podium_values *values) {
    void *addresses[PODIUM_PARAMETERS + 1];
    struct podium_launcher *launcher = call->launcher;
#if PODIUM_SCRATCH
    if (podium_allocate_scratch(call, shape, device, stream, values) < 0) return NULL;
#endif
    podium_addresses(values, addresses);
    podium_record(launcher, shape, device, stream);
    int status = podium_driver_launch(shape, stream, function, addresses);
    if (PODIUM_UNLIKELY(status != 0)) {
        return podium_call_integers(launcher->failed, 9,
                                    (uint64_t[]){(uint64_t)(uint32_t)status, shape->grid[0], shape->grid[1],
                                                 shape->grid[2], shape->block[0], shape->block[1], shape->block[2],
                                                 (uint64_t)device, stream});
    }
    Py_IncRef(Py_None);
    return Py_None;
}

/* ---- Launcher -------------------------------------------------------------------------------------------------- */

/* Read a grid axis: 0 if it is an exact int within the limit, else -1 without an exception. */
static int podium_grid_axis(PyObject *object, uint32_t limit, uint32_t *out) {
    int overflow;
    if (!PODIUM_IS_INT(object)) return -1;
    int64_t size = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow || size < 0 || size > (int64_t)limit) return -1;
    *out = (uint32_t)size;
    return 0;
}

static int podium_handle(PyObject *object, uint64_t *out) {
    if (!PODIUM_IS_INT(object)) return -1;
    *out = PyLong_AsUnsignedLongLong(object);
    if (*out == UINT64_MAX && PyErr_Occurred() != NULL) {
        PyErr_Clear();
        return -1;
    }
    return 0;
}

static PyObject *podium_launcher_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *keywords) {
    struct podium_launcher *self = (struct podium_launcher *)callable;
    uint64_t stream = 0, function = 0;
    struct podium_shape shape = self->shape;
    if (PODIUM_UNLIKELY(keywords != NULL || self->state->attended ||
                        PyVectorcall_NARGS(flags) != 5 + PODIUM_ARGUMENTS ||
                        podium_grid_axis(args[0], self->grid_limit[0], &shape.grid[0]) < 0 ||
                        podium_grid_axis(args[1], self->grid_limit[1], &shape.grid[1]) < 0 ||
                        podium_grid_axis(args[2], self->grid_limit[2], &shape.grid[2]) < 0 ||
                        podium_handle(args[3], &stream) < 0 || podium_handle(args[4], &function) < 0 || function == 0))
        return PyObject_Vectorcall(self->slow, args, (size_t)PyVectorcall_NARGS(flags), keywords);

    struct podium_values values;
    PODIUM_CALL(call, self);
    PyObject *result = NULL;
    if (podium_unpack(&call, args + 5, &values) == 0) {
        if (PODIUM_UNLIKELY(call.mixed)) {
            result = PyObject_Vectorcall(self->slow, args, (size_t)PyVectorcall_NARGS(flags), NULL);
        } else if (shape.grid[0] == 0 || shape.grid[1] == 0 || shape.grid[2] == 0) {
            Py_IncRef(Py_None);
            result = Py_None;
        } else {
            shape.grid[0] *= self->grid_scale;
            int device = call.device < 0 ? podium_driver_device() : call.device;
            result = podium_fire(&call, &shape, device, stream, function, &values);
        }
    }
    podium_release(&call);
    return result;
}

static int podium_read(PyObject *owner, const char *name, uint64_t *out) {
    PyObject *value = PyObject_GetAttrString(owner, name);
    if (value == NULL) return -1;
    *out = PyLong_AsUnsignedLongLong(value);
    Py_DecRef(value);
    return PyErr_Occurred() ? -1 : 0;
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

static PyObject *podium_launcher_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)keywords;
    PyObject *owner = PyTuple_GetItem(arguments, 0);
    if (owner == NULL) return NULL;
    PyObject *(*allocate)(PyTypeObject *, Py_ssize_t);
    *(void **)&allocate = PyType_GetSlot(type, Py_tp_alloc);
    struct podium_launcher *self = (struct podium_launcher *)allocate(type, 0);
    if (self == NULL) return NULL;
    self->call = podium_launcher_call;
    Py_IncRef(owner);
    self->owner = owner;
    uint64_t state = 0, flags = 0, scale = 1, contiguous = 0;
    if ((self->encode = PyObject_GetAttrString(owner, "_encode")) == NULL ||
        (self->locate = PyObject_GetAttrString(owner, "_locate")) == NULL ||
        (self->slow = PyObject_GetAttrString(owner, "_launch")) == NULL ||
        (self->scratch = PyObject_GetAttrString(owner, "_allocate_scratch")) == NULL ||
        (self->failed = PyObject_GetAttrString(owner, "_raise_status")) == NULL ||
        podium_read(owner, "_state_address", &state) < 0 || podium_read(owner, "_flags", &flags) < 0 ||
        podium_read(owner, "shared", &self->shape.shared) < 0 || podium_read(owner, "_grid_scale", &scale) < 0 ||
        podium_read(owner, "_contiguous", &contiguous) < 0 || podium_read(owner, "_id", &self->id) < 0 ||
        podium_read_tuple(owner, "block", 3, self->shape.block) < 0 ||
        podium_read_tuple(owner, "cluster", 3, self->shape.cluster) < 0 ||
        podium_read_tuple(owner, "_grid_limit", 3, self->grid_limit) < 0) {
        Py_DecRef((PyObject *)self);
        return NULL;
    }
    self->state = (struct podium_state *)(uintptr_t)state;
    self->shape.flags = (uint32_t)flags;
    self->grid_scale = (uint32_t)scale;
    self->contiguous = contiguous != 0;
    return (PyObject *)self;
}

static PyObject *podium_launcher_forget(PyObject *object, PyObject *nothing) {
    (void)nothing;
    ((struct podium_launcher *)object)->epoch++;
    Py_IncRef(Py_None);
    return Py_None;
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

static int podium_launcher_traverse(PyObject *object, visitproc visit, void *argument) {
    struct podium_launcher *self = (struct podium_launcher *)object;
    PODIUM_VISIT(PODIUM_TYPE(object));
    PODIUM_VISIT(self->owner);
    PODIUM_VISIT(self->encode);
    PODIUM_VISIT(self->locate);
    PODIUM_VISIT(self->slow);
    PODIUM_VISIT(self->scratch);
    PODIUM_VISIT(self->failed);
    return 0;
}

static int podium_launcher_clear(PyObject *object) {
    struct podium_launcher *self = (struct podium_launcher *)object;
    self->call = podium_cleared_call;
    PODIUM_CLEAR(self->owner);
    PODIUM_CLEAR(self->encode);
    PODIUM_CLEAR(self->locate);
    PODIUM_CLEAR(self->slow);
    PODIUM_CLEAR(self->scratch);
    PODIUM_CLEAR(self->failed);
    return 0;
}

static void podium_free(PyObject *object, inquiry clear) {
    PyTypeObject *type = PODIUM_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear(object);
    freefunc release;
    *(void **)&release = PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DecRef((PyObject *)type);
}

static void podium_launcher_dealloc(PyObject *object) { podium_free(object, podium_launcher_clear); }

static PyMethodDef podium_launcher_methods[] = {
    {"forget", podium_launcher_forget, METH_NOARGS, "Make bound launches ask for their functions again."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef podium_launcher_members[] = {
    {"__vectorcalloffset__", PODIUM_MEMBER_SSIZE, offsetof(struct podium_launcher, call), PODIUM_MEMBER_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot podium_launcher_slots[] = {
    {Py_tp_doc, (void *)"launcher(grid_x, grid_y, grid_z, stream, function, *args)"},
    {Py_tp_new, (void *)podium_launcher_new},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_dealloc, (void *)podium_launcher_dealloc},
    {Py_tp_traverse, (void *)podium_launcher_traverse},
    {Py_tp_clear, (void *)podium_launcher_clear},
    {Py_tp_methods, podium_launcher_methods},
    {Py_tp_members, podium_launcher_members},
    {0, NULL},
};
static PyType_Spec podium_launcher_spec = {
    "podium_launcher.Launcher", sizeof(struct podium_launcher), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, podium_launcher_slots};

/* ---- Launch ---------------------------------------------------------------------------------------------------- */

/* Ask for the function of a device; 1 if the grid is empty. */
static int podium_prepare(struct podium_launch *self, int device, uint64_t stream, uint64_t *function) {
    PyObject *found = podium_call_integers(self->prepare, 2, (uint64_t[]){(uint64_t)device, stream});
    if (found == NULL) return -1;
    int empty = found == Py_None;
    if (!empty) *function = PyLong_AsUnsignedLongLong(found);
    Py_DecRef(found);
    if (PyErr_Occurred()) return -1;
    if (!empty && device < PODIUM_DEVICES) self->functions[device] = *function;
    return empty;
}

static PyObject *podium_launch_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *keywords) {
    struct podium_launch *self = (struct podium_launch *)callable;
    struct podium_launcher *launcher = self->launcher;
    if (PODIUM_UNLIKELY(keywords != NULL || launcher->state->attended ||
                        PyVectorcall_NARGS(flags) != PODIUM_ARGUMENTS))
        return PyObject_Vectorcall(self->slow, args, (size_t)PyVectorcall_NARGS(flags), keywords);

    struct podium_values values;
    PODIUM_CALL(call, launcher);
    PyObject *result = NULL;
    if (podium_unpack(&call, args, &values) < 0) goto done;
    if (PODIUM_UNLIKELY(call.mixed)) {
        result = PyObject_Vectorcall(self->slow, args, (size_t)PyVectorcall_NARGS(flags), NULL);
        goto done;
    }
    int device = call.device < 0 ? podium_driver_device() : call.device;
    if (PODIUM_UNLIKELY(self->epoch != launcher->epoch)) {
        memset(self->functions, 0, sizeof self->functions);
        self->epoch = launcher->epoch;
    }
    uint64_t stream;
    void *current = NULL;
    if (self->has_stream)
        stream = self->stream;
    else if (call.exchange != NULL && call.exchange->current_stream(call.device_type, device, &current) == 0)
        stream = (uint64_t)(uintptr_t)current;
    else {
        PyErr_Clear(); /* a library that cannot tell its stream: the next one's, or the driver's own */
        stream = call.has_stream ? call.stream : podium_driver_stream(device);
    }
    uint64_t function = device < PODIUM_DEVICES ? self->functions[device] : 0;
    if (PODIUM_UNLIKELY(function == 0)) {
        int empty = podium_prepare(self, device, stream, &function);
        if (empty != 0) {
            if (empty > 0) {
                Py_IncRef(Py_None);
                result = Py_None;
            }
            goto done;
        }
    }
    result = podium_fire(&call, &self->shape, device, stream, function, &values);
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
    self->call = podium_launch_call;
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
    if (PyErr_Occurred() || podium_read(item[3], "flags", &flags) < 0 ||
        podium_read(item[3], "shared", &self->shape.shared) < 0 ||
        podium_read_tuple(item[3], "grid", 3, self->shape.grid) < 0 ||
        podium_read_tuple(item[3], "block", 3, self->shape.block) < 0 ||
        podium_read_tuple(item[3], "cluster", 3, self->shape.cluster) < 0) {
        Py_DecRef((PyObject *)self);
        return NULL;
    }
    self->shape.flags = (uint32_t)flags;
    self->epoch = self->launcher->epoch;
    return (PyObject *)self;
}

static int podium_launch_traverse(PyObject *object, visitproc visit, void *argument) {
    struct podium_launch *self = (struct podium_launch *)object;
    PODIUM_VISIT(PODIUM_TYPE(object));
    PODIUM_VISIT(self->launcher);
    PODIUM_VISIT(self->prepare);
    PODIUM_VISIT(self->slow);
    return 0;
}

static int podium_launch_clear(PyObject *object) {
    struct podium_launch *self = (struct podium_launch *)object;
    self->call = podium_cleared_call;
    PODIUM_CLEAR(self->launcher);
    PODIUM_CLEAR(self->prepare);
    PODIUM_CLEAR(self->slow);
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

/* ---- the module ------------------------------------------------------------------------------------------------ */

/* Add a type to the module, which keeps it alive, as every instance does. */
static PyTypeObject *podium_add_type(PyObject *module, const char *name, PyType_Spec *spec) {
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type == NULL) return NULL;
    int result = PyModule_AddObjectRef(module, name, type);
    Py_DecRef(type);
    return result == 0 ? (PyTypeObject *)type : NULL;
}

static int podium_execute(PyObject *module) {
    const char *problem = podium_driver_open();
    if (problem != NULL) {
        PyErr_SetString(PyExc_ImportError, problem);
        return -1;
    }
    podium_launcher_type = podium_add_type(module, "Launcher", &podium_launcher_spec);
    if (podium_launcher_type == NULL) return -1;
    return podium_add_type(module, "Launch", &podium_launch_spec) == NULL ? -1 : 0;
}

static PyModuleDef_Slot podium_module_slots[] = {
    {Py_mod_exec, (void *)podium_execute},
    {0, NULL},
};
static PyModuleDef podium_module = {
    PyModuleDef_HEAD_INIT, "podium_launcher", "A launcher generated by podium.", 0, NULL, podium_module_slots, NULL,
    NULL, NULL};

PODIUM_EXPORT PyObject *PyInit_podium_launcher(void);
PODIUM_EXPORT PyObject *PyInit_podium_launcher(void) { return PyModuleDef_Init(&podium_module); }

#endif
