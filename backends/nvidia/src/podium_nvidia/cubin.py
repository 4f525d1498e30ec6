"""Reading cubins: which kernels are in one, how large their parameters are, and what it was made for."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from podium_nvidia.arch import Arch

__all__ = ["Cubin", "CubinKernel", "is_cubin"]

_MACHINE = 190  # EM_CUDA

_NOTE = ".note.nv.tkinfo"

_SYMTAB = 2
_FUNCTION = 2
_OBJECT = 1

# Attributes of .nv.info sections: a format, the attribute, and two bytes, the value or the size of what follows.
_SIZED = 4
_REGISTERS = 0x2F
_PARAMETER = 0x17
_LARGE_PARAMETER = 0x45  # with the size as a number of its own


def is_cubin(data: bytes) -> bool:
    """Tell whether bytes are an ELF file for NVIDIA GPUs."""
    return data[:4] == b"\x7fELF" and len(data) >= 64 and struct.unpack_from("<H", data, 18)[0] == _MACHINE


class CubinKernel(NamedTuple):
    """A kernel of a cubin: its symbol, the sizes of its parameters in bytes, and its registers if they are said."""

    symbol: str
    parameters: tuple[int, ...]
    registers: int | None


class Cubin:
    """A cubin. Raises ValueError if the bytes are none, or are damaged."""

    def __init__(self, data: bytes) -> None:
        if not is_cubin(data):
            raise ValueError("these bytes are not a cubin")
        self._data = data
        try:
            self._sections = list(self._read_sections())
            self._symbols = list(self._read_symbols())
            self.kernels = self._read_kernels()  # in the order of their symbols
        except (struct.error, IndexError, OverflowError, ValueError) as error:
            raise ValueError(f"the cubin is damaged: {error}") from None

    @property
    def arch(self) -> Arch:
        """What it was made for."""
        flags, version = struct.unpack_from("<I", self._data, 48)[0], self._data[8]
        # The form of CUDA 13 has the number in the second byte, those before it in the first.
        number = (flags >> 8 if version >= 8 else flags) & 0xFF
        # Only what the tools note of how they were called tells the letter.
        note = next(
            (self._data[offset : offset + size] for name, _, offset, size in self._sections if name == _NOTE), b""
        )
        match = re.search(rb"-arch[ =]sm_%d([af])" % number, note)
        return Arch(number, match[1].decode() if match else "")

    def _read_kernels(self) -> list[CubinKernel]:
        infos = {name: (offset, size) for name, _, offset, size in self._sections if name.startswith(".nv.info")}
        registers = self._registers(infos.get(".nv.info"))
        entries = {name[len(".nv.constant0.") :] for name, *_ in self._sections if name.startswith(".nv.constant0.")}
        found = []
        for index, (name, kind, _) in enumerate(self._symbols):
            if kind == _FUNCTION and name in entries:
                info = infos.get(f".nv.info.{name}")
                parameters = sorted(self._parameters(*info)) if info else []
                found.append(CubinKernel(name, tuple(size for _, size in parameters), registers.get(index)))
        return found

    def kernel(self, symbol: str) -> CubinKernel | None:
        """Return a kernel by its symbol."""
        return next((each for each in self.kernels if each.symbol == symbol), None)

    @property
    def variables(self) -> dict[str, int]:
        """The sizes of the variables, by symbol."""
        return {name: size for name, kind, size in self._symbols if kind == _OBJECT and size and name[0] != "."}

    def _read_sections(self) -> Iterator[tuple[str, int, int, int]]:
        """Give name, type, offset and size of each section."""
        data = self._data
        table = struct.unpack_from("<Q", data, 40)[0]
        count, names = struct.unpack_from("<HH", data, 60)
        headers = [struct.unpack_from("<IIQQQQ", data, table + 64 * index) for index in range(count)]
        strings = headers[names][4]
        for name, kind, _, _, offset, size in headers:
            yield self._string(strings + name), kind, offset, size

    def _read_symbols(self) -> Iterator[tuple[str, int, int]]:
        """Give name, type and size of each symbol."""
        strings = next((offset for name, _, offset, _ in self._sections if name == ".strtab"), 0)
        for _, kind, offset, size in self._sections:
            if kind == _SYMTAB:
                for at in range(offset, offset + size, 24):
                    name, info = struct.unpack_from("<IB", self._data, at)
                    yield self._string(strings + name), info & 15, struct.unpack_from("<Q", self._data, at + 16)[0]

    def _string(self, at: int) -> str:
        return self._data[at : self._data.index(b"\0", at)].decode("utf-8", "replace")

    def _attributes(self, offset: int, size: int) -> Iterator[tuple[int, int, int]]:
        """Give number, offset and size of each attribute that has a value of its own."""
        at, end = offset, offset + size
        while at + 4 <= end:
            form, attribute, length = struct.unpack_from("<BBH", self._data, at)
            at += 4
            if form == _SIZED:
                yield attribute, at, length
                at += length

    def _parameters(self, offset: int, size: int) -> Iterator[tuple[int, int]]:
        """Give number and size of each parameter of a kernel."""
        for attribute, at, _ in self._attributes(offset, size):
            if attribute in (_PARAMETER, _LARGE_PARAMETER):
                _, number, _, word = struct.unpack_from("<IHHI", self._data, at)
                yield number, word >> 18 if attribute == _PARAMETER else word

    def _registers(self, info: tuple[int, int] | None) -> dict[int, int]:
        """Return the registers of each function by the number of its symbol."""
        found = {}
        for attribute, at, _ in self._attributes(*info) if info else ():
            if attribute == _REGISTERS:
                symbol, count = struct.unpack_from("<II", self._data, at)
                found[symbol] = count
        return found
