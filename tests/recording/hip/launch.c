/* Launches: what the real runtime would refuse is refused, everything else is recorded, and twins are run. */
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "state.h"

#define MAX_TWINS 64

/* The shape of a launch for a kernel that podium's CPU backend has compiled: podium_cpu_launch.h. */
struct shape {
    uint32_t grid[3], block[3];
    uint64_t shared, stream, cooperative;
};
typedef int (*twin)(const struct shape *shape, void *const *parameters);

static struct { char name[256]; uint64_t address; } twins[MAX_TWINS];

void launch_reset(void) { memset(twins, 0, sizeof twins); }

/* The runtime's own order of checks, which decides which of two mistakes is told. */
static hipError_t check(const struct launch *launch, const struct function *function) {
    const struct device *device = &devices[function->module ? module_device(function->module) : 0];
    const uint32_t *grid = launch->grid, *block = launch->block;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    REQUIRE(grid[0] && grid[1] && grid[2] && threads, hipErrorInvalidValue);
    REQUIRE(grid[0] <= 2147483647u && grid[1] <= 65536 && grid[2] <= 65536, hipErrorInvalidValue);
    for (int i = 0; i < 3; i++) REQUIRE((uint64_t)grid[i] * block[i] <= UINT32_MAX, hipErrorInvalidValue);
    REQUIRE(threads <= 1024, hipErrorInvalidValue);
    REQUIRE(launch->shared + (uint64_t)function->kernel->group_size <= (uint64_t)device_shared_bytes(device),
            hipErrorInvalidValue);
    REQUIRE(threads <= function->kernel->max_block, hipErrorLaunchFailure);
    if (!launch->cooperative) return hipSuccess;
    REQUIRE(device->cooperative, hipErrorLaunchFailure);
    uint64_t waves = (threads + (uint64_t)device_wave_size(device) - 1) / (uint64_t)device_wave_size(device);
    uint64_t most = 2048 / (uint64_t)device_wave_size(device) / waves * (uint64_t)device->units;
    REQUIRE((uint64_t)grid[0] * grid[1] * grid[2] <= most, hipErrorCooperativeLaunchTooLarge);
    return hipSuccess;
}

/* Where the arguments begin in a buffer that the caller has packed. */
static hipError_t find_buffer(void **extra, const uint8_t **buffer) {
    size_t size = 0;
    *buffer = NULL;
    for (; *extra != HIP_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == HIP_LAUNCH_PARAM_BUFFER_POINTER) *buffer = extra[1];
        else if (*extra == HIP_LAUNCH_PARAM_BUFFER_SIZE) size = *(const size_t *)extra[1];
        else return hipErrorInvalidValue;
    }
    return *buffer && size ? hipSuccess : hipErrorInvalidValue;
}

/* As the real runtime does, each argument is read with the size that the code object gives it. */
static hipError_t gather(const struct kernel *kernel, void **parameters, void **extra, struct recorded *recorded) {
    const uint8_t *buffer = NULL;
    uint32_t found = 0;
    REQUIRE(!parameters || !extra, hipErrorInvalidValue);
    REQUIRE(parameters || extra || !kernel->explicit_count, hipErrorInvalidValue);
    if (extra) CHECK(find_buffer(extra, &buffer));
    recorded->bytes = calloc(1, kernel->explicit_bytes ? kernel->explicit_bytes : 1);
    recorded->arguments = calloc(kernel->explicit_count ? kernel->explicit_count : 1, sizeof *recorded->arguments);
    if (!recorded->bytes || !recorded->arguments) abort();
    for (uint32_t i = 0; i < kernel->argument_count; i++) {
        const struct argument *argument = &kernel->arguments[i];
        if (argument->hidden) continue;
        const void *source = buffer ? buffer + argument->offset : parameters[found];
        REQUIRE(source, hipErrorInvalidValue);
        memcpy(recorded->bytes + argument->offset, source, argument->size);
        recorded->arguments[found++] = *argument;
    }
    recorded->launch.argument_count = found;
    recorded->launch.argument_bytes = kernel->explicit_bytes;
    recorded->launch.through_buffer = buffer != NULL;
    return hipSuccess;
}

void launch_run(const struct recorded *recorded) {
    const struct launch *launch = &recorded->launch;
    struct device *device = &devices[launch->device];
    if (device->fault) {
        device->pending = device->fault;
        device->fault = hipSuccess;
    }
    for (int i = 0; i < MAX_TWINS; i++) {
        if (!twins[i].address || strcmp(twins[i].name, launch->name)) continue;
        void **parameters = calloc(launch->argument_count ? launch->argument_count : 1, sizeof *parameters);
        struct shape shape = {{0}, {0}, launch->shared, 0, launch->cooperative};
        if (!parameters) abort();
        memcpy(shape.grid, launch->grid, sizeof shape.grid);
        memcpy(shape.block, launch->block, sizeof shape.block);
        for (uint32_t j = 0; j < launch->argument_count; j++)
            parameters[j] = recorded->bytes + recorded->arguments[j].offset;
        if (((twin)(uintptr_t)twins[i].address)(&shape, parameters)) device->pending = hipErrorLaunchFailure;
        free(parameters);
    }
}

/* `recorded` comes with what the caller knows: entry, shape, attributes. */
static hipError_t prepare(hipFunction_t handle, hipStream_t stream_handle, void **parameters, void **extra,
                          struct recorded *recorded) {
    const struct function *function = function_find(handle);
    struct stream *stream = stream_find(stream_handle);
    struct launch *launch = &recorded->launch;
    REQUIRE(function, hipErrorInvalidHandle);
    REQUIRE(stream, hipErrorContextIsDestroyed);
    int device = (uintptr_t)stream_handle <= 2 ? current_device : stream->device;
    REQUIRE(module_device(function->module) == device, hipErrorInvalidDevice);
    CHECK(check(launch, function));
    launch->function = (uint64_t)(uintptr_t)handle;
    launch->stream = (uint64_t)(uintptr_t)stream_handle;
    launch->thread = thread_number();
    launch->device = device;
    launch->group = launch->shared + function->kernel->group_size;
    launch->kernarg_size = function->kernel->kernarg_size;
    launch->captured = stream->capture != NULL;
    memcpy(launch->name, function->kernel->name, sizeof launch->name);
    CHECK(gather(function->kernel, parameters, extra, recorded));
    CHECK(devices[device].pending);
    record_launch(recorded);
    if (stream->capture) graph_add(stream->capture, recorded);
    else launch_run(recorded);
    return hipSuccess;
}

static hipError_t start(hipFunction_t function, hipStream_t stream, void **parameters, void **extra,
                        struct recorded *recorded) {
    hipError_t status = prepare(function, stream, parameters, extra, recorded);
    record_clear(recorded);
    return status;
}

static struct recorded shaped(enum entry entry, const unsigned grid[3], const unsigned block[3], unsigned shared) {
    struct recorded recorded = {0};
    recorded.launch.entry = (uint32_t)entry;
    memcpy(recorded.launch.grid, grid, sizeof recorded.launch.grid);
    memcpy(recorded.launch.block, block, sizeof recorded.launch.block);
    recorded.launch.shared = shared;
    return recorded;
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                 hipStream_t stream, void **parameters, void **extra) {
    const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
    struct recorded recorded = shaped(ENTRY_hipModuleLaunchKernel, grid, block, shared);
    CALL(hipModuleLaunchKernel, start(function, stream, parameters, extra, &recorded));
}

#if RECORDING_HIP_MAJOR >= 6
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                            hipStream_t stream, void **parameters) {
    const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
    struct recorded recorded = shaped(ENTRY_hipModuleLaunchCooperativeKernel, grid, block, shared);
    recorded.launch.cooperative = 1;
    CALL(hipModuleLaunchCooperativeKernel, start(function, stream, parameters, NULL, &recorded));
}
#endif

#if RECORDING_HIP_MAJOR >= 7
static hipError_t extended(const HIP_LAUNCH_CONFIG *config, hipFunction_t function, void **parameters, void **extra) {
    REQUIRE(config && (config->attrs || !config->numAttrs), hipErrorInvalidValue);
    REQUIRE(config->numAttrs <= MAX_ATTRIBUTES, hipErrorInvalidValue);
    const unsigned grid[] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    const unsigned block[] = {config->blockDimX, config->blockDimY, config->blockDimZ};
    struct recorded recorded = shaped(ENTRY_hipDrvLaunchKernelEx, grid, block, config->sharedMemBytes);
    recorded.launch.attribute_count = config->numAttrs;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const hipLaunchAttribute *attribute = &config->attrs[i];
        REQUIRE((int)attribute->id > 0 && attribute->id < hipLaunchAttributeMax, hipErrorInvalidValue);
        recorded.launch.attributes[i].id = (uint32_t)attribute->id;
        memcpy(recorded.launch.attributes[i].value, &attribute->val, sizeof recorded.launch.attributes[i].value);
        if (attribute->id == hipLaunchAttributeCooperative) recorded.launch.cooperative = attribute->val.cooperative != 0;
    }
    return start(function, config->hStream, parameters, extra, &recorded);
}

hipError_t hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG *config, hipFunction_t function, void **parameters, void **extra) {
    CALL(hipDrvLaunchKernelEx, extended(config, function, parameters, extra));
}
#endif

void podium_recording_twin(const char *kernel, uint64_t address) {
    int place = 0;
    lock_take();
    while (place < MAX_TWINS && twins[place].address && strcmp(twins[place].name, kernel)) place++;
    if (place == MAX_TWINS || strlen(kernel) >= sizeof twins[place].name) abort();
    strcpy(twins[place].name, kernel);
    twins[place].address = address;
    lock_leave();
}
