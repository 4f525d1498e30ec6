/* What the generated C knows of OpenCL. Nothing of it comes from a header of OpenCL: the functions are called by the
 * addresses that podium_opencl.function has looked up in the library that pyopencl uses. */
#ifndef PODIUM_OPENCL_H
#define PODIUM_OPENCL_H

#include <stddef.h>
#include <stdint.h>

#define PODIUM_OPENCL_SLOTS 16
#define PODIUM_OPENCL_OUT_OF_HOST_MEMORY -6
#define PODIUM_OPENCL_INVALID_QUEUE -36
#define PODIUM_OPENCL_INVALID_KERNEL -48
#define PODIUM_OPENCL_INVALID_KERNEL_ARGS -52

/* A kernel on a device: KernelRecord of podium_opencl/function.py. Its address is the "function" of a launch. */
struct podium_opencl_kernel {
    int32_t (*set_argument)(void *kernel, uint32_t index, size_t size, const void *value); /* clSetKernelArg */
    int32_t (*set_pointer)(void *kernel, uint32_t index, const void *value);               /* clSetKernelArgSVMPointer */
    int32_t (*enqueue)(void *queue, void *kernel, uint32_t axes, const size_t *offset, const size_t *size,
                       const size_t *group, uint32_t count, void *const *events, void **event); /* clEnqueueNDRangeKernel */
    int32_t (*flush)(void *queue);                                                              /* clFlush */
    void *(*create)(void *program, const char *name, int32_t *status);                          /* clCreateKernel */
    int32_t (*release)(void *kernel);                                                           /* clReleaseKernel */
    void *queue; /* stream 0 of the device */
    const uint64_t *const volatile *streams; /* the number of the device's other streams, and their handles */
    void *program; /* NULL once it is unloaded */
    const char *symbol;
    uint64_t variables;    /* the address of the block of the module's variables, or 0 */
    const uint32_t *sizes; /* bytes of each parameter; 0 for a pointer */
    uint32_t count;
    uint32_t has_variables; /* whether a parameter with the block's address follows */
    uint32_t has_shared;    /* whether one for dynamic shared memory is the last */
    uint32_t declares;      /* whether the memory that the kernel may reach has to be declared */
    void *kernels[PODIUM_OPENCL_SLOTS];
};

/* Whether a handle is a stream of the kernel's device: OpenCL would read wherever another one points to. The caller has
 * the interpreter lock. */
static int podium_opencl_has_stream(const struct podium_opencl_kernel *kernel, uint64_t stream) {
    if (stream == 0) return 1;
    const uint64_t *known = *kernel->streams;
    for (uint64_t index = 1; index <= known[0]; index++)
        if (known[index] == stream) return 1;
    return 0;
}

/* A cl_kernel holds the arguments of its next launch, so each launch takes one that no other thread has: from a slot, or
 * a new one where all are taken. */
static void *podium_opencl_take(struct podium_opencl_kernel *kernel, int32_t *status) {
    for (int slot = 0; slot < PODIUM_OPENCL_SLOTS; slot++) {
        void *found = __atomic_load_n(&kernel->kernels[slot], __ATOMIC_RELAXED);
        if (found != NULL && (found = __atomic_exchange_n(&kernel->kernels[slot], NULL, __ATOMIC_ACQUIRE)) != NULL)
            return found;
    }
    void *program = __atomic_load_n(&kernel->program, __ATOMIC_RELAXED);
    if (program == NULL) {
        *status = PODIUM_OPENCL_INVALID_KERNEL;
        return NULL;
    }
    return kernel->create(program, kernel->symbol, status);
}

static void podium_opencl_give_back(struct podium_opencl_kernel *kernel, void *used) {
    for (int slot = 0; slot < PODIUM_OPENCL_SLOTS; slot++) {
        void *empty = NULL;
        if (__atomic_compare_exchange_n(&kernel->kernels[slot], &empty, used, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return;
    }
    kernel->release(used);
}

static int32_t podium_opencl_set(const struct podium_opencl_kernel *kernel, void *own, uint64_t shared,
                                 void **parameters) {
    int32_t status = 0;
    uint32_t index = 0;
    for (; index < kernel->count && status == 0; index++) {
        if (kernel->sizes[index] != 0) {
            status = kernel->set_argument(own, index, kernel->sizes[index], parameters[index]);
            continue;
        }
        void *address = *(void **)parameters[index];
        status = address == NULL ? kernel->set_argument(own, index, sizeof address, &address)
                                 : kernel->set_pointer(own, index, address);
    }
    if (kernel->has_variables && status == 0)
        status = kernel->set_pointer(own, index++, (void *)(uintptr_t)kernel->variables);
    if (kernel->has_shared && status == 0)
        status = kernel->set_argument(own, index, shared == 0 ? 1 : (size_t)shared, NULL);
    return status;
}

/* Launch the kernel whose arguments `own` has. */
static int32_t podium_opencl_enqueue(const struct podium_opencl_kernel *kernel, void *own, const uint32_t *grid,
                                     const uint32_t *block, uint64_t stream) {
    size_t size[3], group[3];
    for (int axis = 0; axis < 3; axis++) {
        group[axis] = block[axis];
        size[axis] = (size_t)grid[axis] * block[axis];
    }
    void *queue = stream == 0 ? kernel->queue : (void *)(uintptr_t)stream;
    int32_t status = kernel->enqueue(queue, own, 3, NULL, size, group, 0, NULL, NULL);
    return status == 0 ? kernel->flush(queue) : status;
}

#endif
