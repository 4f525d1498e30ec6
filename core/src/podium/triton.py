"""Kernels that Triton compiled, for backends whose devices Triton has: reading what it made, and launching it.

Triton itself is not imported: what it made tells everything, whether it is at hand as an object or as files in Triton's
cache folder. A backend gives its users a function that reads a `TritonBinary`, compares it with what the bytes say of
themselves, and returns a `TritonKernel`.
"""

from __future__ import annotations

from podium._triton_binary import TritonBinary
from podium._triton_kernel import TritonKernel

__all__ = ["TritonBinary", "TritonKernel"]
