"""Architectures: what a device runs, and what a compiler makes for it.

``sm_90`` is machine code, ``compute_90`` PTX, which the driver turns into machine code. ``sm_90a`` has what only that
one architecture has, ``sm_100f`` what its family has; a device is always named without such a letter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["WARP_SIZE", "Arch", "choose", "may_need_specific", "runs_on"]

# Threads of a warp, on every device so far.
WARP_SIZE = 32

# What a source has in it that is written for one architecture; the macros are defined only where it is asked for.
_SPECIFIC = (
    r"\bwgmma\b|\bsetmaxnreg\b|\btcgen05\b"
    r"|__CUDA_ARCH_FEAT_SM\d+_ALL\b|__CUDA_ARCH_SPECIFIC__\b|__CUDA_ARCH_FAMILY_SPECIFIC__\b"
)

# Families whose members run each other's family code, by the first one; NVIDIA lists them, no rule gives them.
_FAMILIES = {100: (100, 103), 101: (101, 110), 103: (103,), 110: (110,), 120: (120, 121), 121: (121,)}


class Arch(NamedTuple):
    """An architecture: its number, such as 90, its letter or nothing, and whether it is machine code or PTX."""

    number: int
    letter: str = ""
    kind: str = "sm"

    @staticmethod
    def parse(text: str) -> Arch:
        """Read a spelling such as ``sm_90a``. Raises ValueError if it is none."""
        match = re.fullmatch(r"(sm|compute)_(\d{2,3})([af]?)", text)
        if match is None:
            raise ValueError(f"An architecture is spelled like sm_90, sm_90a or compute_90, not {text!r}")
        return Arch(int(match[2]), match[3], match[1])

    @property
    def major(self) -> int:
        """The generation, such as 9."""
        return self.number // 10

    @property
    def is_ptx(self) -> bool:
        """Whether it stands for PTX."""
        return self.kind == "compute"

    def __str__(self) -> str:
        return f"{self.kind}_{self.number}{self.letter}"


def runs_on(code: Arch, device: Arch) -> bool:
    """Tell whether a device runs code for an architecture."""
    if code.letter == "a":
        return code.number == device.number
    if code.letter == "f":
        return device.number in _FAMILIES.get(code.number, (code.number,))
    if code.is_ptx:
        return code.number <= device.number
    return code.major == device.major and code.number <= device.number


def may_need_specific(*texts: str) -> bool:
    """Tell whether a source is written for what only one architecture has."""
    return any(re.search(_SPECIFIC, text) for text in texts)


def choose(device: Arch, supported: Sequence[int]) -> Arch | None:
    """Choose what to compile for a device, among what the compiler knows; None if the device is too old for it.

    Machine code where it knows the device; else PTX for the highest that the device is not older than.
    """
    if device.number in supported:
        return device
    older = [each for each in supported if each <= device.number]
    return Arch(max(older), "", "compute") if older else None
