"""Headers that a kernel includes and NVRTC does not find: which package has them, or that none can."""

from __future__ import annotations

import re

from podium.parts import is_host_header

__all__ = ["missing_header"]

_MISSING = re.compile(r'cannot open source file "([^"]+)"')

# The beginnings of what is included, the component of the toolkit that has it, and its package.
_COMPONENTS = (
    (re.compile(r"(cuda/|nv/|cub/|thrust/|libcudacxx/)"), "CCCL", "'cuda-toolkit[cccl]'"),
    (re.compile(r"crt/"), "the headers of the compiler", "'cuda-toolkit[crt]', for CUDA 12 'cuda-toolkit[nvcc]',"),
    (re.compile(r"curand"), "cuRAND", "'cuda-toolkit[curand]'"),
    (re.compile(r"nvtx3/"), "NVTX", "'cuda-toolkit[nvtx]'"),
    (
        re.compile(r"(cuda|cooperative_groups|mma|vector_|device_|driver_|host_|math_|builtin_|sm_\d|library_types)"),
        "the headers of the CUDA runtime",
        "'cuda-toolkit[cudart]'",
    ),
)


def missing_header(message: str) -> str | None:
    """Say how to get the header that a message of NVRTC misses; None if the message is about something else."""
    found = _MISSING.search(message)
    if found is None:
        return None
    name = found[1]
    for beginning, component, package in _COMPONENTS:
        if beginning.match(name):
            return (
                f"<{name}> belongs to {component}, which is not installed. Install it: pip install "
                f"'podium-nvidia[nvrtc]', or {package} of NVRTC's version; or set CUDA_HOME to a toolkit"
            )
    if is_host_header(name):
        return (
            f"<{name}> is not there for kernels: NVRTC has no C++ library, and what devices can use of it is in CCCL, "
            f"such as <cuda/std/span>. Leave it out, or put it between #ifndef __CUDACC_RTC__ and #endif"
        )
    return f"{name!r} is in none of the include folders; add its folder by include_dirs"
