/* What the sources of the recording HIP runtime share. Everything here is used with the lock held that a call takes. */
#ifndef PODIUM_RECORDING_HIP_STATE_H
#define PODIUM_RECORDING_HIP_STATE_H

#include <stdbool.h>

#include "abi.h"

#define MAX_DEVICES 8
#define MAX_ATTRIBUTES 8

enum entry {
#define ENTRY(name, first, needs_device) ENTRY_##name,
#include "entries.def"
#undef ENTRY
    ENTRY_COUNT
};

/* The body of an exported function: count the call, fail if a test wants it or there is no device, else do it. */
#define CALL(name, action)                                                                                             \
    do {                                                                                                               \
        hipError_t status = call_begin(ENTRY_##name);                                                                  \
        return call_end(ENTRY_##name, status == hipSuccess ? (action) : status);                                       \
    } while (0)

#define REQUIRE(condition, status)                                                                                     \
    do {                                                                                                               \
        if (!(condition)) return status;                                                                               \
    } while (0)

#define CHECK(action)                                                                                                  \
    do {                                                                                                               \
        hipError_t checked = (action);                                                                                 \
        if (checked != hipSuccess) return checked;                                                                     \
    } while (0)

hipError_t call_begin(enum entry entry);
hipError_t call_end(enum entry entry, hipError_t status);
void lock_take(void);
void lock_leave(void);
void call_reset(void);
uint64_t thread_number(void);

/* ---- devices ---- */

struct device {
    char arch[64];
    uint64_t total, used;
    int units, cooperative;
    bool peers[MAX_DEVICES], enabled[MAX_DEVICES];
    hipError_t fault, pending; /* of the next launch; what the next calls that wait give */
};
extern struct device devices[MAX_DEVICES];
extern int device_count;
extern __thread int current_device;

int device_wave_size(const struct device *device);
int device_shared_bytes(const struct device *device);
void device_reset(void);

/* ---- code objects ---- */

struct argument {
    uint32_t offset, size;
    bool hidden, pointer;
};
struct kernel {
    char name[256];
    uint32_t kernarg_size, group_size, private_size, vector_registers, wave_size, max_block;
    uint32_t argument_count, explicit_count, explicit_bytes;
    struct argument *arguments;
};
struct code {
    char target[128];
    struct kernel *kernels;
    uint32_t kernel_count;
};
/* Reads the note of a code object; false if it is none. */
bool code_read(const uint8_t *image, struct code *code);
void code_clear(struct code *code);
bool code_matches(const char *target, const char *arch);
/* The size of a variable that a code object defines; false if it has none of that name. */
bool code_variable(const uint8_t *image, const char *name, uint64_t *size);

struct message {
    const uint8_t *at, *end;
    bool broken; /* something was read that is not there */
};
enum message_kind { MESSAGE_NIL, MESSAGE_NUMBER, MESSAGE_TEXT, MESSAGE_ARRAY, MESSAGE_MAP, MESSAGE_OTHER, MESSAGE_BROKEN };
struct item {
    enum message_kind kind;
    uint64_t number; /* a number; or the bytes of a text, the elements of an array, the pairs of a map */
    const char *text;
};
/* Reads the next item of a message of MessagePack: of an array or a map only its head. */
struct item message_next(struct message *message);
void message_skip(struct message *message);
bool item_is(struct item item, const char *text);
void item_copy(struct item item, char *out, size_t capacity);

/* ---- handles ---- */

struct module;
struct function {
    struct module *module;
    const struct kernel *kernel;
};
struct stream {
    int device, priority;
    unsigned flags;
    struct graph *capture;
};
/* The stream of a handle, or NULL; 0, 1 and 2 are the default ones of the current device. */
struct stream *stream_find(hipStream_t handle);
hipError_t stream_wait(const struct stream *stream);
void stream_reset(void);
void event_reset(void);
void module_reset(void);
struct function *function_find(hipFunction_t handle);
int module_device(const struct module *module);
extern bool streams_busy;
extern uint64_t stream_live, stream_created, event_live, event_created, module_live, module_created;

/* ---- memory ---- */

enum memory { MEMORY_DEVICE, MEMORY_MANAGED, MEMORY_HOST };
hipError_t memory_allocate(void **out, size_t size, enum memory memory);
hipError_t memory_free(void *at, bool host);
uint64_t memory_live(void);
uint64_t memory_live_bytes(void);
void memory_reset(void);

/* ---- launches ---- */

struct launch_attribute {
    uint32_t id, unused;
    uint8_t value[64];
};
struct launch {
    uint64_t sequence, function, stream, thread;
    int32_t device;
    uint32_t entry, grid[3], block[3], shared, group, cooperative, captured, through_buffer; /* group: with the static */
    uint32_t reserved;
    uint32_t attribute_count, argument_count, kernarg_size, argument_bytes;
    struct launch_attribute attributes[MAX_ATTRIBUTES];
    char name[256];
};
struct recorded {
    struct launch launch;
    uint8_t *bytes;             /* the arguments, where the kernel finds them, with zeros between */
    struct argument *arguments; /* the explicit ones */
};
void record_launch(const struct recorded *recorded);
void record_copy(struct recorded *to, const struct recorded *from);
void record_clear(struct recorded *recorded);
void record_reset(void);
void launch_run(const struct recorded *recorded);
void launch_reset(void);

void graph_add(struct graph *graph, const struct recorded *recorded);
void graph_reset(void);

#endif
