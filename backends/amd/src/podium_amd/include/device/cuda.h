// What a kernel can use of the CUDA driver's header.
#pragma once

typedef unsigned int cuuint32_t;
typedef unsigned long long cuuint64_t;
typedef unsigned long long CUdeviceptr;
