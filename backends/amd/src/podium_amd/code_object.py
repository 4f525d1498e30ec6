"""Reading code objects: which kernels are in one, what their parameters and their needs are, what it was made for.

What a launch must know of a kernel stands in a note of the ELF file, as msgpack; pyelftools finds it.
"""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any, NamedTuple

from podium_amd.arch import Arch

__all__ = ["CodeObject", "CodeObjectKernel", "KernelParameter", "is_bundle", "is_code_object", "unbundled"]

_MACHINE = 224  # EM_AMDGPU
_NOTE_NAME, _NOTE_TYPE = "AMDGPU", 32  # NT_AMDGPU_METADATA
_BUNDLES = (b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB", b"HIPF")  # of several targets, compressed, and with a wrapper


def is_code_object(data: bytes) -> bool:
    """Tell whether bytes are an ELF file for AMD GPUs."""
    return data[:4] == b"\x7fELF" and len(data) >= 64 and struct.unpack_from("<H", data, 18)[0] == _MACHINE


def is_bundle(data: bytes) -> bool:
    """Tell whether bytes are a bundle of code objects for several targets, as hipcc makes them."""
    return data.startswith(_BUNDLES)


def unbundled(data: bytes, device: Arch) -> bytes | None:
    """Return the code object of a bundle that a device runs; None if none is found, or the bundle is compressed."""
    if not data.startswith(_BUNDLES[0]):
        return None
    try:
        place, (count,) = 32, struct.unpack_from("<Q", data, 24)
        for _ in range(min(count, len(data))):
            offset, size, length = struct.unpack_from("<3Q", data, place)
            name = data[place + 24 : place + 24 + length].decode()
            place += 24 + length
            if "amdgcn" in name and "gfx" in name and Arch.parse(name[name.rindex("gfx") :]).runs_on(device):
                return data[offset : offset + size]
    except (struct.error, ValueError):  # damaged, which the runtime will say
        pass
    return None


class KernelParameter(NamedTuple):
    """A parameter that the source has: its place and size in bytes, and whether it is a pointer."""

    offset: int
    size: int
    is_pointer: bool


class CodeObjectKernel(NamedTuple):
    """A kernel of a code object, as its metadata have it; sizes are in bytes, registers those of a thread."""

    symbol: str
    parameters: tuple[KernelParameter, ...]
    parameter_bytes: int
    wavefront_size: int
    max_threads: int
    shared: int
    local: int
    vector_registers: int
    accumulation_registers: int
    scalar_registers: int
    spilled_registers: int


class CodeObject:
    """A code object. Raises ValueError if the bytes are none, or are damaged."""

    def __init__(self, data: bytes) -> None:
        if not is_code_object(data):
            raise ValueError("these bytes are not a code object for AMD GPUs")
        try:
            metadata, self.variables = _read(data)
            self.kernels = [_kernel(each) for each in metadata["amdhsa.kernels"]]
            target = str(metadata.get("amdhsa.target") or "")
        except (KeyError, TypeError, IndexError, AttributeError, OverflowError, struct.error, ValueError) as error:
            raise ValueError(f"the code object is damaged: {type(error).__name__}: {error}") from None
        # Compilers spell what is before the processor in different ways.
        self.arch = Arch.parse(target[target.rindex("gfx") :]) if "gfx" in target else None

    def kernel(self, symbol: str) -> CodeObjectKernel | None:
        """Return a kernel by its symbol."""
        return next((each for each in self.kernels if each.symbol == symbol), None)


def _read(data: bytes) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the metadata, and the sizes of variables by symbol."""
    import msgpack
    from elftools.common.exceptions import ELFError
    from elftools.construct import ConstructError
    from elftools.elf.elffile import ELFFile

    try:
        file = ELFFile(BytesIO(data))
        notes = [
            note
            for segment in file.iter_segments("PT_NOTE")
            for note in segment.iter_notes()
            if note["n_name"] == _NOTE_NAME and note["n_type"] == _NOTE_TYPE
        ]
        metadata = msgpack.unpackb(notes[0]["n_descdata"], raw=False, strict_map_key=False)
        table = file.get_section_by_name(".dynsym")
        variables = {
            symbol.name: symbol["st_size"]
            for symbol in (table.iter_symbols() if table is not None else ())
            if symbol["st_info"]["type"] == "STT_OBJECT" and not symbol.name.endswith(".kd")
        }
    except (ELFError, ConstructError, msgpack.UnpackException, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    return metadata, variables


def _kernel(described: dict[str, Any]) -> CodeObjectKernel:
    arguments = [each for each in described.get(".args", ()) if not each[".value_kind"].startswith("hidden_")]
    return CodeObjectKernel(
        symbol=str(described[".name"]),
        parameters=tuple(
            KernelParameter(each[".offset"], each[".size"], each[".value_kind"] == "global_buffer")
            for each in arguments
        ),
        parameter_bytes=int(described[".kernarg_segment_size"]),
        wavefront_size=int(described[".wavefront_size"]),
        max_threads=int(described[".max_flat_workgroup_size"]),
        shared=int(described[".group_segment_fixed_size"]),
        local=int(described[".private_segment_fixed_size"]),
        vector_registers=int(described.get(".vgpr_count") or 0),
        accumulation_registers=int(described.get(".agpr_count") or 0),
        scalar_registers=int(described.get(".sgpr_count") or 0),
        spilled_registers=int(described.get(".vgpr_spill_count") or 0),
    )
