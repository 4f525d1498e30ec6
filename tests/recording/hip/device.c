/* Devices: what there are, and what they say of themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "state.h"

struct device devices[MAX_DEVICES];
int device_count;
__thread int current_device;

/* The generation of "gfx90a" is 0x90a: from 0xa00 on there are four figures, of which two are the major version. */
static unsigned generation(const struct device *device) { return (unsigned)strtoul(device->arch + 3, NULL, 16); }

int device_wave_size(const struct device *device) { return generation(device) >= 0x1000 ? 32 : 64; }
int device_shared_bytes(const struct device *device) { return generation(device) == 0x950 ? 160 << 10 : 64 << 10; }

static int major(const struct device *device) {
    unsigned number = generation(device);
    return number >= 0x1000 ? (int)(number >> 12) * 10 + (int)(number >> 8 & 15) : (int)(number >> 8);
}

static int attribute(const struct device *device, int which) {
    int ordinal = (int)(device - devices), wave = device_wave_size(device);
    switch (which) {
    case hipDeviceAttributeWarpSize: return wave;
    case hipDeviceAttributeMaxThreadsPerBlock:
    case hipDeviceAttributeMaxBlockDimX:
    case hipDeviceAttributeMaxBlockDimY:
    case hipDeviceAttributeMaxBlockDimZ: return 1024;
    case hipDeviceAttributeMaxGridDimX: return 2147483647;
    case hipDeviceAttributeMaxGridDimY:
    case hipDeviceAttributeMaxGridDimZ: return 65536;
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
    case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor: return device_shared_bytes(device);
    case hipDeviceAttributeMaxRegistersPerBlock: return 65536;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor: return 2048;
    case hipDeviceAttributeMultiprocessorCount: return device->units;
    case hipDeviceAttributeCooperativeLaunch: return device->cooperative;
    case hipDeviceAttributeComputeCapabilityMajor: return major(device);
    case hipDeviceAttributeComputeCapabilityMinor: return (int)(generation(device) >> 4 & 15);
    case hipDeviceAttributeClockRate: return 1700000;
    case hipDeviceAttributeMemoryClockRate: return 1600000;
    case hipDeviceAttributeMemoryBusWidth: return 4096;
    case hipDeviceAttributeTotalConstantMemory: return 2147483647;
    case hipDeviceAttributeL2CacheSize: return 8 << 20;
    case hipDeviceAttributePciBusId: return ordinal + 1;
    case hipDeviceAttributePciDeviceId:
    case hipDeviceAttributePciDomainID:
    case hipDeviceAttributeIntegrated: return 0;
    case hipDeviceAttributeConcurrentKernels:
    case hipDeviceAttributeCanMapHostMemory:
    case hipDeviceAttributeManagedMemory:
    case hipDeviceAttributeUnifiedAddressing: return 1;
#if RECORDING_HIP_MAJOR >= 6
    case hipDeviceAttributeMemoryPoolsSupported: return 1;
#endif
    default: return -1;
    }
}

static void set_arch(struct device *device, const char *arch) {
    snprintf(device->arch, sizeof device->arch, "%s", arch);
}

void device_reset(void) {
    const char *count = getenv("RECORDING_HIP_DEVICES"), *arch = getenv("RECORDING_HIP_ARCH");
    device_count = count ? atoi(count) : 2;
    if (device_count > MAX_DEVICES) device_count = MAX_DEVICES;
    for (int i = 0; i < MAX_DEVICES; i++) {
        set_arch(&devices[i], arch && !strncmp(arch, "gfx", 3) ? arch : "gfx90a:sramecc+:xnack-");
        devices[i].total = (uint64_t)64 << 30;
        devices[i].units = 104;
        devices[i].cooperative = 1;
        for (int j = 0; j < MAX_DEVICES; j++) devices[i].peers[j] = i != j;
    }
}

static hipError_t find(int ordinal, struct device **out) {
    REQUIRE(ordinal >= 0 && ordinal < device_count, hipErrorInvalidDevice);
    *out = &devices[ordinal];
    return hipSuccess;
}

/* ---- HIP's functions ---- */

static hipError_t count(int *out) {
    REQUIRE(out, hipErrorInvalidValue);
    *out = device_count;
    return device_count < 1 ? hipErrorNoDevice : hipSuccess;
}

hipError_t hipGetDeviceCount(int *out) { CALL(hipGetDeviceCount, count(out)); }

static hipError_t get(int *out) {
    REQUIRE(out, hipErrorInvalidValue);
    *out = current_device;
    return hipSuccess;
}

hipError_t hipGetDevice(int *out) { CALL(hipGetDevice, get(out)); }

static hipError_t set(int ordinal) {
    struct device *device;
    CHECK(find(ordinal, &device));
    current_device = ordinal;
    return hipSuccess;
}

hipError_t hipSetDevice(int ordinal) { CALL(hipSetDevice, set(ordinal)); }

static hipError_t ordinal_of(hipDevice_t *out, int ordinal) {
    struct device *device;
    REQUIRE(out, hipErrorInvalidValue);
    CHECK(find(ordinal, &device));
    *out = ordinal;
    return hipSuccess;
}

hipError_t hipDeviceGet(hipDevice_t *out, int ordinal) { CALL(hipDeviceGet, ordinal_of(out, ordinal)); }

static void write_name(char *out, int size, int ordinal) { snprintf(out, (size_t)size, "Recording device %d", ordinal); }

static hipError_t name(char *out, int size, int ordinal) {
    struct device *device;
    REQUIRE(out && size > 0, hipErrorInvalidValue);
    CHECK(find(ordinal, &device));
    write_name(out, size, ordinal);
    return hipSuccess;
}

hipError_t hipDeviceGetName(char *out, int size, hipDevice_t device) { CALL(hipDeviceGetName, name(out, size, device)); }

static hipError_t get_attribute(int *out, int which, int ordinal) {
    struct device *device;
    REQUIRE(out, hipErrorInvalidValue);
    CHECK(find(ordinal, &device));
    int value = attribute(device, which);
    REQUIRE(value >= 0, hipErrorInvalidValue);
    *out = value;
    return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int *out, hipDeviceAttribute_t which, int ordinal) {
    CALL(hipDeviceGetAttribute, get_attribute(out, (int)which, ordinal));
}

static hipError_t total(size_t *out, int ordinal) {
    struct device *device;
    REQUIRE(out, hipErrorInvalidValue);
    CHECK(find(ordinal, &device));
    *out = device->total;
    return hipSuccess;
}

hipError_t hipDeviceTotalMem(size_t *out, hipDevice_t device) { CALL(hipDeviceTotalMem, total(out, device)); }

static hipError_t bus(char *out, int size, int ordinal) {
    struct device *device;
    REQUIRE(out && size > 0, hipErrorInvalidValue);
    CHECK(find(ordinal, &device));
    snprintf(out, (size_t)size, "0000:%02x:00.0", ordinal + 1);
    return hipSuccess;
}

hipError_t hipDeviceGetPCIBusId(char *out, int size, int device) { CALL(hipDeviceGetPCIBusId, bus(out, size, device)); }

static hipError_t capability(int *out_major, int *out_minor, int ordinal) {
    CHECK(get_attribute(out_major, hipDeviceAttributeComputeCapabilityMajor, ordinal));
    return get_attribute(out_minor, hipDeviceAttributeComputeCapabilityMinor, ordinal);
}

hipError_t hipDeviceComputeCapability(int *out_major, int *out_minor, hipDevice_t device) {
    CALL(hipDeviceComputeCapability, capability(out_major, out_minor, device));
}

static hipError_t wait_all(void) {
    hipError_t pending = devices[current_device].pending;
    streams_busy = false;
    return pending;
}

hipError_t hipDeviceSynchronize(void) { CALL(hipDeviceSynchronize, wait_all()); }

static hipError_t can_access(int *out, int from, int to) {
    struct device *device, *peer;
    REQUIRE(out, hipErrorInvalidValue);
    CHECK(find(from, &device));
    CHECK(find(to, &peer));
    *out = device->peers[to];
    return hipSuccess;
}

hipError_t hipDeviceCanAccessPeer(int *out, int from, int to) { CALL(hipDeviceCanAccessPeer, can_access(out, from, to)); }

static hipError_t let(int to, bool enable, unsigned flags) {
    struct device *device = &devices[current_device], *peer;
    REQUIRE(!flags, hipErrorInvalidValue);
    CHECK(find(to, &peer));
    REQUIRE(device->peers[to], hipErrorInvalidDevice);
    if (enable) REQUIRE(!device->enabled[to], hipErrorPeerAccessAlreadyEnabled);
    else REQUIRE(device->enabled[to], hipErrorPeerAccessNotEnabled);
    device->enabled[to] = enable;
    return hipSuccess;
}

hipError_t hipDeviceEnablePeerAccess(int to, unsigned flags) { CALL(hipDeviceEnablePeerAccess, let(to, true, flags)); }
hipError_t hipDeviceDisablePeerAccess(int to) { CALL(hipDeviceDisablePeerAccess, let(to, false, 0)); }

static void write_properties(uint8_t *out, bool old, int ordinal) {
    const struct device *device = &devices[ordinal];
    memset(out, 0, old ? sizeof(hipDeviceProp_tR0000) : 1472);
#define PROPERTY(name, old_place, new_place, bytes, expression)                                                        \
    do {                                                                                                               \
        uint64_t value = (uint64_t)(expression);                                                                       \
        memcpy(out + (old ? (old_place) : (new_place)), &value, bytes);                                                \
    } while (0);
#include "properties.def"
#undef PROPERTY
    write_name((char *)out, 256, ordinal);
    snprintf((char *)out + (old ? 396 : 1160), 256, "%s", device->arch);
}

static hipError_t properties(void *out, bool old, int ordinal) {
    struct device *device;
    REQUIRE(out, hipErrorInvalidValue);
    CHECK(find(ordinal, &device));
    write_properties(out, old, ordinal);
    return hipSuccess;
}

hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *out, int device) {
    CALL(hipGetDeviceProperties, properties(out, true, device));
}

#if RECORDING_HIP_MAJOR >= 6
hipError_t hipGetDevicePropertiesR0000(hipDeviceProp_tR0000 *out, int device) {
    CALL(hipGetDevicePropertiesR0000, properties(out, true, device));
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *out, int device) {
    CALL(hipGetDevicePropertiesR0600, properties(out, false, device));
}
#endif

/* ---- control ---- */

void podium_recording_set_device_count(int wanted) {
    lock_take();
    device_count = wanted < MAX_DEVICES ? wanted : MAX_DEVICES;
    lock_leave();
}

int podium_recording_set_arch(int device, const char *arch) {
    if (device < 0 || device >= MAX_DEVICES || strncmp(arch, "gfx", 3)) return -1;
    lock_take();
    set_arch(&devices[device], arch);
    lock_leave();
    return 0;
}

void podium_recording_set_memory(int device, uint64_t bytes) { devices[device].total = bytes; }
void podium_recording_set_cooperative(int device, int can) { devices[device].cooperative = can; }
void podium_recording_set_peer(int from, int to, int reachable) { devices[from].peers[to] = reachable; }
void podium_recording_fault(int device, int status) { devices[device].fault = (hipError_t)status; }
