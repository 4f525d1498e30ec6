"""Code objects without machine code: an ELF file whose note describes kernels, as the runtime reads it.

With them the stand-in is tested where there is no hipRTC, and with what hipRTC would never make.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MACHINE = 224  # EM_AMDGPU
METADATA = 32  # NT_AMDGPU_METADATA


@dataclass(frozen=True)
class Argument:
    """An argument as a note has it; the places are those of C unless `offset` says otherwise."""

    size: int
    kind: str = "by_value"
    alignment: int = 0
    offset: int | None = None


POINTER = Argument(8, "global_buffer")


@dataclass(frozen=True)
class Kernel:
    """A kernel as a note has it."""

    name: str
    arguments: Sequence[Argument] = ()
    hidden: Sequence[Argument] = ()
    group: int = 0
    private: int = 0
    registers: int = 8
    wave: int = 64
    most: int = 1024
    more: Mapping[str, object] = field(default_factory=dict)

    def places(self) -> list[tuple[int, Argument]]:
        """Return each argument with its offset, hidden ones last."""
        result, end = [], 0
        for argument in (*self.arguments, *self.hidden):
            alignment = argument.alignment or argument.size
            offset = argument.offset if argument.offset is not None else -(-end // alignment) * alignment
            end = offset + argument.size
            result.append((offset, argument))
        return result

    def note(self) -> dict[str, object]:
        """Return the map that stands for the kernel."""
        places = self.places()
        kernel: dict[str, object] = {
            ".name": self.name,
            ".symbol": f"{self.name}.kd",
            ".args": [{".offset": at, ".size": it.size, ".value_kind": it.kind} for at, it in places],
            ".kernarg_segment_size": max((at + it.size for at, it in places), default=0),
            ".kernarg_segment_align": 8,
            ".group_segment_fixed_size": self.group,
            ".private_segment_fixed_size": self.private,
            ".vgpr_count": self.registers,
            ".wavefront_size": self.wave,
            ".max_flat_workgroup_size": self.most,
        }
        return kernel | dict(self.more)


def pack(value: object) -> bytes:
    """Return a value in MessagePack."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return _pack_integer(value)
    if isinstance(value, str):
        data = value.encode()
        head = bytes([0xA0 | len(data)]) if len(data) < 32 else b"\xda" + struct.pack(">H", len(data))
        return head + data
    if isinstance(value, Mapping):
        head = bytes([0x80 | len(value)]) if len(value) < 16 else b"\xde" + struct.pack(">H", len(value))
        return head + b"".join(pack(key) + pack(item) for key, item in value.items())
    if isinstance(value, Sequence):
        head = bytes([0x90 | len(value)]) if len(value) < 16 else b"\xdc" + struct.pack(">H", len(value))
        return head + b"".join(map(pack, value))
    raise TypeError(f"{value!r} is nothing that a note holds")


def _pack_integer(value: int) -> bytes:
    if 0 <= value < 0x80:
        return bytes([value])
    for first, letter in ((0xCC, "B"), (0xCD, "H"), (0xCE, "I"), (0xCF, "Q"), (0xD0, "b"), (0xD1, "h"), (0xD2, "i")):
        try:
            return bytes([first]) + struct.pack(f">{letter}", value)
        except struct.error:
            continue
    return b"\xd3" + struct.pack(">q", value)


def code_object(
    kernels: Sequence[Kernel], arch: str = "gfx90a", *, machine: int = MACHINE, target: str | None = None
) -> bytes:
    """Return a code object for an architecture, features and all: "gfx90a:xnack-"."""
    name = f"amdgcn-amd-amdhsa--{arch}" if target is None else target
    metadata = {
        "amdhsa.version": [1, 1],
        "amdhsa.target": name,
        "amdhsa.kernels": [kernel.note() for kernel in kernels],
    }
    return elf(pack(metadata), machine=machine)


def elf(metadata: bytes, *, machine: int = MACHINE) -> bytes:
    """Return an ELF file with nothing but a note of a kind that is not asked for, and one with the metadata."""
    notes = _note(b"other\0", 1, b"12345") + _note(b"AMDGPU\0", METADATA, metadata)
    start = 64 + 56
    identification = b"\x7fELF\x02\x01\x01\x40\x02".ljust(16, b"\0")
    header = identification + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 4, 4, start, start, start, len(notes), len(notes), 4)
    return header + segment + notes


def _note(name: bytes, kind: int, content: bytes) -> bytes:
    head = struct.pack("<III", len(name), len(content), kind)
    return head + name.ljust(-(-len(name) // 4) * 4, b"\0") + content.ljust(-(-len(content) // 4) * 4, b"\0")
