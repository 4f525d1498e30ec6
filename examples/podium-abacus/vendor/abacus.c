/* libabacus.so.1, the runtime of a device that does not exist: a host that runs the threads of a launch one by one.
 * Functions return a status, 0 for success. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK, BAD_BLOCK, NO_MEMORY, BAD_IMAGE, NO_SUCH_KERNEL };
typedef int kernel(const uint32_t *grid, const uint32_t *block, void **parameters);

int abacusVersion(void) { return 10; }

uint64_t abacusMemory(void) { return 1u << 30; }

const char *abacusErrorText(int status) {
    static const char *texts[] = {"no error", "a block has too many threads", "out of memory", "the image is no code",
                                  "the image has no such kernel"};
    return status >= OK && status <= NO_SUCH_KERNEL ? texts[status] : "unknown status";
}

int abacusMalloc(void **address, uint64_t size) { /* aligned to 64 bytes */
    if (size > abacusMemory()) return NO_MEMORY;
    return posix_memalign(address, 64, size) == 0 ? OK : NO_MEMORY;
}

void abacusFree(void *address) { free(address); }

int abacusCopy(void *destination, const void *source, uint64_t size) {
    memmove(destination, source, size);
    return OK;
}

/* An image is a shared library with a function for each kernel. */
int abacusLoad(void **module, const void *image, uint64_t size) {
    char path[] = "/tmp/abacus-XXXXXX";
    int file = mkstemp(path);
    if (file < 0) return NO_MEMORY;
    int whole = write(file, image, size) == (ssize_t)size;
    close(file);
    *module = whole ? dlopen(path, RTLD_NOW) : NULL;
    unlink(path);
    return *module != NULL ? OK : BAD_IMAGE;
}

void abacusUnload(void *module) { dlclose(module); }

int abacusFind(void **function, void *module, const char *name) {
    *function = dlsym(module, name);
    return *function != NULL ? OK : NO_SUCH_KERNEL;
}

int abacusLaunch(void *function, const uint32_t grid[3], const uint32_t block[3], void **parameters) {
    if ((uint64_t)block[0] * block[1] * block[2] > 1024) return BAD_BLOCK;
    return ((kernel *)function)(grid, block, parameters);
}

int abacusWait(void) { return OK; } /* launches have ended when they return */
