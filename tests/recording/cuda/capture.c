/* Captures: work of a stream that becomes a graph, and calls that must not be made meanwhile. */
#include <stdlib.h>

#include "state.h"

static struct capture *captures;
static uint64_t capture_count;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

struct capture *capture_numbered(uint64_t number) {
    for (struct capture *capture = captures; capture; capture = capture->next)
        if (capture->number == number) return capture;
    return NULL;
}

/* Calls that could wait for captured work, or change what it needs, end the captures that they may concern. */
CUresult capture_allows_unsafe(void) {
    CUresult status = CUDA_SUCCESS;
    uint64_t thread = thread_number();
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    for (struct capture *capture = captures; capture; capture = capture->next) {
        bool own = capture->thread == thread && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool other = thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!own && !other) continue;
        capture->invalid = true;
        status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return status;
}

static bool blocks(const struct capture *capture, const struct context *context) {
    return capture->origin->object.context == context && !(capture->origin->flags & CU_STREAM_NON_BLOCKING);
}

bool capture_is_implicit(struct context *context) {
    for (struct capture *capture = captures; capture; capture = capture->next)
        if (blocks(capture, context)) return true;
    return false;
}

void capture_invalidate_blocking(struct context *context) {
    for (struct capture *capture = captures; capture; capture = capture->next)
        if (blocks(capture, context)) capture->invalid = true;
}

CUresult capture_allows_synchronize(struct stream *stream) {
    if (stream->capture) {
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (stream->legacy && capture_is_implicit(stream->object.context)) {
        capture_invalidate_blocking(stream->object.context);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    return CUDA_SUCCESS;
}

CUresult capture_allows_waiting(struct context *context) {
    CUresult status = capture_allows_unsafe();
    for (struct capture *capture = captures; capture; capture = capture->next) {
        if (capture->origin->object.context != context) continue;
        capture->invalid = true;
        status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return status;
}

static void leave(struct object *object, void *capture) {
    struct stream *stream = (struct stream *)object;
    if (stream->capture == capture) stream->capture = NULL;
}

static void see_unjoined(struct object *object, void *detail) {
    struct stream *stream = (struct stream *)object;
    struct capture **capture = detail;
    if (stream->capture == *capture && stream != stream->capture->origin && stream->forked) *capture = NULL;
}

static void end(struct capture *capture, bool keep_graph) {
    object_each(KIND_STREAM, leave, capture);
    for (struct capture **at = &captures; *at; at = &(*at)->next) {
        if (*at != capture) continue;
        *at = capture->next;
        break;
    }
    if (!keep_graph) object_destroy(capture->graph);
    free(capture);
}

/* The stream is destroyed: if the capture began there, nobody can end it any more. */
void capture_abandon(struct stream *stream) {
    struct capture *capture = stream->capture;
    if (capture->origin == stream) end(capture, false);
    else capture->invalid = true;
}

void capture_reset(void) {
    while (captures) end(captures, false);
    thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
}

/* ---- entries ---- */

static CUresult find(CUstream handle, struct stream **stream) {
    struct context *context;
    CHECK(context_current(&context));
    return stream_find(handle, context, stream);
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
    ENTER(cuStreamBeginCapture_v2);
    struct stream *stream;
    CHECK(find(handle, &stream));
    REQUIRE(mode <= CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(!stream->legacy, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    REQUIRE(!stream->capture, CUDA_ERROR_ILLEGAL_STATE);
    struct capture *capture = calloc(1, sizeof *capture);
    if (!capture) abort();
    capture->graph = graph_new();
    capture->origin = stream;
    capture->mode = mode;
    capture->thread = thread_number();
    capture->number = ++capture_count;
    capture->next = captures;
    captures = stream->capture = capture;
    stream->last.count = 0;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *out) {
    ENTER(cuStreamEndCapture);
    struct stream *stream;
    CHECK(find(handle, &stream));
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    *out = NULL;
    struct capture *capture = stream->capture;
    REQUIRE(capture, CUDA_ERROR_ILLEGAL_STATE);
    if (capture->origin != stream) {
        capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    REQUIRE(capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || capture->thread == thread_number(),
            CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    struct capture *joined = capture;
    object_each(KIND_STREAM, see_unjoined, &joined);
    CUresult status = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                      : joined         ? CUDA_SUCCESS
                                       : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    if (!status) *out = HANDLE(capture->graph);
    end(capture, !status);
    return status;
}

static CUstreamCaptureStatus state_of(const struct stream *stream) {
    if (!stream->capture) return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static CUresult question(CUstream handle, CUstreamCaptureStatus *status, struct stream **stream) {
    CHECK(find(handle, stream));
    REQUIRE(status, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(!(*stream)->legacy || !capture_is_implicit((*stream)->object.context), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    *status = state_of(*stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
    ENTER(cuStreamIsCapturing);
    struct stream *stream;
    return question(handle, status, &stream);
}

static CUresult information(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                            const CUgraphNode **dependencies, size_t *count) {
    static __thread struct nodes last;
    struct stream *stream;
    CHECK(question(handle, status, &stream));
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
    last = stream->last;
    if (id) *id = stream->capture->number;
    if (graph) *graph = HANDLE(stream->capture->graph);
    if (dependencies) *dependencies = last.handles;
    if (count) *count = last.count;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **dependencies, size_t *count) {
    ENTER(cuStreamGetCaptureInfo_v2);
    return information(handle, status, id, graph, dependencies, count);
}

CUresult cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **dependencies, const CUgraphEdgeData **edges, size_t *count) {
    ENTER(cuStreamGetCaptureInfo_v3);
    static const CUgraphEdgeData plain[MAX_DEPENDENCIES];
    if (edges) *edges = plain;
    return information(handle, status, id, graph, dependencies, count);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    ENTER(cuThreadExchangeStreamCaptureMode);
    REQUIRE(mode && *mode <= CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_INVALID_VALUE);
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
