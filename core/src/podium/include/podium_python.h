/* The part of CPython's C API that launchers use, declared by hand.
 *
 * Including Python.h costs compiler time for each launcher (docs/performance.md has the figures), and needs development
 * headers on the user's machine; these declarations do not. Everything here is public and the same in every CPython of
 * the versions below, or is a layout: an object begins with its reference count and its type, an int has digits, a tuple
 * items, and a descriptor what it describes. Other interpreters (free-threaded builds, 32 bits, other versions) compile
 * with PODIUM_USE_PYTHON_H and their own headers.
 * tests/core/test_python_header.py compares each declaration with the real headers.
 */
#ifndef PODIUM_PYTHON_H
#define PODIUM_PYTHON_H

#if defined(__GNUC__)
#define PODIUM_UNUSED __attribute__((unused))
#define PODIUM_INLINE PODIUM_UNUSED static inline __attribute__((always_inline))
/* What is rarely run, and what only some launches run, shall not lie between what all of them do. */
#define PODIUM_APART __attribute__((noinline, cold))
#define PODIUM_ASIDE __attribute__((noinline))
#define PODIUM_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define PODIUM_EXPORT __attribute__((visibility("default")))
#else
#define PODIUM_UNUSED
#define PODIUM_INLINE static inline
#define PODIUM_APART
#define PODIUM_ASIDE
#define PODIUM_UNLIKELY(condition) (condition)
#define PODIUM_EXPORT __declspec(dllexport)
#endif

#ifdef PODIUM_USE_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#define PODIUM_TYPE(object) Py_TYPE(object)
#define PODIUM_TUPLE_SIZE(tuple) PyTuple_GET_SIZE(tuple)
#define PODIUM_TUPLE_ITEM(tuple, index) PyTuple_GET_ITEM(tuple, index)
#define PODIUM_MEMBER_SSIZE T_PYSSIZET
#define PODIUM_MEMBER_READONLY READONLY

#else

#include <stddef.h>
#include <stdint.h>

typedef ptrdiff_t Py_ssize_t;
typedef struct podium_object PyObject;
typedef struct podium_type_object PyTypeObject;
typedef struct podium_thread_state PyThreadState;

/* The first two words of every object. */
struct podium_object {
    Py_ssize_t reference_count;
    PyTypeObject *type;
};
#define PyObject_HEAD PyObject ob_base;
#define PODIUM_TYPE(object) (((PyObject *)(object))->type)

typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);
typedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *);
typedef void (*destructor)(PyObject *);
typedef int (*visitproc)(PyObject *, void *);
typedef int (*traverseproc)(PyObject *, visitproc, void *);
typedef int (*inquiry)(PyObject *);
typedef void (*freefunc)(void *);
typedef PyObject *(*newfunc)(PyTypeObject *, PyObject *, PyObject *);
typedef PyObject *(*getter)(PyObject *, void *);
typedef int (*setter)(PyObject *, PyObject *, void *);

typedef struct {
    const char *ml_name;
    PyCFunction ml_meth;
    int ml_flags;
    const char *ml_doc;
} PyMethodDef;

typedef struct {
    const char *name;
    int type;
    Py_ssize_t offset;
    int flags;
    const char *doc;
} PyMemberDef;

typedef struct {
    PyObject ob_base;
    PyTypeObject *d_type;
    PyObject *d_name;
    PyObject *d_qualname;
} PyDescrObject;

typedef struct {
    PyDescrObject d_common;
    PyMemberDef *d_member;
} PyMemberDescrObject;

struct wrapperbase;
typedef struct {
    PyDescrObject d_common;
    struct wrapperbase *d_base;
    void *d_wrapped;
} PyWrapperDescrObject;

typedef struct {
    PyObject ob_base;
    Py_ssize_t ob_size;
} PyVarObject;

typedef struct {
    PyVarObject ob_base;
    PyObject *ob_item[1];
} PyTupleObject;
#define PODIUM_TUPLE_SIZE(tuple) (((PyVarObject *)(void *)(tuple))->ob_size)
#define PODIUM_TUPLE_ITEM(tuple, index) (((PyTupleObject *)(void *)(tuple))->ob_item[index])

typedef struct {
    int slot;
    void *pfunc;
} PyType_Slot;

typedef struct {
    const char *name;
    int basicsize;
    int itemsize;
    unsigned int flags;
    PyType_Slot *slots;
} PyType_Spec;

typedef struct {
    int slot;
    void *value;
} PyModuleDef_Slot;

typedef struct {
    PyObject ob_base;
    PyObject *(*m_init)(void);
    Py_ssize_t m_index;
    PyObject *m_copy;
} PyModuleDef_Base;

typedef struct {
    PyModuleDef_Base m_base;
    const char *m_name;
    const char *m_doc;
    Py_ssize_t m_size;
    PyMethodDef *m_methods;
    PyModuleDef_Slot *m_slots;
    traverseproc m_traverse;
    inquiry m_clear;
    freefunc m_free;
} PyModuleDef;

typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len;
    Py_ssize_t itemsize;
    int readonly;
    int ndim;
    char *format;
    Py_ssize_t *shape;
    Py_ssize_t *strides;
    Py_ssize_t *suboffsets;
    void *internal;
} Py_buffer;

/* clang-format off */
#define PyModuleDef_HEAD_INIT {{1, NULL}, NULL, 0, NULL}
/* clang-format on */
#define Py_mod_exec 2
#define Py_tp_call 50
#define Py_tp_clear 51
#define Py_tp_dealloc 52
#define Py_tp_doc 56
#define Py_tp_methods 64
#define Py_tp_new 65
#define Py_tp_repr 66
#define Py_tp_traverse 71
#define Py_tp_members 72
#define Py_tp_free 74
#define Py_tp_alloc 47
#define Py_TPFLAGS_DEFAULT 0UL
#define Py_TPFLAGS_HAVE_GC (1UL << 14)
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#define METH_VARARGS 0x0001
#define METH_KEYWORDS 0x0002
#define METH_NOARGS 0x0004
#define METH_O 0x0008
#define METH_FASTCALL 0x0080
#define PyBUF_SIMPLE 0
#define PyBUF_WRITABLE 0x0001
#define PyBUF_FORMAT 0x0004
#define PyBUF_STRIDES (0x0010 | 0x0008)
#define PyBUF_C_CONTIGUOUS (0x0020 | PyBUF_STRIDES)
#define PY_VECTORCALL_ARGUMENTS_OFFSET ((size_t)1 << (8 * sizeof(size_t) - 1))
#define PyVectorcall_NARGS(n) ((Py_ssize_t)((n) & ~PY_VECTORCALL_ARGUMENTS_OFFSET))
#define PODIUM_MEMBER_SSIZE 19
#define PODIUM_MEMBER_READONLY 1

extern PyObject _Py_NoneStruct, _Py_TrueStruct, _Py_FalseStruct;
extern struct podium_opaque_type {
    PyObject ob_base;
} PyLong_Type, PyFloat_Type, PyTuple_Type, PyDict_Type, PyUnicode_Type, PyType_Type, PyDictProxy_Type, PyMemberDescr_Type,
    PyWrapperDescr_Type;
extern PyObject *PyExc_Exception, *PyExc_SystemError, *PyExc_TypeError, *PyExc_ImportError, *PyExc_MemoryError;
#define Py_None (&_Py_NoneStruct)
#define Py_True (&_Py_TrueStruct)
#define Py_False (&_Py_FalseStruct)

void Py_IncRef(PyObject *);
void Py_DecRef(PyObject *);
Py_ssize_t PyTuple_Size(PyObject *);
PyObject *PyTuple_GetItem(PyObject *, Py_ssize_t);
PyObject *PyDict_GetItemWithError(PyObject *, PyObject *);
int PyContextVar_Get(PyObject *, PyObject *, PyObject **);
PyObject *PyDescr_NewMethod(PyTypeObject *, PyMethodDef *);
PyObject *PyDescr_NewWrapper(PyTypeObject *, struct wrapperbase *, void *);
PyObject *PyImport_ImportModule(const char *);
PyObject *PyModuleDef_Init(PyModuleDef *);
PyObject *PyType_FromModuleAndSpec(PyObject *, PyType_Spec *, PyObject *);
int PyModule_AddObjectRef(PyObject *, const char *, PyObject *);
void *PyType_GetSlot(PyTypeObject *, int);
void PyObject_GC_UnTrack(void *);
PyObject *PyVectorcall_Call(PyObject *, PyObject *, PyObject *);
#if PODIUM_PYTHON_MINOR >= 11
PyObject *PyObject_Vectorcall(PyObject *, PyObject *const *, size_t, PyObject *);
#else /* an inline function there */
PyObject *PyObject_VectorcallDict(PyObject *, PyObject *const *, size_t, PyObject *);
PyObject *PyDict_New(void);
int PyDict_SetItem(PyObject *, PyObject *, PyObject *);
PODIUM_UNUSED static PyObject *PyObject_Vectorcall(PyObject *callable, PyObject *const *args, size_t count, PyObject *names) {
    PyObject *keywords = names == NULL ? NULL : PyDict_New(), *result = NULL;
    if (names != NULL && keywords == NULL) return NULL;
    for (Py_ssize_t index = 0; names != NULL && index < PyTuple_Size(names); index++)
        if (PyDict_SetItem(keywords, PyTuple_GetItem(names, index), args[count + (size_t)index]) < 0) goto done;
    result = PyObject_VectorcallDict(callable, args, count, keywords);
done:
    Py_DecRef(keywords);
    return result;
}
#endif
PyObject *PyObject_GetAttr(PyObject *, PyObject *);
PyObject *PyObject_GetAttrString(PyObject *, const char *);
PyObject *PyUnicode_InternFromString(const char *);
const char *PyUnicode_AsUTF8AndSize(PyObject *, Py_ssize_t *);
PyObject *Py_BuildValue(const char *, ...);
PyObject *PyObject_Repr(PyObject *);
int PyObject_GetBuffer(PyObject *, Py_buffer *, int);
void PyBuffer_Release(Py_buffer *);
long long PyLong_AsLongLongAndOverflow(PyObject *, int *);
long long PyLong_AsLongLong(PyObject *);
unsigned long long PyLong_AsUnsignedLongLong(PyObject *);
PyObject *PyLong_FromLongLong(long long);
PyObject *PyLong_FromUnsignedLongLong(unsigned long long);
double PyFloat_AsDouble(PyObject *);
int PyBytes_AsStringAndSize(PyObject *, char **, Py_ssize_t *);
PyObject *PyCapsule_New(void *, const char *, void (*)(PyObject *));
int PyCapsule_IsValid(PyObject *, const char *);
void *PyCapsule_GetPointer(PyObject *, const char *);
PyObject *PyErr_Occurred(void);
int PyErr_ExceptionMatches(PyObject *);
void PyErr_Clear(void);
void PyErr_SetString(PyObject *, const char *);
PyObject *PyErr_Format(PyObject *, const char *, ...);
PyThreadState *PyEval_SaveThread(void);
void PyEval_RestoreThread(PyThreadState *);
typedef enum { PyGILState_LOCKED, PyGILState_UNLOCKED } PyGILState_STATE;
PyGILState_STATE PyGILState_Ensure(void);
void PyGILState_Release(PyGILState_STATE);
int Py_IsInitialized(void);

#endif /* PODIUM_USE_PYTHON_H */

/* None as a result. Since 3.12 nobody counts references to it. */
PODIUM_INLINE PyObject *podium_none(void) {
#if !defined(PODIUM_PYTHON_MINOR) || PODIUM_PYTHON_MINOR < 12
    Py_IncRef(Py_None);
#endif
    return Py_None;
}

/* Exact types only: subclasses may mean something else and take the slow path. */
#define PODIUM_IS_INT(object) (PODIUM_TYPE(object) == (PyTypeObject *)&PyLong_Type)
#define PODIUM_IS_TUPLE(object) (PODIUM_TYPE(object) == (PyTypeObject *)&PyTuple_Type)
#define PODIUM_IS_DICT(object) (PODIUM_TYPE(object) == (PyTypeObject *)&PyDict_Type)
#define PODIUM_IS_TEXT(object) (PODIUM_TYPE(object) == (PyTypeObject *)&PyUnicode_Type)
#define PODIUM_IS_FLOAT(object) (PODIUM_TYPE(object) == (PyTypeObject *)&PyFloat_Type)

/* Read an int of one digit, which is below 2**30, or of up to 60 bits, where it lies; 0 if it is longer. To call Python
 * for each costs more than all else that a launch does with it. */
#ifdef PODIUM_USE_PYTHON_H
PODIUM_UNUSED static int podium_short_int(PyObject *object, int64_t *out) {
    int overflow;
    *out = PyLong_AsLongLongAndOverflow(object, &overflow);
    return !overflow;
}
PODIUM_INLINE int podium_one_digit(PyObject *object, int64_t *out) {
    return podium_short_int(object, out) && *out < 1 << 30 && *out > -(1 << 30);
}
#else
struct podium_int {
    PyObject ob_base;
#if PODIUM_PYTHON_MINOR >= 12
    uintptr_t size; /* how many digits, times 8; and 0 for a number above zero, 1 for zero, 2 for one below */
#else
    Py_ssize_t size; /* how many digits, negative for a number below zero */
#endif
    uint32_t digit[2]; /* of 30 bits, the lowest first; only as many as there are */
};

PODIUM_INLINE int podium_one_digit(PyObject *object, int64_t *out) {
    const struct podium_int *number = (const struct podium_int *)(const void *)object;
#if PODIUM_PYTHON_MINOR >= 12
    if (PODIUM_UNLIKELY(number->size >= 2 * 8)) return 0;
    *out = (1 - (int64_t)(number->size & 3)) * (int64_t)number->digit[0]; /* zero has a digit, too */
#else
    if (PODIUM_UNLIKELY(number->size + 1 > 2 || number->size + 1 < 0)) return 0;
    *out = number->size == 0 ? 0 : number->size * (int64_t)number->digit[0];
#endif
    return 1;
}

PODIUM_UNUSED static int podium_short_int(PyObject *object, int64_t *out) {
    const struct podium_int *number = (const struct podium_int *)(const void *)object;
    if (podium_one_digit(object, out)) return 1;
#if PODIUM_PYTHON_MINOR >= 12
    uint64_t digits = number->size >> 3;
    int is_negative = (number->size & 3) == 2;
#else
    int is_negative = number->size < 0;
    uint64_t digits = (uint64_t)(is_negative ? -number->size : number->size);
#endif
    if (PODIUM_UNLIKELY(digits > 2)) return 0;
    int64_t magnitude = (int64_t)number->digit[0] | (int64_t)number->digit[1] << 30;
    *out = is_negative ? -magnitude : magnitude;
    return 1;
}
#endif

/* Read an int of up to 64 bits without sign; 0, without an exception, if it is none. */
PODIUM_UNUSED static int podium_unsigned_int(PyObject *object, uint64_t *out) {
    int64_t number;
    if (podium_short_int(object, &number)) {
        *out = (uint64_t)number;
        return number >= 0;
    }
    *out = PyLong_AsUnsignedLongLong(object);
    if (PODIUM_UNLIKELY(*out == UINT64_MAX && PyErr_Occurred() != NULL)) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

#endif
