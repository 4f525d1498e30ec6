// What a kernel can use of the CUDA driver's header. The header itself declares functions of the host, which NVRTC does
// not take, in so many lines that reading them would cost more than most kernels.
#pragma once

typedef unsigned int cuuint32_t;
typedef unsigned long long cuuint64_t;
typedef unsigned long long CUdeviceptr;

// A tensor map: `const __grid_constant__ CUtensorMap map` is how a kernel takes one.
typedef struct alignas(64) CUtensorMap_st {
    cuuint64_t opaque[16];
} CUtensorMap;
