// Switching between stacks. The system's swapcontext asks the kernel about signals each time; here it takes some ten
// instructions on x86-64 and AArch64, and swapcontext is used elsewhere.
#ifndef PODIUM_CPU_SWITCH_H
#define PODIUM_CPU_SWITCH_H

#if !defined(PODIUM_CPU_UCONTEXT) && !defined(_WIN32) && !defined(__ILP32__) && \
    (defined(__x86_64__) || defined(__aarch64__))
#define PODIUM_CPU_SWITCH_IN_ASSEMBLY 1
#else
#include <ucontext.h>
#endif

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef PODIUM_CPU_SWITCH_IN_ASSEMBLY

// podium_cpu_switch saves what a function must keep on the stack that is left, stores that stack's pointer, and takes
// the same off the stack that is entered. Rounding modes are not kept: the dialect cannot change them.
// It leaves by a return, although to another stack's caller: processors predict where returns go from the calls before,
// and threads mostly wait at the same place. Left by a jump, the call would stay behind in that prediction, and every
// return after it would be predicted wrongly, which takes longer than all the rest.
extern "C" {
void podium_cpu_switch(void **from, void *to) __asm__("podium_cpu_switch") __attribute__((visibility("hidden")));
void podium_cpu_start() __asm__("podium_cpu_start") __attribute__((visibility("hidden")));
}

#ifdef __APPLE__
#define PODIUM_CPU_HIDDEN(name) ".private_extern " name "\n.globl " name "\n.p2align 4\n"
#else
#define PODIUM_CPU_HIDDEN(name) \
  ".hidden " name "\n.globl " name "\n.type " name ", %function\n.p2align 4\n"
#endif

#ifdef __x86_64__
__asm__(".text\n" PODIUM_CPU_HIDDEN("podium_cpu_switch")
        "podium_cpu_switch:\n"
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  retq\n" PODIUM_CPU_HIDDEN("podium_cpu_start")
        "podium_cpu_start:\n"
        "  movq %r12, %rdi\n"
        "  callq *%r13\n"
        "  ud2\n");
#else
__asm__(".text\n" PODIUM_CPU_HIDDEN("podium_cpu_switch")
        "podium_cpu_switch:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n"
        "  stp x21, x22, [sp, #16]\n"
        "  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n"
        "  stp x27, x28, [sp, #64]\n"
        "  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n"
        "  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n"
        "  str x9, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n"
        "  ldp x21, x22, [sp, #16]\n"
        "  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n"
        "  ldp x27, x28, [sp, #64]\n"
        "  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n"
        "  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n" PODIUM_CPU_HIDDEN("podium_cpu_start")
        "podium_cpu_start:\n"
        "  mov x0, x19\n"
        "  blr x20\n"
        "  brk #1\n");
#endif
#undef PODIUM_CPU_HIDDEN

namespace podium_cpu {

// Make a context that calls `function(argument)` on the stack below `top`; the function must not return.
static inline void *new_context(char *bottom, char *top, void (*function)(void *), void *argument) {
  (void)bottom;
  void **frame = reinterpret_cast<void **>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t(15));
#ifdef __x86_64__
  frame -= 7;  // once they are taken off again, the stack is aligned as it must be for a call
  memset(frame, 0, 7 * sizeof(void *));
  frame[2] = reinterpret_cast<void *>(function);
  frame[3] = argument;
  frame[6] = reinterpret_cast<void *>(&podium_cpu_start);
#else
  frame -= 20;
  memset(frame, 0, 20 * sizeof(void *));
  frame[0] = argument;
  frame[1] = reinterpret_cast<void *>(function);
  frame[11] = reinterpret_cast<void *>(&podium_cpu_start);
#endif
  return frame;
}

static inline void switch_context(void **from, void *to) { podium_cpu_switch(from, to); }

}  // namespace podium_cpu

#else

namespace podium_cpu {

struct start_info {
  void (*function)(void *);
  void *argument;
};

// makecontext passes ints only, so the pointers travel in two halves.
static inline void start(unsigned int high, unsigned int low) {
  start_info *info = reinterpret_cast<start_info *>((uintptr_t(high) << 16 << 16) | uintptr_t(low));
  info->function(info->argument);
}

static inline void *new_context(char *bottom, char *top, void (*function)(void *), void *argument) {
  char *end = reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t(63));
  end -= (sizeof(ucontext_t) + sizeof(start_info) + 63) & ~size_t(63);
  ucontext_t *context = reinterpret_cast<ucontext_t *>(end);
  start_info *info = reinterpret_cast<start_info *>(end + sizeof(ucontext_t));
  info->function = function;
  info->argument = argument;
  getcontext(context);
  context->uc_stack.ss_sp = bottom;
  context->uc_stack.ss_size = size_t(end - bottom);
  context->uc_link = nullptr;
  const uintptr_t address = reinterpret_cast<uintptr_t>(info);
  makecontext(context, reinterpret_cast<void (*)()>(&start), 2, static_cast<unsigned int>(address >> 16 >> 16),
              static_cast<unsigned int>(address));
  return context;
}

static inline void switch_context(void **from, void *to) {
  ucontext_t here;  // stays where it is, as the stack does, until this context is entered again
  *from = &here;
  swapcontext(&here, static_cast<ucontext_t *>(to));
}

}  // namespace podium_cpu

#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PODIUM_CPU_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define PODIUM_CPU_THREAD_SANITIZER 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define PODIUM_CPU_ADDRESS_SANITIZER 1
#endif
#ifdef __SANITIZE_THREAD__
#define PODIUM_CPU_THREAD_SANITIZER 1
#endif

#ifdef PODIUM_CPU_ADDRESS_SANITIZER
extern "C" {
void __sanitizer_start_switch_fiber(void **, const void *, size_t);
void __sanitizer_finish_switch_fiber(void *, const void **, size_t *);
void __asan_unpoison_memory_region(const volatile void *, size_t);
}
#endif
#ifdef PODIUM_CPU_THREAD_SANITIZER
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned);
void __tsan_switch_to_fiber(void *, unsigned);
}
#endif

namespace podium_cpu {

// What the sanitizers want to know of a stack.
struct stack_facts {
  const void *bottom;
  size_t size;
  void *tag;  // the thread sanitizer's name for it
};

// Switch to a context on another stack; the sanitizers are told of it.
static inline void switch_stack(void **from, void *to, const stack_facts &other) {
#if defined(PODIUM_CPU_ADDRESS_SANITIZER)
  void *kept = nullptr;
  __sanitizer_start_switch_fiber(&kept, other.bottom, other.size);
  switch_context(from, to);
  __sanitizer_finish_switch_fiber(kept, nullptr, nullptr);
#elif defined(PODIUM_CPU_THREAD_SANITIZER)
  __tsan_switch_to_fiber(other.tag, 0);
  switch_context(from, to);
#else
  (void)other;
  switch_context(from, to);
#endif
}

// Called before a stack is used again: frames that were abandoned on it have left their marks with the sanitizer.
static inline void forget_frames(stack_facts &own) {
#if defined(PODIUM_CPU_ADDRESS_SANITIZER)
  __asan_unpoison_memory_region(own.bottom, own.size);
#elif defined(PODIUM_CPU_THREAD_SANITIZER)
  if (!own.tag)
    own.tag = __tsan_create_fiber(0);
#else
  (void)own;
#endif
}

// Called before a thread of the system leaves its own stack.
static inline void *own_tag() {
#ifdef PODIUM_CPU_THREAD_SANITIZER
  return __tsan_get_current_fiber();
#else
  return nullptr;
#endif
}

// Called first of all on a new stack; gives the facts of the stack that the switch came from, but for its tag.
static inline stack_facts begin_stack() {
  stack_facts before = {nullptr, 0, nullptr};
#ifdef PODIUM_CPU_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(nullptr, &before.bottom, &before.size);
#endif
  return before;
}

}  // namespace podium_cpu

#endif
