/* Libraries: code of no context, and kernels that work in all of them. It is loaded in each when it is needed there. */
#include <stdlib.h>
#include <string.h>

#include "module.h"

static void destroy_library(struct object *object) {
    struct library *library = (struct library *)object;
    while (library->module_count) object_destroy(library->modules[library->module_count - 1]);
    free(library->modules);
    for (uint32_t i = 0; i < library->image->kernel_count; i++)
        if (library->kernels[i]) object_destroy(library->kernels[i]);
    for (uint32_t i = 0; i < library->image->variable_count; i++) {
        struct range *range = library->managed[i] ? memory_find_base(library->managed[i]) : NULL;
        if (range) memory_free(range);
    }
    free(library->managed);
    free(library->kernels);
    image_release(library->image);
}

CUresult library_module(struct library *library, struct context *context, struct module **out) {
    for (uint32_t i = 0; i < library->module_count; i++) {
        *out = library->modules[i];
        if ((*out)->object.context == context) return CUDA_SUCCESS;
    }
    CHECK(module_new(library->image, context, library, out));
    library->modules = realloc(library->modules, (library->module_count + 1) * sizeof *library->modules);
    if (!library->modules) abort();
    library->modules[library->module_count++] = *out;
    return CUDA_SUCCESS;
}

void library_forget(struct library *library, const struct module *module) {
    for (uint32_t i = 0; i < library->module_count; i++)
        if (library->modules[i] == module) library->modules[i] = library->modules[--library->module_count];
}

static CUresult find_library(CUlibrary handle, struct library **library) {
    *library = object_find(handle, KIND_LIBRARY);
    return *library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* A library whose code is needed now. Code for no device that there is, is found out here. */
static CUresult read_library(CUlibrary handle, struct library **library) {
    CHECK(find_library(handle, library));
    CUresult status = (*library)->problem ? (*library)->problem : CUDA_ERROR_NO_BINARY_FOR_GPU;
    if ((*library)->problem) return status;
    for (int i = 0; i < device_count && status; i++) status = image_serves((*library)->image, i);
    return status;
}

static CUresult find_kernel(CUkernel handle, struct kernel **kernel, struct kernel_info **info) {
    *kernel = object_find(handle, KIND_KERNEL);
    REQUIRE(*kernel, CUDA_ERROR_INVALID_HANDLE);
    if (info) *info = &(*kernel)->library->image->kernels[(*kernel)->index];
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *out, const void *data, CUjit_option *jit, void **jit_values, unsigned jit_count,
                           CUlibraryOption *options, void **values, unsigned count) {
    ENTER(cuLibraryLoadData);
    REQUIRE(out && data && (!jit_count || (jit && jit_values)), CUDA_ERROR_INVALID_VALUE);
    (void)values;
    REQUIRE(!count || options, CUDA_ERROR_INVALID_VALUE);
    /* Code is loaded when something of it is needed: what is wrong with it is only said then. */
    struct image *image;
    CUresult problem = image_read(data, &image);
    if (problem) image = image_none();
    struct library *library = object_create(KIND_LIBRARY, sizeof *library, NULL, destroy_library);
    library->image = image;
    library->problem = problem;
    library->kernels = calloc(image->kernel_count + 1, sizeof *library->kernels);
    library->managed = calloc(image->variable_count + 1, sizeof *library->managed);
    if (!library->kernels || !library->managed) abort();
    for (uint32_t i = 0; i < image->variable_count; i++) {
        struct range *range;
        const struct variable_info *variable = &image->variables[i];
        if (!variable->managed || memory_allocate(NULL, variable->size, 256, MEMORY_MANAGED, &range)) continue;
        if (variable->initial) memcpy(range->bytes, variable->initial, variable->size);
        library->managed[i] = range->base;
    }
    *out = HANDLE(library);
    return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary handle) {
    ENTER(cuLibraryUnload);
    struct library *library;
    CHECK(find_library(handle, &library));
    CHECK(capture_allows_unsafe());
    object_destroy(library);
    return CUDA_SUCCESS;
}

struct kernel *library_kernel(struct library *library, uint32_t index) {
    if (!library->kernels[index]) {
        struct kernel *kernel = object_create(KIND_KERNEL, sizeof *kernel, NULL, NULL);
        kernel->library = library;
        kernel->index = index;
        for (int i = 0; i < MAX_DEVICES; i++)
            function_defaults(&library->image->kernels[index], library->image, kernel->attribute[i]);
        library->kernels[index] = kernel;
    }
    return library->kernels[index];
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name) {
    ENTER(cuLibraryGetKernel);
    struct library *library;
    CHECK(read_library(handle, &library));
    REQUIRE(out && name, CUDA_ERROR_INVALID_VALUE);
    int index = image_kernel(library->image, name);
    REQUIRE(index >= 0, CUDA_ERROR_NOT_FOUND);
    *out = HANDLE(library_kernel(library, (uint32_t)index));
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary handle) {
    ENTER(cuLibraryGetKernelCount);
    struct library *library;
    CHECK(find_library(handle, &library));
    REQUIRE(count, CUDA_ERROR_INVALID_VALUE);
    *count = 0; /* of code that cannot be loaded */
    if (read_library(handle, &library)) return CUDA_SUCCESS;
    *count = library->image->kernel_count;
    return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel *out, unsigned count, CUlibrary handle) {
    ENTER(cuLibraryEnumerateKernels);
    struct library *library;
    CHECK(read_library(handle, &library));
    REQUIRE(out && count, CUDA_ERROR_INVALID_VALUE);
    for (uint32_t i = 0; i < count && i < library->image->kernel_count; i++)
        out[i] = HANDLE(library_kernel(library, i));
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *out, CUlibrary handle) {
    ENTER(cuLibraryGetModule);
    struct library *library;
    struct context *context;
    struct module *module;
    CHECK(context_current(&context));
    CHECK(read_library(handle, &library));
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    CHECK(library_module(library, context, &module));
    *out = HANDLE(module);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, CUlibrary handle, const char *name) {
    ENTER(cuLibraryGetGlobal);
    struct library *library;
    struct context *context;
    struct module *module;
    CHECK(context_current(&context));
    CHECK(read_library(handle, &library));
    CHECK(library_module(library, context, &module));
    REQUIRE(!name || image_kernel(library->image, name) < 0, CUDA_ERROR_INVALID_VALUE);
    return module_variable(module, name, address, size);
}

CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *size, CUlibrary handle, const char *name) {
    ENTER(cuLibraryGetManaged);
    struct library *library;
    CHECK(read_library(handle, &library));
    REQUIRE(name && (address || size), CUDA_ERROR_INVALID_VALUE);
    int index = image_variable(library->image, name);
    REQUIRE(index >= 0 && library->managed[index], CUDA_ERROR_NOT_FOUND);
    if (address) *address = library->managed[index];
    if (size) *size = library->image->variables[index].size;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *out, CUkernel handle) {
    ENTER(cuKernelGetFunction);
    struct context *context;
    struct kernel *kernel;
    struct module *module;
    CHECK(context_current(&context));
    CHECK(find_kernel(handle, &kernel, NULL));
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    CHECK(library_module(kernel->library, context, &module));
    *out = HANDLE(module_function(module, kernel->index));
    return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel handle) {
    ENTER(cuKernelGetLibrary);
    struct kernel *kernel;
    CHECK(find_kernel(handle, &kernel, NULL));
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    *out = HANDLE(kernel->library);
    return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute number, CUkernel handle, CUdevice device) {
    ENTER(cuKernelGetAttribute);
    struct kernel *kernel;
    CHECK(find_kernel(handle, &kernel, NULL));
    REQUIRE(device_valid(device), CUDA_ERROR_INVALID_DEVICE);
    REQUIRE(value && number < CU_FUNC_ATTRIBUTE_MAX, CUDA_ERROR_INVALID_VALUE);
    CHECK(image_serves(kernel->library->image, device));
    *value = kernel->attribute[device][number];
    return CUDA_SUCCESS;
}

CUresult cuKernelSetAttribute(CUfunction_attribute number, int value, CUkernel handle, CUdevice device) {
    ENTER(cuKernelSetAttribute);
    struct kernel *kernel;
    struct kernel_info *info;
    CHECK(find_kernel(handle, &kernel, &info));
    REQUIRE(device_valid(device), CUDA_ERROR_INVALID_DEVICE);
    return function_set(kernel->attribute[device], info, device, number, value);
}

CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache config, CUdevice device) {
    ENTER(cuKernelSetCacheConfig);
    struct kernel *kernel;
    CHECK(find_kernel(handle, &kernel, NULL));
    REQUIRE(device_valid(device), CUDA_ERROR_INVALID_DEVICE);
    REQUIRE((unsigned)config <= 3, CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel handle) {
    ENTER(cuKernelGetName);
    struct kernel *kernel;
    struct kernel_info *info;
    CHECK(find_kernel(handle, &kernel, &info));
    REQUIRE(name, CUDA_ERROR_INVALID_VALUE);
    *name = info->name;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t *offset, size_t *size) {
    ENTER(cuKernelGetParamInfo);
    struct kernel *kernel;
    struct kernel_info *info;
    CHECK(find_kernel(handle, &kernel, &info));
    return function_parameter(info, index, offset, size);
}
