"""Drivers that run kernels on the host and are wrong in one way: what only results show must be caught by results."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from broken_drivers import Broken

from podium.backend import Buffer, Driver, Function, LaunchConfig, ObjectCode, Parameters, Program, Target
from podium.testing import DriverConformance

from podium_cpu.driver import CpuDriver
from podium_cpu.launcher import CpuLauncher

__all__ = ["BROKEN_CPU", "Running", "WholeCpu"]


class WrongCpuLauncher(CpuLauncher):
    """The launcher of all of them: the driver that is really installed has the name cpu."""

    backend = "wrongcpu"


class WholeCpu(CpuDriver):
    """Nothing is wrong with this one."""

    name = "wrongcpu"
    launcher_cls = WrongCpuLauncher


class Running(DriverConformance):
    """The suite, as it is run on these drivers."""

    driver_class: type[Driver] = WholeCpu


class LaunchesNothing(WholeCpu):
    """It reports success and runs nothing."""

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        return 0


class LaunchesTwice(WholeCpu):
    """It runs every kernel twice."""

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        return super().launch(function, config, device, stream, parameters) or super().launch(
            function, config, device, stream, parameters
        )


class SwapsBlockAxes(WholeCpu):
    """It takes the second axis of the block for the first."""

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        x, y, z = config.block
        swapped = LaunchConfig(config.grid, (y, x, z), shared=config.shared)
        return super().launch(function, swapped, device, stream, parameters)


class ForgetsTheLastBlock(WholeCpu):
    """It leaves out the last blocks of the grid."""

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        x, y, z = config.grid
        return super().launch(function, LaunchConfig((x - 1, y, z), config.block), device, stream, parameters)


class MovesTheLastParameter(WholeCpu):
    """It passes the first parameter in place of the last."""

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        offsets = (*parameters.offsets[:-1], *parameters.offsets[:1])
        return super().launch(function, config, device, stream, replace(parameters, offsets=offsets))


class IgnoresDefines(WholeCpu):
    """It compiles without the macros of the options that have a value."""

    def compile(self, program: Program, target: Target) -> ObjectCode:
        defines = tuple((name, "1" if value else value) for name, value in program.options.defines)
        return super().compile(replace(program, options=replace(program.options, defines=defines)), target)


class TurnsIncludeDirsAround(WholeCpu):
    """It searches headers in the last folder first."""

    def compile(self, program: Program, target: Target) -> ObjectCode:
        dirs = program.options.include_dirs[::-1]
        return super().compile(replace(program, options=replace(program.options, include_dirs=dirs)), target)


class IgnoresTheStandard(WholeCpu):
    """It compiles everything as C++17."""

    def compile(self, program: Program, target: Target) -> ObjectCode:
        return super().compile(replace(program, options=replace(program.options, std="c++17")), target)


class KnowsKernelsByName(WholeCpu):
    """It keeps what it compiled by the kernel's name alone."""

    def compile(self, program: Program, target: Target) -> ObjectCode:
        kept = self.__dict__.setdefault("kept", {})
        name = program.entries[0].name
        if name not in kept:
            kept[name] = super().compile(program, target)
        return kept[name]


class LoadsEachKernelByItself(WholeCpu):
    """It gives every kernel of a module variables of its own."""

    def load_beside(self, function: Function, code: ObjectCode, name: str, device: int) -> Function:
        return self.load(code, name, device)


class LetsStreamsPassEvents(WholeCpu):
    """Its streams do not wait for events."""

    def wait_event(self, device: int, stream: int, event: int) -> int:
        return 0


class DoesNotWaitForEvents(WholeCpu):
    """It returns at once where an event is waited for."""

    def synchronize_event(self, event: int, device: int) -> int:
        return 0


class ForgetsHostArrays(WholeCpu):
    """It lets go of host arrays that a queued launch will read."""

    def keep_alive(self, objects: Sequence[object], device: int, stream: int) -> None:
        pass


class GivesMemoryBackTooEarly(ForgetsHostArrays):
    """Memory that is dropped is for the next who asks, though work is under way in it."""

    free: ClassVar[dict[tuple[int, int], list[Buffer]]] = {}

    def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Buffer:
        free = self.free.setdefault((size, alignment), [])
        return _Returned(free.pop() if free else super().allocate(size, alignment, device, stream), free)


class _Returned:
    """Memory that goes back to those that are free."""

    def __init__(self, memory: Buffer, free: list[Buffer]) -> None:
        self.ptr, self.size = memory.ptr, memory.size
        weakref.finalize(self, free.append, memory)


_INDICES = "test_every_thread_runs_once_with_its_own_indices"

BROKEN_CPU = [
    Broken(LaunchesNothing, _INDICES, "test_scalars_arrive_exactly", "test_it_launches_like_a_compilers_launcher"),
    Broken(LaunchesTwice, _INDICES),
    Broken(SwapsBlockAxes, _INDICES),
    Broken(ForgetsTheLastBlock, _INDICES, "test_saxpy"),
    Broken(MovesTheLastParameter, "test_sixty_four_arguments", "test_scalars_arrive_exactly"),
    Broken(IgnoresDefines, "test_defines"),
    Broken(TurnsIncludeDirsAround, "test_include_dirs"),
    Broken(IgnoresTheStandard, "test_options_reach_the_compiler"),
    Broken(KnowsKernelsByName, "test_constants"),
    Broken(LoadsEachKernelByItself, "test_kernels_of_a_module_share_variables"),
    Broken(LetsStreamsPassEvents, "test_a_stream_waits_for_an_event_of_another"),
    Broken(DoesNotWaitForEvents, "test_an_event_comes_after_the_work_before_it"),
    Broken(GivesMemoryBackTooEarly, "test_memory_is_freed_after_the_work_before_it"),
    Broken(ForgetsHostArrays, "test_host_arrays_are_kept_until_the_stream_has_passed"),
]
