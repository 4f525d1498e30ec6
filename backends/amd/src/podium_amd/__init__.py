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

__all__ = ["TritonKernel", "__version__", "object_code", "roctx_ranges", "triton_kernel"]

_HOMES = {
    "TritonKernel": "triton",
    "object_code": "binaries",
    "roctx_ranges": "roctx",
    "triton_kernel": "triton",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'podium_amd' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"podium_amd.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
