/* What tests ask of the recording HIP runtime and tell it: functions beside HIP's own. */
#ifndef PODIUM_RECORDING_HIP_CONTROL_H
#define PODIUM_RECORDING_HIP_CONTROL_H

#include <stddef.h>
#include <stdint.h>

/* The nth call from now of an entry gives this status and does nothing; nth 0 takes that back. -1: no such entry. */
int podium_recording_fail(const char *name, int status, uint64_t nth);
/* How often an entry was called since the last reset, or -1. */
int64_t podium_recording_calls(const char *name);
/* The name of entry 0, 1, ..., or NULL after the last. */
const char *podium_recording_entry(int number);
/* The nth call since the last reset, counted from 1: its entry, status and device; 0 if it is kept no longer. */
int podium_recording_call(uint64_t sequence, int *entry, int *status, int *device);
uint64_t podium_recording_call_count(void);

/* Devices, by number. The variables RECORDING_HIP_DEVICES and RECORDING_HIP_ARCH say what there is at first. */
void podium_recording_set_device_count(int count);
int podium_recording_set_arch(int device, const char *arch);
void podium_recording_set_memory(int device, uint64_t bytes);
void podium_recording_set_cooperative(int device, int can);
void podium_recording_set_peer(int from, int to, int reachable);
/* The next launch on the device fails while it runs: the next call that waits for it gives the status. */
void podium_recording_fault(int device, int status);
/* Streams and events say "not ready" to questions until they are waited for, or this is taken back. */
void podium_recording_set_busy(int busy);
/* Objects that live now ("modules", "streams", "events", "allocations", "bytes"), by number; the name, or NULL. */
const char *podium_recording_counter(int number, uint64_t *live, uint64_t *created);

uint64_t podium_recording_launch_count(void);
/* How many launches the record keeps. */
void podium_recording_keep(uint64_t launches);
/* Copies a launch by its number, counted from 1; 0 if it is kept no longer. See struct launch and struct argument. */
int podium_recording_launch(uint64_t sequence, void *launch, void *bytes, size_t byte_capacity, void *arguments,
                            size_t argument_capacity);
/* Launches of a kernel of this name call a function of podium's CPU backend, `int f(const shape *, void *const *)`; an
 * address of 0 takes that back. */
void podium_recording_twin(const char *kernel, uint64_t address);

/* Everything as it was when the library was loaded, but what devices there are. */
void podium_recording_reset(void);

#endif
