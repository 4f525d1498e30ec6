/* Calls of a launcher in Python, launcher(grid_x, grid_y, grid_z, stream, function, *args), as calls of its generated one.
 *
 * `podium._launcher.Launcher` has this for its `__call__` from the moment when there is a generated launcher.
 */
#ifndef PODIUM_CALLER_H
#define PODIUM_CALLER_H

#include "podium_object.h"

static PyObject *podium_slow_call;  /* Launcher.__call__ in Python */
static PyObject *podium_name_quick; /* of the attribute that has the generated launcher, or None */

static PyObject *podium_call_launcher(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *quick = PyObject_GetAttr(self, podium_name_quick), *result;
    if (quick == NULL) return NULL;
    if (PODIUM_UNLIKELY(quick == Py_None)) {
        size_t all = (size_t)count + (names == NULL ? 0 : (size_t)PyTuple_Size(names));
        PyObject *with_self[all + 1];
        with_self[0] = self;
        memcpy(with_self + 1, args, all * sizeof *args);
        result = PyObject_Vectorcall(podium_slow_call, with_self, (size_t)count + 1, names);
    } else {
        result = PyObject_Vectorcall(quick, args, (size_t)count, names);
    }
    Py_DecRef(quick);
    return result;
}

static PyMethodDef podium_call_method = {"__call__", (PyCFunction)(void (*)(void))podium_call_launcher,
                                         METH_FASTCALL | METH_KEYWORDS, 
                                         "__call__($self, grid_x, grid_y, grid_z, stream, function, /, *args)\n--\n\n"
                                         "Launch `function`, a handle that the driver's `load` gave, over a grid of blocks."};

/* caller(Launcher, slow) -> a method for Launcher; once in a process */
static PyObject *podium_make_caller(PyObject *module, PyObject *arguments) {
    PyObject *type = PyTuple_GetItem(arguments, 0), *slow = PyTuple_GetItem(arguments, 1);
    (void)module;
    if (type == NULL || slow == NULL) return NULL;
    podium_name_quick = PyUnicode_InternFromString("_quick");
    if (podium_name_quick == NULL) return NULL;
    Py_IncRef(slow);
    podium_slow_call = slow;
    return PyDescr_NewMethod((PyTypeObject *)type, &podium_call_method);
}

#endif
