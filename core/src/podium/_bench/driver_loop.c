/* A loop over a backend's driver call: what its launches cost without podium. It stands behind the backend's template,
 * in the same file, so that it calls what launchers call. driver_loop.py calls it, with the interpreter lock held. */
#include <time.h>

static double podium_driver_loop_now(void) {
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Launch one block so often, and return the status: the first that is not 0 ends it. `seconds` is what it took, `state`
 * the process state of podium._state, which launchers give the driver call as well. */
static int podium_driver_loop(uint64_t state, uint64_t function, uint32_t block, int device, uint64_t stream,
                              void **parameters, int launches, double *seconds) {
    podium_process = (struct podium_state *)(uintptr_t)state;
    struct podium_shape shape = {{1, 1, 1}, {block, 1, 1}, {1, 1, 1}, 0, 0, 0, NULL};
    int status = 0;
    double start = podium_driver_loop_now();
    for (int launch = 0; launch < launches && status == 0; launch++)
        status = podium_driver_launch(&shape, device, stream, function, parameters);
    *seconds = podium_driver_loop_now() - start;
    return status;
}

static int podium_driver_loop_execute(PyObject *module) {
    const char *problem = podium_driver_open();
    if (problem != NULL) {
        if (PyErr_Occurred() == NULL) PyErr_SetString(PyExc_ImportError, problem);
        return -1;
    }
    PyObject *address = PyLong_FromUnsignedLongLong((uint64_t)(uintptr_t)&podium_driver_loop);
    int result = address == NULL ? -1 : PyModule_AddObjectRef(module, "address", address);
    Py_DecRef(address);
    return result;
}

static PyModuleDef_Slot podium_driver_loop_slots[] = {{Py_mod_exec, (void *)podium_driver_loop_execute}, {0, NULL}};
static PyModuleDef podium_driver_loop_module = {PyModuleDef_HEAD_INIT,
                                                "podium_driver_loop",
                                                "A loop over the driver call of a backend.",
                                                0,
                                                NULL,
                                                podium_driver_loop_slots,
                                                NULL,
                                                NULL,
                                                NULL};

PODIUM_EXPORT PyObject *PyInit_podium_driver_loop(void);
PODIUM_EXPORT PyObject *PyInit_podium_driver_loop(void) { return PyModuleDef_Init(&podium_driver_loop_module); }
