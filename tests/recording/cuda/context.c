/* Contexts: the primary one of each device, others, and the stack of each thread. */
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "state.h"

#define STACK 64
#define KNOWN_FLAGS 0xffu
#define MAPS_HOST_MEMORY 8u /* of all contexts, whoever asked for it */

static __thread CUcontext stack[STACK];
static __thread int depth;

static uint64_t active_count;
uint64_t context_active(void) { return active_count; }
void context_forget(void) { depth = 0; }

static void end(struct object *object) {
    struct context *context = (struct context *)object;
    active_count -= context->active;
    memory_free_of(context);
}

static struct context *new_context(CUdevice device, bool primary, unsigned flags) {
    struct context *context = object_create(KIND_CONTEXT, sizeof *context, NULL, end);
    context->device = device;
    context->primary = primary;
    context->flags = flags;
    context->limit[0] = 1024;
    context->limit[1] = 1 << 20;
    context->limit[2] = 8 << 20;
    context->limit[4] = 2048;
    context->limit[5] = 64;
    return context;
}

static void open_context(struct context *context) {
    context->active = true;
    active_count++;
    context->fault = context->pending_fault = CUDA_SUCCESS;
    context->peers = 0;
    stream_new_legacy(context);
}

static void close_context(struct context *context) {
    object_destroy_of(context);
    memory_free_of(context);
    context->active = false;
    active_count--;
    context->legacy = NULL;
}

static struct context *live_context(CUcontext handle) {
    struct context *context = object_find(handle, KIND_CONTEXT);
    return context && context->active ? context : NULL;
}

/* The current context, and whether it can still be used. */
static CUresult current(struct context **out) {
    if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
    *out = live_context(stack[depth - 1]);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult context_current(struct context **out) {
    CHECK(current(out));
    if ((*out)->pending_fault) {
        (*out)->fault = (*out)->pending_fault;
        (*out)->pending_fault = CUDA_SUCCESS;
    }
    return (*out)->fault;
}

struct context *context_of_device(CUdevice device) {
    struct context *context = devices[device].primary;
    return context && context->active ? context : NULL;
}

static CUresult push(struct context *context) {
    REQUIRE(depth < STACK, CUDA_ERROR_OUT_OF_MEMORY);
    stack[depth++] = HANDLE(context);
    return CUDA_SUCCESS;
}

/* ---- primary contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice ordinal) {
    ENTER(cuDevicePrimaryCtxRetain);
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_valid(ordinal), CUDA_ERROR_INVALID_DEVICE);
    struct device *device = &devices[ordinal];
    if (!device->primary) device->primary = new_context(ordinal, true, device->primary_flags);
    if (!device->primary->active) open_context(device->primary);
    device->retained++;
    *out = HANDLE(device->primary);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
    ENTER(cuDevicePrimaryCtxRelease_v2);
    REQUIRE(device_valid(ordinal), CUDA_ERROR_INVALID_DEVICE);
    struct device *device = &devices[ordinal];
    REQUIRE(device->retained, CUDA_ERROR_INVALID_CONTEXT);
    if (--device->retained == 0) close_context(device->primary);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
    ENTER(cuDevicePrimaryCtxReset_v2);
    REQUIRE(device_valid(ordinal), CUDA_ERROR_INVALID_DEVICE);
    struct context *context = context_of_device(ordinal);
    if (context) close_context(context);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned *flags, int *active) {
    ENTER(cuDevicePrimaryCtxGetState);
    REQUIRE(device_valid(ordinal), CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(flags && active, CUDA_ERROR_INVALID_VALUE);
    *flags = devices[ordinal].primary_flags;
    *active = context_of_device(ordinal) != NULL;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags) {
    ENTER(cuDevicePrimaryCtxSetFlags_v2);
    REQUIRE(device_valid(ordinal), CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(flags <= KNOWN_FLAGS, CUDA_ERROR_INVALID_VALUE);
    devices[ordinal].primary_flags = flags;
    if (devices[ordinal].primary) devices[ordinal].primary->flags = flags;
    return CUDA_SUCCESS;
}

/* ---- other contexts ---- */

static CUresult create(CUcontext *out, unsigned flags, CUdevice ordinal) {
    REQUIRE(out && flags <= KNOWN_FLAGS, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_valid(ordinal), CUDA_ERROR_INVALID_DEVICE);
    struct context *context = new_context(ordinal, false, flags);
    open_context(context);
    *out = HANDLE(context);
    return push(context);
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice ordinal) {
    ENTER(cuCtxCreate_v2);
    return create(out, flags, ordinal);
}

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *parameters, unsigned flags, CUdevice ordinal) {
    ENTER(cuCtxCreate_v4);
    REQUIRE(!parameters, CUDA_ERROR_NOT_SUPPORTED);
    return create(out, flags, ordinal);
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
    ENTER(cuCtxDestroy_v2);
    REQUIRE(handle, CUDA_ERROR_INVALID_VALUE);
    struct context *context = live_context(handle);
    REQUIRE(context && !context->primary, CUDA_ERROR_INVALID_CONTEXT);
    if (depth && stack[depth - 1] == handle) depth--;
    close_context(context);
    object_destroy(context);
    return CUDA_SUCCESS;
}

/* ---- the stack of a thread ---- */

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
    ENTER(cuCtxPushCurrent_v2);
    struct context *context = live_context(handle);
    REQUIRE(context, CUDA_ERROR_INVALID_CONTEXT);
    return push(context);
}

CUresult cuCtxPopCurrent_v2(CUcontext *out) {
    ENTER(cuCtxPopCurrent_v2);
    REQUIRE(depth, CUDA_ERROR_INVALID_CONTEXT);
    depth--;
    if (out) *out = stack[depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle) {
    ENTER(cuCtxSetCurrent);
    struct context *context = handle ? live_context(handle) : NULL;
    REQUIRE(!handle || context, CUDA_ERROR_INVALID_CONTEXT);
    if (depth) depth--;
    return context ? push(context) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out) {
    ENTER(cuCtxGetCurrent);
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    *out = depth ? stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

/* ---- questions about a context ---- */

CUresult cuCtxGetDevice(CUdevice *device) {
    ENTER(cuCtxGetDevice);
    REQUIRE(depth, CUDA_ERROR_INVALID_CONTEXT);
    /* A primary context that nobody retains any more still has a device. */
    struct context *context = object_find(stack[depth - 1], KIND_CONTEXT);
    REQUIRE(context, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    REQUIRE(device, CUDA_ERROR_INVALID_VALUE);
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle) {
    ENTER(cuCtxGetDevice_v2);
    struct context *context = live_context(handle);
    if (!handle) CHECK(current(&context));
    REQUIRE(context, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(device, CUDA_ERROR_INVALID_VALUE);
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned *flags) {
    ENTER(cuCtxGetFlags);
    struct context *context;
    CHECK(context_current(&context));
    REQUIRE(flags, CUDA_ERROR_INVALID_VALUE);
    *flags = context->flags | MAPS_HOST_MEMORY;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *id) {
    ENTER(cuCtxGetId);
    struct context *context = live_context(handle);
    if (!handle) CHECK(current(&context));
    REQUIRE(context, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(id, CUDA_ERROR_INVALID_VALUE);
    *id = context->object.handle;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned *version) {
    ENTER(cuCtxGetApiVersion);
    struct context *context = live_context(handle);
    if (!handle) CHECK(current(&context));
    REQUIRE(context, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(version, CUDA_ERROR_INVALID_VALUE);
    *version = 3020;
    return CUDA_SUCCESS;
}

static CUresult synchronize(struct context *context) {
    CHECK(capture_allows_waiting(context));
    if (context->pending_fault) context->fault = context->pending_fault;
    context->pending_fault = CUDA_SUCCESS;
    streams_busy = false;
    return context->fault;
}

CUresult cuCtxSynchronize(void) {
    ENTER(cuCtxSynchronize);
    struct context *context;
    CHECK(current(&context));
    return synchronize(context);
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
    ENTER(cuCtxSynchronize_v2);
    struct context *context = live_context(handle);
    REQUIRE(context, CUDA_ERROR_INVALID_CONTEXT);
    return synchronize(context);
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
    ENTER(cuCtxGetLimit);
    struct context *context;
    CHECK(context_current(&context));
    REQUIRE(value && (unsigned)limit < 16, CUDA_ERROR_INVALID_VALUE);
    *value = context->limit[limit];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    ENTER(cuCtxSetLimit);
    struct context *context;
    CHECK(context_current(&context));
    REQUIRE((unsigned)limit < 16, CUDA_ERROR_UNSUPPORTED_LIMIT);
    context->limit[limit] = value;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    ENTER(cuCtxGetStreamPriorityRange);
    struct context *context;
    CHECK(context_current(&context));
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return CUDA_SUCCESS;
}

/* ---- access to the memory of other devices ---- */

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
    ENTER(cuCtxEnablePeerAccess);
    struct context *context, *peer = live_context(handle);
    CHECK(context_current(&context));
    REQUIRE(peer, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(devices[context->device].reachable >> peer->device & 1, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    REQUIRE(!(context->peers >> peer->device & 1), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    context->peers |= UINT32_C(1) << peer->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext handle) {
    ENTER(cuCtxDisablePeerAccess);
    struct context *context, *peer = live_context(handle);
    CHECK(context_current(&context));
    REQUIRE(peer, CUDA_ERROR_INVALID_CONTEXT);
    REQUIRE(context->peers >> peer->device & 1, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    context->peers &= ~(UINT32_C(1) << peer->device);
    return CUDA_SUCCESS;
}

/* ---- control ---- */

void podium_recording_fault(int device, int status) {
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    if (device >= 0 && device < MAX_DEVICES) devices[device].armed_fault = (CUresult)status;
}

int podium_recording_context_depth(void) { return depth; }
