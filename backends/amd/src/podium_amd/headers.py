"""Headers that a kernel includes and hipRTC does not find: what has them, or that none can."""

from __future__ import annotations

import re

from podium.parts import is_host_header

__all__ = ["missing_header"]

_MISSING = re.compile(r"'([^']+)' file not found")

_OF_CUDA = re.compile(r"(?:cuda/|nv/|cub/|thrust/|crt/|libcudacxx/|curand|cuda|nvtx3/)")
_OF_HIP = re.compile(r"(?:hip/|hipcub/|rocprim/|rocwmma/|rocrand|ck/)")


def missing_header(message: str) -> str | None:
    """Say how to get the header that a message misses; None if the message is about something else."""
    found = _MISSING.search(message)
    if found is None:
        return None
    name = found[1]
    if _OF_CUDA.match(name):
        return (
            f"<{name}> is NVIDIA's, and podium-amd has no counterpart of it. Leave it out for AMD: #ifndef __HIP__ ... "
            f"#endif"
        )
    if _OF_HIP.match(name):
        return (
            f"<{name}> is one of ROCm's headers, which were not found: set ROCM_PATH to where ROCm is, or add their "
            f"folder by include_dirs"
        )
    if is_host_header(name):
        return (
            f"<{name}> is not there for kernels: hipRTC has no C++ library. Leave it out, or put it between "
            f"#ifndef __HIPCC_RTC__ and #endif"
        )
    return f"{name!r} is in none of the include folders; add its folder by include_dirs"
