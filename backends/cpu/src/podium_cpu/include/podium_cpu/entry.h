// From the parameter array of a launch to the arguments of a kernel, whose types only the compiler knows.
#ifndef PODIUM_CPU_ENTRY_H
#define PODIUM_CPU_ENTRY_H

#include "atomic.h"
#include "launch.h"

namespace podium_cpu {

enum category { integer_category, float_category, pointer_category, struct_category };

template <class T>
struct category_of {
  enum { value = __is_enum(T) || is_integer<T>::value ? integer_category : struct_category };
};
template <>
struct category_of<bool> {
  enum { value = integer_category };
};
template <>
struct category_of<float> {
  enum { value = float_category };
};
template <>
struct category_of<double> {
  enum { value = float_category };
};
template <class T>
struct category_of<T *> {
  enum { value = pointer_category };
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
  enum : size_t { size = sizeof(T), alignment = alignof(T) };
  enum { category = category_of<T>::value };
};
template <>
struct facts<void> {
  enum : size_t { size = 0, alignment = 0 };
  enum { category = struct_category };
};

template <class Function>
struct parameters_of {
  enum { is_kernel = 0, count = 0 };
};
template <class... P>
struct parameters_of<void (*)(P...)> {
  enum { is_kernel = 1, count = sizeof...(P) };
  template <unsigned i>
  struct at : facts<typename pick<i, P...>::type> {};
};

// The type of a kernel, given its address. Of overloaded functions it is the one that returns void: what the C library
// has under the kernel's name returns something, as a rule.
template <class... P>
void (*kernel_type(void (*)(P...), int))(P...);
template <class R, class... P>
R (*kernel_type(R (*)(P...), long))(P...);

// Whether a parameter is of the kind that the signature says. Half types are classes here, and an address may be
// passed as a number.
static constexpr bool same_category(int found, int expected) {
  return found == expected || found == struct_category || expected == struct_category ||
         (found != float_category && expected != float_category);
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
struct entry;

template <class... P, void (*kernel)(P...)>
struct entry<void (*)(P...), kernel> {
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

  static int run(const podium_cpu_launch *launch, void *const *parameters) {
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
