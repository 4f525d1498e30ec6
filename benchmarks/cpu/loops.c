/* What a launch costs without podium: a loop over the entry that the compiled kernel exports, in seconds per call. */
#include <stdint.h>
#include <time.h>

#include "podium_cpu_launch.h"

typedef int (*entry)(const podium_cpu_launch *launch, void *const *parameters);

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

__attribute__((visibility("default"))) double loop_over_entry(uint64_t function, uint32_t block, void **parameters,
                                                              int calls) {
    podium_cpu_launch launch = {.grid = {1, 1, 1}, .block = {block, 1, 1}};
    double start = now();
    for (int i = 0; i < calls; i++) ((entry)(uintptr_t)function)(&launch, parameters);
    return (now() - start) / calls;
}
