/* Copies and fills, which have ended when the call returns. */
#include <string.h>

#include "state.h"

static hipError_t copy(void *to, const void *from, size_t size, int kind, hipStream_t handle, bool waits) {
    const struct stream *stream = stream_find(handle);
    REQUIRE(stream, hipErrorContextIsDestroyed);
    if (!size) return hipSuccess;
    REQUIRE(to && from, hipErrorInvalidValue);
    REQUIRE(kind >= hipMemcpyHostToHost && kind <= hipMemcpyDefault, hipErrorInvalidMemcpyDirection);
    CHECK(waits ? stream_wait(stream) : hipSuccess);
    memmove(to, from, size);
    return hipSuccess;
}

hipError_t hipMemcpy(void *to, const void *from, size_t size, hipMemcpyKind kind) {
    CALL(hipMemcpy, copy(to, from, size, (int)kind, NULL, true));
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream) {
    CALL(hipMemcpyAsync, copy(to, from, size, (int)kind, stream, false));
}

hipError_t hipMemcpyWithStream(void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream) {
    CALL(hipMemcpyWithStream, copy(to, from, size, (int)kind, stream, true));
}

/* The host's side of a copy to the device became const in HIP 7. */
#if RECORDING_HIP_MAJOR >= 7
typedef const void *host_source;
#else
typedef void *host_source;
#endif

hipError_t hipMemcpyHtoD(hipDeviceptr_t to, host_source from, size_t size) {
    CALL(hipMemcpyHtoD, copy(to, from, size, hipMemcpyHostToDevice, NULL, true));
}

hipError_t hipMemcpyDtoH(void *to, hipDeviceptr_t from, size_t size) {
    CALL(hipMemcpyDtoH, copy(to, from, size, hipMemcpyDeviceToHost, NULL, true));
}

hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t size) {
    CALL(hipMemcpyDtoD, copy(to, from, size, hipMemcpyDeviceToDevice, NULL, true));
}

hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t to, host_source from, size_t size, hipStream_t stream) {
    CALL(hipMemcpyHtoDAsync, copy(to, from, size, hipMemcpyHostToDevice, stream, false));
}

hipError_t hipMemcpyDtoHAsync(void *to, hipDeviceptr_t from, size_t size, hipStream_t stream) {
    CALL(hipMemcpyDtoHAsync, copy(to, from, size, hipMemcpyDeviceToHost, stream, false));
}

hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t to, hipDeviceptr_t from, size_t size, hipStream_t stream) {
    CALL(hipMemcpyDtoDAsync, copy(to, from, size, hipMemcpyDeviceToDevice, stream, false));
}

static hipError_t fill(void *to, const void *value, size_t width, size_t count, hipStream_t stream) {
    REQUIRE(stream_find(stream), hipErrorContextIsDestroyed);
    REQUIRE(to || !count, hipErrorInvalidValue);
    for (size_t i = 0; i < count; i++) memcpy((uint8_t *)to + i * width, value, width);
    return hipSuccess;
}

hipError_t hipMemset(void *to, int value, size_t count) {
    uint8_t byte = (uint8_t)value;
    CALL(hipMemset, fill(to, &byte, 1, count, NULL));
}

hipError_t hipMemsetAsync(void *to, int value, size_t count, hipStream_t stream) {
    uint8_t byte = (uint8_t)value;
    CALL(hipMemsetAsync, fill(to, &byte, 1, count, stream));
}

hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char value, size_t count) {
    CALL(hipMemsetD8, fill(to, &value, 1, count, NULL));
}

hipError_t hipMemsetD32(hipDeviceptr_t to, int value, size_t count) {
    CALL(hipMemsetD32, fill(to, &value, sizeof value, count, NULL));
}

hipError_t hipMemsetD8Async(hipDeviceptr_t to, unsigned char value, size_t count, hipStream_t stream) {
    CALL(hipMemsetD8Async, fill(to, &value, 1, count, stream));
}

hipError_t hipMemsetD32Async(hipDeviceptr_t to, int value, size_t count, hipStream_t stream) {
    CALL(hipMemsetD32Async, fill(to, &value, sizeof value, count, stream));
}
