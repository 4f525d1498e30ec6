"""A driver for a device that can hardly do anything, made from podium-serial: the suite must ask no more of it.

It runs blocks of at most eight threads on one axis, in grids of one axis. Its memory has handles for addresses. It has no
launcher in C. Its compiler refuses what it does not claim, so a test of the suite that does not say what it needs fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from capability_marks import MARKS, asked

from podium.backend import Buffer, Device, Function, LaunchConfig, ObjectCode, Parameters, Program, Target
from podium.errors import CompileError
from podium.testing import Capabilities, DriverConformance

from podium_serial.driver import SerialDriver
from podium_serial.launcher import SerialLauncher

__all__ = ["MinimalDriver", "TestMinimal"]


@dataclass(frozen=True)
class _Memory:
    ptr: int
    size: int
    memory: Buffer


class MinimalLauncher(SerialLauncher):
    """It has no C."""

    backend = "minimal"
    generated_level = False


class MinimalDriver(SerialDriver):
    """It claims that it compiles and executes, and nothing else."""

    name = "minimal"
    priority = -20
    launcher_cls = MinimalLauncher
    dlpack_devices = frozenset({12})
    host_memory = False
    fork_safe = False

    def __init__(self) -> None:
        super().__init__()
        self._next = 1 << 50
        self._real: dict[int, int] = {0: 0}
        self._pointers: dict[int, list[bool]] = {}

    def devices(self) -> Sequence[Device]:
        small: dict[str, Any] = {"max_grid": (65535, 1, 1), "max_block": (8, 1, 1), "max_threads": 8}
        return [replace(super().devices()[0], max_parameter_bytes=1024, memory=1 << 20, **small)]

    def compile(self, program: Program, target: Target) -> ObjectCode:
        if needed := asked(program):
            raise CompileError(f"minimal knows no {', '.join(sorted(needed))}: {program.source}")
        return super().compile(program, target)

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        function = super().load(code, name, device)
        passed = code.entry(name).signature.passed
        self._pointers[function.handle] = [str(each.type).startswith("*") for each in passed]
        return function

    def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Buffer:
        memory = super().allocate(size, alignment, device, stream)
        handle = -(-self._next // alignment) * alignment
        self._next = handle + size + 1
        self._real[handle] = memory.ptr
        return _Memory(handle, size, memory)

    def copy(self, destination: int, source: int, size: int, device: int, stream: int) -> None:
        super().copy(*(self._real.get(each, each) for each in (destination, source)), size, device, stream)

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        if config.block[0] > 8:
            return 1
        data, scratch = bytearray(parameters.data), [True] * len(parameters.offsets)
        for offset, pointer in zip(parameters.offsets, [*self._pointers[function], *scratch]):
            if pointer:
                handle = int.from_bytes(data[offset : offset + 8], "little")
                data[offset : offset + 8] = self._real[handle].to_bytes(8, "little")
        given = Parameters(bytes(data), parameters.offsets)
        return super().launch(function, config, device, stream, given)


class TestMinimal(DriverConformance):
    """What a device of this kind must do all the same."""

    driver_class = MinimalDriver
    capabilities = Capabilities().without(*MARKS, "addresses", "standards", "variables")
