/* What the C file of a backend may use, and what launchers are made of.
 *
 * A launcher is two translation units. One is generated for the signature: `struct podium_values`, one member a
 * parameter, and `podium_unpack`, which converts scalars by podium_scalars.h. The other is the same for all signatures,
 * and is compiled once on a machine:
 *
 *   this header           Python objects to C values, where that takes more than a few instructions
 *   the backend's file    the driver call
 *   podium_module.h       the Python types around it, included at the end of the backend's file
 *
 * The plain cases of each type are converted here. Everything else (subclasses, numpy scalars, structs, arrays without
 * a C protocol, and everything wrong) is handed to the Python function that the interpreted level uses, so that both
 * levels take the same values, pass the same bytes and raise the same errors.
 *
 * Conventions: functions return 0, or -1 with a Python exception set. Nothing but the module's init function can be seen
 * from outside of the module.
 */
#ifndef PODIUM_LAUNCH_H
#define PODIUM_LAUNCH_H

/* The plug-in API that these headers are, and the oldest whose files still compile: podium._plugin_api in C. */
#define PODIUM_API_VERSION 1
#define PODIUM_OLDEST_API_VERSION 1
#ifndef PODIUM_API
#error "say which plug-in API this file is written for: #define PODIUM_API 1, before the first include"
#elif PODIUM_API > PODIUM_API_VERSION
#error "this file is written for a newer plug-in API than that of this podium (PODIUM_API_VERSION): upgrade podium"
#elif PODIUM_API < PODIUM_OLDEST_API_VERSION
#error "this file is written for an older plug-in API than this podium still has (PODIUM_OLDEST_API_VERSION)"
#endif

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "podium_dlpack.h"
#include "podium_signature.h"

/* A launch attribute of the backend's own: its number in Driver.attribute_keys, and one to three values. Those below
 * zero are there in two's complement; what is left of `value` is 0. */
struct podium_attribute {
    uint32_t key;
    uint32_t value[3];
    uint32_t count;
};
#define PODIUM_ATTRIBUTES 16 /* the most that a launch has */

/* The shape of one launch, as the driver call of a backend gets it. */
struct podium_shape {
    uint32_t grid[3];    /* blocks */
    uint32_t block[3];   /* threads */
    uint32_t cluster[3]; /* blocks */
    uint32_t flags;      /* PODIUM_COOPERATIVE, PODIUM_DEPENDENT */
    uint64_t shared;     /* bytes */
    uint32_t attribute_count;
    const struct podium_attribute *attributes; /* sorted by name */
};
#define PODIUM_COOPERATIVE 1u
#define PODIUM_DEPENDENT 2u

/* The process state of podium._state; the layouts must agree. */
struct podium_state {
    uint64_t attended; /* not zero: launches take the slow path, since somebody watches them */
    uint64_t choices;  /* rises when another driver may have become the active one */
    uint64_t used;     /* 1: there has been a `podium.use`, so that threads may differ in their active driver; 3: one may
                          be over that the context still has */
    uint64_t launches;
    struct {
        uint64_t kernel, stream;
        uint32_t grid[3], block[3];
        int64_t device;
    } recent[64];
    /* podium_lock.h: */
    uint64_t turn;  /* the thread that came back for the interpreter lock last, or 0 */
    uint64_t alone; /* the only thread that launches; 0 if there was none, odd if there are several */
};
static struct podium_state *podium_process; /* known when there is anything that launches */

/* The interpreter lock is held wherever this is counted, if there is one. */
#if defined(Py_GIL_DISABLED)
#define PODIUM_ADD(count, number) __atomic_fetch_add(&(count), (number), __ATOMIC_SEQ_CST)
#else
#define PODIUM_ADD(count, number) ((count) += (number))
#endif

/* A kernel's launcher, the Python type `Launcher`: what does not change from launch to launch. What each launch looks at
 * comes first: beside a driver call that takes microseconds, memory costs more than instructions. */
struct podium_launcher {
    PyObject_HEAD
    vectorcallfunc call;
    struct podium_state *state;
    uint64_t id;         /* in the record of launches */
    uint64_t epoch;      /* rises when loaded code is released: bound launches then ask again */
    int64_t under_way;   /* bound launches that have their function: what is unloaded meanwhile stays loaded */
    int contiguous;      /* whether arrays must be C-contiguous */
    uint32_t grid_scale; /* what grid_x is multiplied with: num_ctas */
    PyObject *driver; /* whose kernels these are */
    PyObject *owner;  /* the launcher in Python; its methods are the slow paths: */
    PyObject *encode; /*   (index, value) -> bytes */
    PyObject *locate; /*   (index, value) -> (address, device or -1, stream or None, owner, pending stream or None) */
    PyObject *export_stream; /* (device, stream of the launch or nothing) -> what an array is told, or None */
    PyObject *slow;   /*   (grid_x, grid_y, grid_z, stream, function, *args): the whole launch */
    PyObject *scratch; /*  (which, blocks, device, stream) -> (address, owner) */
    PyObject *failed; /*   (status, grid, block, device, stream): raises */
    PyObject *keep_alive; /* (device, stream, *objects): holds on to them until the stream has passed the launch */
    PyObject *attributes; /* bytes: those that the shape has the address of */
    struct podium_shape shape;
    uint32_t grid_limit[3];
};

struct podium_array_seen {
    PyTypeObject *type;
    const struct podium_exchange *table;
    int32_t device_type, device;
    int has_reader;        /* whether such an array is read without its table: podium_reader.h */
    int32_t own_device[2]; /* and the reader's numbers for that device */
};

/* What one launch gathers from its arguments, and must let go of when the driver has been called. */
struct podium_call {
    struct podium_launcher *launcher;
    PyObject *const *arguments;
    int32_t device; /* of the arrays; -1 while none has told */
    int mixed;      /* arrays on several devices, or of the work of several streams: the slow path decides */
    int has_stream;
    uint64_t stream; /* of the library of the first array that has one */
    const struct podium_exchange *exchange; /* of an array before that one, which can be asked for its library's */
    int32_t device_type;
    const uint64_t *given; /* the stream that the launch names; NULL if it names none */
    int has_seen;                  /* whether there were arrays like this one, which are still to be noted: */
    struct podium_array_seen seen; /* the one that the process saw last when the launch began */
    PyObject *export_stream; /* what arrays are told that speak DLPack, once one of them has been asked */
    int32_t export_device;
    int has_pending;
    uint64_t pending; /* the stream that has the work before which an array is not ready */
    int kept, buffers; /* how many there are of */
    PyObject **keep;
    Py_buffer *buffer;
};

/* What a backend's file must define before it includes podium_module.h:
 *
 *   PODIUM_API                      the version of the plug-in API that it is written for; before it includes this header
 *   PODIUM_HOST_MEMORY              1 if kernels reach ordinary host memory, else 0; before it includes this header
 *   podium_driver_reaches(type)     whether kernels reach memory of a DLPack device type
 *   podium_driver_open()            NULL, or a text why the driver cannot be used; called once, on import
 *   podium_driver_device()          the device for launches whose arguments do not tell
 *   podium_driver_stream(device)    the stream for launches that nobody gave one
 *   podium_driver_launch(...)       the driver call, made without the interpreter lock (podium_lock.h); returns its
 *                                   status, 0 for success; it may be below 0
 *
 * and may define PODIUM_DRIVER_POINTER to 1 before it includes this header, and then
 *
 *   podium_driver_pointer(...)      what memory is at an address, by DLPack's type of device and its index; returns 0, or
 *                                   -1 if Driver.pointer_device is to be asked
 *
 * and PODIUM_GRAPHS to 1, for replays of its graphs in C: podium_replay.h.
 *
 * It can use PODIUM_PARAMETERS, the number of parameters of the kernels that the launcher serves.
 */
static int podium_driver_reaches(int32_t device_type);
static const char *podium_driver_open(void);
static int podium_driver_device(void);
static uint64_t podium_driver_stream(int device);
static int podium_driver_launch(const struct podium_shape *shape, int device, uint64_t stream, uint64_t function,
                                void **parameters);
#if PODIUM_DRIVER_POINTER
static int podium_driver_pointer(uint64_t address, int32_t *device_type, int32_t *device);
#endif

/* ---- what the plain cases do not cover ------------------------------------------------------------------------- */

int podium_encode(struct podium_call *call, int index, PyObject *value, void *out, size_t size) {
    PyObject *position = PyLong_FromLongLong(index);
    if (position == NULL) return -1;
    PyObject *arguments[2] = {position, value};
    PyObject *bytes = PyObject_Vectorcall(call->launcher->encode, arguments, 2, NULL);
    Py_DecRef(position);
    if (bytes == NULL) return -1;
    char *data = NULL;
    Py_ssize_t length = 0;
    int result = PyBytes_AsStringAndSize(bytes, &data, &length);
    if (result == 0 && (size_t)length != size) {
        PyErr_Format(PyExc_SystemError, "podium: argument %d encoded to %zd bytes instead of %zd", index, length,
                     (Py_ssize_t)size);
        result = -1;
    }
    if (result == 0) memcpy(out, data, size);
    Py_DecRef(bytes);
    return result;
}

/* DLPack's device types: 1 is host memory, 3 and 11 such that a device reaches, 13 is memory that moves to where it is
 * needed. None of them tells where a launch goes, and the host's are in nobody's stream. As in podium._arrays. */
static int podium_is_host(int32_t type) { return type == 1 || type == 3 || type == 11; }
static int podium_is_anywhere(int32_t type) { return podium_is_host(type) || type == 13; }

static void podium_on_device(struct podium_call *call, int32_t device) {
    if (device < 0) return;
    if (call->device < 0)
        call->device = device;
    else if (call->device != device)
        call->mixed = 1;
}

/* Note where an array's owner may still work on it. A launch elsewhere has to wait, which the slow path sees to. */
static void podium_on_pending(struct podium_call *call, uint64_t stream) {
    if (call->has_pending && call->pending != stream) call->mixed = 1;
    call->pending = stream;
    call->has_pending = 1;
}

/* Read one (address, device, stream, owner, pending stream) tuple of `locate`. */
PODIUM_ASIDE static int podium_locate(struct podium_call *call, int index, PyObject *value, uint64_t *out) {
    PyObject *position = PyLong_FromLongLong(index);
    if (position == NULL) return -1;
    PyObject *arguments[2] = {position, value};
    PyObject *found = PyObject_Vectorcall(call->launcher->locate, arguments, 2, NULL);
    Py_DecRef(position);
    if (found == NULL) return -1;
    call->keep[call->kept++] = found; /* the tuple owns whatever keeps the memory alive */
    PyObject *address = PyTuple_GetItem(found, 0), *device = PyTuple_GetItem(found, 1);
    PyObject *stream = PyTuple_GetItem(found, 2), *pending = PyTuple_GetItem(found, 4);
    if (address == NULL || device == NULL || stream == NULL || pending == NULL) return -1;
    *out = PyLong_AsUnsignedLongLong(address);
    long long number = PyLong_AsLongLong(device);
    if (stream != Py_None && !call->has_stream) {
        call->stream = PyLong_AsUnsignedLongLong(stream);
        call->has_stream = 1;
    }
    if (pending != Py_None) podium_on_pending(call, PyLong_AsUnsignedLongLong(pending));
    if (PyErr_Occurred()) return -1;
    podium_on_device(call, (int32_t)number);
    return 0;
}

/* Forget an error, because Python asks again and says it. Tell whether there is none: an interrupt is for the caller. */
static int podium_forget_error(void) {
    if (PyErr_Occurred() == NULL) return 1;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return 0;
    PyErr_Clear();
    return 1;
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

#include "podium_array.h"

#endif
