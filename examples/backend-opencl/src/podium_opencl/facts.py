"""What the translation of a kernel has to know of the device that it is for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["WARP_SIZE", "DeviceFacts"]

WARP_SIZE = 32
"""How many threads a warp has, as in CUDA. OpenCL's sub-groups have whatever size the device likes."""


@dataclass(frozen=True)
class DeviceFacts:
    """The part of OpenCL C that a device has.

    `extensions` are names such as "cl_khr_fp64", `warp_size` is that of the target.
    """

    extensions: frozenset[str] = frozenset()
    warp_size: int = WARP_SIZE
