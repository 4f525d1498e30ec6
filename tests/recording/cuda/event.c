/* Events: when they were recorded, by a clock that goes on with every call. */
#include <string.h>

#include "state.h"

static CUresult find(CUevent handle, struct event **event) {
    struct context *context;
    CHECK(context_current(&context));
    *event = object_find(handle, KIND_EVENT);
    return *event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventCreate(CUevent *out, unsigned flags) {
    ENTER(cuEventCreate);
    struct context *context;
    CHECK(context_current(&context));
    REQUIRE(out && flags <= 7, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(!(flags & CU_EVENT_INTERPROCESS) || flags & CU_EVENT_DISABLE_TIMING, CUDA_ERROR_INVALID_VALUE);
    struct event *event = object_create(KIND_EVENT, sizeof *event, context, NULL);
    event->flags = flags;
    *out = HANDLE(event);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle) {
    ENTER(cuEventDestroy_v2);
    struct event *event;
    CHECK(find(handle, &event));
    object_destroy(event);
    return CUDA_SUCCESS;
}

/* The capture that an event was recorded in last, while it goes on. */
static struct capture *captured(const struct event *event) { return event->capture ? capture_numbered(event->capture) : NULL; }

static CUresult record(CUevent handle, CUstream stream_handle) {
    struct event *event;
    struct stream *stream;
    CHECK(find(handle, &event));
    struct context *context;
    CHECK(context_current(&context));
    CHECK(stream_find(stream_handle, context, &stream));
    REQUIRE(stream->object.context == event->object.context, CUDA_ERROR_INVALID_HANDLE);
    if (stream->capture) {
        REQUIRE(!stream->capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        event->capture = stream->capture->number;
        event->captured_from = stream->object.handle;
        event->last = stream->last;
        return CUDA_SUCCESS;
    }
    struct node *node;
    CHECK(stream_enqueue(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &node));
    event->capture = 0;
    event->recorded = true;
    event->time = driver_clock();
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent handle, CUstream stream) {
    ENTER(cuEventRecord);
    return record(handle, stream);
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned flags) {
    ENTER(cuEventRecordWithFlags);
    REQUIRE(flags <= 1, CUDA_ERROR_INVALID_VALUE);
    return record(handle, stream);
}

/* An event of a capture never comes to pass: who asks for it has made the capture useless. */
static CUresult ask_recorded(const struct event *event) {
    struct capture *capture = captured(event);
    if (!capture) return capture_allows_unsafe();
    capture->invalid = true;
    return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult cuEventQuery(CUevent handle) {
    ENTER(cuEventQuery);
    struct event *event;
    CHECK(find(handle, &event));
    CHECK(ask_recorded(event));
    return streams_busy && event->recorded ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent handle) {
    ENTER(cuEventSynchronize);
    struct event *event;
    CHECK(find(handle, &event));
    CHECK(ask_recorded(event));
    streams_busy = false;
    return CUDA_SUCCESS;
}

static CUresult elapsed(float *milliseconds, CUevent begin_handle, CUevent end_handle) {
    struct event *begin, *end;
    CHECK(find(begin_handle, &begin));
    CHECK(find(end_handle, &end));
    REQUIRE(milliseconds, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(!captured(begin) && !captured(end), CUDA_ERROR_CAPTURED_EVENT);
    REQUIRE(begin->recorded && end->recorded && !((begin->flags | end->flags) & CU_EVENT_DISABLE_TIMING),
            CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(!streams_busy, CUDA_ERROR_NOT_READY);
    *milliseconds = (float)(((double)end->time - (double)begin->time) / 1e6);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) {
    ENTER(cuEventElapsedTime);
    return elapsed(milliseconds, begin, end);
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent begin, CUevent end) {
    ENTER(cuEventElapsedTime_v2);
    return elapsed(milliseconds, begin, end);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags) {
    ENTER(cuStreamWaitEvent);
    struct event *event;
    struct stream *stream;
    struct context *context;
    CHECK(find(handle, &event));
    CHECK(context_current(&context));
    CHECK(stream_find(stream_handle, context, &stream));
    REQUIRE(flags <= 1, CUDA_ERROR_INVALID_VALUE);
    struct capture *capture = captured(event);
    if (!capture) {
        struct node *node;
        if (!stream->capture) return stream_enqueue(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &node);
        if (!event->recorded) return CUDA_SUCCESS;
        stream->capture->invalid = true; /* the graph would depend on work that is not in it */
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    REQUIRE(!capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    REQUIRE(!stream->legacy, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (stream->capture && stream->capture != capture) {
        stream->capture->invalid = capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (!stream->capture) stream->last.count = 0;
    stream->capture = capture; /* the stream takes part in the capture from here on */
    nodes_join(&stream->last, &event->last);
    struct stream *other = object_find((void *)(uintptr_t)event->captured_from, KIND_STREAM);
    if (other && other != stream) other->forked = false;
    if (stream != capture->origin) stream->forked = true;
    return CUDA_SUCCESS;
}
