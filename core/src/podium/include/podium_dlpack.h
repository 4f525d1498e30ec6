/* The structures of dlpack.h 1.x that podium reads and writes. */
#ifndef PODIUM_DLPACK_H
#define PODIUM_DLPACK_H

#include <stdint.h>

struct podium_tensor {
    void *data;
    struct {
        int32_t type, index;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct podium_managed {
    struct podium_tensor tensor;
    void *context;
    void (*deleter)(void *);
};
struct podium_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(void *);
    uint64_t flags;
    struct podium_tensor tensor;
};
#define PODIUM_READ_ONLY 1u /* a flag of it */
struct podium_exchange {
    uint32_t major, minor;
    struct podium_exchange *previous;
    void *allocate, *managed_from_object, *managed_to_object;
    int (*tensor_from_object)(void *object, struct podium_tensor *tensor);
    int (*current_stream)(int32_t device_type, int32_t device, void **stream);
};

#endif
