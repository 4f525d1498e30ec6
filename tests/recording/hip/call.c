/* Every call: counted, noted, made to fail where a test wants it, and remembered as the last error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "state.h"

#define KEPT 4096

#if RECORDING_HIP_MAJOR >= 7
#define VERSION 70253211
#elif RECORDING_HIP_MAJOR == 6
#define VERSION 60443484
#else
#define VERSION 50221153
#endif

static struct {
    const char *name;
    int first;
    bool needs_device;
    uint64_t calls, failing_call;
    hipError_t failure;
} entries[] = {
#define ENTRY(name, first, needs_device) {#name, first, needs_device, 0, 0, hipSuccess},
#include "entries.def"
#undef ENTRY
};
static const struct { const char *name; int number; const char *text; } statuses[] = {
#define STATUS(name, number, text) {#name, number, text},
#include "statuses.def"
#undef STATUS
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct { int16_t entry, device; int32_t status; } kept[KEPT];
static uint64_t call_count, threads;
static bool used, forked;
static __thread hipError_t last_error;
static __thread uint64_t own_number;

void lock_take(void) { pthread_mutex_lock(&mutex); }
void lock_leave(void) { pthread_mutex_unlock(&mutex); }

uint64_t thread_number(void) {
    if (!own_number) own_number = ++threads;
    return own_number;
}

/* A child of a process that has used its device still counts it, and can do nothing with it. */
static void after_fork(void) {
    pthread_mutex_init(&mutex, NULL);
    forked = used;
}

/* RECORDING_HIP_FAIL is a list such as "hipMalloc=2,hipModuleLoadData=209": each first call fails so. */
static void read_failures(void) {
    const char *given = getenv("RECORDING_HIP_FAIL");
    while (given && *given) {
        size_t length = strcspn(given, "=");
        for (int i = 0; i < ENTRY_COUNT; i++)
            if (given[length] && strlen(entries[i].name) == length && !strncmp(entries[i].name, given, length)) {
                entries[i].failure = (hipError_t)atoi(given + length + 1);
                entries[i].failing_call = 1;
            }
        given += strcspn(given, ",");
        given += *given == ',';
    }
}

__attribute__((constructor)) static void begin(void) {
    pthread_atfork(NULL, NULL, after_fork);
    device_reset();
    read_failures();
}

hipError_t call_begin(enum entry entry) {
    lock_take();
    entries[entry].calls++;
    if (entries[entry].failing_call && entries[entry].calls == entries[entry].failing_call) {
        entries[entry].failing_call = 0;
        return entries[entry].failure;
    }
    if (!entries[entry].needs_device) return hipSuccess;
    /* HIP 5 says "invalid device" where there is none; only its count says "no device". */
    if (device_count < 1) return RECORDING_HIP_MAJOR >= 6 ? hipErrorNoDevice : hipErrorInvalidDevice;
    used = true;
    return forked ? hipErrorOutOfMemory : hipSuccess;
}

hipError_t call_end(enum entry entry, hipError_t status) {
    kept[call_count % KEPT].entry = (int16_t)entry;
    kept[call_count % KEPT].device = (int16_t)current_device;
    kept[call_count % KEPT].status = (int32_t)status;
    call_count++;
    /* Before HIP 7 it is the status of the last call; from 7 on, an error stays until somebody has asked for it. */
    if (status != hipSuccess || RECORDING_HIP_MAJOR < 7) last_error = status;
    lock_leave();
    return status;
}

void call_reset(void) {
    for (int i = 0; i < ENTRY_COUNT; i++) entries[i].calls = entries[i].failing_call = 0;
    call_count = 0;
    last_error = hipSuccess;
}

/* ---- HIP's functions ---- */

hipError_t hipInit(unsigned flags) { CALL(hipInit, flags ? hipErrorInvalidValue : hipSuccess); }

static hipError_t version(int *out) {
    REQUIRE(out, hipErrorInvalidValue);
    *out = VERSION;
    return hipSuccess;
}

hipError_t hipDriverGetVersion(int *out) { CALL(hipDriverGetVersion, version(out)); }
hipError_t hipRuntimeGetVersion(int *out) { CALL(hipRuntimeGetVersion, version(out)); }

static const char *describe(hipError_t status, bool name) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].number == (int)status)
            return name || RECORDING_HIP_MAJOR < 6 ? statuses[i].name : statuses[i].text;
    return name || RECORDING_HIP_MAJOR < 6 ? "hipErrorUnknown" : "unknown error";
}

const char *hipGetErrorName(hipError_t status) {
    lock_take();
    entries[ENTRY_hipGetErrorName].calls++;
    lock_leave();
    return describe(status, true);
}

const char *hipGetErrorString(hipError_t status) {
    lock_take();
    entries[ENTRY_hipGetErrorString].calls++;
    lock_leave();
    return describe(status, false);
}

/* These give what there was, and are themselves no call that could change it. */
static hipError_t last(enum entry entry, bool clear) {
    hipError_t found = last_error;
    lock_take();
    entries[entry].calls++;
    lock_leave();
    if (clear) last_error = hipSuccess;
    return found;
}

hipError_t hipGetLastError(void) { return last(ENTRY_hipGetLastError, true); }
hipError_t hipPeekAtLastError(void) { return last(ENTRY_hipPeekAtLastError, false); }

#if RECORDING_HIP_MAJOR >= 6
hipError_t hipExtGetLastError(void) { return last(ENTRY_hipExtGetLastError, true); }

static hipError_t look_up(const char *name, void **out, int wanted, hipDriverProcAddressQueryResult *result) {
    REQUIRE(name && out, hipErrorInvalidValue);
    /* The new form of the properties has the plain name for callers that were written for HIP 6. */
    if (!strcmp(name, "hipGetDeviceProperties") && wanted >= 600) name = "hipGetDevicePropertiesR0600";
    Dl_info here;
    void *self = dladdr((void *)statuses, &here) ? dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    *out = self && !strncmp(name, "hip", 3) ? dlsym(self, name) : NULL;
    if (self) dlclose(self);
    if (result) *result = *out ? HIP_GET_PROC_ADDRESS_SUCCESS : HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *out ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipGetProcAddress(const char *name, void **out, int wanted, uint64_t flags,
                             hipDriverProcAddressQueryResult *result) {
    (void)flags;
    CALL(hipGetProcAddress, look_up(name, out, wanted, result));
}
#endif

/* ---- control ---- */

int podium_recording_fail(const char *name, int status, uint64_t nth) {
    int found = -1;
    lock_take();
    for (int i = 0; i < ENTRY_COUNT; i++) {
        if (strcmp(entries[i].name, name)) continue;
        entries[i].failure = (hipError_t)status;
        entries[i].failing_call = nth ? entries[i].calls + nth : 0;
        found = 0;
    }
    lock_leave();
    return found;
}

int64_t podium_recording_calls(const char *name) {
    int64_t found = -1;
    lock_take();
    for (int i = 0; i < ENTRY_COUNT; i++)
        if (!strcmp(entries[i].name, name)) found = (int64_t)entries[i].calls;
    lock_leave();
    return found;
}

const char *podium_recording_entry(int number) {
    return number >= 0 && number < ENTRY_COUNT ? entries[number].name : NULL;
}

uint64_t podium_recording_call_count(void) { return call_count; }

int podium_recording_call(uint64_t sequence, int *entry, int *status, int *device) {
    lock_take();
    int found = sequence && sequence <= call_count && call_count - sequence < KEPT;
    if (found) {
        *entry = kept[(sequence - 1) % KEPT].entry;
        *status = kept[(sequence - 1) % KEPT].status;
        *device = kept[(sequence - 1) % KEPT].device;
    }
    lock_leave();
    return found;
}

const char *podium_recording_counter(int number, uint64_t *live, uint64_t *created) {
    const struct { const char *name; uint64_t live, created; } counters[] = {
        {"modules", module_live, module_created}, {"streams", stream_live, stream_created},
        {"events", event_live, event_created},    {"allocations", memory_live(), 0},
        {"bytes", memory_live_bytes(), 0},
    };
    if (number < 0 || number >= (int)(sizeof counters / sizeof *counters)) return NULL;
    *live = counters[number].live;
    *created = counters[number].created;
    return counters[number].name;
}

void podium_recording_reset(void) {
    lock_take();
    graph_reset();
    stream_reset();
    event_reset();
    module_reset();
    memory_reset();
    record_reset();
    launch_reset();
    call_reset();
    current_device = 0;
    for (int i = 0; i < MAX_DEVICES; i++) {
        devices[i].fault = devices[i].pending = hipSuccess;
        memset(devices[i].enabled, 0, sizeof devices[i].enabled);
    }
    lock_leave();
}
