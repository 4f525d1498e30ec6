/* Functions: what is known of a kernel in a context, and what can be set. */
#include <stdlib.h>
#include <string.h>

#include "module.h"

#define SHARED_WITHOUT_ASKING 49152

void function_defaults(const struct kernel_info *info, const struct image *image, int *attribute) {
    memset(attribute, 0, CU_FUNC_ATTRIBUTE_MAX * sizeof *attribute);
    attribute[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = info->max_threads;
    attribute[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = info->shared;
    attribute[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES] = info->constant;
    attribute[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = info->local;
    attribute[CU_FUNC_ATTRIBUTE_NUM_REGS] = info->registers;
    attribute[CU_FUNC_ATTRIBUTE_PTX_VERSION] = attribute[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = image->arch;
    attribute[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = SHARED_WITHOUT_ASKING - info->shared;
    attribute[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
    attribute[CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET] = info->cluster_must_be_set;
    for (int i = 0; i < 3; i++)
        attribute[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + i] = (int)info->cluster[i];
}

CUresult function_set(int *attribute, const struct kernel_info *info, CUdevice device, CUfunction_attribute number,
                      int value) {
    int most = devices[device].attribute[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN];
    switch ((int)number) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        REQUIRE(value >= 0 && value + info->shared <= most, CUDA_ERROR_INVALID_VALUE);
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        REQUIRE(value >= -1 && value <= 100, CUDA_ERROR_INVALID_VALUE);
        break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        REQUIRE(value >= 0 && !info->cluster_must_be_set, CUDA_ERROR_NOT_PERMITTED);
        break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        REQUIRE(value >= 0 && value <= 2, CUDA_ERROR_INVALID_VALUE);
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    attribute[number] = value;
    return CUDA_SUCCESS;
}

CUresult function_parameter(const struct kernel_info *info, size_t index, size_t *offset, size_t *size) {
    REQUIRE(offset && index < info->parameter_count, CUDA_ERROR_INVALID_VALUE);
    *offset = info->parameters[index].offset;
    if (size) *size = info->parameters[index].size;
    return CUDA_SUCCESS;
}

CUresult function_resolve(CUfunction handle, struct context *context, struct function **out) {
    struct kernel *kernel = object_find(handle, KIND_KERNEL);
    if (kernel) {
        struct module *module;
        CHECK(library_module(kernel->library, context, &module));
        *out = module_function(module, kernel->index);
        return CUDA_SUCCESS;
    }
    *out = object_find(handle, KIND_FUNCTION);
    REQUIRE(*out && (*out)->object.context == context, CUDA_ERROR_INVALID_HANDLE);
    return CUDA_SUCCESS;
}

static CUresult find(CUfunction handle, struct function **out) {
    struct context *context;
    CHECK(context_current(&context));
    *out = object_find(handle, KIND_FUNCTION);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute number, CUfunction handle) {
    ENTER(cuFuncGetAttribute);
    struct context *context;
    struct function *function;
    CHECK(context_current(&context));
    /* Questions about a function are answered in every context; a kernel is looked at in this one. */
    function = object_find(handle, KIND_FUNCTION);
    if (!function) CHECK(function_resolve(handle, context, &function));
    REQUIRE(value && number < CU_FUNC_ATTRIBUTE_MAX, CUDA_ERROR_INVALID_VALUE);
    *value = function->attribute[number];
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute number, int value) {
    ENTER(cuFuncSetAttribute);
    struct function *function;
    CHECK(find(handle, &function));
    return function_set(function->attribute, function->info, function->object.context->device, number, value);
}

CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config) {
    ENTER(cuFuncSetCacheConfig);
    struct function *function;
    CHECK(find(handle, &function));
    REQUIRE((unsigned)config <= 3, CUDA_ERROR_INVALID_VALUE);
    return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *out, CUfunction handle) {
    ENTER(cuFuncGetModule);
    struct function *function;
    CHECK(find(handle, &function));
    REQUIRE(out, CUDA_ERROR_INVALID_VALUE);
    *out = HANDLE(function->module);
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction handle) {
    ENTER(cuFuncGetName);
    struct function *function;
    CHECK(find(handle, &function));
    REQUIRE(name, CUDA_ERROR_INVALID_VALUE);
    *name = function->info->name;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size) {
    ENTER(cuFuncGetParamInfo);
    struct function *function;
    CHECK(find(handle, &function));
    return function_parameter(function->info, index, offset, size);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction handle) {
    ENTER(cuFuncIsLoaded);
    struct function *function;
    CHECK(find(handle, &function));
    REQUIRE(state, CUDA_ERROR_INVALID_VALUE);
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction handle) {
    ENTER(cuFuncLoad);
    struct function *function;
    return find(handle, &function);
}
