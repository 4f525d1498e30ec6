"""The same kernel for Triton, which reads it from this file."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add(a, b, c, n):  # noqa: ANN001, ANN201 - Triton reads annotations as types of its own
    """Add n elements, one block of 32 threads."""
    i = tl.arange(0, 32)
    tl.store(c + i, tl.load(a + i, mask=i < n) + tl.load(b + i, mask=i < n), mask=i < n)
