"""The masks of visible devices: whether a variable hides every GPU.

The runtime reads them when it is initialised: ROCR_VISIBLE_DEVICES counts all GPUs, HIP_VISIBLE_DEVICES and
CUDA_VISIBLE_DEVICES those that the first one leaves. Each takes its entries up to the first that names no GPU. Only
what is sure to hide all of them is a reason here; the count on first use decides.
"""

from __future__ import annotations

import os

__all__ = ["VARIABLES", "hiding_reason"]

_SYSTEM = "ROCR_VISIBLE_DEVICES"
VARIABLES = (_SYSTEM, "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")

_EMPTY_HIDES = 7  # the version of HIP from which on an empty mask of HIP's is no longer the same as none


def hiding_reason(count: int | None, abi: int) -> str | None:
    """Say how a variable hides all GPUs and what to do; None if all of them may leave one visible.

    `count` is how many there are, if that is known; `abi` is the major version of HIP.
    """
    for variable in VARIABLES:
        mask = os.environ.get(variable)
        if mask is None:
            continue
        unset = f"Unset the variable, or set it to the numbers of the GPUs to use, such as {variable}=0"
        first = mask.partition(",")[0].strip()
        if not mask.strip():
            if variable == _SYSTEM or abi >= _EMPTY_HIDES:
                return f"{variable} is set and empty, which hides every GPU. {unset}"
            continue
        if first.startswith("-") and first[1:].isdecimal():
            return f"{variable}={mask} hides every GPU: its first entry is {first}. {unset}"
        if count and first.isdecimal() and int(first) >= count:
            there = "there is one GPU, number 0" if count == 1 else f"there are {count} GPUs, numbered from 0"
            return f"{variable}={mask} hides every GPU: its first entry is {int(first)}, and {there}. {unset}"
        if variable == _SYSTEM:
            count = None  # how many it leaves, the runtime knows
    return None
