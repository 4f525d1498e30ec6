/*
 * A device in software for AMD's own runtime: ROCr loads this library where HSA_MODEL_LIB names it, and hands it the
 * queues that it would map into a GPU. Dispatch packets are recorded, with the kernel's arguments as they lie in memory,
 * and count as done; no kernel runs.
 *
 * The interface has no header that is published: what is declared here is what ROCr 7.2 was seen to use.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define PACKET_BYTES 64
#define COMPUTE_QUEUE 2
#define KEPT 1024
#define SHORT 20 /* microseconds between two looks at a queue: while there is work, and when there was none for long */
#define LONG 1000
#define KERNARG_KEPT 4096

enum packet { PACKET_INVALID = 1, PACKET_DISPATCH = 2, PACKET_BARRIER_AND = 3, PACKET_BARRIER_OR = 5 };

/* ---- what ROCr hands over ---- */

struct queue_places {
    uint64_t ring, write_index, read_index; /* addresses that begin at the aperture's */
    uint64_t *doorbell;
    uint32_t bytes, type;
};
typedef void (*event_function)(void *owner, unsigned event);

struct model {
    uint8_t *aperture;
    event_function set_event;
    void *owner;
};
struct queue {
    struct model *model;
    struct queue_places places;
    pthread_t thread;
    bool over;
};

struct functions {
    uint32_t major, minor;
    struct model *(*create)(void);
    void (*destroy)(struct model *model);
    void (*set_global_aperture)(struct model *model, void *base, uint64_t size);
    void (*alloced_memory)(struct model *model, void *base, uint64_t size, uint32_t flags);
    void (*freed_memory)(struct model *model, void *base, uint64_t size);
    void (*set_notify_event)(struct model *model, void (*function)(void *), void *owner);
    void (*set_wait_event)(struct model *model, void (*function)(void *, uint64_t, uint64_t), void *owner);
    struct queue *(*register_queue)(struct model *model, struct queue_places *places);
    void (*set_set_event)(struct model *model, event_function function, void *owner);
    void (*destroy_queue)(struct model *model, struct queue *queue);
    void *later[16];
};

/* ---- the packet, the kernel descriptor and the signal, as HSA defines them ---- */

struct dispatch_packet {
    uint16_t header, setup, workgroup[3], reserved;
    uint32_t grid[3], private_bytes, group_bytes;
    uint64_t kernel_object, kernarg, reserved_too, signal;
};
struct barrier_packet {
    uint16_t header, reserved[3];
    uint64_t signals[5], reserved_too, signal;
};
struct kernel_descriptor {
    uint32_t group_bytes, private_bytes, kernarg_bytes, reserved;
    int64_t entry;
};
struct signal {
    int64_t kind, value;
    uint64_t mailbox;
    uint32_t event, reserved;
};
_Static_assert(sizeof(struct dispatch_packet) == PACKET_BYTES, "a packet has 64 bytes");
_Static_assert(sizeof(struct barrier_packet) == PACKET_BYTES, "a packet has 64 bytes");

/* ---- the record, which tests read ---- */

struct dispatch {
    uint64_t sequence, kernel_object;
    uint32_t workgroup[3], grid[3], dimensions, private_bytes, group_bytes, kernarg_bytes, barrier, is_copy;
};
static struct { struct dispatch dispatch; uint8_t kernarg[KERNARG_KEPT]; } kept[KEPT];
static uint64_t count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

EXPORT uint64_t podium_model_count(void);
EXPORT int podium_model_dispatch(uint64_t sequence, void *dispatch, void *kernarg, size_t capacity);

uint64_t podium_model_count(void) { return __atomic_load_n(&count, __ATOMIC_ACQUIRE); }

/* Copies a dispatch by its number, counted from 1; 0 if it is kept no longer. */
int podium_model_dispatch(uint64_t sequence, void *dispatch, void *kernarg, size_t capacity) {
    pthread_mutex_lock(&mutex);
    int found = sequence && sequence <= count && count - sequence < KEPT;
    if (found) {
        size_t place = (sequence - 1) % KEPT, bytes = kept[place].dispatch.kernarg_bytes;
        memcpy(dispatch, &kept[place].dispatch, sizeof kept[place].dispatch);
        if (bytes > KERNARG_KEPT) bytes = KERNARG_KEPT;
        memcpy(kernarg, kept[place].kernarg, bytes < capacity ? bytes : capacity);
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

static void *at(const struct model *model, uint64_t address) { return model->aperture + address; }

/*
 * The runtime copies by a kernel of its own, which its arguments tell: it moves `step` bytes at once up to `end`, and
 * then what remains. That one is done here, or no test could read what it has written.
 */
static bool copy(const struct model *model, const struct dispatch_packet *packet, size_t bytes) {
    struct { uint64_t source, destination, size; uint32_t remainder, step; uint64_t end; uint32_t items; } arguments;
    if (bytes != 48) return false;
    memcpy(&arguments, at(model, packet->kernarg), sizeof arguments);
    if (!arguments.step || arguments.step > 16 || arguments.remainder != arguments.size % arguments.step) return false;
    if (arguments.items != packet->grid[0]) return false;
    if (arguments.end != arguments.destination + arguments.size - arguments.remainder) return false;
    memmove(at(model, arguments.destination), at(model, arguments.source), arguments.size);
    return true;
}

static void record(const struct model *model, const struct dispatch_packet *packet) {
    const struct kernel_descriptor *kernel = at(model, packet->kernel_object);
    pthread_mutex_lock(&mutex);
    size_t place = count % KEPT, bytes = packet->kernarg ? kernel->kernarg_bytes : 0;
    struct dispatch *dispatch = &kept[place].dispatch;
    *dispatch = (struct dispatch){.sequence = count + 1, .kernel_object = packet->kernel_object};
    for (int i = 0; i < 3; i++) {
        dispatch->workgroup[i] = packet->workgroup[i];
        dispatch->grid[i] = packet->grid[i];
    }
    dispatch->dimensions = packet->setup & 3;
    dispatch->private_bytes = packet->private_bytes;
    dispatch->group_bytes = packet->group_bytes;
    dispatch->kernarg_bytes = (uint32_t)bytes;
    dispatch->barrier = packet->header >> 8 & 1;
    dispatch->is_copy = bytes && copy(model, packet, bytes);
    if (bytes) memcpy(kept[place].kernarg, at(model, packet->kernarg), bytes < KERNARG_KEPT ? bytes : KERNARG_KEPT);
    __atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&mutex);
}

/* ---- a queue, worked off by a thread ---- */

static void complete(const struct model *model, uint64_t address) {
    if (!address) return;
    struct signal *signal = at(model, address);
    uint64_t mailbox = signal->mailbox;
    uint32_t event = signal->event;
    __atomic_sub_fetch(&signal->value, 1, __ATOMIC_SEQ_CST);
    if (mailbox && event && model->set_event) model->set_event(model->owner, event);
}

static bool is_pending(const struct model *model, uint64_t address) {
    return address && __atomic_load_n(&((struct signal *)at(model, address))->value, __ATOMIC_ACQUIRE) != 0;
}

static bool is_over(const struct queue *queue) { return __atomic_load_n(&queue->over, __ATOMIC_ACQUIRE); }

static void wait_for(const struct queue *queue, const struct barrier_packet *packet, bool any) {
    for (;;) {
        int pending = 0, given = 0;
        for (int i = 0; i < 5; i++) {
            given += packet->signals[i] != 0;
            pending += is_pending(queue->model, packet->signals[i]);
        }
        if (!pending || (any && pending < given) || is_over(queue)) return;
        usleep(SHORT);
    }
}

static void work(const struct queue *queue, void *packet, unsigned type) {
    if (type == PACKET_DISPATCH) record(queue->model, packet);
    else if (type == PACKET_BARRIER_AND || type == PACKET_BARRIER_OR) wait_for(queue, packet, type == PACKET_BARRIER_OR);
}

static void *serve(void *argument) {
    struct queue *queue = argument;
    const struct model *model = queue->model;
    uint64_t *write_index = at(model, queue->places.write_index), *read_index = at(model, queue->places.read_index);
    uint64_t slots = queue->places.bytes / PACKET_BYTES, next = 0, idle = 0;
    while (!is_over(queue)) {
        uint8_t *packet = (uint8_t *)at(model, queue->places.ring) + next % slots * PACKET_BYTES;
        uint16_t header = PACKET_INVALID;
        if (next < __atomic_load_n(write_index, __ATOMIC_ACQUIRE))
            header = __atomic_load_n((uint16_t *)packet, __ATOMIC_ACQUIRE);
        unsigned type = header & 0xff;
        if (type == PACKET_INVALID) { /* nothing yet, or its writer has not finished */
            usleep(idle++ < 50 ? SHORT : LONG);
            continue;
        }
        idle = 0;
        uint64_t signal = ((struct barrier_packet *)packet)->signal;
        work(queue, packet, type);
        __atomic_store_n((uint16_t *)packet, PACKET_INVALID, __ATOMIC_RELEASE);
        __atomic_store_n(read_index, ++next, __ATOMIC_RELEASE);
        complete(model, signal);
    }
    return NULL;
}

/* ---- the interface ---- */

static void *room(size_t size) {
    void *memory = calloc(1, size);
    if (!memory) abort();
    return memory;
}

static struct model *create(void) { return room(sizeof(struct model)); }
static void destroy(struct model *model) { free(model); }

static void set_global_aperture(struct model *model, void *base, uint64_t size) {
    (void)size;
    model->aperture = base;
}

static void alloced_memory(struct model *model, void *base, uint64_t size, uint32_t flags) {
    (void)model, (void)base, (void)size, (void)flags;
}

static void freed_memory(struct model *model, void *base, uint64_t size) { (void)model, (void)base, (void)size; }

static void set_notify_event(struct model *model, void (*function)(void *), void *owner) {
    (void)model, (void)function, (void)owner;
}

static void set_wait_event(struct model *model, void (*function)(void *, uint64_t, uint64_t), void *owner) {
    (void)model, (void)function, (void)owner;
}

static void set_set_event(struct model *model, event_function function, void *owner) {
    model->set_event = function;
    model->owner = owner;
}

static struct queue *register_queue(struct model *model, struct queue_places *places) {
    struct queue *queue = room(sizeof *queue);
    queue->model = model;
    queue->places = *places;
    queue->over = places->type != COMPUTE_QUEUE; /* no other kind has work, with copies by kernels */
    if (!queue->over && pthread_create(&queue->thread, NULL, serve, queue)) abort();
    return queue;
}

static void destroy_queue(struct model *model, struct queue *queue) {
    (void)model;
    bool served = !__atomic_exchange_n(&queue->over, true, __ATOMIC_ACQ_REL);
    if (served) pthread_join(queue->thread, NULL);
    free(queue);
}

EXPORT const struct functions *get_hsakmt_model_functions(void);

const struct functions *get_hsakmt_model_functions(void) {
    static const struct functions functions = {
        0,           9,
        create,      destroy,
        set_global_aperture, alloced_memory,
        freed_memory, set_notify_event,
        set_wait_event, register_queue,
        set_set_event, destroy_queue,
        {NULL},
    };
    return &functions;
}
