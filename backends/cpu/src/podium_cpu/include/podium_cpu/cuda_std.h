// The standard library under the name that it has for GPUs.
#ifndef PODIUM_CPU_CUDA_STD_H
#define PODIUM_CPU_CUDA_STD_H

#include <cstddef>

namespace cuda {
namespace std = ::std;
}  // namespace cuda

#endif
