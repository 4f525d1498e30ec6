// Atomic functions. As on a GPU they are relaxed: an order needs a fence.
#ifndef PODIUM_CPU_ATOMIC_H
#define PODIUM_CPU_ATOMIC_H

#include "standard.h"
#include "vectors.h"

namespace podium_cpu {

// Keeps a parameter out of the deduction of T, so that atomicAdd(&a_double, 1) converts the 1.
template <class T>
struct same {
  typedef T type;
};

template <size_t bytes>
struct word;
template <>
struct word<1> {
  typedef uint8_t type;
};
template <>
struct word<2> {
  typedef uint16_t type;
};
template <>
struct word<4> {
  typedef uint32_t type;
};
template <>
struct word<8> {
  typedef uint64_t type;
};

template <class bits>
static inline bits load(bits *place) {
  return __atomic_load_n(place, __ATOMIC_RELAXED);
}
// Put `now` in the place of `old`; if something else was there, it is in `old` then.
template <class bits>
static inline bool replace(bits *place, bits *old, bits now) {
  return __atomic_compare_exchange_n(place, old, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

#ifdef __GCC_HAVE_SYNC_COMPARE_AND_SWAP_16
// The newer functions would call a library for these.
template <>
struct word<16> {
  typedef unsigned __int128 type;
};
static inline bool replace(unsigned __int128 *place, unsigned __int128 *old, unsigned __int128 now) {
  const unsigned __int128 expected = *old;
  *old = __sync_val_compare_and_swap(place, expected, now);
  return *old == expected;
}
static inline unsigned __int128 load(unsigned __int128 *place) { return __sync_val_compare_and_swap(place, 0, 0); }
#endif

template <class T>
struct is_integer {
  enum { value = 0 };
};
#define PODIUM_CPU_INTEGER(type) \
  template <>                    \
  struct is_integer<type> {      \
    enum { value = 1 };          \
  };
PODIUM_CPU_INTEGER(char)
PODIUM_CPU_INTEGER(signed char)
PODIUM_CPU_INTEGER(unsigned char)
PODIUM_CPU_INTEGER(short)
PODIUM_CPU_INTEGER(unsigned short)
PODIUM_CPU_INTEGER(int)
PODIUM_CPU_INTEGER(unsigned int)
PODIUM_CPU_INTEGER(long)
PODIUM_CPU_INTEGER(unsigned long)
PODIUM_CPU_INTEGER(long long)
PODIUM_CPU_INTEGER(unsigned long long)
#undef PODIUM_CPU_INTEGER

template <class To, class From>
static inline To bit_copy(const From &from) {
  static_assert(sizeof(To) == sizeof(From), "the sizes must be equal");
  To to;
  memcpy(static_cast<void *>(&to), &from, sizeof(To));
  return to;
}

// Replace a value by a function of it, and return the value that was there.
template <class T, class Function>
static inline T update(T *address, Function function) {
  typedef typename word<sizeof(T)>::type bits;
  bits *place = reinterpret_cast<bits *>(address);
  bits old = load(place);
  for (;;) {
    const T was = bit_copy<T>(old);
    const T now = function(was);
    if (replace(place, &old, bit_copy<bits>(now)))
      return was;
  }
}

template <class T, bool integer = is_integer<T>::value>
struct adder {
  static T add(T *address, T value) { return __atomic_fetch_add(address, value, __ATOMIC_RELAXED); }
};
template <class T>
struct adder<T, false> {
  static T add(T *address, T value) {
    return update(address, [value](T old) { return static_cast<T>(old + value); });
  }
};
// Vectors are added member by member, each of which is atomic for itself.
template <>
struct adder<float2, false> {
  static float2 add(float2 *address, float2 value) {
    return float2{adder<float>::add(&address->x, value.x), adder<float>::add(&address->y, value.y)};
  }
};
template <>
struct adder<float4, false> {
  static float4 add(float4 *address, float4 value) {
    return float4{adder<float>::add(&address->x, value.x), adder<float>::add(&address->y, value.y),
                  adder<float>::add(&address->z, value.z), adder<float>::add(&address->w, value.w)};
  }
};

template <class T>
static inline T negated(T value) {
  return static_cast<T>(-value);
}

}  // namespace podium_cpu

// Each function in its three scopes. The narrower ones promise less, so the widest serves for all.
#define PODIUM_CPU_ATOMIC(name, ...)                                                            \
  template <class T>                                                                            \
  static inline T name(T *address, typename podium_cpu::same<T>::type value) {                  \
    __VA_ARGS__                                                                                 \
  }                                                                                             \
  template <class T>                                                                            \
  static inline T name##_block(T *address, typename podium_cpu::same<T>::type value) {          \
    return name(address, value);                                                                \
  }                                                                                             \
  template <class T>                                                                            \
  static inline T name##_system(T *address, typename podium_cpu::same<T>::type value) {         \
    return name(address, value);                                                                \
  }

PODIUM_CPU_ATOMIC(atomicAdd, return podium_cpu::adder<T>::add(address, value);)
PODIUM_CPU_ATOMIC(atomicSub, return podium_cpu::adder<T>::add(address, podium_cpu::negated<T>(value));)
PODIUM_CPU_ATOMIC(atomicMin, return podium_cpu::update(address, [value](T old) { return value < old ? value : old; });)
PODIUM_CPU_ATOMIC(atomicMax, return podium_cpu::update(address, [value](T old) { return old < value ? value : old; });)
PODIUM_CPU_ATOMIC(atomicAnd, return __atomic_fetch_and(address, value, __ATOMIC_RELAXED);)
PODIUM_CPU_ATOMIC(atomicOr, return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);)
PODIUM_CPU_ATOMIC(atomicXor, return __atomic_fetch_xor(address, value, __ATOMIC_RELAXED);)
PODIUM_CPU_ATOMIC(atomicExch, return podium_cpu::update(address, [value](T) { return value; });)
PODIUM_CPU_ATOMIC(atomicInc, return podium_cpu::update(address, [value](T old) {
                    return old >= value ? static_cast<T>(0) : static_cast<T>(old + 1);
                  });)
PODIUM_CPU_ATOMIC(atomicDec, return podium_cpu::update(address, [value](T old) {
                    return old == 0 || old > value ? value : static_cast<T>(old - 1);
                  });)
#undef PODIUM_CPU_ATOMIC

template <class T>
static inline T atomicCAS(T *address, typename podium_cpu::same<T>::type compare,
                          typename podium_cpu::same<T>::type value) {
  typedef typename podium_cpu::word<sizeof(T)>::type bits;
  bits expected = podium_cpu::bit_copy<bits>(compare);
  podium_cpu::replace(reinterpret_cast<bits *>(address), &expected, podium_cpu::bit_copy<bits>(value));
  return podium_cpu::bit_copy<T>(expected);
}
template <class T>
static inline T atomicCAS_block(T *address, typename podium_cpu::same<T>::type compare,
                                typename podium_cpu::same<T>::type value) {
  return atomicCAS(address, compare, value);
}
template <class T>
static inline T atomicCAS_system(T *address, typename podium_cpu::same<T>::type compare,
                                 typename podium_cpu::same<T>::type value) {
  return atomicCAS(address, compare, value);
}

#endif
