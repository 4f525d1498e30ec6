// From the parameter array of a launch to the arguments of a kernel, whose types only the compiler knows.
// What the lines behind the user's text say begins with podium: no macro of a user's has such a name.
#ifndef PODIUM_CPU_ENTRY_H
#define PODIUM_CPU_ENTRY_H

#include "atomic.h"
#include "launch.h"

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

// The type of the i-th parameter; void if there is none.
template <unsigned i, class... P>
struct pick {
  typedef void type;
};
template <class First, class... P>
struct pick<0, First, P...> {
  typedef First type;
};
template <unsigned i, class First, class... P>
struct pick<i, First, P...> : pick<i - 1, P...> {};

template <class T>
struct facts {
  enum : size_t { podium_size = sizeof(T), podium_alignment = alignof(T) };
  enum { podium_category = category_of<T>::value };
};
template <>
struct facts<void> {
  enum : size_t { podium_size = 0, podium_alignment = 0 };
  enum { podium_category = podium_struct_category };
};

template <class Function>
struct podium_parameters_of {
  enum { podium_is_kernel = 0, podium_count = 0 };
};
template <class... P>
struct podium_parameters_of<void (*)(P...)> {
  enum { podium_is_kernel = 1, podium_count = sizeof...(P) };
  template <unsigned i>
  struct podium_at : facts<typename pick<i, P...>::type> {};
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

template <unsigned... i>
struct indices {};
template <unsigned n, unsigned... i>
struct count_up : count_up<n - 1, n - 1, i...> {};
template <unsigned... i>
struct count_up<0, i...> {
  typedef indices<i...> type;
};

template <class Function, Function kernel>
struct podium_entry;

template <class... P, void (*kernel)(P...)>
struct podium_entry<void (*)(P...), kernel> {
  // The arguments are copied once for all threads: behind a pointer each store could change them.
  static __attribute__((noinline)) void threads(worker &w, P... arguments) {
    do {
      const uint32_t first = w.started;
      uint32_t x = 0, y = 0, z = 0;
      if (first) {
        x = first % blockDim.x;
        y = first / blockDim.x % blockDim.y;
        z = first / blockDim.x / blockDim.y;
      }
      for (; z < blockDim.z; ++z, y = 0)
        for (; y < blockDim.y; ++y, x = 0)
          for (const uint32_t end = blockDim.x; x < end; ++x) {
            threadIdx.x = x;
            threadIdx.y = y;
            threadIdx.z = z;
            kernel(arguments...);
            if (switched)
              goto elsewhere;
          }
      return;
    elsewhere:  // this thread has waited, so another stack has carried on from here
      exit_thread(w);
    } while (w.started < w.size);
  }

  template <unsigned... i>
  static void unpack(worker &w, indices<i...>) {
    threads(w, *static_cast<P *>(w.parameters[i])...);
  }
  static void all(worker &w) { unpack(w, typename count_up<sizeof...(P)>::type()); }

  static int podium_run(const podium_cpu_launch *launch, void *const *parameters) {
    return podium_cpu::run(launch, parameters, all);
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
