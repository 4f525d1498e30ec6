"""The NVIDIA backend of podium: compiles, loads and launches CUDA kernels on NVIDIA GPUs.

Beside what podium offers on every backend there are the ways in for what other tools compiled (`object_code` for
cubins, PTX and fat binaries, `link` for code that is to be linked, `triton_kernel` for kernels of Triton), descriptors
of arrays for tensor memory access, and ranges for NVIDIA's profilers. Importing the package loads no library; names are
imported when first used.
"""

from __future__ import annotations

from podium_nvidia._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from podium_nvidia.binaries import object_code
    from podium_nvidia.linker import link
    from podium_nvidia.nvtx import nvtx_ranges
    from podium_nvidia.tma import TensorMap, im2col_tensor_map, tensor_map
    from podium_nvidia.triton import TritonKernel, triton_kernel
else:
    from podium.backend import late_names as _late_names

    __getattr__, __dir__ = _late_names(
        __name__,
        {
            "podium_nvidia.binaries": "object_code",
            "podium_nvidia.linker": "link",
            "podium_nvidia.nvtx": "nvtx_ranges",
            "podium_nvidia.tma": "TensorMap im2col_tensor_map tensor_map",
            "podium_nvidia.triton": "TritonKernel triton_kernel",
        },
    )

__all__ = [
    "TensorMap",
    "TritonKernel",
    "__version__",
    "im2col_tensor_map",
    "link",
    "nvtx_ranges",
    "object_code",
    "tensor_map",
    "triton_kernel",
]
