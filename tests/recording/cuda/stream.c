/* Streams: which context they belong to, and work that is put on them. */
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "state.h"

#define LEGACY ((CUstream)(uintptr_t)1)
#define PER_THREAD ((CUstream)(uintptr_t)2)

bool streams_busy;
static uint64_t thread_count, stream_count;

uint64_t thread_number(void) {
    static __thread uint64_t number;
    if (!number) number = __atomic_add_fetch(&thread_count, 1, __ATOMIC_RELAXED);
    return number;
}

static void destroy_stream(struct object *object) {
    struct stream *stream = (struct stream *)object;
    if (stream->capture) capture_abandon(stream);
}

static struct stream *new_stream(struct context *context, unsigned flags, int priority) {
    struct stream *stream = object_create(KIND_STREAM, sizeof *stream, context, destroy_stream);
    stream->flags = flags;
    stream->priority = priority;
    stream->number = ++stream_count;
    return stream;
}

void stream_new_legacy(struct context *context) {
    context->legacy = new_stream(context, 0, 0);
    context->legacy->legacy = true;
}

struct thread_question { struct context *context; uint64_t thread; struct stream *found; };

static void look_for_thread(struct object *object, void *detail) {
    struct stream *stream = (struct stream *)object;
    struct thread_question *question = detail;
    if (stream->per_thread && object->context == question->context && stream->thread == question->thread)
        question->found = stream;
}

static struct stream *per_thread_stream(struct context *context) {
    struct thread_question question = {context, thread_number(), NULL};
    struct stream *stream = object_find((void *)(uintptr_t)context->last_per_thread, KIND_STREAM);
    if (stream && stream->thread == question.thread) return stream;
    object_each(KIND_STREAM, look_for_thread, &question);
    stream = question.found;
    if (!stream) {
        stream = new_stream(context, 0, 0);
        stream->per_thread = true;
        stream->thread = question.thread;
    }
    context->last_per_thread = stream->object.handle;
    return stream;
}

CUresult stream_find(CUstream handle, struct context *context, struct stream **out) {
    if (!handle || handle == LEGACY) {
        *out = context->legacy;
    } else if (handle == PER_THREAD) {
        *out = per_thread_stream(context);
    } else {
        *out = object_find(handle, KIND_STREAM);
    }
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult stream_enqueue(struct stream *stream, CUgraphNodeType type, struct node **node) {
    *node = NULL;
    if (!stream->capture) {
        if (!stream->legacy || !capture_is_implicit(stream->object.context)) return CUDA_SUCCESS;
        capture_invalidate_blocking(stream->object.context);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    REQUIRE(!stream->capture->invalid, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    *node = graph_add(stream->capture->graph, type);
    (*node)->dependencies = stream->last;
    stream->last = (struct nodes){1, {HANDLE(*node)}};
    if (stream->capture->origin != stream) stream->forked = true;
    return CUDA_SUCCESS;
}

/* ---- entries ---- */

static CUresult create(CUstream *out, unsigned flags, int priority) {
    struct context *context;
    CHECK(context_current(&context));
    REQUIRE(out && flags <= CU_STREAM_NON_BLOCKING, CUDA_ERROR_INVALID_VALUE);
    if (priority > 0) priority = 0;
    if (priority < -5) priority = -5;
    *out = HANDLE(new_stream(context, flags, priority));
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *out, unsigned flags) {
    ENTER(cuStreamCreate);
    return create(out, flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
    ENTER(cuStreamCreateWithPriority);
    return create(out, flags, priority);
}

static CUresult find(CUstream handle, struct stream **stream) {
    struct context *context;
    CHECK(context_current(&context));
    return stream_find(handle, context, stream);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
    ENTER(cuStreamDestroy_v2);
    struct stream *stream = object_find(handle, KIND_STREAM);
    REQUIRE(stream && !stream->legacy && !stream->per_thread, CUDA_ERROR_INVALID_HANDLE);
    object_destroy(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int *priority) {
    ENTER(cuStreamGetPriority);
    struct stream *stream;
    CHECK(find(handle, &stream));
    REQUIRE(priority, CUDA_ERROR_INVALID_VALUE);
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *flags) {
    ENTER(cuStreamGetFlags);
    struct stream *stream;
    CHECK(find(handle, &stream));
    REQUIRE(flags, CUDA_ERROR_INVALID_VALUE);
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id) {
    ENTER(cuStreamGetId);
    struct stream *stream;
    CHECK(find(handle, &stream));
    REQUIRE(id, CUDA_ERROR_INVALID_VALUE);
    *id = stream->number;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *out) {
    ENTER(cuStreamGetCtx);
    struct stream *stream;
    CHECK(find(handle, &stream));
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    *out = HANDLE(stream->object.context);
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *device) {
    ENTER(cuStreamGetDevice);
    struct stream *stream;
    CHECK(find(handle, &stream));
    REQUIRE(device, CUDA_ERROR_INVALID_VALUE);
    *device = stream->object.context->device;
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle) {
    ENTER(cuStreamQuery);
    struct stream *stream;
    CHECK(find(handle, &stream));
    CHECK(capture_allows_synchronize(stream));
    CHECK(capture_allows_unsafe());
    return streams_busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream handle) {
    ENTER(cuStreamSynchronize);
    struct stream *stream;
    CHECK(find(handle, &stream));
    CHECK(capture_allows_synchronize(stream));
    CHECK(capture_allows_unsafe());
    streams_busy = false;
    return CUDA_SUCCESS;
}

/* A function of the host runs where it is put on the stream, since all work before it has ended; the lock is let go. */
static CUresult run_on_host(CUstream handle, CUhostFn function, CUstreamCallback callback, void *data) {
    struct stream *stream;
    struct node *node;
    CHECK(find(handle, &stream));
    REQUIRE(function || callback, CUDA_ERROR_INVALID_VALUE);
    CHECK(stream_enqueue(stream, CU_GRAPH_NODE_TYPE_HOST, &node));
    if (node) return CUDA_SUCCESS;
    int unlocked = 1;
    entry_leave(&unlocked);
    if (function) function(data);
    else callback(handle, CUDA_SUCCESS, data);
    entry_lock();
    return CUDA_SUCCESS;
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *data, unsigned flags) {
    ENTER(cuStreamAddCallback);
    REQUIRE(!flags, CUDA_ERROR_INVALID_VALUE);
    return run_on_host(handle, NULL, callback, data);
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *data) {
    ENTER(cuLaunchHostFunc);
    return run_on_host(handle, function, NULL, data);
}

void podium_recording_set_busy(int busy) {
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    streams_busy = busy;
}
