"""The AMD backend of podium: compiles, loads and launches HIP kernels on AMD GPUs.

Beside what podium offers on every backend there are the ways in for what other compilers made (`object_code` for code
objects and bundles, `triton_kernel` for kernels of Triton), and ranges for AMD's profilers. Importing the package loads
no library; names are imported when first used.
"""

from __future__ import annotations

from podium_amd._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from podium_amd.binaries import object_code
    from podium_amd.roctx import roctx_ranges
    from podium_amd.triton import TritonKernel, triton_kernel
else:
    from podium.backend import late_names as _late_names

    __getattr__, __dir__ = _late_names(
        __name__,
        {
            "podium_amd.binaries": "object_code",
            "podium_amd.roctx": "roctx_ranges",
            "podium_amd.triton": "TritonKernel triton_kernel",
        },
    )

__all__ = ["TritonKernel", "__version__", "object_code", "roctx_ranges", "triton_kernel"]
