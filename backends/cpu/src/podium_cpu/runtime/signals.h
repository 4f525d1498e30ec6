// Signals that end a launch instead of the process: faults of a kernel, Ctrl-C, and the request of one thread that the
// others stop. A handler takes its thread out of the kernel by switching to the stack that the launch came from.
#ifndef PODIUM_CPU_SIGNALS_H
#define PODIUM_CPU_SIGNALS_H

#include <errno.h>
#include <ucontext.h>
#ifdef __linux__
#include <link.h>
#endif

#include "pool.h"

namespace podium_cpu {

static constexpr int abort_signal = SIGURG;  // which the system ignores where nobody asks for it
#ifdef PODIUM_CPU_ADDRESS_SANITIZER
static constexpr bool faults_are_reported = true;  // by the sanitizer, with more to say
#else
static constexpr bool faults_are_reported = false;
#endif
static constexpr int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
static constexpr long retry_nanoseconds = 5000000;

static struct sigaction before_fault[NSIG], before_abort, before_interrupt;
static job *volatile main_job;      // the launch that the main thread waits for
static worker *volatile main_worker;
static uint64_t hook_time;          // when the handler of Ctrl-C was last looked at
static pthread_once_t signals_once = PTHREAD_ONCE_INIT;

// Code of the C library may hold a lock, and a thread must not be taken out of it.
struct code_range {
  uintptr_t begin, end;
};
static code_range kept_ranges[4];
static int kept_count;

#ifdef __linux__
extern "C" void *__tls_get_addr(void *);

static int keep_library(struct dl_phdr_info *info, size_t, void *address) {
  const uintptr_t wanted = reinterpret_cast<uintptr_t>(address);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    const uintptr_t end = begin + info->dlpi_phdr[i].p_memsz;
    if (info->dlpi_phdr[i].p_type == PT_LOAD && wanted >= begin && wanted < end) {
      kept_ranges[kept_count++] = code_range{begin, end};
      return 1;
    }
  }
  return 0;
}

static void find_kept_ranges() {
  void *const kept[] = {reinterpret_cast<void *>(&malloc), reinterpret_cast<void *>(&fflush),
                        reinterpret_cast<void *>(&pthread_mutex_lock), reinterpret_cast<void *>(&__tls_get_addr)};
  for (void *each : kept)
    dl_iterate_phdr(keep_library, each);
}
#endif

static bool may_abandon(void *context) {
#if defined(__linux__) && defined(__x86_64__)
  const uintptr_t at = uintptr_t(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__linux__) && defined(__aarch64__)
  const uintptr_t at = uintptr_t(static_cast<ucontext_t *>(context)->uc_mcontext.pc);
#else
  (void)context;
  return false;  // the launch stops at its next block
#endif
#ifdef __linux__
  for (int i = 0; i < kept_count; ++i)
    if (at >= kept_ranges[i].begin && at < kept_ranges[i].end)
      return false;
  return true;
#endif
}

static worker *worker_of_thread() { return static_cast<worker *>(pthread_getspecific(worker_key)); }

static void chain(const struct sigaction &before, int number, siginfo_t *info, void *context) {
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(number, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(number);
}

// ---- requests to stop ----

static inline bool is_abort_wanted(const worker &w) { return __atomic_load_n(&w.abort_wanted, __ATOMIC_RELAXED); }

static void send_abort(const worker &w) {
#ifdef __linux__
  syscall(SYS_tgkill, getpid(), w.thread_id, abort_signal);
#else
  pthread_kill(w.thread, abort_signal);
#endif
}

#ifdef __linux__
static timer_t retry_timer;
static bool has_retry_timer;

static void make_retry_timer() {
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = abort_signal;
  has_retry_timer = timer_create(CLOCK_MONOTONIC, &event, &retry_timer) == 0;
}

static void set_retry_timer(bool on) {
  itimerspec times = {};
  if (on)
    times.it_value.tv_nsec = times.it_interval.tv_nsec = retry_nanoseconds;
  if (has_retry_timer)
    timer_settime(retry_timer, 0, &times, nullptr);
}
#else
static void make_retry_timer() {}
static void set_retry_timer(bool) {}
#endif

// Have all threads that run blocks of a job leave it. A thread inside the C library is asked again a little later.
static void request_abort(job &j, bool own_thread_too) {
  const worker *self = worker_of_thread();
  bool sent = false;
  for (uint32_t i = 0; i < max_workers; ++i) {
    worker *w = __atomic_load_n(&workers[i], __ATOMIC_ACQUIRE);
    if (!w)
      break;
    if (__atomic_load_n(&w->running, __ATOMIC_ACQUIRE) != &j || (w == self && !own_thread_too))
      continue;
    __atomic_store_n(&w->abort_wanted, true, __ATOMIC_RELAXED);
    sent = true;
    if (w != self)
      send_abort(*w);
  }
  if (sent)
    set_retry_timer(true);
}

static void retry_aborts() {
  bool sent = false;
  for (uint32_t i = 0; i < max_workers; ++i) {
    worker *w = __atomic_load_n(&workers[i], __ATOMIC_ACQUIRE);
    if (!w)
      break;
    if (is_abort_wanted(*w) && __atomic_load_n(&w->running, __ATOMIC_ACQUIRE)) {
      send_abort(*w);
      sent = true;
    }
  }
  if (!sent)
    set_retry_timer(false);
}

static void interrupt_main_job() {
  job *j = main_job;
  if (!j)
    return;
  int before = PODIUM_CPU_SUCCESS;
  if (__atomic_compare_exchange_n(&j->status, &before, int(PODIUM_CPU_ERROR_INTERRUPTED), false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&j->cancelled, true, __ATOMIC_RELEASE);
    request_abort(*j, true);
  }
}

static volatile sig_atomic_t interrupt_wanted;

static void on_abort(int number, siginfo_t *info, void *context) {
  const int error = errno;
  worker *w = worker_of_thread();
  const bool own_timer = info->si_code == SI_TIMER;
  if (own_timer)
    retry_aborts();
  else if (info->si_code != SI_TKILL)
    chain(before_abort, number, info, context);
  if (w && w->main_thread && interrupt_wanted) {
    interrupt_wanted = 0;
    interrupt_main_job();
  }
  if (w && is_abort_wanted(*w) && w->in_kernel && w->running && is_cancelled(*w->running) && may_abandon(context))
    leave(*w);
  errno = error;
}

// Ctrl-C: the interpreter's own handler first, which only takes note of it; then the launch of the main thread ends.
static void on_interrupt(int number, siginfo_t *info, void *context) {
  const int error = errno;
  chain(before_interrupt, number, info, context);
  worker *main = main_worker;
  if (main && main_job) {
    if (worker_of_thread() == main) {
      interrupt_main_job();
      if (main->in_kernel && may_abandon(context))
        leave(*main);
    } else {
      interrupt_wanted = 1;  // the job is on the main thread's stack: only that one may touch it
      send_abort(*main);
    }
  }
  errno = error;
}

// ---- faults ----

static void describe_fault(char *text, const worker &w, int number, const siginfo_t &info) {
  uint32_t place[6];
  w.code->where(place);
  const char *address = static_cast<const char *>(info.si_addr);
  int length = 0;
  if (number == SIGFPE)
    length = snprintf(text, detail_bytes, "it divided an integer by zero");
  else if (number == SIGILL)
    length = snprintf(text, detail_bytes, "it came to an illegal instruction");
  else if (is_in_guard(w, address))
    length = snprintf(text, detail_bytes, "a thread's stack is full: recursion without an end, or too much local memory");
  else if (info.si_code > 0 && info.si_code != SI_KERNEL)
    length = snprintf(text, detail_bytes, "it accessed the address %p, which is not memory that it may use this way",
                      info.si_addr);
  else
    length = snprintf(text, detail_bytes, "it accessed an address that is not memory");
  snprintf(text + length, detail_bytes - size_t(length), ", in block (%u,%u,%u)", place[0], place[1], place[2]);
}

static void on_fault(int number, siginfo_t *info, void *context) {
  worker *w = worker_of_thread();
  if (w && w->in_kernel && w->running) {
    w->in_kernel = false;
    char text[detail_bytes];
    describe_fault(text, *w, number, *info);
    fail(*w->running, PODIUM_CPU_ERROR_FAULT, "%s", text);
    leave(*w);
  }
  const struct sigaction &before = before_fault[number];
  if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL) {
    sigaction(number, &before, nullptr);  // the fault comes again, and ends the process as it would have
    if (info->si_code <= 0)
      raise(number);
    return;
  }
  chain(before, number, info, context);
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags, struct sigaction *before) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | flags;
  sigaction(number, &action, before);
}

static void renew_signals() {  // in a forked child, which has no timers
  main_job = nullptr;
  main_worker = nullptr;
  make_retry_timer();
}

static void renew_all() {
  renew_pool();
  renew_signals();
}

static void install_signals() {
#ifdef __linux__
  find_kept_ranges();
#endif
  make_retry_timer();
  // Not deferred: a handler that leaves a kernel does not return.
  handle(abort_signal, on_abort, SA_NODEFER | SA_RESTART, &before_abort);
  for (int number : fault_signals)
    if (!faults_are_reported)
      handle(number, on_fault, SA_NODEFER, &before_fault[number]);
  pthread_atfork(lock_all, unlock_all, renew_all);
}

// ---- Ctrl-C ----

// See that Ctrl-C comes here, unless the program ignores it or lets it end the process. Whoever sets a handler replaces
// ours, so it is looked at again: once in a tick of the coarse clock, some milliseconds, since asking the system takes
// longer than a small launch.
static void hook_interrupt() {
#ifdef CLOCK_MONOTONIC_COARSE
  const uint64_t now = nanoseconds(CLOCK_MONOTONIC_COARSE);
#else
  const uint64_t now = nanoseconds(CLOCK_MONOTONIC) / 4000000;
#endif
  if (now == hook_time)
    return;
  hook_time = now;
  struct sigaction present;
  if (sigaction(SIGINT, nullptr, &present) != 0)
    return;
  const bool plain = !(present.sa_flags & SA_SIGINFO);
  if ((plain && (present.sa_handler == SIG_DFL || present.sa_handler == SIG_IGN)) ||
      (!plain && present.sa_sigaction == on_interrupt))
    return;
  before_interrupt = present;
  handle(SIGINT, on_interrupt, (present.sa_flags & SA_RESTART) | SA_NODEFER, nullptr);
}

static void watch_interrupts(job &j) {
  main_worker = own_worker;
  main_job = &j;
  hook_interrupt();
}

static void unwatch_interrupts() { main_job = nullptr; }

}  // namespace podium_cpu

#endif
