/* Modules: loaded code objects, their kernels and variables, and how many blocks of a kernel fit on a device. */
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "state.h"

struct variable {
    char name[256];
    uint64_t size;
    uint8_t *bytes;
    struct variable *next;
};
struct module {
    struct code code;
    const uint8_t *image; /* the caller keeps it while the module is loaded, as with HIP */
    int device;
    struct function *functions; /* one for each kernel */
    struct variable *variables;
    struct module *next;
};

static struct module *modules;
uint64_t module_live, module_created;

int module_device(const struct module *module) { return module->device; }

static struct module *find(hipModule_t handle) {
    struct module *module = modules;
    while (module && module != (struct module *)handle) module = module->next;
    return module;
}

struct function *function_find(hipFunction_t handle) {
    for (struct module *module = modules; module; module = module->next) {
        uintptr_t offset = (uintptr_t)handle - (uintptr_t)module->functions;
        if ((uintptr_t)handle >= (uintptr_t)module->functions && offset % sizeof *module->functions == 0 &&
            offset / sizeof *module->functions < module->code.kernel_count)
            return (struct function *)handle;
    }
    return NULL;
}

static hipError_t load(hipModule_t *out, const void *image) {
    struct code code;
    REQUIRE(out && image, hipErrorInvalidValue);
    REQUIRE(code_read(image, &code), hipErrorInvalidImage);
    if (!code_matches(code.target, devices[current_device].arch)) {
        code_clear(&code);
        return hipErrorNoBinaryForGpu;
    }
    struct module *module = calloc(1, sizeof *module);
    struct function *functions = calloc(code.kernel_count ? code.kernel_count : 1, sizeof *functions);
    if (!module || !functions) abort();
    for (uint32_t i = 0; i < code.kernel_count; i++) functions[i] = (struct function){module, &code.kernels[i]};
    *module = (struct module){code, image, current_device, functions, NULL, modules};
    modules = module;
    module_live++;
    module_created++;
    *out = (hipModule_t)module;
    return hipSuccess;
}

hipError_t hipModuleLoadData(hipModule_t *out, const void *image) { CALL(hipModuleLoadData, load(out, image)); }

hipError_t hipModuleLoadDataEx(hipModule_t *out, const void *image, unsigned count, hipJitOption *options, void **values) {
    (void)count, (void)options, (void)values;
    CALL(hipModuleLoadDataEx, load(out, image));
}

static void forget(struct module *module) {
    struct module **place = &modules;
    while (*place != module) place = &(*place)->next;
    *place = module->next;
    for (struct variable *variable = module->variables; variable;) {
        struct variable *next = variable->next;
        free(variable->bytes);
        free(variable);
        variable = next;
    }
    code_clear(&module->code);
    free(module->functions);
    free(module);
    module_live--;
}

static hipError_t unload(hipModule_t handle) {
    struct module *module = find(handle);
    REQUIRE(module, hipErrorInvalidHandle);
    forget(module);
    return hipSuccess;
}

hipError_t hipModuleUnload(hipModule_t module) { CALL(hipModuleUnload, unload(module)); }

void module_reset(void) {
    while (modules) forget(modules);
    module_created = 0;
}

static hipError_t get_function(hipFunction_t *out, hipModule_t handle, const char *name) {
    struct module *module = find(handle);
    REQUIRE(out && name && *name, hipErrorInvalidValue);
    REQUIRE(module, hipErrorInvalidHandle);
    /* HIP aborts here: a function is looked up with the module's own device current. */
    if (module->device != current_device) abort();
    for (uint32_t i = 0; i < module->code.kernel_count; i++) {
        if (strcmp(module->code.kernels[i].name, name)) continue;
        *out = (hipFunction_t)&module->functions[i];
        return hipSuccess;
    }
    return hipErrorNotFound;
}

hipError_t hipModuleGetFunction(hipFunction_t *out, hipModule_t module, const char *name) {
    CALL(hipModuleGetFunction, get_function(out, module, name));
}

static hipError_t get_global(hipDeviceptr_t *out, size_t *bytes, hipModule_t handle, const char *name) {
    struct module *module = find(handle);
    struct variable *variable;
    REQUIRE(name && (out || bytes), hipErrorInvalidValue);
    REQUIRE(module, hipErrorInvalidHandle);
    for (variable = module->variables; variable && strcmp(variable->name, name);) variable = variable->next;
    if (!variable) {
        uint64_t size;
        REQUIRE(strlen(name) < sizeof variable->name && code_variable(module->image, name, &size), hipErrorNotFound);
        variable = calloc(1, sizeof *variable);
        if (!variable || !(variable->bytes = calloc(1, size ? size : 1))) abort();
        strcpy(variable->name, name);
        variable->size = size;
        variable->next = module->variables;
        module->variables = variable;
    }
    if (out) *out = variable->bytes;
    if (bytes) *bytes = variable->size;
    return hipSuccess;
}

hipError_t hipModuleGetGlobal(hipDeviceptr_t *out, size_t *bytes, hipModule_t module, const char *name) {
    CALL(hipModuleGetGlobal, get_global(out, bytes, module, name));
}

static hipError_t get_attribute(int *out, hipFunction_attribute which, hipFunction_t handle) {
    const struct function *function = function_find(handle);
    REQUIRE(out, hipErrorInvalidValue);
    REQUIRE(function, hipErrorInvalidDeviceFunction);
    const struct kernel *kernel = function->kernel;
    switch ((int)which) {
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = (int)kernel->max_block; return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *out = (int)kernel->group_size; return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *out = 0; return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *out = (int)kernel->private_size; return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_NUM_REGS: *out = (int)kernel->vector_registers; return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
    case HIP_FUNC_ATTRIBUTE_BINARY_VERSION: *out = 30; return hipSuccess;
    case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *out = device_shared_bytes(&devices[function->module->device]) - (int)kernel->group_size;
        return hipSuccess;
    default: return hipErrorInvalidValue;
    }
}

hipError_t hipFuncGetAttribute(int *out, hipFunction_attribute which, hipFunction_t function) {
    CALL(hipFuncGetAttribute, get_attribute(out, which, function));
}

/* ---- occupancy: a simple model, in which waves and shared memory are what there is too little of ---- */

static int blocks(const struct function *function, int threads, size_t shared) {
    const struct device *device = &devices[function->module->device];
    int wave = device_wave_size(device), waves = (threads + wave - 1) / wave, most = 2048 / wave / waves;
    size_t bytes = shared + function->kernel->group_size;
    int fitting = bytes ? (int)((size_t)device_shared_bytes(device) / bytes) : most;
    return fitting < most ? fitting : most;
}

static hipError_t active_blocks(int *out, hipFunction_t handle, int threads, size_t shared) {
    const struct function *function = function_find(handle);
    REQUIRE(out && threads > 0, hipErrorInvalidValue);
    REQUIRE(function, hipErrorInvalidDeviceFunction);
    REQUIRE(threads <= (int)function->kernel->max_block, hipErrorInvalidValue);
    *out = blocks(function, threads, shared);
    return hipSuccess;
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *out, hipFunction_t function, int threads,
                                                              size_t shared) {
    CALL(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, active_blocks(out, function, threads, shared));
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, hipFunction_t function, int threads,
                                                                       size_t shared, unsigned flags) {
    (void)flags;
    CALL(hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, active_blocks(out, function, threads, shared));
}

static hipError_t best_block(int *grid, int *block, hipFunction_t handle, size_t shared, int limit) {
    const struct function *function = function_find(handle);
    REQUIRE(grid && block && limit >= 0, hipErrorInvalidValue);
    REQUIRE(function, hipErrorInvalidDeviceFunction);
    int most = (int)function->kernel->max_block, best = 0;
    if (limit && limit < most) most = limit;
    int wave = device_wave_size(&devices[function->module->device]);
    for (int threads = most / wave * wave; threads >= wave; threads -= wave) {
        int fitting = blocks(function, threads, shared);
        if (fitting * threads <= best) continue;
        best = fitting * threads;
        *block = threads;
        *grid = fitting * devices[function->module->device].units;
    }
    return best ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block, hipFunction_t function, size_t shared, int limit) {
    CALL(hipModuleOccupancyMaxPotentialBlockSize, best_block(grid, block, function, shared, limit));
}

hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, hipFunction_t function, size_t shared,
                                                            int limit, unsigned flags) {
    (void)flags;
    CALL(hipModuleOccupancyMaxPotentialBlockSizeWithFlags, best_block(grid, block, function, shared, limit));
}
