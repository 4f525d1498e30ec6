/* What the code generated for a signature, and the code that is the same for all signatures of a backend, know of each
 * other. They are two translation units: the second is compiled once on a machine, and linked to each of the first.
 */
#ifndef PODIUM_SIGNATURE_H
#define PODIUM_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

#include "podium_python.h"

#if defined(__GNUC__) && !defined(_WIN32)
#define PODIUM_SHARED __attribute__((visibility("hidden"))) /* by the two units, and by no other library */
#else
#define PODIUM_SHARED
#endif

struct podium_call;   /* one launch, see podium_launch.h */
struct podium_values; /* the C values of the parameters */

/* Generated for the signature: */
struct podium_signature {
    int arguments;  /* of a call */
    int pointers;   /* among them */
    int scratch;    /* pointers that follow them, which the caller does not pass */
    int parameters; /* of the kernel */
    size_t bytes, alignment; /* of struct podium_values */
    size_t scratch_offset;   /* of the scratch pointers in it */
};
extern PODIUM_SHARED const struct podium_signature podium_signature;
#define PODIUM_ARGUMENTS podium_signature.arguments
#define PODIUM_POINTERS podium_signature.pointers
#define PODIUM_SCRATCH podium_signature.scratch
#define PODIUM_PARAMETERS podium_signature.parameters

/* A value's place and size are those that everybody else reckons with. */
#define PODIUM_IS_AT(member, offset, size)                                                                            \
    _Static_assert(offsetof(struct podium_values, member) == (offset) &&                                               \
                       sizeof(((struct podium_values *)0)->member) == (size),                                          \
                   "a parameter is not where podium and the kernel have it")

/* Fill the values from the arguments. */
PODIUM_SHARED int podium_unpack(struct podium_call *call, PyObject *const *args, struct podium_values *values);
/* Fill the array of their addresses. */
PODIUM_SHARED void podium_addresses(struct podium_values *values, void **addresses);

/* The same for all signatures, in podium_launch.h: */
PODIUM_SHARED int podium_encode(struct podium_call *call, int index, PyObject *value, void *out, size_t size);
PODIUM_SHARED int podium_pointer(struct podium_call *call, int index, PyObject *value, int writable, uint64_t *out);

#endif
