"""The NVIDIA backend of podium: compiles, loads and launches CUDA kernels on NVIDIA GPUs.

Beside what podium offers on every backend there are descriptors of arrays for tensor memory access, and ranges for
NVIDIA's profilers. Importing the package loads no library; names are imported when first used.
"""

from __future__ import annotations

from podium_nvidia._version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from podium_nvidia.nvtx import nvtx_ranges
    from podium_nvidia.tma import TensorMap, im2col_tensor_map, tensor_map

__all__ = ["TensorMap", "__version__", "im2col_tensor_map", "nvtx_ranges", "tensor_map"]

_HOMES = {
    "TensorMap": "tma",
    "im2col_tensor_map": "tma",
    "nvtx_ranges": "nvtx",
    "tensor_map": "tma",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'podium_nvidia' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"podium_nvidia.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
