// From the parameter array of a launch to the arguments of a kernel, whose types only the compiler knows.
// What the lines behind the user's text say begins with podium: no macro of a user's has such a name.
#ifndef PODIUM_CPU_ENTRY_H
#define PODIUM_CPU_ENTRY_H

#include "atomic.h"
#include "launch.h"
#include "regions.h"

namespace podium_cpu {

enum category { podium_integer_category, podium_float_category, podium_pointer_category, podium_struct_category };

template <class T>
struct category_of {
  enum { value = __is_enum(T) || is_integer<T>::value ? podium_integer_category : podium_struct_category };
};
template <>
struct category_of<bool> {
  enum { value = podium_integer_category };
};
template <>
struct category_of<float> {
  enum { value = podium_float_category };
};
template <>
struct category_of<double> {
  enum { value = podium_float_category };
};
template <class T>
struct category_of<T *> {
  enum { value = podium_pointer_category };
};

struct facts {
  size_t size, alignment;
  int category;
};

template <class Function>
struct podium_parameters_of {
  enum { podium_is_kernel = 0, podium_count = 0 };
};
template <class... P>
struct podium_parameters_of<void (*)(P...)> {
  enum { podium_is_kernel = 1, podium_count = sizeof...(P) };
  // All in one table: to look for the type of each parameter among all others takes compilers a second for a hundred.
  static constexpr facts table[] = {{sizeof(P), alignof(P), category_of<P>::value}..., {0, 0, podium_struct_category}};
  template <unsigned i>
  struct podium_at {
    enum : unsigned { place = i < sizeof...(P) ? i : sizeof...(P) };
    enum : size_t { podium_size = table[place].size, podium_alignment = table[place].alignment };
    enum { podium_category = table[place].category };
  };
};

// The type of a kernel, given its address. Of overloaded functions it is the one that returns void: what the C library
// has under the kernel's name returns something, as a rule.
template <class... P>
void (*podium_kernel_type(void (*)(P...), int))(P...);
template <class R, class... P>
R (*podium_kernel_type(R (*)(P...), long))(P...);

// Whether a parameter is of the kind that the signature says. Half types are classes here, and an address may be
// passed as a number.
static constexpr bool podium_same_category(int found, int expected) {
  return found == expected || found == podium_struct_category || expected == podium_struct_category ||
         (found != podium_float_category && expected != podium_float_category);
}

// The numbers below n, made of two halves.
template <unsigned... i>
struct indices {};
template <class, class>
struct both;
template <unsigned... i, unsigned... j>
struct both<indices<i...>, indices<j...>> {
  typedef indices<i..., sizeof...(i) + j...> type;
};
template <unsigned n>
struct count_up : both<typename count_up<n / 2>::type, typename count_up<n - n / 2>::type> {};
template <>
struct count_up<0> {
  typedef indices<> type;
};
template <>
struct count_up<1> {
  typedef indices<0> type;
};

// The calls of the sanitizers, which ask which thread runs, are put in after the passes that move stores out of loops.
static inline void write_thread() {
#ifdef PODIUM_CPU_SANITIZE
  __asm__ volatile("" : "+m"(threadIdx.x), "+m"(threadIdx.y), "+m"(threadIdx.z));
#endif
}

// `may_wait` is false for a source in which nothing makes a thread wait for another.
template <class Function, Function kernel, bool may_wait = true>
struct podium_entry;

template <class... P, void (*kernel)(P...), bool may_wait>
struct podium_entry<void (*)(P...), kernel, may_wait> {
  // The threads that nobody has started yet, one after another.
  // The arguments are copied once for all threads: behind a pointer each store could change them.
  static __attribute__((noinline)) void threads(block &b, P... arguments) {
    while (b.started < b.size) {
      const uint32_t linear = b.started++;
      threadIdx.x = linear % blockDim.x;
      threadIdx.y = linear / blockDim.x % blockDim.y;
      threadIdx.z = linear / blockDim.x / blockDim.y;
      write_thread();
      podium_regions::whole_block = false;
      kernel(arguments...);
      if (podium_regions::whole_block)
        return;
      if (past)
        depart(b, linear);
      if (switched)  // this thread has waited, and another stack has carried on from here
        podium_cpu_runtime->exit_thread(b, linear_thread());
    }
  }

  static void depart(block &b, uint32_t linear) {
    b.departures[b.departed++ % PODIUM_CPU_MAX_THREADS] = departure{linear, past};
    if (b.past < past)
      b.past = past;
  }

  // Threads that need not wait, as loops around the kernel's own code. What a compiler has to see, to make vectors of
  // them: indices that cannot pass the end of an int, whichever way the kernel computes with them, and stores in front of
  // the kernel that its loads take their values from. Blocks with greater indices run one thread after another.
  static __attribute__((noinline, flatten)) void loops(block &b, P... arguments) {
    const uint32_t block_x = blockIdx.x & ((1u << 20) - 1), block_y = blockIdx.y, block_z = blockIdx.z;
    if (b.started || block_x != blockIdx.x)
      return threads(b, arguments...);
    const uint32_t end_x = blockDim.x & 2047, end_y = blockDim.y & 2047, end_z = blockDim.z;
    __asm__ volatile("" : : "r"(block_x * end_x));  // computed here, where the range of its factors is known
    switched = podium_regions::whole_block = false;
    for (uint32_t z = 0; z < end_z; ++z)
      for (uint32_t y = 0; y < end_y; ++y)
        for (uint32_t x = 0; x < end_x; ++x) {
          blockIdx.x = block_x, blockIdx.y = block_y, blockIdx.z = block_z;
          blockDim.x = end_x, blockDim.y = end_y, blockDim.z = end_z;
          threadIdx.x = x, threadIdx.y = y, threadIdx.z = z;
          write_thread();
          kernel(arguments...);
          if (podium_regions::whole_block)
            return;
          if (switched) {  // it has waited all the same
            podium_cpu_runtime->exit_thread(b, linear_thread());
            return threads(b, arguments...);
          }
        }
  }

  template <bool>
  struct choice {};
  static void start(choice<true>, block &b, P... arguments) { threads(b, arguments...); }
  static void start(choice<false>, block &b, P... arguments) { loops(b, arguments...); }

  template <unsigned... i>
  static void unpack(block &b, indices<i...>) {
    start(choice<may_wait>(), b, *static_cast<P *>(b.parameters[i])...);
  }
  static void all(block &b) { unpack(b, typename count_up<sizeof...(P)>::type()); }

  static int podium_run(const podium_cpu_launch *launch, void *const *parameters, const char *name = "a kernel") {
    static const uint32_t sizes[] = {uint32_t(sizeof(P))..., 0};
    static const podium_cpu::kernel described = {run_blocks<all>, all, where, sizes, sizeof...(P)};
    return podium_cpu_runtime->run(launch, parameters, described, name);
  }
};

// What declarations of dynamic shared memory are initialised with: a reference to any type there.
struct dynamic_shared {
  template <class T>
  operator T &() const {
    return *reinterpret_cast<T *>(here->dynamic);
  }
};

}  // namespace podium_cpu

#endif
