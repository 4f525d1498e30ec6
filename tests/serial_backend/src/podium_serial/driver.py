"""The driver of the serial backend."""

from __future__ import annotations

import ctypes
import hashlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass

from podium.backend import (
    Buffer,
    Device,
    Driver,
    Function,
    HostCompiler,
    LaunchConfig,
    ObjectCode,
    Parameters,
    Program,
    SharedLibrary,
    Target,
)
from podium.errors import LoadError, OutOfResourcesError

from podium_serial.launcher import SerialLauncher

__all__ = ["SerialDriver"]

_STATUSES = {0: ("SERIAL_SUCCESS", "no error"), 1: ("SERIAL_ERROR_BLOCK", "the block has too many threads")}

_Three = ctypes.c_uint32 * 3
_Entry = ctypes.CFUNCTYPE(ctypes.c_int, _Three, _Three, ctypes.c_void_p)


@dataclass(frozen=True)
class _Memory:
    """Memory of the host, freed with this object."""

    ptr: int
    size: int
    storage: ctypes.Array[ctypes.c_char]


class SerialDriver(Driver):
    """Runs the threads of a launch one after the other. There is one device and one stream."""

    name = "serial"
    priority = -10
    launcher_cls = SerialLauncher
    dlpack_devices = frozenset({1})
    host_memory = True
    fork_safe = True

    def __init__(self) -> None:
        self._libraries: list[SharedLibrary] = []

    @classmethod
    def inactive_reason(cls) -> str | None:
        """Return None: there is always a host."""
        return None

    def toolchain(self, language: str) -> str:
        """Name the C++ compiler."""
        return HostCompiler.find("c++").identity

    def default_target(self) -> Target:
        """Return the target for this machine."""
        return Target(self.name, platform.machine(), 1)

    def devices(self) -> Sequence[Device]:
        """Return the one device."""
        return [
            Device(
                index=0,
                name="one thread after the other",
                target=self.default_target(),
                max_grid=(2147483647, 65535, 65535),
                max_block=(1024, 1024, 64),
                max_threads=1024,
                max_shared=0,
                memory=1 << 34,
            )
        ]

    def compile(self, program: Program, target: Target) -> ObjectCode:
        """Compile with the host's C++ compiler."""
        from podium_serial.compiler import compile_program

        return compile_program(program, target)

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        """Map the library and look the kernel's entry up."""
        # A library that is cut off can crash the loader.
        if hashlib.sha256(code.code).hexdigest() != code.metadata.get("sha256"):
            raise LoadError(f"{name}: the code is damaged", kernel=name, backend=self.name)
        library = SharedLibrary.from_bytes("podium_serial_kernel", code.code)
        self._libraries.append(library)
        return Function(handle=library.address(code.symbol(name)))

    def unload(self, function: Function, device: int) -> None:
        """Do nothing: libraries stay mapped."""

    def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Buffer:
        """Return memory of the host."""
        try:
            storage = ctypes.create_string_buffer(size + alignment)
        except (MemoryError, OverflowError):
            raise OutOfResourcesError("allocate", "memory in bytes", size, 1 << 34) from None
        return _Memory(-(-ctypes.addressof(storage) // alignment) * alignment, size, storage)

    def copy(self, destination: int, source: int, size: int, device: int, stream: int) -> None:
        """Copy bytes."""
        ctypes.memmove(destination, source, size)

    def current_device(self) -> int:
        """Return 0."""
        return 0

    def current_stream(self, device: int) -> int:
        """Return 0."""
        return 0

    def synchronize(self, device: int, stream: int | None = None) -> int:
        """Return success: launches have ended when they return."""
        return 0

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        """Call the entry."""
        return int(_Entry(function)(_Three(*config.grid), _Three(*config.block), parameters.addresses()))

    def describe_status(self, status: int) -> tuple[str, str]:
        """Return the name and the text of a status."""
        return _STATUSES.get(status, (f"SERIAL_ERROR_{status}", "unknown status"))
