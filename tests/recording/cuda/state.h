/* What the recording library knows: devices, objects behind handles, memory, and the record of launches. */
#ifndef PODIUM_RECORDING_STATE_H
#define PODIUM_RECORDING_STATE_H

#include <stdbool.h>

#include "abi.h"

#define MAX_DEVICES 16
#define MAX_ATTRIBUTES 192 /* of a device: the numbers up to here are valid questions */
#define MAX_LAUNCH_ATTRIBUTES 16
#define MAX_NAME 256

/* ---- entries (entry.c) ---- */

#define ENTRY(name, since, symbol) ENTRY_##symbol,
#define STREAM_ENTRY(name, since, symbol) ENTRY(name, since, symbol)
enum entry_number {
#include "entries.def"
    ENTRY_COUNT
};
#undef ENTRY
#undef STREAM_ENTRY

/* Every entry begins so: it holds the one lock until it returns, is counted, and fails if a test has asked for it. */
#define ENTER(symbol)                                                 \
    __attribute__((cleanup(entry_leave))) int entry_lock_ = entry_lock(); \
    do {                                                              \
        CUresult refusal_ = entry_arrive(ENTRY_##symbol);             \
        if (refusal_) return refusal_;                                \
    } while (0)
#define CHECK(expression)                     \
    do {                                      \
        CUresult check_ = (expression);       \
        if (check_) return check_;            \
    } while (0)
#define REQUIRE(condition, status) \
    do {                           \
        if (!(condition)) return status; \
    } while (0)

int entry_lock(void);
void entry_leave(int *lock);
CUresult entry_arrive(int entry);
void entry_reset(void);
int driver_version(void);
extern bool driver_initialized;
uint64_t driver_clock(void); /* nanoseconds of a made-up clock, which goes on with every call */

/* ---- objects (object.c) ---- */

enum kind {
    KIND_NONE,
    KIND_CONTEXT,
    KIND_MODULE,
    KIND_LIBRARY,
    KIND_KERNEL,
    KIND_FUNCTION,
    KIND_STREAM,
    KIND_EVENT,
    KIND_GRAPH,
    KIND_NODE,
    KIND_GRAPH_EXEC,
    KIND_POOL,
    KIND_COUNT
};

struct context;
struct object {
    enum kind kind;
    uint64_t handle; /* never given twice: a stale one is known as such */
    struct context *context;
    void (*destroy)(struct object *self); /* frees what it owns, not itself; may be NULL */
};

void *object_create(enum kind kind, size_t size, struct context *context, void (*destroy)(struct object *));
void *object_find(const void *handle, enum kind kind); /* NULL if it is none, or no longer */
void object_destroy(void *object);
void object_each(enum kind kind, void (*visit)(struct object *object, void *detail), void *detail);
void object_destroy_of(struct context *context); /* all that belong to a context */
void object_destroy_all(void);
uint64_t object_live(enum kind kind);
uint64_t object_created(enum kind kind);
#define HANDLE(of) ((void *)(uintptr_t)((const struct object *)(of))->handle)

/* ---- devices and contexts (device.c, context.c) ---- */

struct pool;
struct stream;
struct device {
    int attribute[MAX_ATTRIBUTES];
    char name[64];
    size_t total, used;
    struct context *primary;
    unsigned retained, primary_flags;
    struct pool *default_pool, *current_pool;
    CUresult armed_fault; /* what the next launch on it will do */
    uint32_t reachable; /* a bit for each other device that this one can access */
};
extern struct device devices[MAX_DEVICES];
extern int device_count;
void device_reset(void);
bool device_valid(CUdevice device);

struct context {
    struct object object;
    CUdevice device;
    bool primary, active;
    unsigned flags;
    uint32_t peers; /* a bit for each device whose memory is open to this context */
    size_t limit[16];
    struct stream *legacy;
    uint64_t last_per_thread; /* handle of the stream that was asked for last */
    CUresult fault; /* what a kernel did: every later call gives it */
    CUresult pending_fault;
};
CUresult context_current(struct context **context);
struct context *context_of_device(CUdevice device); /* the primary one */
void context_forget(void); /* of this thread */
uint64_t context_active(void); /* how many there are; a primary one that nobody retains is none */

/* ---- images, modules and kernels (image.c, elf.c, ptx.c, module.c) ---- */

struct parameter { uint32_t offset, size; };
struct kernel_info {
    char name[MAX_NAME];
    uint32_t parameter_count, parameter_capacity, parameter_bytes;
    struct parameter *parameters;
    int registers, shared, local, constant, max_threads;
    bool cluster_must_be_set;
    uint32_t cluster[3];
};
struct variable_info {
    char name[MAX_NAME];
    size_t size, alignment;
    bool constant, managed;
    const uint8_t *initial; /* into the image's bytes, or NULL */
};
struct image {
    int references;
    uint8_t *bytes;
    size_t size;
    int arch; /* 90 for sm_90 */
    bool exact, family, ptx;
    int ptx_version; /* 90 for .version 9.0 */
    struct kernel_info *kernels;
    uint32_t kernel_count;
    struct variable_info *variables;
    uint32_t variable_count;
};
CUresult image_read(const void *data, struct image **image);
CUresult image_serves(const struct image *image, CUdevice device);
struct image *image_none(void); /* for code that cannot be read */
void image_release(struct image *image);
struct kernel_info *image_add_kernel(struct image *image, const char *name, size_t length);
struct variable_info *image_add_variable(struct image *image, const char *name, size_t length);
void kernel_add_parameter(struct kernel_info *kernel, uint32_t ordinal, uint32_t offset, uint32_t size);
CUresult elf_read(struct image *image);
CUresult ptx_read(struct image *image);

struct module {
    struct object object;
    struct image *image;
    CUdeviceptr *addresses; /* one for each variable */
    bool *owns; /* which of them are this module's own memory */
    struct function **functions; /* one for each kernel, made when it is first asked for */
    struct library *library; /* whose part this is, or NULL */
};
struct function {
    struct object object;
    struct module *module;
    struct kernel_info *info;
    int *attribute; /* its own, or the kernel's for this device */
    int own_attribute[CU_FUNC_ATTRIBUTE_MAX];
};
struct library {
    struct object object;
    struct image *image;
    CUresult problem; /* of the code */
    struct kernel **kernels;
    CUdeviceptr *managed; /* variables of all contexts */
    struct module **modules; /* one for each context that it is loaded in */
    uint32_t module_count;
};
struct kernel {
    struct object object;
    struct library *library;
    uint32_t index;
    int attribute[MAX_DEVICES][CU_FUNC_ATTRIBUTE_MAX];
};
/* The function that a CUfunction or a CUkernel stands for in a context. */
CUresult function_resolve(CUfunction handle, struct context *context, struct function **function);

/* ---- memory (memory.c, copy.c, pool.c) ---- */

enum memory { MEMORY_DEVICE, MEMORY_PINNED, MEMORY_REGISTERED, MEMORY_MANAGED };
struct range {
    CUdeviceptr base;
    size_t size, alignment;
    uint8_t *bytes; /* where its contents are: device memory itself cannot be read by the host */
    enum memory memory;
    struct context *context;
    CUdevice device;
    struct pool *pool; /* that it came from, or NULL */
    void *graph; /* that owns it: allocated while capturing */
    unsigned flags;
    uint64_t number;
};
struct pool {
    struct object object;
    CUdevice device;
    bool is_default;
    uint64_t threshold, used, used_high;
    int reuse[3];
    uint32_t access;
};
CUresult memory_allocate(struct context *context, size_t size, size_t alignment, enum memory memory,
                         struct range **range);
void memory_free(struct range *range);
struct range *memory_find(CUdeviceptr address);
struct range *memory_find_base(CUdeviceptr address);
bool memory_is_stale(CUdeviceptr address); /* of the device's addresses, and nothing lives there */
CUresult memory_bytes(CUdeviceptr address, size_t size, struct context *context, uint8_t **bytes);
void memory_free_of(struct context *context);
void memory_free_graph(void *graph);
void memory_free_pool(struct pool *pool);
void memory_reset(void);
uint64_t memory_live(void);
uint64_t memory_live_bytes(void);
struct pool *pool_default(CUdevice device);

/* ---- streams, events, captures, graphs (stream.c, event.c, capture.c, graph.c) ---- */

struct graph;
struct node;
#define MAX_DEPENDENCIES 32
struct nodes { /* that what comes next in a stream depends on */
    uint32_t count;
    CUgraphNode handles[MAX_DEPENDENCIES];
};
void nodes_join(struct nodes *nodes, const struct nodes *others);
struct capture {
    struct graph *graph;
    struct stream *origin;
    CUstreamCaptureMode mode;
    uint64_t thread, number;
    bool invalid;
    struct capture *next;
};
struct stream {
    struct object object;
    unsigned flags;
    int priority;
    bool legacy, per_thread;
    uint64_t thread, number;
    struct capture *capture;
    bool forked; /* its last work is not joined to the origin yet */
    struct nodes last; /* while it is captured */
};
struct event {
    struct object object;
    unsigned flags;
    bool recorded;
    uint64_t time;
    uint64_t capture; /* number of the one that it was recorded in last, or 0 */
    uint64_t captured_from;
    struct nodes last; /* of the stream, then */
};
uint64_t thread_number(void);
CUresult stream_find(CUstream handle, struct context *context, struct stream **stream);
/* Puts work on a stream: into its capture as a node (*node is not NULL then), else it is done at once. */
CUresult stream_enqueue(struct stream *stream, CUgraphNodeType type, struct node **node);
void stream_new_legacy(struct context *context);
extern bool streams_busy; /* queries say so until a test lets go */

CUresult capture_allows_unsafe(void);
/* Of one stream, and of all that a context has. */
CUresult capture_allows_synchronize(struct stream *stream);
CUresult capture_allows_waiting(struct context *context);
void capture_invalidate_blocking(struct context *context);
bool capture_is_implicit(struct context *context);
struct capture *capture_numbered(uint64_t number);
void capture_abandon(struct stream *stream);
void capture_reset(void);

/* ---- launches (launch.c, occupancy.c, record.c, graph.c) ---- */

struct launch {
    uint64_t sequence, function, context, stream, thread;
    int32_t device;
    uint32_t entry; /* the number of the entry that made it */
    uint32_t grid[3], block[3], cluster[3], shared;
    uint32_t captured; /* 1: put into a graph and not run; 2: run by a graph */
    uint32_t attribute_count, parameter_count, parameter_bytes, stale;
    struct { uint32_t id, unused; uint8_t value[64]; } attributes[MAX_LAUNCH_ATTRIBUTES];
    char name[MAX_NAME];
};
struct recorded {
    struct launch launch;
    uint8_t *bytes;
    struct parameter *parameters;
    uint32_t byte_capacity, parameter_capacity;
};
CUresult launch_prepare(int entry, CUfunction function, const CUlaunchConfig *config, bool cooperative, void **parameters,
                        void **extra, struct context *context, struct stream *stream, struct recorded *recorded);
CUresult launch_wait_for_room(void); /* in the queue, outside of the library's lock */
/* Makes a record ready for the parameters of a kernel. */
void record_begin(struct recorded *recorded, const struct kernel_info *info);
void record_copy(struct recorded *destination, const struct recorded *source);
void record_clear(struct recorded *recorded);
void record_launch(const struct recorded *recorded); /* a launch that runs */
void record_note(const struct recorded *recorded);   /* one that is captured */
void record_reset(void);
uint64_t record_count(void);

int occupancy_blocks(const struct function *function, CUdevice device, int threads, size_t dynamic);
int occupancy_clusters(const struct function *function, CUdevice device, const CUlaunchConfig *config);
CUresult occupancy_cluster(const CUlaunchConfig *config, const struct function *function, uint32_t cluster[3]);

struct node {
    struct object object;
    struct graph *graph;
    CUgraphNodeType type;
    struct recorded recorded;
    struct nodes dependencies;
    void **places; /* of the parameters, for whoever asks */
    bool disabled; /* in a graph that is run */
};
struct graph {
    struct object object;
    struct node **nodes;
    size_t count, capacity;
};
struct graph *graph_new(void);
struct node *graph_add(struct graph *graph, CUgraphNodeType type);

#endif
