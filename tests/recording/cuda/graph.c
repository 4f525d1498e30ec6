/* Graphs: nodes that were captured or added, and what runs them. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

struct graph_exec {
    struct object object;
    struct graph *plan; /* a copy of its own */
    uint64_t *origins;  /* handles of the nodes that the copies were made of */
};

static void destroy_node(struct object *object) {
    struct node *node = (struct node *)object;
    record_clear(&node->recorded);
    free(node->places);
}

void nodes_join(struct nodes *nodes, const struct nodes *others) {
    for (uint32_t i = 0; i < others->count; i++) {
        uint32_t at = 0;
        while (at < nodes->count && nodes->handles[at] != others->handles[i]) at++;
        if (at < nodes->count) continue;
        if (nodes->count == MAX_DEPENDENCIES) abort();
        nodes->handles[nodes->count++] = others->handles[i];
    }
}

static void destroy_graph(struct object *object) {
    struct graph *graph = (struct graph *)object;
    for (size_t i = 0; i < graph->count; i++) object_destroy(graph->nodes[i]);
    free(graph->nodes);
    memory_free_graph(graph);
}

/* Graphs belong to no context: what they hold does. */
struct graph *graph_new(void) { return object_create(KIND_GRAPH, sizeof(struct graph), NULL, destroy_graph); }

struct node *graph_add(struct graph *graph, CUgraphNodeType type) {
    if (graph->count == graph->capacity) {
        graph->capacity = graph->capacity ? graph->capacity * 2 : 16;
        graph->nodes = realloc(graph->nodes, graph->capacity * sizeof *graph->nodes);
        if (!graph->nodes) abort();
    }
    struct node *node = object_create(KIND_NODE, sizeof *node, NULL, destroy_node);
    node->graph = graph;
    node->type = type;
    graph->nodes[graph->count++] = node;
    return node;
}

static CUresult find_graph(CUgraph handle, struct graph **graph) {
    *graph = object_find(handle, KIND_GRAPH);
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphCreate(CUgraph *out, unsigned flags) {
    ENTER(cuGraphCreate);
    REQUIRE(out && !flags, CUDA_ERROR_INVALID_VALUE);
    *out = HANDLE(graph_new());
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph handle) {
    ENTER(cuGraphDestroy);
    struct graph *graph;
    CHECK(find_graph(handle, &graph));
    object_destroy(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count) {
    ENTER(cuGraphGetNodes);
    struct graph *graph;
    CHECK(find_graph(handle, &graph));
    REQUIRE(count, CUDA_ERROR_INVALID_VALUE);
    if (!nodes) {
        *count = graph->count;
        return CUDA_SUCCESS;
    }
    for (size_t i = 0; i < *count; i++) nodes[i] = i < graph->count ? HANDLE(graph->nodes[i]) : NULL;
    if (*count > graph->count) *count = graph->count;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type) {
    ENTER(cuGraphNodeGetType);
    struct node *node = object_find(handle, KIND_NODE);
    REQUIRE(node && type, CUDA_ERROR_INVALID_VALUE);
    *type = node->type;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode *dependencies, size_t *count) {
    ENTER(cuGraphNodeGetDependencies);
    struct node *node = object_find(handle, KIND_NODE);
    REQUIRE(node && count, CUDA_ERROR_INVALID_VALUE);
    const struct nodes *known = &node->dependencies;
    for (size_t i = 0; dependencies && i < *count; i++) dependencies[i] = i < known->count ? known->handles[i] : NULL;
    if (!dependencies || *count > known->count) *count = known->count;
    return CUDA_SUCCESS;
}

/* The attributes of a kernel are not among these parameters: they stay what they are. */
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *parameters) {
    ENTER(cuGraphKernelNodeGetParams_v2);
    struct node *node = object_find(handle, KIND_NODE);
    REQUIRE(node && parameters && node->type == CU_GRAPH_NODE_TYPE_KERNEL, CUDA_ERROR_INVALID_VALUE);
    const struct recorded *recorded = &node->recorded;
    const struct launch *launch = &recorded->launch;
    struct context *context = object_find((void *)(uintptr_t)launch->context, KIND_CONTEXT);
    struct function *function;
    REQUIRE(context, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(function_resolve((CUfunction)(uintptr_t)launch->function, context, &function));
    free(node->places);
    node->places = calloc(launch->parameter_count + 1, sizeof *node->places);
    if (!node->places) abort();
    for (uint32_t i = 0; i < launch->parameter_count; i++)
        node->places[i] = recorded->bytes + recorded->parameters[i].offset;
    *parameters = (CUDA_KERNEL_NODE_PARAMS){
        .func = HANDLE(function),
        .gridDimX = launch->grid[0],
        .gridDimY = launch->grid[1],
        .gridDimZ = launch->grid[2],
        .blockDimX = launch->block[0],
        .blockDimY = launch->block[1],
        .blockDimZ = launch->block[2],
        .sharedMemBytes = launch->shared,
        .kernelParams = node->places,
        .kern = object_find((void *)(uintptr_t)launch->function, KIND_KERNEL) ? (CUkernel)(uintptr_t)launch->function : NULL,
        .ctx = (CUcontext)(uintptr_t)launch->context,
    };
    return CUDA_SUCCESS;
}

static CUresult prepare(int entry, const CUDA_KERNEL_NODE_PARAMS *parameters, struct recorded *recorded) {
    struct context *context = object_find(parameters->ctx, KIND_CONTEXT);
    if (!context) CHECK(context_current(&context));
    CUfunction function = parameters->func ? parameters->func : (CUfunction)parameters->kern;
    CUlaunchAttribute attributes[MAX_LAUNCH_ATTRIBUTES];
    unsigned count = recorded->launch.attribute_count; /* of a node that is changed, they stay */
    for (unsigned i = 0; i < count; i++) {
        attributes[i].id = (CUlaunchAttributeID)recorded->launch.attributes[i].id;
        memcpy(&attributes[i].value, recorded->launch.attributes[i].value, sizeof attributes[i].value);
    }
    CUlaunchConfig config = {
        .attrs = attributes,
        .numAttrs = count,
        .gridDimX = parameters->gridDimX,
        .gridDimY = parameters->gridDimY,
        .gridDimZ = parameters->gridDimZ,
        .blockDimX = parameters->blockDimX,
        .blockDimY = parameters->blockDimY,
        .blockDimZ = parameters->blockDimZ,
        .sharedMemBytes = parameters->sharedMemBytes,
    };
    return launch_prepare(entry, function, &config, false, parameters->kernelParams, parameters->extra, context,
                          context->legacy, recorded);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph handle, const CUgraphNode *dependencies, size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS *parameters) {
    ENTER(cuGraphAddKernelNode_v2);
    struct graph *graph;
    struct recorded recorded = {0};
    CHECK(find_graph(handle, &graph));
    REQUIRE(out && parameters && (dependencies || !count), CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        struct node *node = object_find(dependencies[i], KIND_NODE);
        REQUIRE(node && node->graph == graph, CUDA_ERROR_INVALID_VALUE);
    }
    REQUIRE(count <= MAX_DEPENDENCIES, CUDA_ERROR_INVALID_VALUE);
    CUresult status = prepare(ENTRY_cuGraphAddKernelNode_v2, parameters, &recorded);
    if (!status) {
        struct node *node = graph_add(graph, CU_GRAPH_NODE_TYPE_KERNEL);
        node->recorded = recorded;
        node->dependencies.count = (uint32_t)count;
        for (size_t i = 0; i < count; i++) node->dependencies.handles[i] = dependencies[i];
        *out = HANDLE(node);
    } else {
        record_clear(&recorded);
    }
    return status;
}

/* ---- running ---- */

static void destroy_exec(struct object *object) {
    struct graph_exec *exec = (struct graph_exec *)object;
    object_destroy(exec->plan);
    free(exec->origins);
}

static CUresult instantiate(CUgraphExec *out, CUgraph handle) {
    struct graph *graph;
    CHECK(find_graph(handle, &graph));
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    struct graph_exec *exec = object_create(KIND_GRAPH_EXEC, sizeof *exec, NULL, destroy_exec);
    exec->plan = graph_new();
    exec->origins = calloc(graph->count + 1, sizeof *exec->origins);
    if (!exec->origins) abort();
    for (size_t i = 0; i < graph->count; i++) {
        struct node *node = graph_add(exec->plan, graph->nodes[i]->type);
        if (node->type == CU_GRAPH_NODE_TYPE_KERNEL) record_copy(&node->recorded, &graph->nodes[i]->recorded);
        exec->origins[i] = graph->nodes[i]->object.handle;
    }
    *out = HANDLE(exec);
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags) {
    ENTER(cuGraphInstantiateWithFlags);
    REQUIRE(flags <= 15, CUDA_ERROR_INVALID_VALUE);
    return instantiate(out, handle);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters) {
    ENTER(cuGraphInstantiateWithParams);
    REQUIRE(parameters, CUDA_ERROR_INVALID_VALUE);
    parameters->hErrNode_out = NULL;
    parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return instantiate(out, handle);
}

static CUresult find_exec(CUgraphExec handle, struct graph_exec **exec) {
    *exec = object_find(handle, KIND_GRAPH_EXEC);
    return *exec ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
    ENTER(cuGraphExecDestroy);
    struct graph_exec *exec;
    CHECK(find_exec(handle, &exec));
    object_destroy(exec);
    return CUDA_SUCCESS;
}

/* What a graph that is run has for a kernel of the graph that it was made of. */
static CUresult find_kernel(CUgraphExec handle, CUgraphNode origin, struct node **node) {
    struct graph_exec *exec;
    CHECK(find_exec(handle, &exec));
    for (size_t i = 0; i < exec->plan->count; i++) {
        *node = exec->plan->nodes[i];
        if (exec->origins[i] == (uint64_t)(uintptr_t)origin && (*node)->type == CU_GRAPH_NODE_TYPE_KERNEL)
            return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec handle, CUgraphNode origin,
                                           const CUDA_KERNEL_NODE_PARAMS *parameters) {
    ENTER(cuGraphExecKernelNodeSetParams_v2);
    struct node *node;
    CHECK(find_kernel(handle, origin, &node));
    REQUIRE(parameters, CUDA_ERROR_INVALID_VALUE);
    struct recorded changed = {.launch = node->recorded.launch};
    CUresult status = prepare(ENTRY_cuGraphExecKernelNodeSetParams_v2, parameters, &changed);
    if (!status) record_copy(&node->recorded, &changed);
    record_clear(&changed);
    return status;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode origin, unsigned enabled) {
    ENTER(cuGraphNodeSetEnabled);
    struct node *node;
    CHECK(find_kernel(handle, origin, &node));
    node->disabled = !enabled;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode origin, unsigned *enabled) {
    ENTER(cuGraphNodeGetEnabled);
    struct node *node;
    CHECK(find_kernel(handle, origin, &node));
    REQUIRE(enabled, CUDA_ERROR_INVALID_VALUE);
    *enabled = !node->disabled;
    return CUDA_SUCCESS;
}

static CUresult begin_run(CUgraphExec handle, CUstream stream_handle, struct graph_exec **exec,
                          struct stream **stream) {
    struct context *context;
    CHECK(context_current(&context));
    CHECK(find_exec(handle, exec));
    return stream_find(stream_handle, context, stream);
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
    ENTER(cuGraphUpload);
    struct graph_exec *exec;
    struct stream *stream;
    return begin_run(handle, stream_handle, &exec, &stream);
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
    CHECK(launch_wait_for_room());
    ENTER(cuGraphLaunch);
    struct graph_exec *exec;
    struct stream *stream;
    struct node *node;
    CHECK(begin_run(handle, stream_handle, &exec, &stream));
    if (stream->capture) { /* it cannot be a part of another graph */
        stream->capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    CHECK(stream_enqueue(stream, CU_GRAPH_NODE_TYPE_EMPTY, &node));
    for (size_t i = 0; !node && i < exec->plan->count; i++) {
        struct recorded *recorded = &exec->plan->nodes[i]->recorded;
        if (exec->plan->nodes[i]->type != CU_GRAPH_NODE_TYPE_KERNEL || exec->plan->nodes[i]->disabled) continue;
        recorded->launch.captured = 2;
        recorded->launch.stream = (uint64_t)(uintptr_t)stream_handle;
        recorded->launch.thread = thread_number();
        record_launch(recorded);
    }
    return CUDA_SUCCESS;
}
