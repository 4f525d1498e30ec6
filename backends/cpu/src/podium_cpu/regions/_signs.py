"""What shows that a text is worth looking at, so that most kernels are compiled without the reader of regions."""

from __future__ import annotations

import re

__all__ = ["may_have_marks", "may_have_regions"]


def may_have_marks(source: str) -> bool:
    """Tell whether a text could have barriers of a block."""
    return "__syncthreads" in source or "thread_block" in source


def may_have_regions(source: str) -> bool:
    """Tell whether a text could have kernels that are quicker in regions."""
    if re.search(r"__syncthreads|\bthis_(?:thread_block|grid)\b", source) or re.search(
        r"\bfor\b[^{}]*\+=\s*[^;{}]*(?:blockDim|gridDim)", source
    ):
        return True
    # The stride may be in a variable.
    return "gridDim" in source and re.search(r"\bfor\b[^{}]*\+=", source) is not None
