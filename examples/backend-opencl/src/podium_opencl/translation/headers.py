"""The headers that a source may include without having them: what they declare is built in, and some have macros."""

from __future__ import annotations

import re

__all__ = ["HEADERS", "missing_header"]

_LIMITS = """
#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN (-128)
#define CHAR_MAX 127
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807l
#define LONG_MIN (-9223372036854775807l - 1)
#define ULONG_MAX 18446744073709551615ul
#define LLONG_MAX LONG_MAX
#define LLONG_MIN LONG_MIN
#define ULLONG_MAX ULONG_MAX
"""
_FLOAT = """
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_DIG 15
#define DBL_MANT_DIG 53
"""
_MATH = """
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#define HUGE_VALF __int_as_float(0x7f800000)
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
"""
_CONSTANTS = """
#define CUDART_INF_F __int_as_float(0x7f800000)
#define CUDART_NAN_F __int_as_float(0x7fffffff)
#define CUDART_PI_F 3.141592654f
#define CUDART_ONE_F 1.0f
#define CUDART_ZERO_F 0.0f
#define CUDART_MAX_NORMAL_F 3.402823466e38f
"""
_NOTHING = (
    "cstddef stddef.h cstdint stdint.h cstdlib stdlib.h cstdio stdio.h cuda_fp16.h cuda_bf16.h cuda_runtime.h cuda.h "
    "cuda_runtime_api.h device_launch_parameters.h vector_types.h vector_functions.h device_functions.h builtin_types.h"
)

HEADERS: dict[str, str] = dict.fromkeys(_NOTHING.split(), "")
HEADERS |= dict.fromkeys(("climits", "limits.h"), _LIMITS) | dict.fromkeys(("cfloat", "float.h"), _FLOAT)
HEADERS |= dict.fromkeys(("cassert", "assert.h"), "#ifdef NDEBUG\n#define assert(condition) ((void)0)\n#endif\n")
HEADERS |= dict.fromkeys(("cmath", "math.h"), _MATH) | {"math_constants.h": _CONSTANTS}

_REFUSED = (
    (r"cooperative_groups", "cooperative groups", "use __syncthreads and the warp functions"),
    (r"(?:texture|surface)_", "textures and surfaces", "pass a pointer and compute the index"),
    (r"mma\.h|crt/|cutlass/|cute/", "tensor cores", "write the product of the tiles as a loop"),
    (r"cub/|thrust/|curand|nvshmem", "device libraries of GPU vendors", "write the loop in the kernel"),
    (r"cuda/|cuda_pipeline|cuda_awbarrier|nv/", "the CUDA C++ library", "write the loop in the kernel"),
    (r"cuComplex", "complex numbers", "write a struct of two floats"),
    (r"cuda_fp8|cuda_fp6|cuda_fp4", "floats of eight bits and fewer", "read bytes and compute the value"),
    (r"[a-z_]+$", "the C++ standard library", "write what is needed in the kernel"),
)


def missing_header(name: str) -> str:
    """Say that there is no header of that name, and what it would be for."""
    for pattern, what, advice in _REFUSED:
        if re.match(pattern, name):
            return f"{name} not found: podium-opencl does not have {what}; {advice}"
    return f"{name} not found: give its folder in include_dirs"
