// The checks of kernels that are built for the sanitizers. Compilers put calls of these functions before each access to
// memory and each operation that can go wrong; they are podium's own and not the compiler's run-time library, which would
// have to be loaded before Python itself, and would end the process. What is found ends the launch.
//
// Each byte of the shadow says how much of eight bytes of memory a kernel may touch. Outside of the arena it is written
// by the compiler's code: 0 for all of it, 1 to 7 for so many bytes, 0x80 and above for none. In the arena, which has the
// arrays that kernels are given, it is just the number, so that what nobody has opened is closed.
#ifndef PODIUM_CPU_SANITIZER_H
#define PODIUM_CPU_SANITIZER_H

#include "job.h"

namespace podium_cpu {

// The same numbers are in arena.py.
static constexpr uintptr_t shadow_base = 0x200000000000, arena_base = 0x400000000000, arena_bytes = 0x100000000000;
#ifdef __x86_64__
static constexpr uintptr_t highest_address = uintptr_t(1) << 47;
#else
static constexpr uintptr_t highest_address = uintptr_t(1) << 48;
#endif

// What was found. Python reads it: see findings.py.
struct finding {
  const char *image;          // where the library of the kernel lies in memory
  const char *code;           // the place in it; null if `file` says more
  const char *file;
  uint64_t line, column;
  uint64_t address, size;     // of the access
  uint64_t is_store;
  const char *frame, *locals;  // of the function whose local variable is near: where it lies, and what the compiler says
  const char *dynamic;         // the dynamic shared memory of the block
  const char *global;          // the variable of the program that is near: name, address, size
  uint64_t global_address, global_size;
  uint64_t place[6];           // block and thread
  char text[320];              // what went wrong, if not the access
};

static finding last_finding;

static inline unsigned char &shadow_of(uintptr_t address) {
  return *reinterpret_cast<unsigned char *>(shadow_base + (address >> 3));
}

// How many bytes of the eight at an address may be touched.
static inline unsigned open_bytes(uintptr_t address) {
  const unsigned char s = shadow_of(address);
  return address - arena_base < arena_bytes ? s : s == 0 ? 8 : s < 8 ? s : 0;
}

static inline bool is_open(uintptr_t address, size_t size) {
  const uintptr_t end = address + size;
  if (size == 0 || end < address || end > highest_address)
    return true;  // what no address is, the processor tells
  for (uintptr_t granule = address & ~uintptr_t(7); granule < end; granule += 8)
    if ((end - granule < 8 ? end - granule : 8) > open_bytes(granule))
      return false;
  return true;
}

// Find the function whose frame an address on a stack is in. A frame begins with bytes that are closed as 0xf1, and has
// its description there.
static void find_frame(const worker &w, finding &f) {
  for (uint32_t i = 0; i <= PODIUM_CPU_MAX_THREADS; ++i) {
    const uintptr_t bottom = reinterpret_cast<uintptr_t>(w.fibers[i].stack) + 4 * guard_bytes;
    if (!w.fibers[i].stack || f.address - bottom >= stack_size(w, w.fibers[i]) - 4 * guard_bytes)
      continue;
    uintptr_t place = f.address & ~uintptr_t(7);
    while (place > bottom && shadow_of(place) != 0xf1)
      place -= 8;
    while (place > bottom && shadow_of(place - 8) == 0xf1)
      place -= 8;
    const uintptr_t *frame = reinterpret_cast<const uintptr_t *>(place);
    if (place > bottom && frame[0] == 0x41b58ab3) {
      f.frame = reinterpret_cast<const char *>(frame);
      f.locals = reinterpret_cast<const char *>(frame[1]);
    }
  }
}

// Runs in the library whose runtime all others use.
static void report(const finding &f) {
  worker *w = own_worker;
  if (!w || !w->in_kernel)
    return;
  last_finding = f;
  find_frame(*w, last_finding);
  last_finding.dynamic = w->dynamic;
  uint32_t place[6];
  w->code->where(place);
  for (int i = 0; i < 6; ++i)
    last_finding.place[i] = place[i];
  stop(*w, PODIUM_CPU_ERROR_SANITIZER, nullptr);
}

// What frames that were abandoned have left on the stacks of a worker.
static void open_stacks(worker &w) {
  for (uint32_t i = 0; i <= PODIUM_CPU_MAX_THREADS; ++i)
    if (w.fibers[i].stack) {
      unsigned char *first = &shadow_of(reinterpret_cast<uintptr_t>(w.fibers[i].stack));
      const size_t bytes = stack_size(w, w.fibers[i]) >> 3;
      if (madvise(first, bytes, MADV_DONTNEED) != 0)
        memset(first, 0, bytes);
    }
}

// A block may touch as much of its dynamic shared memory as the launch has asked for.
static void open_dynamic(worker &w) {
  unsigned char *first = &shadow_of(reinterpret_cast<uintptr_t>(w.dynamic));
  memset(first, 0xff, PODIUM_CPU_MAX_SHARED >> 3);
  memset(first, 0, w.launch->shared >> 3);
  if (w.launch->shared & 7)
    first[w.launch->shared >> 3] = w.launch->shared & 7;
}

// ---- what the compiler's code calls ----

struct described_global {
  uintptr_t address, size, size_with_gap;
  const char *name, *module;
  uintptr_t initialised, location, indicator;
};

static const described_global *globals;
static size_t global_count;

extern "C" const char image_begin[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));

static __attribute__((noinline)) void tell_access(uintptr_t address, size_t size, bool is_store, const void *code) {
  finding f = {};
  f.image = image_begin;
  f.code = static_cast<const char *>(code);
  f.address = address;
  f.size = size;
  f.is_store = is_store;
  for (size_t i = 0; i < global_count; ++i)
    if (address - globals[i].address < globals[i].size_with_gap) {
      f.global = globals[i].name;
      f.global_address = globals[i].address;
      f.global_size = globals[i].size;
    }
  podium_cpu_runtime->report(f);
}

struct source_place {
  const char *file;
  uint32_t line, column;
};

struct type_text {
  uint16_t kind, info;
  char name[1];
};

struct one_type {
  source_place at;
  const type_text *type;
};
struct two_types {
  source_place at;
  const type_text *first, *second;
};
struct access_type {
  source_place at;
  const type_text *type;
  unsigned char log_alignment, kind;
};

static __attribute__((format(printf, 2, 3))) void tell(const source_place &at, const char *format, ...) {
  finding f = {};
  f.image = image_begin;
  f.file = at.file;
  f.line = at.line;
  f.column = at.column;
  va_list values;
  va_start(values, format);
  vsnprintf(f.text, sizeof f.text, format, values);
  va_end(values);
  podium_cpu_runtime->report(f);
}

// A number as text, given its type; those that have more than 64 bits come as an address.
struct number_text {
  char text[48];
  bool negative;

  number_text(const type_text *type, uintptr_t value) : negative(false) {
    const unsigned bits = 1u << (type->info >> 1);
    if (type->kind != 0 || bits > 64) {
      snprintf(text, sizeof text, "a number");
    } else if (type->info & 1) {
      const int64_t number = int64_t(uint64_t(value) << (64 - bits)) >> (64 - bits);
      negative = number < 0;
      snprintf(text, sizeof text, "%lld", static_cast<long long>(number));
    } else {
      snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(value));
    }
  }
};

}  // namespace podium_cpu

using namespace podium_cpu;

#define PODIUM_CPU_CHECK extern "C" __attribute__((visibility("hidden"))) void

#define PODIUM_CPU_ACCESS(kind, bytes, is_store)                                     \
  PODIUM_CPU_CHECK __asan_##kind##bytes##_noabort(uintptr_t address) {               \
    if (!is_open(address, bytes))                                                    \
      tell_access(address, bytes, is_store, __builtin_return_address(0));            \
  }                                                                                  \
  PODIUM_CPU_CHECK __asan_report_##kind##bytes##_noabort(uintptr_t address) {        \
    if (!is_open(address, bytes))                                                    \
      tell_access(address, bytes, is_store, __builtin_return_address(0));            \
  }
#define PODIUM_CPU_ACCESSES(kind, is_store)                                          \
  PODIUM_CPU_ACCESS(kind, 1, is_store)                                               \
  PODIUM_CPU_ACCESS(kind, 2, is_store)                                               \
  PODIUM_CPU_ACCESS(kind, 4, is_store)                                               \
  PODIUM_CPU_ACCESS(kind, 8, is_store)                                               \
  PODIUM_CPU_ACCESS(kind, 16, is_store)                                              \
  PODIUM_CPU_CHECK __asan_##kind##N_noabort(uintptr_t address, size_t bytes) {       \
    if (!is_open(address, bytes))                                                    \
      tell_access(address, bytes, is_store, __builtin_return_address(0));            \
  }                                                                                  \
  PODIUM_CPU_CHECK __asan_report_##kind##_n_noabort(uintptr_t address, size_t bytes) { \
    if (!is_open(address, bytes))                                                    \
      tell_access(address, bytes, is_store, __builtin_return_address(0));            \
  }
PODIUM_CPU_ACCESSES(load, false)
PODIUM_CPU_ACCESSES(store, true)

extern "C" __attribute__((visibility("hidden"))) void *__asan_memcpy(void *to, const void *from, size_t bytes) {
  if (!is_open(uintptr_t(from), bytes))
    tell_access(uintptr_t(from), bytes, false, __builtin_return_address(0));
  if (!is_open(uintptr_t(to), bytes))
    tell_access(uintptr_t(to), bytes, true, __builtin_return_address(0));
  return memcpy(to, from, bytes);
}
extern "C" __attribute__((visibility("hidden"))) void *__asan_memmove(void *to, const void *from, size_t bytes) {
  if (!is_open(uintptr_t(from), bytes))
    tell_access(uintptr_t(from), bytes, false, __builtin_return_address(0));
  if (!is_open(uintptr_t(to), bytes))
    tell_access(uintptr_t(to), bytes, true, __builtin_return_address(0));
  return memmove(to, from, bytes);
}
extern "C" __attribute__((visibility("hidden"))) void *__asan_memset(void *to, int value, size_t bytes) {
  if (!is_open(uintptr_t(to), bytes))
    tell_access(uintptr_t(to), bytes, true, __builtin_return_address(0));
  return memset(to, value, bytes);
}

PODIUM_CPU_CHECK __asan_register_globals(const described_global *first, size_t count) {
  globals = first;
  global_count = count;
  for (size_t i = 0; i < count; ++i) {
    const uintptr_t end = first[i].address + first[i].size, gap_end = first[i].address + first[i].size_with_gap;
    for (uintptr_t granule = end & ~uintptr_t(7); granule < gap_end; granule += 8)
      shadow_of(granule) = granule < end ? static_cast<unsigned char>(end - granule) : 0xf9;
  }
}
PODIUM_CPU_CHECK __asan_unregister_globals(const described_global *, size_t) {}
PODIUM_CPU_CHECK __asan_before_dynamic_init(const char *) {}
PODIUM_CPU_CHECK __asan_after_dynamic_init() {}
PODIUM_CPU_CHECK __asan_handle_no_return() {}

#define PODIUM_CPU_SET_SHADOW(name, value) \
  PODIUM_CPU_CHECK __asan_set_shadow_##name(void *shadow, size_t bytes) { memset(shadow, value, bytes); }
PODIUM_CPU_SET_SHADOW(00, 0)
PODIUM_CPU_SET_SHADOW(f1, 0xf1)
PODIUM_CPU_SET_SHADOW(f2, 0xf2)
PODIUM_CPU_SET_SHADOW(f3, 0xf3)
PODIUM_CPU_SET_SHADOW(f5, 0xf5)
PODIUM_CPU_SET_SHADOW(f8, 0xf8)

PODIUM_CPU_CHECK __asan_poison_stack_memory(uintptr_t address, size_t bytes) {
  memset(&shadow_of(address), 0xf8, (bytes + 7) >> 3);
}
PODIUM_CPU_CHECK __asan_unpoison_stack_memory(uintptr_t address, size_t bytes) {
  memset(&shadow_of(address), 0, bytes >> 3);
  if (bytes & 7)
    shadow_of(address + bytes) = bytes & 7;
}
// Around memory of alloca there are 32 bytes and what fills up to a multiple of 32.
PODIUM_CPU_CHECK __asan_alloca_poison(uintptr_t address, size_t bytes) {
  const uintptr_t end = address + bytes;
  memset(&shadow_of(address - 32), 0xca, 4);
  for (uintptr_t granule = end & ~uintptr_t(7); granule < ((end + 31) & ~uintptr_t(31)) + 32; granule += 8)
    shadow_of(granule) = granule < end ? static_cast<unsigned char>(end - granule) : 0xcb;
}
PODIUM_CPU_CHECK __asan_allocas_unpoison(uintptr_t top, uintptr_t bottom) {
  if (top && top < bottom)
    memset(&shadow_of(top), 0, (bottom - top) >> 3);
}

// ---- undefined behaviour ----

#define PODIUM_CPU_OVERFLOW(word, sign)                                                                         \
  PODIUM_CPU_CHECK __ubsan_handle_##word##_overflow(one_type *data, uintptr_t left, uintptr_t right) {          \
    const number_text l(data->type, left), r(data->type, right);                                                \
    tell(data->at, "%s " sign " %s does not fit into %s", l.text, r.text, data->type->name);                    \
  }
PODIUM_CPU_OVERFLOW(add, "+")
PODIUM_CPU_OVERFLOW(sub, "-")
PODIUM_CPU_OVERFLOW(mul, "*")

PODIUM_CPU_CHECK __ubsan_handle_negate_overflow(one_type *data, uintptr_t value) {
  const number_text v(data->type, value);
  tell(data->at, "the negative of %s does not fit into %s", v.text, data->type->name);
}
PODIUM_CPU_CHECK __ubsan_handle_divrem_overflow(one_type *data, uintptr_t left, uintptr_t right) {
  const number_text l(data->type, left), r(data->type, right);
  if (strcmp(r.text, "0") == 0)
    tell(data->at, "%s is divided by zero", l.text);
  else
    tell(data->at, "%s divided by %s does not fit into %s", l.text, r.text, data->type->name);
}
PODIUM_CPU_CHECK __ubsan_handle_shift_out_of_bounds(two_types *data, uintptr_t value, uintptr_t places) {
  const number_text v(data->first, value), p(data->second, places);
  if (p.negative || data->second->kind != 0 || places >= 1u << (data->first->info >> 1))
    tell(data->at, "%s is shifted by %s places, and %s has %u bits", v.text, p.text, data->first->name,
         1u << (data->first->info >> 1));
  else
    tell(data->at, "%s shifted left by %s places does not fit into %s", v.text, p.text, data->first->name);
}
PODIUM_CPU_CHECK __ubsan_handle_out_of_bounds(two_types *data, uintptr_t index) {
  const number_text i(data->second, index);
  tell(data->at, "the index %s is out of bounds for %s", i.text, data->first->name);
}
PODIUM_CPU_CHECK __ubsan_handle_type_mismatch_v1(access_type *data, uintptr_t address) {
  const uintptr_t alignment = uintptr_t(1) << data->log_alignment;
  if (!address)
    tell(data->at, "a null pointer to %s is followed", data->type->name);
  else if (address & (alignment - 1))
    tell(data->at, "the address %#llx is none for %s, which is aligned to %u bytes",
         static_cast<unsigned long long>(address), data->type->name, unsigned(alignment));
  else
    tell(data->at, "the memory at %#llx is too small for %s", static_cast<unsigned long long>(address),
         data->type->name);
}
PODIUM_CPU_CHECK __ubsan_handle_pointer_overflow(source_place *at, uintptr_t base, uintptr_t result) {
  if (base)
    tell(*at, "computing with the pointer %#llx gives %#llx, which is past the end of memory",
         static_cast<unsigned long long>(base), static_cast<unsigned long long>(result));
  else
    tell(*at, "an offset is applied to a null pointer");
}
PODIUM_CPU_CHECK __ubsan_handle_load_invalid_value(one_type *data, uintptr_t value) {
  const number_text v(data->type, value);
  tell(data->at, "%s is no value of %s", v.text, data->type->name);
}
PODIUM_CPU_CHECK __ubsan_handle_vla_bound_not_positive(one_type *data, uintptr_t bound) {
  const number_text b(data->type, bound);
  tell(data->at, "an array cannot have %s elements", b.text);
}
PODIUM_CPU_CHECK __ubsan_handle_float_cast_overflow(two_types *data, uintptr_t) {
  tell(data->at, "a value of %s does not fit into %s", data->first->name, data->second->name);
}
PODIUM_CPU_CHECK __ubsan_handle_invalid_builtin(source_place *at) {
  tell(*at, "the bits of zero are counted, which has no result");
}
PODIUM_CPU_CHECK __ubsan_handle_nonnull_arg(source_place *at) {
  tell(*at, "a null pointer is passed where none is allowed");
}
PODIUM_CPU_CHECK __ubsan_handle_nonnull_return_v1(void *, source_place *at) {
  tell(*at, "a null pointer is returned where none is allowed");
}
PODIUM_CPU_CHECK __ubsan_handle_alignment_assumption(two_types *data, uintptr_t address, uintptr_t alignment, uintptr_t) {
  tell(data->at, "the address %#llx is not aligned to %llu bytes, as the source says",
       static_cast<unsigned long long>(address), static_cast<unsigned long long>(alignment));
}
PODIUM_CPU_CHECK __ubsan_handle_builtin_unreachable(source_place *at) {
  tell(*at, "a place is reached that the source says cannot be");
  __builtin_trap();
}
PODIUM_CPU_CHECK __ubsan_handle_missing_return(source_place *at) {
  tell(*at, "a function that returns a value ends without one");
  __builtin_trap();
}

#undef PODIUM_CPU_OVERFLOW
#undef PODIUM_CPU_SET_SHADOW
#undef PODIUM_CPU_ACCESSES
#undef PODIUM_CPU_ACCESS
#undef PODIUM_CPU_CHECK

// What was found last, and where this library lies.
extern "C" __attribute__((visibility("default"))) const finding *podium_cpu_finding() { return &last_finding; }
extern "C" __attribute__((visibility("default"))) const char *podium_cpu_image() { return image_begin; }

#endif
