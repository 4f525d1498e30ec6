/* The Python type `Launcher`: launcher(grid_x, grid_y, grid_z, stream, function, *args). */
#ifndef PODIUM_LAUNCHER_TYPE_H
#define PODIUM_LAUNCHER_TYPE_H

#include "podium_fire.h"
#include "podium_object.h"

static PyTypeObject *podium_launcher_type;

/* Read a grid axis: 0 if it is an exact int within the limit, else -1 without an exception. */
static int podium_grid_axis(PyObject *object, uint32_t limit, uint32_t *out) {
    int64_t size;
    if (!PODIUM_IS_INT(object) || !podium_short_int(object, &size) || size < 0 || size > (int64_t)limit) return -1;
    *out = (uint32_t)size;
    return 0;
}

static int podium_handle(PyObject *object, uint64_t *out) {
    return PODIUM_IS_INT(object) && podium_unsigned_int(object, out) ? 0 : -1;
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

    PODIUM_CALL(call, values, self, args + 5);
    PyObject *result = NULL;
    call.given = &stream;
    if (podium_gather(&call, args + 5, values) == 0) {
        if (PODIUM_UNLIKELY(call.mixed || podium_must_wait(&call, stream))) {
            result = PyObject_Vectorcall(self->slow, args, (size_t)PyVectorcall_NARGS(flags), NULL);
        } else if (shape.grid[0] == 0 || shape.grid[1] == 0 || shape.grid[2] == 0) {
            result = podium_none();
        } else {
            shape.grid[0] *= self->grid_scale;
            int device = call.device < 0 ? podium_driver_device() : call.device;
            result = podium_fire(&call, &shape, device, stream, function, values);
        }
    }
    podium_release(&call);
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
    self->call = podium_cleared_call; /* until it is whole: reading the owner's attributes runs other code */
    Py_IncRef(owner);
    self->owner = owner;
    uint64_t state = 0, flags = 0, scale = 1, contiguous = 0;
    if ((self->driver = PyObject_GetAttrString(owner, "driver")) == NULL ||
        (self->encode = PyObject_GetAttrString(owner, "_encode")) == NULL ||
        (self->locate = PyObject_GetAttrString(owner, "_locate")) == NULL ||
        (self->export_stream = PyObject_GetAttrString(owner, "_export_stream")) == NULL ||
        (self->slow = PyObject_GetAttrString(owner, "_launch")) == NULL ||
        (self->scratch = PyObject_GetAttrString(owner, "_allocate_scratch")) == NULL ||
        (self->failed = PyObject_GetAttrString(owner, "_raise_status")) == NULL ||
        (self->keep_alive = PyObject_GetAttrString(owner, "_keep_alive")) == NULL ||
        (self->attributes = podium_read_attributes(owner, &self->shape)) == NULL ||
        podium_read(owner, "_state_address", &state) < 0 || podium_read(owner, "_flags", &flags) < 0 ||
        podium_read(owner, "shared", &self->shape.shared) < 0 || podium_read(owner, "_grid_scale", &scale) < 0 ||
        podium_read(owner, "_contiguous", &contiguous) < 0 || podium_read(owner, "_id", &self->id) < 0 ||
        podium_read_tuple(owner, "block", 3, self->shape.block) < 0 ||
        podium_read_tuple(owner, "cluster", 3, self->shape.cluster) < 0 ||
        podium_read_tuple(owner, "_grid_limit", 3, self->grid_limit) < 0) {
        Py_DecRef((PyObject *)self);
        return NULL;
    }
    self->state = podium_process = (struct podium_state *)(uintptr_t)state;
    self->shape.flags = (uint32_t)flags;
    self->grid_scale = (uint32_t)scale;
    self->contiguous = contiguous != 0;
    self->call = podium_launcher_call;
    return (PyObject *)self;
}

static PyObject *podium_launcher_forget(PyObject *object, PyObject *nothing) {
    (void)nothing;
    struct podium_launcher *self = (struct podium_launcher *)object;
    self->epoch++;
    return podium_unsigned_object((uint64_t)self->under_way);
}

static int podium_launcher_traverse(PyObject *object, visitproc visit, void *argument) {
    struct podium_launcher *self = (struct podium_launcher *)object;
    PODIUM_VISIT(PODIUM_TYPE(object));
    PODIUM_VISIT(self->driver);
    PODIUM_VISIT(self->owner);
    PODIUM_VISIT(self->encode);
    PODIUM_VISIT(self->locate);
    PODIUM_VISIT(self->export_stream);
    PODIUM_VISIT(self->slow);
    PODIUM_VISIT(self->scratch);
    PODIUM_VISIT(self->failed);
    PODIUM_VISIT(self->keep_alive);
    PODIUM_VISIT(self->attributes);
    return 0;
}

static int podium_launcher_clear(PyObject *object) {
    struct podium_launcher *self = (struct podium_launcher *)object;
    self->call = podium_cleared_call;
    PODIUM_CLEAR(self->driver);
    PODIUM_CLEAR(self->owner);
    PODIUM_CLEAR(self->encode);
    PODIUM_CLEAR(self->locate);
    PODIUM_CLEAR(self->export_stream);
    PODIUM_CLEAR(self->slow);
    PODIUM_CLEAR(self->scratch);
    PODIUM_CLEAR(self->failed);
    PODIUM_CLEAR(self->keep_alive);
    PODIUM_CLEAR(self->attributes);
    return 0;
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

#endif
