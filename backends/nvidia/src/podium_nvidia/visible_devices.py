"""The mask of visible devices: whether the variable CUDA_VISIBLE_DEVICES hides every GPU.

The driver reads the variable when it is initialised, and takes its entries up to the first that names no GPU. Of an
entry that begins with a number it reads no more than that. Only what is sure to hide all of them is a reason here.
"""

from __future__ import annotations

import os
import re

__all__ = ["VARIABLE", "hiding_reason"]

VARIABLE = "CUDA_VISIBLE_DEVICES"

_NUMBER = re.compile(r"\s*([+-]?\d+)", re.ASCII)
_NAME = re.compile(r"\s*(?:GPU-[0-9a-f-]*|MIG-\S+)\s*", re.IGNORECASE)
_MOST = (1 << 31) - 1  # of greater numbers the driver takes the lower bits


def hiding_reason(count: int | None) -> str | None:
    """Say how the variable hides all GPUs and what to do; None if it may leave one visible.

    `count` is how many there are, if that is known.
    """
    mask = os.environ.get(VARIABLE)
    if mask is None:
        return None
    unset = f"Unset the variable, or set it to the numbers of the GPUs to use, such as {VARIABLE}=0"
    if not mask.strip():
        return f"{VARIABLE} is set and empty, which hides every GPU. {unset}"
    seen: set[int] = set()
    for place, entry in enumerate(mask.split(",")):
        found = _NUMBER.match(entry)
        number = int(found[1][:20]) if found else -1
        if number > _MOST or (found is None and _NAME.fullmatch(entry)):
            return None
        if number < 0 or (count and number >= count):
            return None if place else f"{VARIABLE}={mask} hides every GPU: {_first(entry, number, count)}. {unset}"
        if number in seen:
            return f"{VARIABLE}={mask} hides every GPU: it names number {number} twice, which is an error. {unset}"
        seen.add(number)
    return None


def _first(entry: str, number: int, count: int | None) -> str:
    if number < 0 or not count:
        return f"its first entry, {entry.strip()!r}, names none"
    there = "there is one GPU, number 0" if count == 1 else f"there are {count} GPUs, numbered from 0"
    return f"its first entry is {number}, and {there}"
