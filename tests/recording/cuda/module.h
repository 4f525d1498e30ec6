/* What modules, libraries and functions share. */
#ifndef PODIUM_RECORDING_MODULE_H
#define PODIUM_RECORDING_MODULE_H

#include "state.h"

CUresult module_new(struct image *image, struct context *context, struct library *library, struct module **out);
struct function *module_function(struct module *module, uint32_t index);
CUresult module_variable(const struct module *module, const char *name, CUdeviceptr *address, size_t *size);
int image_kernel(const struct image *image, const char *name);
int image_variable(const struct image *image, const char *name);
/* The module of a library in a context; it is loaded there if it was not yet. */
CUresult library_module(struct library *library, struct context *context, struct module **out);
void library_forget(struct library *library, const struct module *module);
struct kernel *library_kernel(struct library *library, uint32_t index);
/* Attributes of a kernel, and the changing of them. */
void function_defaults(const struct kernel_info *info, const struct image *image, int *attribute);
CUresult function_set(int *attribute, const struct kernel_info *info, CUdevice device, CUfunction_attribute number,
                      int value);
CUresult function_parameter(const struct kernel_info *info, size_t index, size_t *offset, size_t *size);

#endif
