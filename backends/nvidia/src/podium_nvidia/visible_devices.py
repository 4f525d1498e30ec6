"""The mask of visible devices: whether the variable CUDA_VISIBLE_DEVICES hides every GPU.

The driver reads the variable when it is initialised, and takes its entries up to the first that names no GPU. Only
what is sure to hide all of them is a reason here.
"""

from __future__ import annotations

import os
import re

__all__ = ["VARIABLE", "hiding_reason"]

VARIABLE = "CUDA_VISIBLE_DEVICES"

_ENTRY = r"\s*(?:\+?(?:0x[0-9a-f]+|\d+)|GPU-[0-9a-f-]*|MIG-\S+)\s*"


def hiding_reason(count: int | None) -> str | None:
    """Say how the variable hides all GPUs and what to do; None if it may leave one visible.

    `count` is how many there are, if that is known.
    """
    mask = os.environ.get(VARIABLE)
    if mask is None:
        return None
    first = mask.partition(",")[0]
    unset = f"Unset the variable, or set it to the numbers of the GPUs to use, such as {VARIABLE}=0"
    if not mask.strip():
        return f"{VARIABLE} is set and empty, which hides every GPU. {unset}"
    if not re.fullmatch(_ENTRY, first, re.IGNORECASE):
        return f"{VARIABLE}={mask} hides every GPU: its first entry, {first.strip()!r}, names none. {unset}"
    if count and first.strip().lstrip("+").isdigit() and int(first) >= count:
        there = "there is one GPU, number 0" if count == 1 else f"there are {count} GPUs, numbered from 0"
        return f"{VARIABLE}={mask} hides every GPU: its first entry is {int(first)}, and {there}. {unset}"
    return None
