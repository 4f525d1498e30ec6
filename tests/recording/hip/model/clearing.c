/*
 * Preloaded where AMD's runtime runs on a model. There, ROCr 7.2 clears memory for as many nodes as an uninitialised
 * variable says: some gigabytes, as it happens. Fresh memory need not be written to be zero, and is not, here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define MUCH ((size_t)256 << 20)

typedef void *(*function)(void *, int, size_t);

static void each(volatile uint8_t *to, int value, size_t size) {
    for (size_t i = 0; i < size; i++) to[i] = (uint8_t)value;
}

void *memset(void *to, int value, size_t size) {
    static function next;
    static int asking;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)to, end = begin + size;
    uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
    if (!value && size > MUCH && !madvise((void *)first, last - first, MADV_DONTNEED)) {
        each(to, 0, first - begin);
        each((uint8_t *)last, 0, end - last);
        return to;
    }
    if (!next && !asking) { /* to look it up may need it */
        asking = 1;
        next = (function)dlsym(RTLD_NEXT, "memset");
        asking = 0;
    }
    if (next) return next(to, value, size);
    each(to, value, size);
    return to;
}
