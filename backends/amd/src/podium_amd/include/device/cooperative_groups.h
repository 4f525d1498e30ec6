#pragma once

#error "podium-amd has no cooperative groups: use __syncthreads, __syncwarp and __shfl_sync, or add the folder of HIP's own headers by include_dirs and include <hip/hip_cooperative_groups.h>"
