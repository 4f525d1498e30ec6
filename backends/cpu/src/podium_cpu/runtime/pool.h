// The threads of the system that run blocks, and the streams whose launches they run. They sleep while there is nothing
// to do, are started when first needed, and started anew in a forked child.
#ifndef PODIUM_CPU_POOL_H
#define PODIUM_CPU_POOL_H

#include <stdlib.h>

#include "block.h"
#include "stream.h"

namespace podium_cpu {

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static uint32_t processors = 1;  // how many threads run blocks of one launch at most
static uint32_t pool_size;       // how many have been started
static job *open_jobs;
static uint32_t calls;  // rises with each thing that there is to do
static thread_local int last_status;  // what this thread was given, and what there is to say of it
static thread_local char last_detail[detail_bytes];

#ifdef PODIUM_CPU_SANITIZE
// Shared memory is not the thread's own here, so that the sanitizers see its bounds: one block at a time.
static uint32_t pool_threads() { return 1; }
#else
static uint32_t pool_threads() { return processors; }
#endif

static void *serve(void *);

// Launches often come one close upon another, and to be woken takes longer than many of them. So a thread looks around
// for a moment before it goes to sleep.
static constexpr uint64_t awake_nanoseconds = 100000;

template <class Condition>
static void stay_awake(Condition is_over) {
  const uint64_t end = nanoseconds(CLOCK_MONOTONIC) + awake_nanoseconds;
  do {
    for (int i = 0; i < 32; ++i) {
      if (is_over())
        return;
#ifdef __x86_64__
      __builtin_ia32_pause();
#endif
    }
  } while (nanoseconds(CLOCK_MONOTONIC) < end);
}

// Tell the threads that there is something to do; with the lock.
static void call_threads(uint32_t count) {
  __atomic_store_n(&calls, calls + 1, __ATOMIC_RELAXED);
  if (count >= pool_size)
    pthread_cond_broadcast(&work);
  else
    for (; count; --count)
      pthread_cond_signal(&work);
}

// Start the pool's threads unless it has them; with the lock. Tell whether there is one.
static bool ensure_pool() {
  while (pool_size < processors) {
    // Signals are for the program's own threads; but this one's own faults, and the request to stop, are its own.
    sigset_t all, before;
    sigfillset(&all);
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGURG, SIGTRAP, SIGABRT};
    for (int each : own)
      sigdelset(&all, each);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const int failed = pthread_create(&thread, nullptr, serve, nullptr);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (failed)
      break;
    pthread_detach(thread);
    ++pool_size;
  }
  return pool_size > 0;
}

// Let the pool's threads join in a job, and wake some. False if there are none.
static bool share_out(job &j, uint32_t threads) {
  pthread_mutex_lock(&pool_lock);
  const bool possible = ensure_pool();
  if (possible) {
    j.shared_out = true;
    j.below = open_jobs;
    open_jobs = &j;
    call_threads(threads + 1 < processors ? threads : pool_size);
  }
  pthread_mutex_unlock(&pool_lock);
  return possible;
}

static job *joinable() {
  for (job *j = open_jobs; j; j = j->below)
    if (j->others + 1 < processors && !is_cancelled(*j) && __atomic_load_n(&j->next, __ATOMIC_RELAXED) < j->blocks)
      return j;
  return nullptr;
}

static void *run_cooperative_block(void *address) {
  job &j = *static_cast<job *>(address);
  worker *w = current_worker();
  if (w)
    participate(*w, j);
  else
    fail(j, PODIUM_CPU_ERROR_OUT_OF_MEMORY, nullptr);
  leave_grid(j);
  return nullptr;
}

// Give each block a thread of its own.
static void run_cooperatively(job &j) {
  pthread_t threads[PODIUM_CPU_MAX_COOPERATIVE];
  pthread_mutex_init(&j.grid_lock, nullptr);
  pthread_cond_init(&j.grid_moved, nullptr);
  uint64_t started = 0;
  while (started < j.blocks && pthread_create(&threads[started], nullptr, run_cooperative_block, &j) == 0)
    ++started;
  if (started < j.blocks)
    fail(j, PODIUM_CPU_ERROR_OUT_OF_MEMORY, "the system gave %u threads, and each block needs one", unsigned(started));
  for (uint64_t i = 0; i < started; ++i)
    pthread_join(threads[i], nullptr);
  pthread_cond_destroy(&j.grid_moved);
  pthread_mutex_destroy(&j.grid_lock);
}

static void watch_interrupts(job &j);  // in signals.h
static void unwatch_interrupts();

#ifdef PODIUM_CPU_SANITIZE
static pthread_mutex_t serial_lock = PTHREAD_MUTEX_INITIALIZER;
#endif

static void prepare_job(job &j, const podium_cpu_launch *launch, void *const *parameters, const kernel &code) {
  j.launch = launch;
  j.code = &code;
  j.parameters = parameters;
  j.blocks = uint64_t(launch->grid[0]) * launch->grid[1] * launch->grid[2];
  j.owner = nullptr;
  j.shared_out = j.cancelled = false;
  j.next = j.others = 0;
  j.status = PODIUM_CPU_SUCCESS;
  j.detail[0] = 0;
  j.grid_arrived = j.grid_left = j.grid_generation = 0;
}

// Run a launch to its end, in this thread and those of the pool.
static void run_job(job &j) {
  worker *w = j.owner = current_worker();
  if (!w) {
    j.status = PODIUM_CPU_ERROR_OUT_OF_MEMORY;
    return;
  }
#ifdef PODIUM_CPU_SANITIZE
  pthread_mutex_lock(&serial_lock);
#endif
  if (w->main_thread)
    watch_interrupts(j);
  if (j.launch->cooperative)
    run_cooperatively(j);
  else
    participate(*w, j);
  if (j.shared_out) {
    pthread_mutex_lock(&pool_lock);
    for (job **each = &open_jobs; *each; each = &(*each)->below)
      if (*each == &j) {
        *each = j.below;
        break;
      }
    if (j.others) {
      pthread_mutex_unlock(&pool_lock);
      stay_awake([&j] { return __atomic_load_n(&j.others, __ATOMIC_RELAXED) == 0; });
      pthread_mutex_lock(&pool_lock);
    }
    while (j.others)
      pthread_cond_wait(&done, &pool_lock);
    pthread_mutex_unlock(&pool_lock);
  }
  if (w->main_thread)
    unwatch_interrupts();
#ifdef PODIUM_CPU_SANITIZE
  pthread_mutex_unlock(&serial_lock);
#endif
}

// ---- streams ----

// Take a record with a place out of a stream; with the lock.
static void leave_place(stream &s, record *r) {
  s.done = r->ticket;
  if (!r->waits) {
    pass(*r->place, s.status, s.detail);
    call_threads(pool_size);
  }
  release_recording(r->place);
  free(r);
  tidy_stream(s.handle);
  pthread_cond_broadcast(&done);
}

// Run the first launch of a stream; called with the lock, and gives it up meanwhile.
static void run_first(stream &s) {
  record *r = s.first;
  s.first = r->next;
  if (r->place)
    return leave_place(s, r);
  job j;
  prepare_job(j, &r->launch, r->parameters, *r->code);
  s.running = &j;
  pthread_mutex_unlock(&pool_lock);
  run_job(j);
  pthread_mutex_lock(&pool_lock);
  s.running = nullptr;
  s.done = r->ticket;
  if (j.status && s.status == PODIUM_CPU_SUCCESS) {
    const podium_cpu_launch &l = r->launch;
    s.status = j.status;
    snprintf(s.detail, detail_bytes, "in %.200s, launched with grid (%u,%u,%u) and block (%u,%u,%u) on stream %#llx%s%.200s",
             r->name, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2],
             static_cast<unsigned long long>(s.handle), j.detail[0] ? ": " : "", j.detail);
  }
  free(r);
  tidy_stream(s.handle);
  pthread_cond_broadcast(&done);
}

static void *serve(void *) {
  pthread_mutex_lock(&pool_lock);
  for (;;) {
    if (job *j = joinable()) {
      __atomic_store_n(&j->others, j->others + 1, __ATOMIC_RELAXED);
      pthread_mutex_unlock(&pool_lock);
      worker *w = current_worker();
      if (w)
        participate(*w, *j);
      else
        fail(*j, PODIUM_CPU_ERROR_OUT_OF_MEMORY, nullptr);
      pthread_mutex_lock(&pool_lock);
      __atomic_store_n(&j->others, j->others - 1, __ATOMIC_RELAXED);
      if (j->others == 0)
        pthread_cond_broadcast(&done);
      continue;
    }
    stream *s = streams;
    while (s && (s->running || !s->first || is_held(*s)))
      s = s->next;
    if (s) {
      run_first(*s);
      continue;
    }
    const uint32_t seen = calls;
    pthread_mutex_unlock(&pool_lock);
    stay_awake([seen] { return __atomic_load_n(&calls, __ATOMIC_RELAXED) != seen; });
    pthread_mutex_lock(&pool_lock);
    if (calls == seen)
      pthread_cond_wait(&work, &pool_lock);
  }
  return nullptr;
}

// Put a record at the end of a stream; with the lock. Tell whether there was memory for it.
static bool append(uint64_t handle, record *r) {
  if (!ensure_pool())
    return false;
  stream **place = find_stream(handle), *s = *place;
  if (!s) {
    s = *place = static_cast<stream *>(calloc(1, sizeof(stream)));
    if (!s)
      return false;
    s->handle = handle;
  }
  r->next = nullptr;
  s->newest = r->ticket = ++tickets;
  if (s->first)
    s->last->next = r;
  else
    s->first = r;
  s->last = r;
  call_threads(1);
  return true;
}

static int enqueue(const podium_cpu_launch *launch, void *const *parameters, const kernel &code, const char *name) {
  size_t bytes = (sizeof(record) + 63) & ~size_t(63);
  const size_t addresses = bytes;
  bytes += (code.parameters * sizeof(void *) + 63) & ~size_t(63);
  const size_t values = bytes;
  for (uint32_t i = 0; i < code.parameters; ++i)
    bytes += (code.sizes[i] + 63) & ~size_t(63);
  char *memory = nullptr;
  if (posix_memalign(reinterpret_cast<void **>(&memory), 64, bytes) != 0)
    return PODIUM_CPU_ERROR_OUT_OF_MEMORY;
  record *r = reinterpret_cast<record *>(memory);
  r->place = nullptr;
  r->launch = *launch;
  r->code = &code;
  r->name = name;
  r->parameters = reinterpret_cast<void **>(memory + addresses);
  char *value = memory + values;
  for (uint32_t i = 0; i < code.parameters; ++i) {
    memcpy(value, parameters[i], code.sizes[i]);
    r->parameters[i] = value;
    value += (code.sizes[i] + 63) & ~size_t(63);
  }
  pthread_mutex_lock(&pool_lock);
  const bool possible = append(launch->stream, r);
  pthread_mutex_unlock(&pool_lock);
  if (!possible)
    free(memory);
  return possible ? PODIUM_CPU_SUCCESS : PODIUM_CPU_ERROR_OUT_OF_MEMORY;
}

// Put a place into a stream, to be passed there or to be waited for; with the lock. Tell whether there was memory.
static bool enqueue_place(uint64_t handle, recording &place, bool waits) {
  record *r = static_cast<record *>(calloc(1, sizeof(record)));
  if (!r)
    return false;
  r->place = &place;
  r->waits = waits;
  if (!append(handle, r)) {
    free(r);
    return false;
  }
  ++place.references;
  return true;
}

// In a forked child, whose only thread is this one, nothing runs and nothing waits.
static void renew_pool() {
  pool_lock = PTHREAD_MUTEX_INITIALIZER;
  work = done = PTHREAD_COND_INITIALIZER;
  workers_lock = PTHREAD_MUTEX_INITIALIZER;
#ifdef PODIUM_CPU_SANITIZE
  serial_lock = PTHREAD_MUTEX_INITIALIZER;
#endif
  pool_size = 0;
  open_jobs = nullptr;
  for (stream *s = streams; s; s = s->next)
    drop_records(*s);
  streams = nullptr;
  for (uint32_t i = 0; i < max_workers && workers[i]; ++i) {
    workers[i]->taken = workers[i] == own_worker;
    workers[i]->running = nullptr;
    workers[i]->in_kernel = false;
  }
  if (own_worker)
    identify_thread(*own_worker);
}

static void lock_all() {
  pthread_mutex_lock(&pool_lock);
  pthread_mutex_lock(&workers_lock);
}

static void unlock_all() {
  pthread_mutex_unlock(&workers_lock);
  pthread_mutex_unlock(&pool_lock);
}

}  // namespace podium_cpu

#endif
