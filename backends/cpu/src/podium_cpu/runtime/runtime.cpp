// What runs kernels: see job.h for a launch, block.h for the threads of a block, pool.h for the threads of the system and
// for streams, signals.h for faults and Ctrl-C. It is one source, so that a library of kernels has nothing of it but the
// symbols below.
#include "signals.h"
#ifdef PODIUM_CPU_SANITIZE
#include "sanitizer.h"
#endif

namespace podium_cpu {

static int check_and_run(const podium_cpu_launch *launch, void *const *parameters, const kernel &code,
                         const char *name) {
  const uint64_t size = uint64_t(launch->block[0]) * launch->block[1] * launch->block[2];
  if (size == 0 || size > PODIUM_CPU_MAX_THREADS || launch->block[0] > PODIUM_CPU_MAX_THREADS ||
      launch->block[1] > PODIUM_CPU_MAX_THREADS || launch->shared > PODIUM_CPU_MAX_SHARED)
    return PODIUM_CPU_ERROR_INVALID_VALUE;
  if (launch->grid[0] == 0 || launch->grid[1] == 0 || launch->grid[2] == 0)
    return PODIUM_CPU_SUCCESS;
  if (launch->grid[1] > 65535 || launch->grid[2] > 65535 || launch->grid[0] > 2147483647)
    return PODIUM_CPU_ERROR_INVALID_VALUE;
  const uint64_t blocks = uint64_t(launch->grid[0]) * launch->grid[1] * launch->grid[2];
  if (launch->cooperative && blocks > PODIUM_CPU_MAX_COOPERATIVE) {
    snprintf(last_detail, sizeof last_detail, "a cooperative grid has at most %d blocks here, not %llu",
             int(PODIUM_CPU_MAX_COOPERATIVE), static_cast<unsigned long long>(blocks));
    return PODIUM_CPU_ERROR_INVALID_VALUE;
  }
  pthread_once(&worker_key_once, make_worker_key);
  pthread_once(&signals_once, install_signals);
  if (launch->stream)
    return enqueue(launch, parameters, code, name);
  job j;
  prepare_job(j, launch, parameters, code);
  run_job(j);
  if (j.status)
    memcpy(last_detail, j.detail, detail_bytes);
  return j.status;
}

static int run(const podium_cpu_launch *launch, void *const *parameters, const kernel &code, const char *name) {
  last_detail[0] = 0;
  return last_status = check_and_run(launch, parameters, code, name);
}

// Kernels that were compiled for a sanitizer need a runtime that was, too.
#ifdef PODIUM_CPU_ADDRESS_SANITIZER
static constexpr uint32_t address_sanitizer = 1u << 16;
#else
static constexpr uint32_t address_sanitizer = 0;
#endif
#ifdef PODIUM_CPU_SANITIZE
static constexpr uint32_t one_block_at_a_time = 1u << 17;
#else
static constexpr uint32_t one_block_at_a_time = 0;
#endif

static const runtime own_runtime = {runtime_version | address_sanitizer | one_block_at_a_time,
                                    run,
                                    claim,
                                    leave,
                                    begin_waiting,
                                    finish_block,
                                    exit_thread,
                                    barrier,
                                    meet,
                                    yield,
                                    grid_barrier,
                                    stop,
#ifdef PODIUM_CPU_SANITIZE
                                    report,
#endif
};

}  // namespace podium_cpu

using namespace podium_cpu;

const runtime *podium_cpu_runtime = &own_runtime;

#define PODIUM_CPU_EXPORT extern "C" __attribute__((visibility("default")))

// Called by the driver when it loads the library: with null to ask for its runtime, else to offer it another's, which it
// takes if it is of the same kind. Returns the one in use; what is below is to be called in the library that has it.
PODIUM_CPU_EXPORT const void *podium_cpu_attach(const void *address) {
  const runtime *other = static_cast<const runtime *>(address);
  if (other && other->version == own_runtime.version)
    podium_cpu_runtime = other;
  return podium_cpu_runtime;
}

// How many threads run the blocks of one launch at most.
PODIUM_CPU_EXPORT void podium_cpu_configure(uint32_t threads) {
  pthread_mutex_lock(&pool_lock);
  processors = threads ? threads : 1;
  pthread_mutex_unlock(&pool_lock);
}

static timespec later_by(uint32_t milliseconds) {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += milliseconds / 1000;
  until.tv_nsec += long(milliseconds % 1000) * 1000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    ++until.tv_sec;
  }
  return until;
}

// Wait for a stream, or for all if `every`; return its first error since the last call, or that the time was up.
PODIUM_CPU_EXPORT int podium_cpu_wait(uint64_t handle, int every, uint32_t milliseconds) {
  const timespec until = later_by(milliseconds);
  int status = PODIUM_CPU_SUCCESS;
  last_detail[0] = 0;
  pthread_mutex_lock(&pool_lock);
  for (;;) {
    bool busy = false;
    stream *failed = nullptr;
    for (stream *s = streams; s; s = s->next)
      if (every || s->handle == handle) {
        busy = busy || !is_idle(*s);
        if (s->status && !failed)
          failed = s;
      }
    if (!busy && failed) {
      status = failed->status;
      memcpy(last_detail, failed->detail, detail_bytes);
      failed->status = PODIUM_CPU_SUCCESS;
      tidy_stream(failed->handle);
    }
    if (!busy)
      break;
    if (pthread_cond_timedwait(&done, &pool_lock, &until) == ETIMEDOUT) {
      status = PODIUM_CPU_NOT_READY;
      break;
    }
  }
  pthread_mutex_unlock(&pool_lock);
  return last_status = status;
}

// Give the tickets of a stream's last launch and of the last one that has ended; tickets rise from launch to launch.
PODIUM_CPU_EXPORT void podium_cpu_progress(uint64_t handle, uint64_t *newest, uint64_t *ended) {
  pthread_mutex_lock(&pool_lock);
  stream *s = *find_stream(handle);
  *newest = s ? s->newest : tickets;
  *ended = s && !is_idle(*s) ? s->done : *newest;
  pthread_mutex_unlock(&pool_lock);
}

// Drop what streams have not begun, and stop what runs in them.
PODIUM_CPU_EXPORT void podium_cpu_abandon() {
  pthread_mutex_lock(&pool_lock);
  for (stream *s = streams; s; s = s->next) {
    drop_records(*s);
    if (s->running)
      fail(*s->running, PODIUM_CPU_ERROR_INTERRUPTED, nullptr);
  }
  pthread_mutex_unlock(&pool_lock);
}

// Make an event, which has passed while it was not recorded; null if there is no memory.
PODIUM_CPU_EXPORT void *podium_cpu_create_event() { return calloc(1, sizeof(event)); }

PODIUM_CPU_EXPORT void podium_cpu_destroy_event(void *address) {
  event *e = static_cast<event *>(address);
  pthread_mutex_lock(&pool_lock);
  release_recording(e->latest);
  pthread_mutex_unlock(&pool_lock);
  free(e);
}

static bool record_event(event &e, uint64_t handle) {
  recording *made = static_cast<recording *>(calloc(1, sizeof(recording)));
  if (!made)
    return false;
  made->references = 1;
  stream *s = *find_stream(handle);
  if (!s || is_idle(*s)) {
    pass(*made, s ? s->status : PODIUM_CPU_SUCCESS, s ? s->detail : nullptr);
  } else if (!enqueue_place(handle, *made, false)) {
    free(made);
    return false;
  }
  release_recording(e.latest);
  e.latest = made;
  return true;
}

// Put an event behind what is in a stream, or let a stream other than 0 wait for it.
PODIUM_CPU_EXPORT int podium_cpu_place_event(void *address, uint64_t handle, int waits) {
  event &e = *static_cast<event *>(address);
  bool possible = true;
  pthread_mutex_lock(&pool_lock);
  if (!waits)
    possible = record_event(e, handle);
  else if (e.latest && !e.latest->passed)
    possible = enqueue_place(handle, *e.latest, true);
  pthread_mutex_unlock(&pool_lock);
  return possible ? PODIUM_CPU_SUCCESS : PODIUM_CPU_ERROR_OUT_OF_MEMORY;
}

// Wait until an event has passed; return what had gone wrong in its stream by then, or that the time was up.
PODIUM_CPU_EXPORT int podium_cpu_wait_for_event(void *address, uint32_t milliseconds) {
  const timespec until = later_by(milliseconds);
  last_detail[0] = 0;
  int status = PODIUM_CPU_SUCCESS;
  pthread_mutex_lock(&pool_lock);
  if (recording *r = static_cast<event *>(address)->latest) {
    ++r->references;  // the event may be recorded anew meanwhile
    while (!r->passed && milliseconds && pthread_cond_timedwait(&done, &pool_lock, &until) != ETIMEDOUT) {
    }
    status = r->passed ? r->status : PODIUM_CPU_NOT_READY;
    if (r->passed && status)
      memcpy(last_detail, r->detail, detail_bytes);
    release_recording(r);
  }
  pthread_mutex_unlock(&pool_lock);
  return last_status = status;
}

// When an event passed, in nanoseconds of the system's monotonic clock; 0 if it was not recorded.
PODIUM_CPU_EXPORT uint64_t podium_cpu_event_time(void *address) {
  pthread_mutex_lock(&pool_lock);
  const recording *r = static_cast<event *>(address)->latest;
  const uint64_t time = r ? r->time : 0;
  pthread_mutex_unlock(&pool_lock);
  return time;
}

// What more there is to say of a status, if it is the last one that this thread was given; else an empty text.
PODIUM_CPU_EXPORT const char *podium_cpu_detail(int status) { return status == last_status ? last_detail : ""; }
