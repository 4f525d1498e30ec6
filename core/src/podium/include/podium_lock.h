/* Letting go of the interpreter lock for a driver call.
 *
 * A driver whose queue is full waits in the call until work before it has ended. That work may itself wait for Python: a
 * function of the host in the stream, or memory that another thread will write to. So a backend makes its call between
 * `podium_leave` and `podium_return`, and calls nothing of Python meanwhile.
 *
 * Threads that launch one after another come back for the lock every few microseconds, and to be put to sleep and woken
 * takes longer than that: eight threads would be slower than one. So who comes back looks whether another such thread
 * has the lock, and then waits awake for a while.
 */
#ifndef PODIUM_LOCK_H
#define PODIUM_LOCK_H

#include "podium_launch.h"

#if defined(__GNUC__) && defined(__x86_64__)
#define PODIUM_PATIENCE 240000 /* ticks: some hundred microseconds */
PODIUM_INLINE uint64_t podium_now(void) { return __builtin_ia32_rdtsc() | 1; }
PODIUM_INLINE void podium_pause(void) { __builtin_ia32_pause(); }
#else
#include <time.h>
#define PODIUM_PATIENCE 100000 /* nanoseconds */
PODIUM_INLINE uint64_t podium_now(void) {
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return ((uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec) | 1;
}
PODIUM_INLINE void podium_pause(void) {}
#endif

#if defined(__GNUC__) && !defined(Py_GIL_DISABLED)

/* Wait for the turn of this thread, while one that has come back lately has the lock. Once a single thread sleeps at the
 * lock, each that lets go of it has to wake it, which takes ten times as long as a launch: so the wait is long enough for
 * many others to come and go, and short beside the five milliseconds that Python lets a thread keep the lock. */
PODIUM_ASIDE static void podium_wait_awake(uint64_t *holder, uint64_t now) {
    const uint64_t begin = now;
    while (now - begin < PODIUM_PATIENCE) {
        uint64_t since = __atomic_load_n(holder, __ATOMIC_RELAXED);
        if (since == 0) {
            if (__atomic_compare_exchange_n(holder, &since, now, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
        } else if (now > since && now - since > PODIUM_PATIENCE) {
            return; /* it does something else by now */
        }
        podium_pause();
        now = podium_now();
    }
}

PODIUM_UNUSED static PyThreadState *podium_leave(void) {
    PyThreadState *thread = PyEval_SaveThread();
    __atomic_store_n(&podium_process->holder, 0, __ATOMIC_RELEASE);
    return thread;
}

PODIUM_UNUSED static void podium_return(PyThreadState *thread) {
    uint64_t nobody = 0, now = podium_now();
    uint64_t *holder = &podium_process->holder;
    if (PODIUM_UNLIKELY(!__atomic_compare_exchange_n(holder, &nobody, now, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        podium_wait_awake(holder, now);
    PyEval_RestoreThread(thread);
}

#else

static PyThreadState *podium_leave(void) { return PyEval_SaveThread(); }
static void podium_return(PyThreadState *thread) { PyEval_RestoreThread(thread); }

#endif

#endif
