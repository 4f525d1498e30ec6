/* The Python type `Replay`: a graph of the driver's, replay() or replay(stream=...).
 *
 * It is there if the backend's file defines PODIUM_GRAPHS to 1 before it includes podium_launch.h, and
 *
 *   podium_driver_launch_graph(...)   launches a graph in the current context, without the interpreter lock
 *                                     (podium_lock.h); returns the driver's status
 *
 * A replay that fails is made again in Python, which also does what has to be done before, and says what is wrong.
 */
#ifndef PODIUM_REPLAY_H
#define PODIUM_REPLAY_H

#include "podium_launch_type.h"

#if PODIUM_GRAPHS

static int podium_driver_launch_graph(uint64_t graph, int device, uint64_t stream);

struct podium_replay {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *slow;   /* (stream=None): the whole replay; it keeps the graph */
    PyObject *driver; /* whose graph it is */
    struct podium_state *state;
    uint64_t graph, id;
    int device, has_stream;
    uint64_t stream;
    int (*current_stream)(int32_t device_type, int32_t device, void **stream); /* of the arrays' library, or NULL */
    uint32_t library_device[2];                                                /* its type and index there */
};

static void podium_record_replay(const struct podium_replay *self, uint64_t stream) {
    struct podium_state *state = self->state;
    unsigned slot = (unsigned)(state->launches++ % 64);
    memset(&state->recent[slot], 0, sizeof state->recent[slot]);
    state->recent[slot].kernel = self->id;
    state->recent[slot].stream = stream;
    state->recent[slot].device = self->device;
}

static PyObject *podium_replay_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *keywords) {
    struct podium_replay *self = (struct podium_replay *)callable;
    int has_stream = self->has_stream;
    uint64_t stream = self->stream;
    int32_t place; /* kernels of a graph run on their own devices */
    int is_slow = self->state->attended || PyVectorcall_NARGS(flags) != 0;
    if (keywords != NULL && !is_slow) {
        is_slow = podium_explicit_stream(self->driver, keywords, args[0], &has_stream, &stream, &place);
        if (is_slow < 0) return NULL;
    }
    if (!is_slow) {
        void *current = NULL;
        if (has_stream) {
            /* known */
        } else if (self->current_stream != NULL &&
                   self->current_stream((int32_t)self->library_device[0], (int32_t)self->library_device[1], &current) == 0) {
            stream = (uint64_t)(uintptr_t)current;
        } else {
            if (self->current_stream != NULL) PyErr_Clear();
            stream = podium_driver_stream(self->device);
        }
        if (podium_driver_launch_graph(self->graph, self->device, stream) == 0) {
            podium_record_replay(self, stream);
            return podium_none();
        }
    }
    return PyObject_Vectorcall(self->slow, args, (size_t)PyVectorcall_NARGS(flags), keywords);
}

/* Replay(graph): a podium._executable_graph.DriverGraph. */
static PyObject *podium_replay_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)keywords;
    PyObject *owner = PyTuple_GetItem(arguments, 0);
    if (owner == NULL) return NULL;
    PyObject *(*allocate)(PyTypeObject *, Py_ssize_t);
    *(void **)&allocate = PyType_GetSlot(type, Py_tp_alloc);
    struct podium_replay *self = (struct podium_replay *)allocate(type, 0);
    if (self == NULL) return NULL;
    self->call = podium_cleared_call;
    uint64_t state = 0, device = 0, function = 0;
    PyObject *stream = PyObject_GetAttrString(owner, "stream");
    if (stream != NULL && stream != Py_None) {
        self->has_stream = 1;
        self->stream = PyLong_AsUnsignedLongLong(stream);
    }
    Py_DecRef(stream);
    if (PyErr_Occurred() || (self->slow = PyObject_GetAttrString(owner, "replay")) == NULL ||
        (self->driver = PyObject_GetAttrString(owner, "driver")) == NULL ||
        podium_read(owner, "_state_address", &state) < 0 || podium_read(owner, "handle", &self->graph) < 0 ||
        podium_read(owner, "_id", &self->id) < 0 || podium_read(owner, "device", &device) < 0 ||
        podium_read(owner, "_current_stream", &function) < 0 ||
        podium_read_tuple(owner, "_library_device", 2, self->library_device) < 0) {
        Py_DecRef((PyObject *)self);
        return NULL;
    }
    self->state = podium_process = (struct podium_state *)(uintptr_t)state;
    self->device = (int)device;
    void *address = (void *)(uintptr_t)function;
    memcpy(&self->current_stream, &address, sizeof address);
    self->call = podium_replay_call;
    return (PyObject *)self;
}

static int podium_replay_traverse(PyObject *object, visitproc visit, void *argument) {
    struct podium_replay *self = (struct podium_replay *)object;
    PODIUM_VISIT(PODIUM_TYPE(object));
    PODIUM_VISIT(self->slow);
    PODIUM_VISIT(self->driver);
    return 0;
}

static int podium_replay_clear(PyObject *object) {
    struct podium_replay *self = (struct podium_replay *)object;
    self->call = podium_cleared_call;
    PODIUM_CLEAR(self->slow);
    PODIUM_CLEAR(self->driver);
    return 0;
}

static void podium_replay_dealloc(PyObject *object) { podium_free(object, podium_replay_clear); }

static PyMemberDef podium_replay_members[] = {
    {"__vectorcalloffset__", PODIUM_MEMBER_SSIZE, offsetof(struct podium_replay, call), PODIUM_MEMBER_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot podium_replay_slots[] = {
    {Py_tp_doc, (void *)"replay(stream=None): launch everything that a graph has"},
    {Py_tp_new, (void *)podium_replay_new},
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_dealloc, (void *)podium_replay_dealloc},
    {Py_tp_traverse, (void *)podium_replay_traverse},
    {Py_tp_clear, (void *)podium_replay_clear},
    {Py_tp_members, podium_replay_members},
    {0, NULL},
};
static PyType_Spec podium_replay_spec = {
    "podium_launcher.Replay", sizeof(struct podium_replay), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, podium_replay_slots};

#endif
#endif
