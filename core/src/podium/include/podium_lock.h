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
PODIUM_INLINE uint64_t podium_now(void) { return __builtin_ia32_rdtsc(); }
PODIUM_INLINE void podium_pause(void) { __builtin_ia32_pause(); }
#else
#include <time.h>
#define PODIUM_PATIENCE 100000 /* nanoseconds */
PODIUM_INLINE uint64_t podium_now(void) {
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}
PODIUM_INLINE void podium_pause(void) {}
#endif

#if defined(__GNUC__) && !defined(Py_GIL_DISABLED)

/* A turn: when a thread came back, in 256 ticks, above sixteen bits that tell threads apart. It is never 0. */
PODIUM_INLINE uint64_t podium_turn(const PyThreadState *thread, uint64_t now) {
    return (now >> 8) << 16 | (((uintptr_t)thread >> 4) & 0xfffe) | 1;
}

PODIUM_INLINE int podium_is_over(uint64_t turn, uint64_t now) {
    uint64_t age = podium_turn(NULL, now) - turn; /* the clocks of two threads may differ: it may be below 0 */
    return age >> 63 == 0 && age >> 16 > PODIUM_PATIENCE >> 8;
}

/* Wait for the turn of this thread, while one that has come back lately has the lock. Once a single thread sleeps at the
 * lock, each that lets go of it has to wake it, which takes ten times as long as a launch: so the wait is long enough for
 * many others to come and go, and short beside the five milliseconds that Python lets a thread keep the lock. Who has had
 * the turn for that long does something else by now, and one of those who wait takes it over: the others go on waiting for
 * that one, awake. */
PODIUM_ASIDE static void podium_wait_awake(uint64_t *turn, const PyThreadState *thread, uint64_t now) {
    const uint64_t begin = now;
    do {
        uint64_t found = __atomic_load_n(turn, __ATOMIC_RELAXED);
        if ((found == 0 || podium_is_over(found, now)) &&
            __atomic_compare_exchange_n(turn, &found, podium_turn(thread, now), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        podium_pause();
        now = podium_now();
    } while (now - begin < PODIUM_PATIENCE);
}

/* While a single thread launches there are no turns, which cost it as much as half of the lock does. Once there were
 * several, `alone` is odd: what tells the one apart that launched last, below how many times in a row it has. It is a
 * guess, since two may write it at the same time, and that does no harm: it decides about turns and not about the lock. */
#define PODIUM_ROW 48
PODIUM_INLINE int podium_is_alone(const PyThreadState *thread) {
    return __atomic_load_n(&podium_process->alone, __ATOMIC_RELAXED) == (uintptr_t)thread;
}

/* Note a thread that launches; tell whether it is the first. After so many launches in a row it is alone again, from the
 * next one on: now it may still have a turn to give back. */
PODIUM_ASIDE static int podium_meet(const PyThreadState *thread) {
    uint64_t *alone = &podium_process->alone, found = __atomic_load_n(alone, __ATOMIC_RELAXED);
    uint64_t me = (uint64_t)(uintptr_t)thread | 1, next = me;
    if (found == 0 &&
        __atomic_compare_exchange_n(alone, &found, (uintptr_t)thread, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return 1;
    if ((found ^ me) << (64 - PODIUM_ROW) == 0) {
        next = found + ((uint64_t)1 << PODIUM_ROW);
        if (next < found) next = (uintptr_t)thread;
    }
    __atomic_store_n(alone, next, __ATOMIC_RELAXED);
    return 0;
}

/* Who came to the lock in another way, say after it slept, has no turn to give back: it is another's, who may be waiting. */
PODIUM_UNUSED static PyThreadState *podium_leave(void) {
    PyThreadState *thread = PyEval_SaveThread();
    if (podium_is_alone(thread) || podium_meet(thread)) return thread;
    uint64_t *turn = &podium_process->turn;
    if ((uint16_t)(__atomic_load_n(turn, __ATOMIC_RELAXED) ^ podium_turn(thread, 0)) == 0)
        __atomic_store_n(turn, 0, __ATOMIC_RELEASE);
    return thread;
}

PODIUM_UNUSED static void podium_return(PyThreadState *thread) {
    if (!podium_is_alone(thread)) {
        uint64_t nobody = 0, now = podium_now(), *turn = &podium_process->turn;
        if (PODIUM_UNLIKELY(!__atomic_compare_exchange_n(
                turn, &nobody, podium_turn(thread, now), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
            podium_wait_awake(turn, thread, now);
    }
    PyEval_RestoreThread(thread);
}

#else

static PyThreadState *podium_leave(void) { return PyEval_SaveThread(); }
static void podium_return(PyThreadState *thread) { PyEval_RestoreThread(thread); }

#endif

#endif
