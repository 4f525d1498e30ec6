/* Launches: what a real device would refuse is refused, and everything else is recorded. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "control.h"
#include "state.h"

/* A queue that a test has filled: launches wait in it, outside of the library's own lock, as long as a test may take. */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_changed = PTHREAD_COND_INITIALIZER;
static bool queue_full;
static int queue_waiting;

static bool queue_wait(const bool *end, const int *begin) {
    struct timespec latest;
    clock_gettime(CLOCK_REALTIME, &latest);
    latest.tv_sec += 20;
    while (end ? *end : !*begin)
        if (pthread_cond_timedwait(&queue_changed, &queue_lock, &latest)) return false;
    return true;
}

CUresult launch_wait_for_room(void) {
    pthread_mutex_lock(&queue_lock);
    queue_waiting++;
    if (queue_full) pthread_cond_broadcast(&queue_changed);
    bool in_time = queue_wait(&queue_full, NULL);
    queue_waiting--;
    pthread_mutex_unlock(&queue_lock);
    return in_time ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_TIMEOUT;
}

void podium_recording_set_full(int full) {
    pthread_mutex_lock(&queue_lock);
    queue_full = full;
    pthread_cond_broadcast(&queue_changed);
    pthread_mutex_unlock(&queue_lock);
}

int podium_recording_await_full(void) {
    pthread_mutex_lock(&queue_lock);
    bool in_time = queue_wait(NULL, &queue_waiting);
    pthread_mutex_unlock(&queue_lock);
    return in_time;
}

static CUresult check_shape(const CUlaunchConfig *config, const struct function *function, const int *device) {
    const unsigned grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    const unsigned block[3] = {config->blockDimX, config->blockDimY, config->blockDimZ};
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        REQUIRE(grid[i] && grid[i] <= (unsigned)device[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i], CUDA_ERROR_INVALID_VALUE);
        REQUIRE(block[i] && block[i] <= (unsigned)device[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i],
                CUDA_ERROR_INVALID_VALUE);
        threads *= block[i];
    }
    REQUIRE(threads <= (uint64_t)device[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK], CUDA_ERROR_INVALID_VALUE);
    REQUIRE(threads <= (uint64_t)function->attribute[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK], CUDA_ERROR_INVALID_VALUE);
    REQUIRE(config->sharedMemBytes <=
                (unsigned)function->attribute[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES],
            CUDA_ERROR_INVALID_VALUE);
    REQUIRE(occupancy_blocks(function, function->object.context->device, (int)threads, config->sharedMemBytes),
            CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    return CUDA_SUCCESS;
}

static CUresult check_attribute(const CUlaunchAttribute *attribute, const int *device) {
    const CUlaunchAttributeValue *value = &attribute->value;
    switch ((int)attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        REQUIRE(device[CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH], CUDA_ERROR_NOT_SUPPORTED);
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        REQUIRE(device[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] >= 10, CUDA_ERROR_INVALID_CLUSTER_SIZE);
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        REQUIRE(device[CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH], CUDA_ERROR_NOT_SUPPORTED);
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        REQUIRE(value->clusterSchedulingPolicyPreference <= 2, CUDA_ERROR_INVALID_VALUE);
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        REQUIRE(value->sharedMemCarveout <= 100, CUDA_ERROR_INVALID_VALUE);
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        REQUIRE(value->memSyncDomain <= 1, CUDA_ERROR_INVALID_VALUE);
        return CUDA_SUCCESS;
    default:
        REQUIRE((int)attribute->id >= 0 && (int)attribute->id <= CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING,
                CUDA_ERROR_INVALID_VALUE);
        return CUDA_SUCCESS;
    }
}

static CUresult read_attributes(const CUlaunchConfig *config, const int *device, struct launch *launch,
                                bool *cooperative) {
    REQUIRE(config->attrs || !config->numAttrs, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(config->numAttrs <= MAX_LAUNCH_ATTRIBUTES, CUDA_ERROR_INVALID_VALUE);
    launch->attribute_count = config->numAttrs;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];
        CHECK(check_attribute(attribute, device));
        launch->attributes[i].id = (uint32_t)attribute->id;
        launch->attributes[i].unused = 0;
        memcpy(launch->attributes[i].value, &attribute->value, sizeof launch->attributes[i].value);
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && attribute->value.cooperative) *cooperative = true;
    }
    return CUDA_SUCCESS;
}

static CUresult read_buffer(void **extra, struct recorded *recorded) {
    const void *buffer = NULL;
    size_t size = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(const size_t *)extra[1];
        else return CUDA_ERROR_INVALID_VALUE;
    }
    REQUIRE(buffer && size >= recorded->launch.parameter_bytes, CUDA_ERROR_INVALID_VALUE);
    memcpy(recorded->bytes, buffer, recorded->launch.parameter_bytes);
    return CUDA_SUCCESS;
}

static CUresult read_parameters(void **parameters, void **extra, struct recorded *recorded) {
    struct launch *launch = &recorded->launch;
    launch->stale = 0;
    REQUIRE(!parameters || !extra, CUDA_ERROR_INVALID_VALUE);
    if (!launch->parameter_count) return CUDA_SUCCESS;
    REQUIRE(parameters || extra, CUDA_ERROR_INVALID_VALUE);
    if (extra) return read_buffer(extra, recorded);
    for (uint32_t i = 0; i < launch->parameter_count; i++) {
        const struct parameter *parameter = &recorded->parameters[i];
        REQUIRE(parameters[i], CUDA_ERROR_INVALID_VALUE);
        memcpy(recorded->bytes + parameter->offset, parameters[i], parameter->size);
        uint64_t address;
        if (parameter->size != sizeof address) continue;
        memcpy(&address, recorded->bytes + parameter->offset, sizeof address);
        launch->stale += memory_is_stale(address);
    }
    return CUDA_SUCCESS;
}

CUresult launch_prepare(int entry, CUfunction handle, const CUlaunchConfig *config, bool cooperative,
                        void **parameters, void **extra, struct context *context, struct stream *stream,
                        struct recorded *recorded) {
    struct function *function;
    struct launch *launch = &recorded->launch;
    CHECK(function_resolve(handle, context, &function));
    const int *device = devices[context->device].attribute;
    CHECK(check_shape(config, function, device));
    CHECK(read_attributes(config, device, launch, &cooperative));
    CHECK(occupancy_cluster(config, function, launch->cluster));
    uint64_t blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;
    if (cooperative) {
        int threads = (int)(config->blockDimX * config->blockDimY * config->blockDimZ);
        uint64_t most = (uint64_t)occupancy_blocks(function, context->device, threads, config->sharedMemBytes) *
                        (uint64_t)device[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
        REQUIRE(blocks <= most, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    }
    launch->entry = (uint32_t)entry;
    launch->function = (uint64_t)(uintptr_t)handle;
    launch->context = context->object.handle;
    launch->stream = (uint64_t)(uintptr_t)config->hStream;
    launch->thread = thread_number();
    launch->device = context->device;
    launch->grid[0] = config->gridDimX;
    launch->grid[1] = config->gridDimY;
    launch->grid[2] = config->gridDimZ;
    launch->block[0] = config->blockDimX;
    launch->block[1] = config->blockDimY;
    launch->block[2] = config->blockDimZ;
    launch->shared = config->sharedMemBytes;
    launch->captured = stream->capture != NULL;
    memcpy(launch->name, function->info->name, sizeof launch->name);
    record_begin(recorded, function->info);
    return read_parameters(parameters, extra, recorded);
}

static CUresult launch(int entry, CUfunction handle, const CUlaunchConfig *config, bool cooperative, void **parameters,
                       void **extra) {
    static struct recorded recorded; /* under the lock; its memory is used again */
    struct context *context;
    struct stream *stream;
    struct node *node;
    CHECK(context_current(&context));
    REQUIRE(handle, CUDA_ERROR_INVALID_HANDLE);
    CHECK(stream_find(config->hStream, context, &stream));
    context = stream->object.context; /* the stream decides where it runs; without one it is the current context */
    CHECK(launch_prepare(entry, handle, config, cooperative, parameters, extra, context, stream, &recorded));
    CHECK(stream_enqueue(stream, CU_GRAPH_NODE_TYPE_KERNEL, &node));
    if (!node) {
        record_launch(&recorded);
        return CUDA_SUCCESS;
    }
    record_copy(&node->recorded, &recorded);
    record_note(&recorded);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,
                        void **extra) {
    CHECK(launch_wait_for_room());
    ENTER(cuLaunchKernel);
    CUlaunchConfig config = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0};
    return launch(ENTRY_cuLaunchKernel, function, &config, false, parameters, extra);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    CHECK(launch_wait_for_room());
    ENTER(cuLaunchKernelEx);
    REQUIRE(config, CUDA_ERROR_INVALID_VALUE);
    return launch(ENTRY_cuLaunchKernelEx, function, config, false, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                   CUstream stream, void **parameters) {
    CHECK(launch_wait_for_room());
    ENTER(cuLaunchCooperativeKernel);
    CUlaunchConfig config = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0};
    return launch(ENTRY_cuLaunchCooperativeKernel, function, &config, true, parameters, NULL);
}
