"""The driver: the only module that talks to the device's runtime."""

from __future__ import annotations

import ctypes
import hashlib
import platform
from collections.abc import Mapping, Sequence

from podium.backend import (
    Buffer,
    Device,
    Driver,
    Function,
    LaunchConfig,
    ObjectCode,
    OwnedMemory,
    Parameters,
    Program,
    Target,
)
from podium.errors import LoadError, OutOfResourcesError

from podium_abacus import runtime
from podium_abacus.detection import inactive_reason
from podium_abacus.launcher import AbacusLauncher
from podium_abacus.plugin import PODIUM_PRIORITY

__all__ = ["AbacusDriver"]


class AbacusDriver(Driver):
    """Runs kernels on abacus devices."""

    name = "abacus"
    priority = PODIUM_PRIORITY
    launcher_cls = AbacusLauncher
    dlpack_devices = frozenset({12})  # memory of its own, of a kind for which DLPack has no number

    @classmethod
    def inactive_reason(cls) -> str | None:
        """Say why the backend cannot run here; None if it can."""
        return inactive_reason()

    def devices(self) -> Sequence[Device]:
        """Return the one device."""
        return [
            Device(
                index=0,
                name="one thread after the other",
                target=Target(self.name, platform.machine(), 1),
                max_grid=(2147483647, 65535, 65535),
                max_block=(1024, 1024, 64),
                max_threads=1024,
                max_shared=0,
                memory=runtime.library().abacusMemory(),
            )
        ]

    def describe_status(self, status: int) -> tuple[str, str]:
        """Return the name and the text of a status of the runtime."""
        return f"ABACUS_STATUS_{status}", runtime.library().abacusErrorText(status).decode()

    def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Buffer:
        """Return memory of the device."""
        library = runtime.library()

        def take(count: int) -> int:
            address = ctypes.c_void_p()
            if library.abacusMalloc(ctypes.byref(address), count) != 0:
                raise OutOfResourcesError("allocate", "memory in bytes", size, library.abacusMemory())
            return address.value or 0

        return OwnedMemory(size, alignment, take, library.abacusFree, kept=64)

    def copy(self, destination: int, source: int, size: int, device: int, stream: int) -> None:
        """Copy bytes between the host and the device, in any direction."""
        if status := runtime.library().abacusCopy(destination, source, size):
            raise self.failure("copy", status, device)

    def synchronize(self, device: int, stream: int | None = None) -> int:
        """Return the status of the work so far: launches have ended when they return."""
        return int(runtime.library().abacusWait())

    def toolchain(self, language: str) -> str:
        """Name the compiler with its version."""
        from podium_abacus.compiler import identity

        return identity()

    def compile(self, program: Program, target: Target) -> ObjectCode:
        """Compile kernels from their source."""
        from podium_abacus.compiler import compile_program

        return compile_program(program, target)

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        """Give the image to the runtime, and find the kernel in it."""
        if hashlib.sha256(code.code).hexdigest() != code.metadata.get("digest"):  # a part of one ends the process
            raise LoadError(f"{name}: the code is damaged", kernel=name, backend=self.name)
        library, module, function = runtime.library(), ctypes.c_void_p(), ctypes.c_void_p()
        status = library.abacusLoad(ctypes.byref(module), code.code, len(code.code))
        if status == 0 and (status := library.abacusFind(ctypes.byref(function), module, code.symbol(name).encode())):
            library.abacusUnload(module)
        if status:
            raise LoadError(f"{name}: {self.describe_status(status)[1]}", kernel=name, backend=self.name)
        return Function(handle=function.value or 0, module=module.value or 0)

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        """Launch a kernel; return the status."""
        grid, block = ((ctypes.c_uint32 * 3)(*axes) for axes in (config.grid, config.block))
        return int(runtime.library().abacusLaunch(function, grid, block, parameters.addresses()))

    def versions(self) -> Mapping[str, str]:
        """Return the version of the runtime, if it is there."""
        return {} if inactive_reason() else {"runtime": str(runtime.library().abacusVersion())}

    def unload(self, function: Function, device: int) -> None:
        """Give the image back."""
        runtime.library().abacusUnload(function.module)
