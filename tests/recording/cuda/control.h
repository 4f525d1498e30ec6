/* What a test can ask of the recording library and tell it: functions beside the driver's own. */
#ifndef PODIUM_RECORDING_CONTROL_H
#define PODIUM_RECORDING_CONTROL_H

#include <stddef.h>
#include <stdint.h>

/* The nth call from now of an entry gives this status and does nothing; nth 0 takes that back. -1: no such entry. */
int podium_recording_fail(const char *name, int status, uint64_t nth);
/* How often an entry was called since the last reset, or -1. */
int64_t podium_recording_calls(const char *name);
/* The name of entry 0, 1, ..., or NULL after the last. */
const char *podium_recording_entry(int number);

void podium_recording_set_device_count(int count);
int podium_recording_set_attribute(int device, int attribute, int value);
void podium_recording_set_memory(int device, uint64_t bytes);
void podium_recording_set_peer(int from, int to, int reachable);
/* The next launch on the device faults: later calls in its context give the status. */
void podium_recording_fault(int device, int status);
/* Streams and events say "not ready" to questions until they are waited for, or this is taken back. */
void podium_recording_set_busy(int busy);
/* The queue is full, or no longer: launches wait in the driver meanwhile, and give up with LAUNCH_TIMEOUT after long. */
void podium_recording_set_full(int full);
/* Waits until a launch waits so; 0 if none came. */
int podium_recording_await_full(void);
/* Objects that live now ("contexts", "streams", "allocations", "bytes", ...), by number; the name, or NULL. */
const char *podium_recording_counter(int number, uint64_t *live, uint64_t *created);
/* How many contexts this thread has on its stack. */
int podium_recording_context_depth(void);

uint64_t podium_recording_launch_count(void);
/* How many launches the record keeps. */
void podium_recording_keep(uint64_t launches);
/* Copies a launch by its sequence number; 0 if it is kept no longer. See struct launch and struct parameter. */
int podium_recording_launch(uint64_t sequence, void *launch, void *bytes, size_t byte_capacity, void *parameters,
                            size_t parameter_capacity);
/* The last tensor map that was asked for; see struct tensor_map. */
int podium_recording_tensor_map(void *map);

/* Everything as it was when the library was loaded, but the number of devices and what they are. */
void podium_recording_reset(void);

#endif
