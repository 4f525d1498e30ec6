/* Events: places in streams. The clock counts calls, so that nothing depends on the machine. */
#include <stdlib.h>

#include "state.h"

struct event {
    unsigned flags;
    int device;
    uint64_t recorded; /* the time, or 0 */
    struct event *next;
};
static struct event *events;
static uint64_t ticks;
uint64_t event_live, event_created;

static struct event *find(hipEvent_t handle) {
    struct event *event = events;
    while (event && event != (struct event *)handle) event = event->next;
    return event;
}

static hipError_t create(hipEvent_t *out, unsigned flags) {
    REQUIRE(out, hipErrorInvalidValue);
    REQUIRE(!(flags & ~(0xE0000000u | 0x7u)), hipErrorInvalidValue);
    struct event *event = calloc(1, sizeof *event);
    if (!event) abort();
    *event = (struct event){flags, current_device, 0, events};
    events = event;
    event_live++;
    event_created++;
    *out = (hipEvent_t)event;
    return hipSuccess;
}

hipError_t hipEventCreate(hipEvent_t *out) { CALL(hipEventCreate, create(out, 0)); }
hipError_t hipEventCreateWithFlags(hipEvent_t *out, unsigned flags) { CALL(hipEventCreateWithFlags, create(out, flags)); }

static hipError_t destroy(hipEvent_t handle) {
    REQUIRE(handle, hipErrorInvalidHandle);
    for (struct event **place = &events; *place; place = &(*place)->next) {
        struct event *event = *place;
        if (event != (struct event *)handle) continue;
        *place = event->next;
        free(event);
        event_live--;
        return hipSuccess;
    }
    return hipErrorContextIsDestroyed;
}

hipError_t hipEventDestroy(hipEvent_t event) { CALL(hipEventDestroy, destroy(event)); }

void event_reset(void) {
    while (events) destroy((hipEvent_t)events);
    event_created = 0;
}

static hipError_t record(hipEvent_t handle, hipStream_t stream_handle) {
    struct event *event = find(handle);
    const struct stream *stream = stream_find(stream_handle);
    REQUIRE(event, hipErrorInvalidHandle);
    REQUIRE(stream, hipErrorContextIsDestroyed);
    /* Events and streams belong to one device each. */
    REQUIRE(event->device == stream->device, hipErrorInvalidHandle);
    event->recorded = ++ticks;
    return hipSuccess;
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) { CALL(hipEventRecord, record(event, stream)); }

static hipError_t query(hipEvent_t handle) {
    const struct event *event = find(handle);
    REQUIRE(event, hipErrorInvalidHandle);
    REQUIRE(!event->recorded || !streams_busy, hipErrorNotReady);
    return devices[event->device].pending;
}

hipError_t hipEventQuery(hipEvent_t event) { CALL(hipEventQuery, query(event)); }

static hipError_t synchronize(hipEvent_t handle) {
    const struct event *event = find(handle);
    REQUIRE(event, hipErrorInvalidHandle);
    streams_busy = false;
    return devices[event->device].pending;
}

hipError_t hipEventSynchronize(hipEvent_t event) { CALL(hipEventSynchronize, synchronize(event)); }

static hipError_t elapsed(float *out, hipEvent_t start_handle, hipEvent_t end_handle) {
    const struct event *start = find(start_handle), *end = find(end_handle);
    REQUIRE(out, hipErrorInvalidValue);
    REQUIRE(start && end, hipErrorInvalidHandle);
    REQUIRE(start->recorded && end->recorded, hipErrorInvalidHandle);
    REQUIRE(!((start->flags | end->flags) & hipEventDisableTiming), hipErrorInvalidHandle);
    REQUIRE(!streams_busy, hipErrorNotReady);
    *out = ((float)end->recorded - (float)start->recorded) / 1000;
    return hipSuccess;
}

hipError_t hipEventElapsedTime(float *out, hipEvent_t start, hipEvent_t end) {
    CALL(hipEventElapsedTime, elapsed(out, start, end));
}

static hipError_t wait_in(hipStream_t stream, hipEvent_t event, unsigned flags) {
    REQUIRE(event && !flags, event ? hipErrorInvalidValue : hipErrorInvalidHandle);
    REQUIRE(stream_find(stream), hipErrorContextIsDestroyed);
    REQUIRE(find(event), hipErrorInvalidHandle);
    return hipSuccess;
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags) {
    CALL(hipStreamWaitEvent, wait_in(stream, event, flags));
}
