// What kernels and the runtime know of each other. The runtime (../../runtime) is compiled once and linked into every
// library of kernels; all libraries of a process use that of the first one, through a table of functions.
#ifndef PODIUM_CPU_RUNTIME_H
#define PODIUM_CPU_RUNTIME_H

#include "../podium_cpu_launch.h"
#include "standard.h"

namespace podium_cpu {

static constexpr uint32_t warp_threads = 32;
static constexpr uint32_t max_warps = PODIUM_CPU_MAX_THREADS / warp_threads;
static constexpr uint32_t runtime_version = 5;  // rises with every change to this file

static constexpr int no_number = 1 << 30;

// Where a thread waits, in the user's words and the user's file.
struct site {
  const char *what, *file;
  int line;
  int number;  // of a barrier in the text: above zero in the kernel itself, below it in other functions; or no_number
};

// A thread that has left its kernel, and the last barrier that it has come past by then.
struct departure {
  uint32_t thread;
  int past;
};

// What a thread brings to a warp function and takes from it.
struct lane {
  uint64_t value, result;
  void (*finish)(lane *lanes, uint32_t participants);
  const void *place;  // where __activemask was called, else null
  void *waiting;      // null for the thread that runs
  uint32_t mask, source;
};

// The block that runs on a thread of the system, as far as its kernel looks at it.
struct block {
  uint32_t size;     // its threads
  uint32_t started;  // how many of them were started, in order
  char *dynamic;     // dynamic shared memory, of the greatest size there is
  lane *lanes;       // one a thread
  departure *departures;
  uint32_t departed;  // how many there are
  int past;           // the greatest number among them
  const podium_cpu_launch *launch;
  void *const *parameters;
};

struct kernel {
  void (*blocks)(block &);   // claims blocks and runs them; does not return
  void (*threads)(block &);  // runs the threads of a block that nobody has started yet
  void (*where)(uint32_t place[6]);  // the indices of the block and of the thread that run
  const uint32_t *sizes;     // of the parameters, in bytes
  uint32_t parameters;
};

struct runtime {
  uint32_t version;
  int (*run)(const podium_cpu_launch *, void *const *parameters, const kernel &, const char *name);

  // For a kernel that runs. What may let other threads of the block run leaves another thread's index behind.
  uint64_t (*claim)(block &, uint64_t *first);  // how many blocks to run next, and from which on; 0 at the end
  void (*leave)(block &);                       // does not return
  void (*begin_waiting)(block &, uint32_t thread);  // before the first thread of a block does what may make it wait
  void (*finish_block)(block &);                    // runs what is left of a block in which threads wait
  void (*exit_thread)(block &, uint32_t thread);
  uint32_t (*barrier)(block &, uint32_t thread, uint32_t vote, const site &);
  void (*meet)(block &, uint32_t thread, const site &);
  void (*yield)(block &, uint32_t thread);
  void (*grid_barrier)(block &, uint32_t thread, const site &);
  void (*stop)(block &, int status, const char *detail);  // ends the launch; does not return
#ifdef PODIUM_CPU_SANITIZE
  void (*report)(const struct finding &);  // ends the launch, if one runs
#endif
};

}  // namespace podium_cpu

extern "C" {
extern const podium_cpu::runtime *podium_cpu_runtime __attribute__((visibility("hidden")));
}

#endif
