// Streams: queues of launches and events. An event is a place in a stream: either the stream passes it when it comes to it,
// or it stays there until another stream has. What stream 0 is told has happened when the call returns.
//
// All of this is used with the pool's lock.
#ifndef PODIUM_CPU_STREAM_H
#define PODIUM_CPU_STREAM_H

#include <stdlib.h>

#include "job.h"

namespace podium_cpu {

// What an event stands for since it was recorded last; who waits for it goes on doing so when the event is recorded anew.
struct recording {
  uint32_t references;  // the event, the records that have it, and who waits for it
  bool passed;
  uint64_t time;  // of passing, in nanoseconds
  int status;     // what had gone wrong in the stream by then
  char detail[detail_bytes];
};

struct event {
  recording *latest;  // null before the first
};

// What is in a stream: a launch, with its own copy of the arguments behind it, or an event.
struct record {
  record *next;
  recording *place;  // null for a launch
  bool waits;        // for another stream to pass it
  podium_cpu_launch launch;
  const kernel *code;
  const char *name;
  uint64_t ticket;
  void **parameters;
};

// A stream that has launches, or an error that nobody has asked for.
struct stream {
  stream *next;
  uint64_t handle;
  record *first, *last;
  job *running;
  uint64_t newest, done;  // the tickets of its last launch, and of the last one that has ended
  int status;
  char detail[detail_bytes];
};

static stream *streams;
static uint64_t tickets;

static void release_recording(recording *r) {
  if (r && --r->references == 0)
    free(r);
}

static void pass(recording &r, int status, const char *detail) {
  r.passed = true;
  r.time = nanoseconds(CLOCK_MONOTONIC);
  r.status = status;
  if (status)
    memcpy(r.detail, detail, detail_bytes);
}

static stream **find_stream(uint64_t handle) {
  stream **place = &streams;
  while (*place && (*place)->handle != handle)
    place = &(*place)->next;
  return place;
}

// Whether a stream stays where it is, since another one has not passed an event.
static inline bool is_held(const stream &s) {
  const record *r = s.first;
  return r->place && r->waits && !r->place->passed;
}

static inline bool is_idle(const stream &s) { return !s.first && !s.running; }

// Forget a stream that has nothing to do and nothing to tell.
static void tidy_stream(uint64_t handle) {
  stream **place = find_stream(handle), *s = *place;
  if (s && is_idle(*s) && s->status == PODIUM_CPU_SUCCESS) {
    *place = s->next;
    free(s);
  }
}

// Forget what a stream has not begun.
static void drop_records(stream &s) {
  while (record *r = s.first) {
    s.first = r->next;
    if (r->place) {
      if (!r->waits)
        pass(*r->place, s.status, s.detail);
      release_recording(r->place);
    }
    free(r);
  }
}

}  // namespace podium_cpu

#endif
