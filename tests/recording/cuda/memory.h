/* What allocations, copies and pools share. */
#ifndef PODIUM_RECORDING_MEMORY_H
#define PODIUM_RECORDING_MEMORY_H

#include "state.h"

struct range *memory_register(struct context *context, void *at, size_t size, unsigned flags);
bool memory_overlaps(CUdeviceptr address, size_t size);
/* Where the bytes of a piece of memory are: of memory that the driver knows, or of any. */
CUresult memory_device_bytes(CUdeviceptr address, size_t size, struct context *context, uint8_t **bytes);
CUresult memory_any_bytes(CUdeviceptr address, size_t size, struct context *context, uint8_t **bytes);

#endif
