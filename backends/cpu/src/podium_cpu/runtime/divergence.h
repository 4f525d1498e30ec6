// Threads of a block that wait where others do not come, or meet where they should not: what the user is told of them.
#ifndef PODIUM_CPU_DIVERGENCE_H
#define PODIUM_CPU_DIVERGENCE_H

#include "job.h"

namespace podium_cpu {

// Tell whether two places are one in the user's text.
static inline bool is_same(const site &a, const site &b) {
  return a.line == b.line && a.number == b.number && (a.what == b.what || strcmp(a.what, b.what) == 0) &&
         (a.file == b.file || strcmp(a.file, b.file) == 0);
}

// What went wrong with a block, as it is put together.
struct detail_text {
  char text[detail_bytes];
  size_t length;

  __attribute__((format(printf, 2, 3))) void add(const char *format, ...) {
    if (length >= sizeof text)
      return;
    va_list values;
    va_start(values, format);
    const int added = vsnprintf(text + length, sizeof text - length, format, values);
    va_end(values);
    length += size_t(added < 0 ? 0 : added);
  }

  void add_block(worker &w) {
    uint32_t place[6];
    w.code->where(place);
    add("in block (%u,%u,%u) ", place[0], place[1], place[2]);
  }

  void add_thread(const worker &w, uint32_t thread) {
    const uint32_t *size = w.launch->block;
    add(", such as thread (%u,%u,%u)", thread % size[0], thread / size[0] % size[1], thread / size[0] / size[1]);
  }

  // The places that threads wait at, and how many at each.
  void add_places(const worker &w) {
    for (uint32_t i = 0; i < w.used; ++i) {
      const fiber &f = w.fibers[i];
      bool told = f.at == nullptr;
      for (uint32_t k = 0; k < i && !told; ++k)
        told = w.fibers[k].at && is_same(*w.fibers[k].at, *f.at);
      if (told)
        continue;
      uint32_t count = 0;
      for (uint32_t k = i; k < w.used; ++k)
        count += w.fibers[k].at && is_same(*w.fibers[k].at, *f.at);
      add("; %u wait%s at %s (%s:%d)", count, count == 1 ? "s" : "", f.at->what, f.at->file, f.at->line);
      add_thread(w, f.thread);
    }
  }
};

// Threads wait for each other.
[[noreturn]] static __attribute__((noinline)) void stop_deadlock(worker &w) {
  detail_text r = {};
  r.add_block(w);
  r.add("%u of %u threads have not returned", w.live, w.size);
  r.add_places(w);
  stop(w, PODIUM_CPU_ERROR_BARRIER, r.text);
}

// Tell whether threads that have met should not: some at one barrier and some at another, or while others have left the
// kernel on a way around it.
static inline bool is_divergent(const worker &w) {
  return w.apart || (w.meeting->number > 0 && w.meeting->number <= w.past);
}

// All threads wait at barriers but the one that runs, which is at one as well unless it has returned.
[[noreturn]] static __attribute__((noinline)) void stop_divergent(worker &w) {
  detail_text r = {};
  r.add_block(w);
  if (w.apart) {
    r.add("threads wait for each other at different barriers");
    r.add_places(w);
  } else {
    const site &at = *w.meeting;
    uint32_t absent = 0, first_absent = w.size, first = w.size;
    for (uint32_t i = 0; i < w.departed && i < w.size; ++i) {
      const departure &d = w.departures[i];
      if (d.past < at.number)
        continue;
      ++absent;
      if (d.thread < first_absent)
        first_absent = d.thread;
    }
    for (uint32_t i = 0; i < w.used; ++i)
      if (w.fibers[i].at && w.fibers[i].thread < first)
        first = w.fibers[i].thread;
    r.add("%u of %u threads do%s not come to %s (%s:%d)", absent, w.size, absent == 1 ? "es" : "", at.what, at.file,
          at.line);
    r.add_thread(w, first_absent);
    r.add("; %u wait%s there", w.live, w.live == 1 ? "s" : "");
    r.add_thread(w, first);
  }
  stop(w, PODIUM_CPU_ERROR_BARRIER, r.text);
}

}  // namespace podium_cpu

#endif
