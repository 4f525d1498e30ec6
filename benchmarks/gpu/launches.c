/* What a launch costs without podium: a loop over the driver's own call, in seconds per call. No header of CUDA is
 * needed: the address of the call comes from the library that the process has open. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

typedef int (*launch_kernel)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared, void *stream, void **parameters, void **extra);
typedef int (*launch_graph)(void *graph, void *stream);
typedef int (*set_context)(void *context);

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Seconds per launch, or minus the driver's status. */
EXPORT double loop_over_launch(uint64_t call, uint64_t function, uint64_t stream, uint32_t block, void **parameters,
                               int calls) {
    double start = now();
    for (int i = 0; i < calls; i++) {
        int status = ((launch_kernel)(uintptr_t)call)((void *)(uintptr_t)function, 1, 1, 1, block, 1, 1, 0,
                                                      (void *)(uintptr_t)stream, parameters, 0);
        if (status) return -(double)status;
    }
    return (now() - start) / calls;
}

/* Seconds per replay of a graph, or minus a status; `call` is cuGraphLaunch. */
EXPORT double loop_over_graph(uint64_t call, uint64_t graph, uint64_t stream, int calls) {
    double start = now();
    for (int i = 0; i < calls; i++) {
        int status = ((launch_graph)(uintptr_t)call)((void *)(uintptr_t)graph, (void *)(uintptr_t)stream);
        if (status) return -(double)status;
    }
    return (now() - start) / calls;
}

struct work {
    uint64_t call, set_current, context, function, stream;
    uint32_t block;
    void **parameters;
    int calls;
    double seconds;
};

static void *run(void *argument) {
    struct work *work = argument;
    int status = ((set_context)(uintptr_t)work->set_current)((void *)(uintptr_t)work->context);
    work->seconds = status ? -(double)status
                           : loop_over_launch(work->call, work->function, work->stream, work->block, work->parameters,
                                              work->calls);
    return 0;
}

/* The same in several threads at once, a stream for each: seconds from the first start to the last end, per launch of
 * one thread, or minus a status. */
EXPORT double loop_in_threads(uint64_t call, uint64_t set_current, uint64_t context, uint64_t function,
                              const uint64_t *streams, int threads, uint32_t block, void **parameters, int calls) {
    pthread_t thread[64];
    struct work work[64];
    double start = now();
    int started = 0;
    for (; started < threads && started < 64; started++) {
        work[started] = (struct work){call, set_current, context, function, streams[started], block, parameters, calls, 0};
        if (pthread_create(&thread[started], 0, run, &work[started])) break;
    }
    double problem = started == threads ? 0 : -1;
    for (int i = 0; i < started; i++) {
        pthread_join(thread[i], 0);
        if (work[i].seconds < 0) problem = work[i].seconds;
    }
    return problem < 0 ? problem : (now() - start) / calls;
}
