/* Modules: an image that is loaded in one context, its functions and its variables. */
#include <stdlib.h>
#include <string.h>

#include "module.h"

static void destroy_module(struct object *object) {
    struct module *module = (struct module *)object;
    if (module->library) library_forget(module->library, module);
    for (uint32_t i = 0; i < module->image->kernel_count; i++)
        if (module->functions[i]) object_destroy(module->functions[i]);
    for (uint32_t i = 0; i < module->image->variable_count; i++) {
        struct range *range = module->owns[i] ? memory_find_base(module->addresses[i]) : NULL;
        if (range) memory_free(range);
    }
    free(module->owns);
    free(module->functions);
    free(module->addresses);
    image_release(module->image);
}

CUresult module_new(struct image *image, struct context *context, struct library *library, struct module **out) {
    CHECK(image_serves(image, context->device));
    struct module *module = object_create(KIND_MODULE, sizeof *module, context, destroy_module);
    module->image = image;
    module->library = library;
    image->references++;
    module->functions = calloc(image->kernel_count + 1, sizeof *module->functions);
    module->addresses = calloc(image->variable_count + 1, sizeof *module->addresses);
    module->owns = calloc(image->variable_count + 1, sizeof *module->owns);
    if (!module->functions || !module->addresses || !module->owns) abort();
    for (uint32_t i = 0; i < image->variable_count; i++) {
        const struct variable_info *variable = &image->variables[i];
        if (library && variable->managed) {
            module->addresses[i] = library->managed[i];
            continue;
        }
        struct range *range;
        CUresult status = memory_allocate(context, variable->size ? variable->size : 1, variable->alignment,
                                          variable->managed ? MEMORY_MANAGED : MEMORY_DEVICE, &range);
        if (status) {
            object_destroy(module);
            return status;
        }
        if (variable->initial) memcpy(range->bytes, variable->initial, variable->size);
        module->addresses[i] = range->base;
        module->owns[i] = true;
    }
    *out = module;
    return CUDA_SUCCESS;
}

struct function *module_function(struct module *module, uint32_t index) {
    if (!module->functions[index]) {
        struct function *function = object_create(KIND_FUNCTION, sizeof *function, module->object.context, NULL);
        function->module = module;
        function->info = &module->image->kernels[index];
        function->attribute = function->own_attribute;
        if (module->library)
            function->attribute = library_kernel(module->library, index)->attribute[module->object.context->device];
        else
            function_defaults(function->info, module->image, function->attribute);
        module->functions[index] = function;
    }
    return module->functions[index];
}

int image_kernel(const struct image *image, const char *name) {
    for (uint32_t i = 0; i < image->kernel_count; i++)
        if (!strcmp(image->kernels[i].name, name)) return (int)i;
    return -1;
}

int image_variable(const struct image *image, const char *name) {
    for (uint32_t i = 0; i < image->variable_count; i++)
        if (!strcmp(image->variables[i].name, name)) return (int)i;
    return -1;
}

CUresult module_variable(const struct module *module, const char *name, CUdeviceptr *address, size_t *size) {
    REQUIRE(name && *name && (address || size), CUDA_ERROR_INVALID_VALUE);
    int index = image_variable(module->image, name);
    REQUIRE(index >= 0, CUDA_ERROR_NOT_FOUND);
    if (address) *address = module->addresses[index];
    if (size) *size = module->image->variables[index].size;
    return CUDA_SUCCESS;
}

/* ---- entries ---- */

static CUresult load(CUmodule *out, const void *data) {
    struct context *context;
    CHECK(context_current(&context));
    REQUIRE(out && data, CUDA_ERROR_INVALID_VALUE);
    struct image *image;
    struct module *module;
    CHECK(image_read(data, &image));
    CUresult status = module_new(image, context, NULL, &module);
    image_release(image);
    if (!status) *out = HANDLE(module);
    return status;
}

CUresult cuModuleLoadData(CUmodule *out, const void *data) {
    ENTER(cuModuleLoadData);
    return load(out, data);
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *data, unsigned count, CUjit_option *options, void **values) {
    ENTER(cuModuleLoadDataEx);
    REQUIRE(!count || (options && values), CUDA_ERROR_INVALID_VALUE);
    return load(out, data);
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *data) {
    ENTER(cuModuleLoadFatBinary);
    return load(out, data);
}

static CUresult find(CUmodule handle, struct module **module) {
    struct context *context;
    CHECK(context_current(&context));
    *module = object_find(handle, KIND_MODULE);
    REQUIRE(*module, CUDA_ERROR_INVALID_HANDLE);
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule handle) {
    ENTER(cuModuleUnload);
    struct module *module;
    CHECK(find(handle, &module));
    REQUIRE(!module->library, CUDA_ERROR_NOT_PERMITTED);
    CHECK(capture_allows_unsafe());
    object_destroy(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name) {
    ENTER(cuModuleGetFunction);
    struct module *module;
    CHECK(find(handle, &module));
    REQUIRE(out && name && *name, CUDA_ERROR_INVALID_VALUE);
    int index = image_kernel(module->image, name);
    REQUIRE(index >= 0, CUDA_ERROR_NOT_FOUND);
    *out = HANDLE(module_function(module, (uint32_t)index));
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule handle) {
    ENTER(cuModuleGetFunctionCount);
    struct module *module;
    CHECK(find(handle, &module));
    REQUIRE(count, CUDA_ERROR_INVALID_VALUE);
    *count = module->image->kernel_count;
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *out, unsigned count, CUmodule handle) {
    ENTER(cuModuleEnumerateFunctions);
    struct module *module;
    CHECK(find(handle, &module));
    REQUIRE(out && count, CUDA_ERROR_INVALID_VALUE);
    for (uint32_t i = 0; i < count && i < module->image->kernel_count; i++)
        out[i] = HANDLE(module_function(module, i));
    return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule handle, const char *name) {
    ENTER(cuModuleGetGlobal_v2);
    struct module *module;
    CHECK(find(handle, &module));
    return module_variable(module, name, address, size);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode) {
    ENTER(cuModuleGetLoadingMode);
    REQUIRE(mode, CUDA_ERROR_INVALID_VALUE);
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}
