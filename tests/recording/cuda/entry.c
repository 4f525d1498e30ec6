/* The table of entries: who asks for what, how often each is called, and which call a test wants to fail. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "state.h"

#ifndef PODIUM_RECORDING_VERSION
#define PODIUM_RECORDING_VERSION 13000
#endif

typedef void (*address)(void);
struct entry {
    const char *name;
    int since;
    bool takes_stream; /* has a second form for per-thread default streams */
    int family;        /* the first entry with the same name: calls are counted there */
    uint64_t calls, failing_call;
    CUresult failure;
};

#define ENTRY(name, since, symbol) {#name, since, false, -1, 0, 0, CUDA_SUCCESS},
#define STREAM_ENTRY(name, since, symbol) {#name, since, true, -1, 0, 0, CUDA_SUCCESS},
static struct entry entries[] = {
#include "entries.def"
};
#undef ENTRY
#undef STREAM_ENTRY

#define ENTRY(name, since, symbol) extern void symbol##_address(void) __asm__(#symbol);
#define STREAM_ENTRY(name, since, symbol) ENTRY(name, since, symbol)
#include "entries.def"
#undef ENTRY
#define ENTRY(name, since, symbol) symbol##_address,
static const address addresses[] = {
#include "entries.def"
};
#undef ENTRY
#undef STREAM_ENTRY

static const struct { const char *name; CUresult number; const char *text; } statuses[] = {
#define STATUS(name, number, text) {#name, (CUresult)(number), text},
#include "statuses.def"
#undef STATUS
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t ticks;
static bool forked;
static const int version = PODIUM_RECORDING_VERSION;
bool driver_initialized;

int driver_version(void) { return version; }
uint64_t driver_clock(void) { return ticks * 1000; }

int entry_lock(void) {
    pthread_mutex_lock(&mutex);
    return 1;
}

void entry_leave(int *lock) {
    if (*lock) pthread_mutex_unlock(&mutex);
}

/* A forked child has no driver: what it inherits is the parent's, and nothing works any more. */
static void after_fork(void) {
    pthread_mutex_init(&mutex, NULL);
    if (driver_initialized) forked = true;
    driver_initialized = false;
}

__attribute__((constructor)) static void begin(void) {
    pthread_atfork(NULL, NULL, after_fork);
    for (int i = 0; i < ENTRY_COUNT; i++)
        for (int j = 0; j <= i && entries[i].family < 0; j++)
            if (!strcmp(entries[i].name, entries[j].name)) entries[i].family = j;
    device_reset();
}

static bool before_initialization(int entry) {
    return entry == ENTRY_cuInit || entry == ENTRY_cuDriverGetVersion || entry == ENTRY_cuGetErrorName ||
           entry == ENTRY_cuGetErrorString || entry == ENTRY_cuGetProcAddress || entry == ENTRY_cuGetProcAddress_v2 ||
           entry == ENTRY_cuGetExportTable;
}

CUresult entry_arrive(int entry) {
    struct entry *family = &entries[entries[entry].family];
    ticks++;
    family->calls++;
    if (family->failing_call && family->calls == family->failing_call) {
        family->failing_call = 0;
        return family->failure;
    }
    if (!driver_initialized && !before_initialization(entry)) return CUDA_ERROR_NOT_INITIALIZED;
    return CUDA_SUCCESS;
}

void entry_reset(void) {
    for (int i = 0; i < ENTRY_COUNT; i++) entries[i].calls = entries[i].failing_call = 0;
}

/* ---- what the driver exports ---- */

CUresult cuInit(unsigned flags) {
    ENTER(cuInit);
    REQUIRE(!forked, CUDA_ERROR_NOT_INITIALIZED);
    REQUIRE(flags == 0, CUDA_ERROR_INVALID_VALUE);
    REQUIRE(device_count > 0, CUDA_ERROR_NO_DEVICE);
    driver_initialized = true;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *out) {
    ENTER(cuDriverGetVersion);
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    *out = version;
    return CUDA_SUCCESS;
}

static CUresult status_text(CUresult status, const char **out, bool name) {
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    *out = NULL;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].number == status) *out = name ? statuses[i].name : statuses[i].text;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult status, const char **out) {
    ENTER(cuGetErrorName);
    return status_text(status, out, true);
}

CUresult cuGetErrorString(CUresult status, const char **out) {
    ENTER(cuGetErrorString);
    return status_text(status, out, false);
}

static CUresult look_up(const char *name, void **out, int wanted, cuuint64_t flags,
                        CUdriverProcAddressQueryResult *result) {
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    int best = -1;
    REQUIRE(name && out && flags <= 2, CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < ENTRY_COUNT; i++) {
        if (strcmp(entries[i].name, name) || entries[i].since > version) continue;
        if (flags == 2 && entries[i].takes_stream) continue;
        if (entries[i].since > wanted) {
            if (best < 0) found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        } else if (best < 0 || entries[i].since > entries[best].since) {
            best = i;
            found = CU_GET_PROC_ADDRESS_SUCCESS;
        }
    }
    address function = best < 0 ? NULL : addresses[best];
    memcpy(out, &function, sizeof function);
    if (result) *result = found;
    return best < 0 ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *name, void **out, int wanted, cuuint64_t flags) {
    ENTER(cuGetProcAddress);
    return look_up(name, out, wanted, flags, NULL);
}

CUresult cuGetProcAddress_v2(const char *name, void **out, int wanted, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *result) {
    ENTER(cuGetProcAddress_v2);
    return look_up(name, out, wanted, flags, result);
}

/* NVRTC asks for tables that only NVIDIA knows, and goes on without them if it is told that there are none. */
CUresult cuGetExportTable(const void **out, const CUuuid *id) {
    ENTER(cuGetExportTable);
    REQUIRE(out && id, CUDA_ERROR_INVALID_VALUE);
    *out = NULL;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuProfilerStart(void) {
    ENTER(cuProfilerStart);
    return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void) {
    ENTER(cuProfilerStop);
    return CUDA_SUCCESS;
}

/* ---- control ---- */

int podium_recording_fail(const char *name, int status, uint64_t nth) {
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    for (int i = 0; i < ENTRY_COUNT; i++) {
        if (strcmp(entries[i].name, name)) continue;
        entries[i].failure = (CUresult)status;
        entries[i].failing_call = nth ? entries[i].calls + nth : 0;
        return 0;
    }
    return -1;
}

int64_t podium_recording_calls(const char *name) {
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    for (int i = 0; i < ENTRY_COUNT; i++)
        if (!strcmp(entries[i].name, name)) return (int64_t)entries[i].calls;
    return -1;
}

const char *podium_recording_entry(int number) {
    return number >= 0 && number < ENTRY_COUNT ? entries[number].name : NULL;
}
