/* What a launcher and a compiled kernel of the CPU backend agree on; C and C++. */
#ifndef PODIUM_CPU_LAUNCH_H
#define PODIUM_CPU_LAUNCH_H

#include <stdint.h>

/* The shape of a launch: grid in blocks, block in threads, dynamic shared memory of a block in bytes.
 *
 * On stream 0 the launch has ended when the call returns. Any other number is a queue: the call returns at once, and
 * the launches of one queue run one after another. The bytes of the arguments are copied, what they point to is not.
 *
 * In a cooperative launch all blocks run at the same time and can wait for each other. */
typedef struct {
  uint32_t grid[3];
  uint32_t block[3];
  uint64_t shared;
  uint64_t stream;
  uint64_t cooperative;
} podium_cpu_launch;

/* Every kernel is exported as
 *
 *     int podium_entry_N(const podium_cpu_launch *launch, void *const *parameters);
 *
 * where parameters[i] points to the i-th argument. It returns a status: */
enum {
  PODIUM_CPU_SUCCESS = 0,
  PODIUM_CPU_ERROR_INVALID_VALUE = 1, /* a block, grid or shared size beyond the limits below */
  PODIUM_CPU_ERROR_OUT_OF_MEMORY = 2, /* no memory for the stacks of a block's threads, or no thread for a block */
  PODIUM_CPU_ERROR_BARRIER = 3,       /* not all threads came to a barrier or a warp function that waits for them */
  PODIUM_CPU_ERROR_MASK = 4,          /* a warp function was called by a thread that its mask leaves out */
  PODIUM_CPU_ERROR_ASSERT = 5,        /* an assertion of the kernel failed */
  PODIUM_CPU_ERROR_TRAP = 6,          /* the kernel called __trap */
  PODIUM_CPU_ERROR_INTERRUPTED = 7,   /* Ctrl-C */
  PODIUM_CPU_ERROR_FAULT = 8,         /* an address that is not mapped, a division by zero, an illegal instruction */
  PODIUM_CPU_ERROR_GRID_BARRIER = 9,  /* blocks wait for each other in a launch that is not cooperative */
  PODIUM_CPU_ERROR_SANITIZER = 10     /* a kernel that was built for the sanitizers did what they look for */
};

/* What podium_cpu_wait returns when the time is up. */
enum { PODIUM_CPU_NOT_READY = -1 };

/* The limits are those of a large GPU, so that what runs here fits there. */
enum {
  PODIUM_CPU_MAX_THREADS = 1024,
  PODIUM_CPU_MAX_SHARED = 227 * 1024,
  PODIUM_CPU_MAX_COOPERATIVE = 128 /* blocks */
};

#endif
