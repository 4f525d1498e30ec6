/* `kernel[grid, block]` in C: the bound launch of a grid and a block that were launched before.
 *
 * `podium._kernel.Kernel` has this for its `__getitem__` from the moment when there is a generated launcher. It looks
 * whether the kernel's table of launches is that of the active driver, and whether the key is made of plain integers; all
 * else is for the method in Python that it replaces.
 *
 * The method is a slot wrapper, so that Python calls the function here from the type's slot, and finds no method first; and
 * the kernel's table is read where the member `_shortcut` lies in it. Both halve what the look-up takes.
 */
#ifndef PODIUM_SUBSCRIPT_H
#define PODIUM_SUBSCRIPT_H

#include "podium_object.h"

/* The Python type `Shortcut`: a kernel's launches on one driver, and the one that was found last. */
struct podium_shortcut {
    PyObject_HEAD
    PyObject *driver;
    PyObject *launches; /* dict: (grid, block) -> launch */
    PyObject *grid, *block, *launch;
    uint64_t choice; /* the process's, when the driver was last seen to be the active one */
};

static PyTypeObject *podium_shortcut_type;
static PyObject *podium_slow_subscript; /* Kernel.__getitem__ in Python */
static PyObject *podium_config;         /* podium._active.driver_config, and its context variable: */
static PyObject *podium_used;
static const struct podium_state *podium_chosen; /* the process state, which tells whether that has changed */
static PyObject *podium_name_set, *podium_name_remembered;
static Py_ssize_t podium_shortcut_offset; /* of Kernel._shortcut */

/* Whether an attribute of the configuration is that object; it has no attributes that run code. */
static int podium_config_has(PyObject *name, PyObject *object) {
    PyObject *value = PyObject_GetAttr(podium_config, name);
    if (value == NULL) PyErr_Clear();
    Py_DecRef(value);
    return value == object;
}

/* Whether the driver is the active one: DriverConfig.chosen. It is remembered until that may have changed. */
PODIUM_ASIDE static int podium_ask_chosen(struct podium_shortcut *self) {
    PyObject *used = NULL;
    uint64_t choice = podium_chosen->choices;
    if (PyContextVar_Get(podium_used, NULL, &used) < 0) {
        PyErr_Clear();
        return 0;
    }
    Py_DecRef(used);
    if (used != Py_None) return used == self->driver && podium_chosen->used == 1;
    if (choice == self->choice) return 1;
    if (!podium_config_has(podium_name_set, self->driver) &&
        !(podium_config_has(podium_name_set, Py_None) && podium_config_has(podium_name_remembered, self->driver)))
        return 0;
    self->choice = choice;
    return 1;
}

/* Whether it is, as far as is known without asking. */
PODIUM_INLINE int podium_is_known(struct podium_shortcut *self) {
    return podium_chosen->choices == self->choice && !podium_chosen->used && self->driver != NULL;
}

static int podium_is_chosen(struct podium_shortcut *self) {
    return podium_is_known(self) || (self->driver != NULL && podium_ask_chosen(self));
}

/* Whether a grid or a block is an int or a tuple of ints: a key of them finds what it has made, and nothing else. */
static int podium_is_plain_size(PyObject *size) {
    if (PODIUM_IS_INT(size)) return 1;
    if (!PODIUM_IS_TUPLE(size)) return 0;
    for (Py_ssize_t index = 0; index < PODIUM_TUPLE_SIZE(size); index++)
        if (!PODIUM_IS_INT(PODIUM_TUPLE_ITEM(size, index))) return 0;
    return 1;
}

static void podium_replace(PyObject **place, PyObject *object) {
    PyObject *old = *place;
    Py_IncRef(object);
    *place = object;
    Py_DecRef(old);
}

/* Find the launch of a key in the table; NULL, without an exception, if it is not there. */
static PyObject *podium_look_up(struct podium_shortcut *self, PyObject *key) {
    PyObject *grid = PODIUM_TUPLE_ITEM(key, 0), *block = PODIUM_TUPLE_ITEM(key, 1);
    if (!podium_is_plain_size(grid) || !podium_is_plain_size(block)) return NULL;
    PyObject *launch = PyDict_GetItemWithError(self->launches, key);
    if (launch == NULL) {
        PyErr_Clear();
        return NULL;
    }
    Py_IncRef(launch);
    /* An interpreted launch is one of a class, and is replaced some day. */
    if (PyType_GetSlot(PODIUM_TYPE(launch), Py_tp_call) == (void *)PyVectorcall_Call) {
        podium_replace(&self->launch, NULL); /* what lets go of objects runs other code: it must not find a mixture */
        podium_replace(&self->grid, grid);
        podium_replace(&self->block, block);
        podium_replace(&self->launch, launch);
    }
    return launch;
}

/* Whether two sizes are the same object, which never changes, or two ints of the same digit. */
PODIUM_INLINE int podium_is_same_size(PyObject *size, PyObject *other) {
    int64_t number, known;
    return size == other || (PODIUM_IS_INT(size) && PODIUM_IS_INT(other) && podium_one_digit(size, &number) &&
                             podium_one_digit(other, &known) && number == known);
}

PODIUM_ASIDE static PyObject *podium_subscript_slowly(PyObject *kernel, struct podium_shortcut *self, PyObject *key) {
    PyObject *launch = NULL;
    if (self != NULL && PODIUM_TYPE(self) == podium_shortcut_type && PODIUM_IS_TUPLE(key) && PODIUM_TUPLE_SIZE(key) == 2) {
        Py_IncRef((PyObject *)self); /* the kernel may be given another one meanwhile */
        if (podium_is_chosen(self)) launch = podium_look_up(self, key);
        Py_DecRef((PyObject *)self);
    }
    if (launch != NULL) return launch;
    PyObject *arguments[2] = {kernel, key};
    return PyObject_Vectorcall(podium_slow_subscript, arguments, 2, NULL);
}

static PyObject *podium_subscript(PyObject *kernel, PyObject *key) {
    struct podium_shortcut *self = *(struct podium_shortcut **)(void *)((char *)kernel + podium_shortcut_offset);
    if (self == NULL || PODIUM_TYPE(self) != podium_shortcut_type || self->launch == NULL || !podium_is_known(self) ||
        !PODIUM_IS_TUPLE(key) || PODIUM_TUPLE_SIZE(key) != 2 ||
        !podium_is_same_size(PODIUM_TUPLE_ITEM(key, 0), self->grid) ||
        !podium_is_same_size(PODIUM_TUPLE_ITEM(key, 1), self->block))
        return podium_subscript_slowly(kernel, self, key);
    Py_IncRef(self->launch);
    return self->launch;
}

/* Make a slot wrapper of `podium_subscript` for a type, like the one of a mapping that is no sequence. */
static PyObject *podium_wrap_subscript(PyTypeObject *type) {
    PyObject *like = PyObject_GetAttrString((PyObject *)&PyDictProxy_Type, "__getitem__"), *made = NULL;
    if (like == NULL) return NULL;
    if (PODIUM_TYPE(like) == (PyTypeObject *)&PyWrapperDescr_Type) {
        void *function;
        *(PyObject *(**)(PyObject *, PyObject *))&function = podium_subscript;
        made = PyDescr_NewWrapper(type, ((PyWrapperDescrObject *)(void *)like)->d_base, function);
    } else {
        PyErr_SetString(PyExc_SystemError, "podium: this Python has no slot wrapper for __getitem__");
    }
    Py_DecRef(like);
    return made;
}

/* Find where in a kernel its member `_shortcut` lies. */
static int podium_find_shortcut(PyObject *type) {
    PyObject *member = PyObject_GetAttrString(type, "_shortcut");
    if (member == NULL) return -1;
    int is_member = PODIUM_TYPE(member) == (PyTypeObject *)&PyMemberDescr_Type;
    if (is_member)
        podium_shortcut_offset = ((PyMemberDescrObject *)(void *)member)->d_member->offset;
    else
        PyErr_SetString(PyExc_SystemError, "podium: _shortcut is no member of kernels");
    Py_DecRef(member);
    return is_member ? 0 : -1;
}

/* subscript(Kernel, slow, config, state) -> a method for Kernel; once in a process */
static PyObject *podium_make_subscript(PyObject *module, PyObject *arguments) {
    PyObject *item[4];
    for (int index = 0; index < 4; index++)
        if ((item[index] = PyTuple_GetItem(arguments, index)) == NULL) return NULL;
    (void)module;
    podium_chosen = (const struct podium_state *)(uintptr_t)PyLong_AsUnsignedLongLong(item[3]);
    if (PyErr_Occurred()) return NULL;
    podium_name_set = PyUnicode_InternFromString("_set");
    podium_name_remembered = PyUnicode_InternFromString("_remembered");
    podium_used = PyObject_GetAttrString(item[2], "_used");
    if (podium_name_set == NULL || podium_name_remembered == NULL || podium_used == NULL || podium_find_shortcut(item[0]) < 0)
        return NULL;
    podium_replace(&podium_slow_subscript, item[1]);
    podium_replace(&podium_config, item[2]);
    return podium_wrap_subscript((PyTypeObject *)item[0]);
}

/* Shortcut(driver, launches) */
static PyObject *podium_shortcut_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
    (void)keywords;
    PyObject *driver = PyTuple_GetItem(arguments, 0), *launches = PyTuple_GetItem(arguments, 1);
    if (driver == NULL || launches == NULL) return NULL;
    PyObject *(*allocate)(PyTypeObject *, Py_ssize_t);
    *(void **)&allocate = PyType_GetSlot(type, Py_tp_alloc);
    struct podium_shortcut *self = (struct podium_shortcut *)allocate(type, 0);
    if (self == NULL) return NULL;
    podium_replace(&self->launches, launches);
    podium_replace(&self->driver, driver);
    self->choice = UINT64_MAX;
    return (PyObject *)self;
}

static int podium_shortcut_traverse(PyObject *object, visitproc visit, void *argument) {
    struct podium_shortcut *self = (struct podium_shortcut *)object;
    PODIUM_VISIT(PODIUM_TYPE(object));
    PODIUM_VISIT(self->driver);
    PODIUM_VISIT(self->launches);
    PODIUM_VISIT(self->grid);
    PODIUM_VISIT(self->block);
    PODIUM_VISIT(self->launch);
    return 0;
}

static int podium_shortcut_clear(PyObject *object) {
    struct podium_shortcut *self = (struct podium_shortcut *)object;
    PODIUM_CLEAR(self->driver); /* first: without it nothing is looked up */
    PODIUM_CLEAR(self->launch);
    PODIUM_CLEAR(self->grid);
    PODIUM_CLEAR(self->block);
    PODIUM_CLEAR(self->launches);
    return 0;
}

static void podium_shortcut_dealloc(PyObject *object) { podium_free(object, podium_shortcut_clear); }

static PyType_Slot podium_shortcut_slots[] = {
    {Py_tp_doc, (void *)"Shortcut(driver, launches): what kernel[grid, block] looks into"},
    {Py_tp_new, (void *)podium_shortcut_new},
    {Py_tp_dealloc, (void *)podium_shortcut_dealloc},
    {Py_tp_traverse, (void *)podium_shortcut_traverse},
    {Py_tp_clear, (void *)podium_shortcut_clear},
    {0, NULL},
};
static PyType_Spec podium_shortcut_spec = {"podium_launcher.Shortcut", sizeof(struct podium_shortcut), 0,
                                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, podium_shortcut_slots};

#endif
