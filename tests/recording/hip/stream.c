/* Streams: what is put into them has ended at once; a test can make them say that it has not. */
#include <stdlib.h>

#include "control.h"
#include "state.h"

struct node {
    struct stream stream;
    struct node *next;
};
static struct node *streams;
static struct stream defaults[MAX_DEVICES][3]; /* 0, legacy, which HIP 5 does not have, and per-thread */
bool streams_busy;
uint64_t stream_live, stream_created;

struct stream *stream_find(hipStream_t handle) {
    if ((uintptr_t)handle == 1 && RECORDING_HIP_MAJOR < 6) return NULL;
    if ((uintptr_t)handle <= 2) {
        struct stream *stream = &defaults[current_device][(uintptr_t)handle];
        stream->device = current_device;
        return stream;
    }
    for (struct node *node = streams; node; node = node->next)
        if (&node->stream == (struct stream *)handle) return &node->stream;
    return NULL;
}

hipError_t stream_wait(const struct stream *stream) {
    REQUIRE(!stream->capture, hipErrorStreamCaptureUnsupported);
    streams_busy = false;
    return devices[stream->device].pending;
}

static hipError_t create(hipStream_t *out, unsigned flags, int priority) {
    REQUIRE(out && flags <= hipStreamNonBlocking, hipErrorInvalidValue);
    struct node *node = calloc(1, sizeof *node);
    if (!node) abort();
    /* A priority beyond what there is stands for the nearest. */
    node->stream = (struct stream){current_device, priority < -1 ? -1 : priority > 1 ? 1 : priority, flags, NULL};
    node->next = streams;
    streams = node;
    stream_live++;
    stream_created++;
    *out = (hipStream_t)&node->stream;
    return hipSuccess;
}

hipError_t hipStreamCreate(hipStream_t *out) { CALL(hipStreamCreate, create(out, 0, 0)); }

hipError_t hipStreamCreateWithFlags(hipStream_t *out, unsigned flags) {
    CALL(hipStreamCreateWithFlags, create(out, flags, 0));
}

hipError_t hipStreamCreateWithPriority(hipStream_t *out, unsigned flags, int priority) {
    CALL(hipStreamCreateWithPriority, create(out, flags, priority));
}

static hipError_t priorities(int *least, int *greatest) {
    if (least) *least = 1;
    if (greatest) *greatest = -1;
    return hipSuccess;
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
    CALL(hipDeviceGetStreamPriorityRange, priorities(least, greatest));
}

static hipError_t destroy(hipStream_t handle) {
    REQUIRE((uintptr_t)handle > 2, hipErrorInvalidHandle);
    for (struct node **place = &streams; *place; place = &(*place)->next) {
        struct node *node = *place;
        if (&node->stream != (struct stream *)handle) continue;
        *place = node->next;
        free(node);
        stream_live--;
        return hipSuccess;
    }
    return hipErrorContextIsDestroyed;
}

hipError_t hipStreamDestroy(hipStream_t stream) { CALL(hipStreamDestroy, destroy(stream)); }

void stream_reset(void) {
    while (streams) destroy((hipStream_t)&streams->stream);
    for (int i = 0; i < MAX_DEVICES; i++)
        for (int j = 0; j < 3; j++) defaults[i][j].capture = NULL;
    stream_created = 0;
    streams_busy = false;
}

static hipError_t query(hipStream_t handle) {
    const struct stream *stream = stream_find(handle);
    REQUIRE(stream, hipErrorContextIsDestroyed);
    REQUIRE(!stream->capture, hipErrorStreamCaptureUnsupported);
    REQUIRE(!streams_busy, hipErrorNotReady);
    return devices[stream->device].pending;
}

hipError_t hipStreamQuery(hipStream_t stream) { CALL(hipStreamQuery, query(stream)); }

static hipError_t synchronize(hipStream_t handle) {
    const struct stream *stream = stream_find(handle);
    REQUIRE(stream, hipErrorContextIsDestroyed);
    return stream_wait(stream);
}

hipError_t hipStreamSynchronize(hipStream_t stream) { CALL(hipStreamSynchronize, synchronize(stream)); }

static hipError_t flags_of(hipStream_t handle, unsigned *out) {
    const struct stream *stream = stream_find(handle);
    REQUIRE(out, hipErrorInvalidValue);
    REQUIRE(stream, hipErrorContextIsDestroyed);
    *out = stream->flags;
    return hipSuccess;
}

hipError_t hipStreamGetFlags(hipStream_t stream, unsigned *out) { CALL(hipStreamGetFlags, flags_of(stream, out)); }

static hipError_t priority_of(hipStream_t handle, int *out) {
    const struct stream *stream = stream_find(handle);
    REQUIRE(out, hipErrorInvalidValue);
    REQUIRE(stream, hipErrorContextIsDestroyed);
    *out = stream->priority;
    return hipSuccess;
}

hipError_t hipStreamGetPriority(hipStream_t stream, int *out) { CALL(hipStreamGetPriority, priority_of(stream, out)); }

#if RECORDING_HIP_MAJOR >= 6
static hipError_t device_of(hipStream_t handle, hipDevice_t *out) {
    const struct stream *stream = stream_find(handle);
    REQUIRE(out, hipErrorInvalidValue);
    REQUIRE(stream, hipErrorContextIsDestroyed);
    *out = stream->device;
    return hipSuccess;
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *out) { CALL(hipStreamGetDevice, device_of(stream, out)); }
#endif

void podium_recording_set_busy(int busy) { streams_busy = busy; }
