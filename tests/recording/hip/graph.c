/* Captures and graphs of launches: what is launched on a stream while it is captured runs when its graph does. */
#include <stdlib.h>

#include "state.h"

struct graph {
    struct recorded *launches;
    size_t count;
    uint64_t number;
    bool runs; /* made to be launched: a hipGraphExec_t */
    struct graph *next;
};
static struct graph *graphs;
static uint64_t captures;

static struct graph *create(bool runs) {
    struct graph *graph = calloc(1, sizeof *graph);
    if (!graph) abort();
    graph->runs = runs;
    graph->next = graphs;
    return graphs = graph;
}

static struct graph *find(const void *handle, bool runs) {
    struct graph *graph = graphs;
    while (graph && (graph != handle || graph->runs != runs)) graph = graph->next;
    return graph;
}

static void forget(struct graph *graph) {
    struct graph **place = &graphs;
    while (*place != graph) place = &(*place)->next;
    *place = graph->next;
    for (size_t i = 0; i < graph->count; i++) record_clear(&graph->launches[i]);
    free(graph->launches);
    free(graph);
}

void graph_reset(void) {
    while (graphs) forget(graphs);
}

void graph_add(struct graph *graph, const struct recorded *recorded) {
    struct recorded *launches = realloc(graph->launches, (graph->count + 1) * sizeof *launches);
    if (!launches) abort();
    graph->launches = launches;
    launches[graph->count] = (struct recorded){0};
    record_copy(&launches[graph->count++], recorded);
}

static hipError_t begin(hipStream_t handle, int mode) {
    struct stream *stream = stream_find(handle);
    REQUIRE(stream, hipErrorContextIsDestroyed);
    REQUIRE((uintptr_t)handle > 1, hipErrorStreamCaptureUnsupported); /* not the default one */
    REQUIRE(mode >= hipStreamCaptureModeGlobal && mode <= hipStreamCaptureModeRelaxed, hipErrorInvalidValue);
    REQUIRE(!stream->capture, hipErrorIllegalState);
    stream->capture = create(false);
    stream->capture->number = ++captures;
    return hipSuccess;
}

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
    CALL(hipStreamBeginCapture, begin(stream, (int)mode));
}

static hipError_t end(hipStream_t handle, hipGraph_t *out) {
    struct stream *stream = stream_find(handle);
    REQUIRE(out, hipErrorInvalidValue);
    REQUIRE(stream, hipErrorContextIsDestroyed);
    REQUIRE(stream->capture, hipErrorIllegalState);
    *out = (hipGraph_t)stream->capture;
    stream->capture = NULL;
    return hipSuccess;
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *out) { CALL(hipStreamEndCapture, end(stream, out)); }

static hipError_t state(hipStream_t handle, hipStreamCaptureStatus *out, unsigned long long *number) {
    const struct stream *stream = stream_find(handle);
    REQUIRE(out, hipErrorInvalidValue);
    REQUIRE(stream, hipErrorContextIsDestroyed);
    *out = stream->capture ? hipStreamCaptureStatusActive : hipStreamCaptureStatusNone;
    if (number && stream->capture) *number = stream->capture->number;
    return hipSuccess;
}

hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *out) {
    CALL(hipStreamIsCapturing, state(stream, out, NULL));
}

hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus *out, unsigned long long *number) {
    CALL(hipStreamGetCaptureInfo, state(stream, out, number));
}

static hipError_t exchange(hipStreamCaptureMode *mode) {
    static __thread hipStreamCaptureMode own; /* "global" at first */
    REQUIRE(mode && (int)*mode >= 0 && (int)*mode <= hipStreamCaptureModeRelaxed, hipErrorInvalidValue);
    hipStreamCaptureMode before = own;
    own = *mode;
    *mode = before;
    return hipSuccess;
}

hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
    CALL(hipThreadExchangeStreamCaptureMode, exchange(mode));
}

static hipError_t instantiate(hipGraphExec_t *out, hipGraph_t handle) {
    const struct graph *graph = find(handle, false);
    REQUIRE(out && graph, hipErrorInvalidValue);
    struct graph *made = create(true);
    for (size_t i = 0; i < graph->count; i++) graph_add(made, &graph->launches[i]);
    *out = (hipGraphExec_t)made;
    return hipSuccess;
}

hipError_t hipGraphInstantiate(hipGraphExec_t *out, hipGraph_t graph, hipGraphNode_t *node, char *log, size_t size) {
    (void)node, (void)log, (void)size;
    CALL(hipGraphInstantiate, instantiate(out, graph));
}

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *out, hipGraph_t graph, unsigned long long flags) {
    (void)flags;
    CALL(hipGraphInstantiateWithFlags, instantiate(out, graph));
}

static hipError_t launch(hipGraphExec_t handle, hipStream_t stream) {
    const struct graph *graph = find(handle, true);
    REQUIRE(graph, hipErrorInvalidValue);
    REQUIRE(stream_find(stream), hipErrorContextIsDestroyed);
    for (size_t i = 0; i < graph->count; i++) {
        struct recorded recorded = {0};
        record_copy(&recorded, &graph->launches[i]);
        recorded.launch.captured = 0;
        recorded.launch.stream = (uint64_t)(uintptr_t)stream;
        recorded.launch.entry = ENTRY_hipGraphLaunch;
        record_launch(&recorded);
        launch_run(&recorded);
        record_clear(&recorded);
    }
    return hipSuccess;
}

hipError_t hipGraphLaunch(hipGraphExec_t graph, hipStream_t stream) { CALL(hipGraphLaunch, launch(graph, stream)); }

static hipError_t destroy(const void *handle, bool runs) {
    struct graph *graph = find(handle, runs);
    REQUIRE(graph, hipErrorInvalidValue);
    forget(graph);
    return hipSuccess;
}

hipError_t hipGraphDestroy(hipGraph_t graph) { CALL(hipGraphDestroy, destroy(graph, false)); }
hipError_t hipGraphExecDestroy(hipGraphExec_t graph) { CALL(hipGraphExecDestroy, destroy(graph, true)); }
