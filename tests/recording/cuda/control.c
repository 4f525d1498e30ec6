/* What tests ask about everything at once. */
#include "control.h"

#include "state.h"

const char *podium_recording_counter(int number, uint64_t *live, uint64_t *created) {
    static const struct { const char *name; enum kind kind; } counters[] = {
        {"contexts", KIND_CONTEXT}, {"modules", KIND_MODULE}, {"libraries", KIND_LIBRARY}, {"kernels", KIND_KERNEL},
        {"functions", KIND_FUNCTION}, {"streams", KIND_STREAM}, {"events", KIND_EVENT}, {"graphs", KIND_GRAPH},
        {"nodes", KIND_NODE}, {"graph_execs", KIND_GRAPH_EXEC}, {"pools", KIND_POOL}, {"allocations", KIND_NONE},
        {"bytes", KIND_NONE}, {"retained", KIND_NONE},
    };
    const int count = sizeof counters / sizeof *counters;
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    if (number < 0 || number >= count) return NULL;
    *live = object_live(counters[number].kind);
    *created = object_created(counters[number].kind);
    if (number == 0) *live = context_active();
    if (number == count - 3) *live = memory_live();
    if (number == count - 2) *live = memory_live_bytes();
    if (number == count - 1)
        for (int i = 0; i < MAX_DEVICES; i++) *live += devices[i].retained;
    return counters[number].name;
}

void podium_recording_reset(void) {
    podium_recording_set_full(0);
    __attribute__((cleanup(entry_leave))) int lock = entry_lock();
    capture_reset();
    object_destroy_all();
    memory_reset();
    record_reset();
    entry_reset();
    context_forget();
    streams_busy = false;
    driver_initialized = false;
    for (int i = 0; i < MAX_DEVICES; i++) {
        struct device *device = &devices[i];
        device->primary = NULL;
        device->retained = device->primary_flags = 0;
        device->default_pool = device->current_pool = NULL;
        device->armed_fault = CUDA_SUCCESS;
        device->used = 0;
    }
}
