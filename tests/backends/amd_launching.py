"""What tests of launches on HIP share: arguments for the kernels of amd_kernels.py, and their bytes."""

from __future__ import annotations

import struct
from typing import Any

from amd_kernels import code
from recording.hip.machine import Machine

import podium

SIGNATURES = {
    "scalars": "i8,u8,i16,u16,i32,u32,i64,u64,fp32,fp64,i1",
    "saxpy": "*fp32,*kfp32,fp32,i32",
    "structs": "i8,{fp64,[3xi32]},i8,*fp32",
    "misaligned": "i32,{fp32,fp32,fp32},i64,*fp32",
    "nothing": "",
    "shared": "*fp32,i32",
    "bounded": "*i32",
}
VALUES: dict[str, tuple[Any, ...]] = {
    "scalars": (-1, 2, -3, 4, -5, 6, -7, 8, 0.5, -0.25, True),
    "saxpy": (0x1000, 0x2000, 2.5, 77),
    "structs": (3, struct.pack("diii4x", 1.5, 1, 2, 3), 4, 0x3000),
    "misaligned": (9, struct.pack("fff", 1, 2, 3), -11, 0x4000),
    "nothing": (),
    "shared": (0x5000, 3),
}
CODES = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q"}
CODES |= {"fp32": "f", "fp64": "d", "i1": "?"}


def kernel(hip: Machine, name: str, arch: str | None = None, signature: str | None = None) -> podium.Kernel:
    """Make a kernel of the code that all tests share."""
    from podium_amd.binaries import object_code

    if signature is None:
        made = object_code(code(hip, arch), {name: SIGNATURES[name]})
    else:
        from podium.backend import Entry, ObjectCode, Signature, Target

        target = Target("amd", arch or hip.arch, hip.wave)
        made = ObjectCode(code(hip, arch), "hsaco", target, (Entry(name, Signature.parse(signature)),))
    return podium.kernel(made)


def expected(name: str) -> list[bytes]:
    """Return the bytes of each argument."""
    result = []
    for parameter, value in zip(podium.Signature.parse(SIGNATURES[name]), VALUES[name]):
        kind = str(parameter.type)
        if isinstance(value, bytes):
            result.append(value)
        else:
            result.append(struct.pack("=Q" if kind.startswith("*") else "=" + CODES[kind], value))
    return result
