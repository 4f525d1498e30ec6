"""The names of CUDA that podium-opencl has not, what each is for, and what to do instead."""

from __future__ import annotations

import re

__all__ = ["refusal_of"]

_FEATURES = (
    (r"tex(1D|2D|3D|Cubemap)\w*|surf(1D|2D|3D)\w*", "textures and surfaces", "pass a pointer and compute the index"),
    (
        r"(cooperative_groups|cg)::.*|this_grid|this_thread_block|tiled_partition.*",
        "cooperative groups",
        "use __syncthreads and the warp functions",
    ),
    (r"__cluster\w*|clusterDim|clusterIdx", "thread block clusters", "exchange through global memory"),
    (r"nvcuda::.*|wmma::.*|__(wgmma|mma|hmma)\w*", "tensor cores", "write the product of the tiles as a loop"),
    (r"__pipeline_\w+|__cp_async\w*|cuda::.*", "the CUDA C++ library", "copy by assignment and use __syncthreads"),
    (r"clock|clock64|__nanosleep|globaltimer|__globaltimer", "clocks in kernels", "measure around the launch"),
    (r"malloc|free|alloca", "memory allocation in kernels", "pass the memory"),
    (r"memcpy|memset|memmove", "functions of <cstring>", "write the loop"),
    (
        r"assert|__assert_fail|__trap|__brkpt|abort",
        "ways to end a kernel with an error",
        "write a flag that the host reads",
    ),
    (r"(cuda|hip)[A-Z]\w+", "the CUDA runtime inside kernels", "make such calls from Python, around the launch"),
    (r"__builtin_\w+|__nv_\w+|__nvvm_\w+", "functions of other compilers", "use the dialect's functions"),
    (r"(cub|thrust|curand|nvshmem)(::|_).*", "device libraries of GPU vendors", "write the loop in the kernel"),
    (r"std::.*", "this name of the C++ standard library", "write what is needed in the kernel"),
    (
        r"__dp[24]a\w*|__v\w+[24]|__byte_perm|__funnelshift_\w+",
        "this SIMD instruction",
        "write it with shifts and masks",
    ),
    (r"__match_all_sync", "__match_all_sync", "use __ballot_sync"),
    (r"__isGlobal|__isShared|__isConstant|__isLocal|__cvta_\w+", "questions about address spaces", "pass them apart"),
    (
        r"__h\w+2(_\w+)?|__\w+2half2\w*|__half22\w*|__(low|high)s?2\w*|h\w+2|(__)?make_(half|bfloat16)2",
        "pairs of 16-bit floats",
        "use two values of 16 bits",
    ),
    (r"__(float|double|\w*int|u?short|u?ll)2(half|bfloat16)_r[zud]", "this rounding", "use the one to the nearest"),
    (
        r"((erfc?inv|erfcx|normcdf(inv)?|r?norm([34]d)?|rhypot|[jy][01n]|cyl_bessel_i[01]|sincospi|remquo|nan)f?)"
        r"|__f(add|sub|mul|div|maf?|rcp|sqrt)_r[uzd]|__d\w+_r[nuzd]|__fmaf_(ieee_)?r[uzd]|__double2(hi|lo)int|__hiloint2double",
        "this mathematical function",
        "write it with those that there are",
    ),
)


def refusal_of(name: str) -> str | None:
    """Say what a name of CUDA is that podium-opencl has not; None for a name that is none of CUDA's."""
    for pattern, what, advice in _FEATURES:
        if re.fullmatch(pattern, name):
            return f"podium-opencl does not have {what} ({name}): {advice}"
    return None
