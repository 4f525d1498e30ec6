"""Drivers that are wrong on purpose, each in one way: the conformance suite must catch every one of them."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from dataclasses import replace
from typing import Any, ClassVar

from podium.backend import Buffer, Driver, Function, LaunchConfig, ObjectCode, Occupancy, Program, Target
from podium.errors import CompileError
from podium.testing import Capabilities, DriverConformance, FakeDriver

__all__ = ["BROKEN", "Broken", "Recording"]


class Recording(DriverConformance):
    """The suite, as it is run on the fake driver and on everything made from it."""

    capabilities = Capabilities(executes=False, compiles=False, records=True)
    attribute_values: ClassVar = {"priority": -2, "preferred_cluster": (2, 1, 1)}


class SwapsBytes(FakeDriver):
    """It hands parameters over in the wrong byte order."""

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        return super()._record(name, device, shape, stream, tuple(value[::-1] for value in values))


class DropsTheLastArgument(FakeDriver):
    """It loses the last parameter of a launch."""

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        return super()._record(name, device, shape, stream, values[:-1])


class HidesFailures(FakeDriver):
    """It reports success for a launch that failed."""

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        super()._record(name, device, shape, stream, values)
        return 0


class IgnoresTheStream(FakeDriver):
    """It launches on the default stream always."""

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        return super()._record(name, device, shape, self.current_stream(device), values)


class IgnoresSharedMemory(FakeDriver):
    """It launches without dynamic shared memory."""

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        shape.shared = 0
        return super()._record(name, device, shape, stream, values)


class SwapsAxes(FakeDriver):
    """It takes the second axis of the grid for the first."""

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        shape.grid[0], shape.grid[1] = shape.grid[1], shape.grid[0]
        return super()._record(name, device, shape, stream, values)


class RoundsGridsUp(FakeDriver):
    """It rounds the blocks of a grid up to the next even number."""

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        shape.grid[0] += shape.grid[0] % 2
        return super()._record(name, device, shape, stream, values)


class RaisesInsteadOfReason(FakeDriver):
    """Asking it for its reason raises."""

    @classmethod
    def inactive_reason(cls) -> str | None:
        raise RuntimeError("the library cannot be opened")


class ProbesWithAThread(FakeDriver):
    """It leaves a thread behind when it is asked for its reason."""

    @classmethod
    def inactive_reason(cls) -> str | None:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        return None


class ProbesWithAProcess(FakeDriver):
    """It runs a command when it is asked for its reason."""

    @classmethod
    def inactive_reason(cls) -> str | None:
        subprocess.run([sys.executable, "-c", ""], check=True)
        return None


class RenamesItsToolchain(FakeDriver):
    """Its toolchain has another text each time."""

    def toolchain(self, language: str) -> str:
        self.version += "."
        return super().toolchain(language)


class HidesItsProcessInTheToolchain(FakeDriver):
    """Its toolchain has another text in each process, so no process finds what another compiled."""

    def toolchain(self, language: str) -> str:
        return f"{super().toolchain(language)} {os.getpid()}"


class LosesTheLog(FakeDriver):
    """Its compile errors have no log and point nowhere."""

    def compile(self, program: Program, target: Target) -> ObjectCode:
        try:
            return super().compile(program, target)
        except CompileError as error:
            raise CompileError(str(error), program=error.program, target=error.target) from None


class PointsToTheWrongLine(FakeDriver):
    """Its compile errors count lines from 0."""

    def compile(self, program: Program, target: Target) -> ObjectCode:
        try:
            return super().compile(program, target)
        except CompileError as error:
            error.diagnostics = tuple(replace(each, line=each.line - 1) for each in error.diagnostics)
            raise


class ForgetsEntries(FakeDriver):
    """Its object code does not say which kernels are in it."""

    def compile(self, program: Program, target: Target) -> ObjectCode:
        return replace(super().compile(program, target), entries=())


class GivesNoHandle(FakeDriver):
    """Loading gives the handle 0."""

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        return replace(super().load(code, name, device), handle=0)


class LoadsAnything(FakeDriver):
    """It loads bytes that are no code."""

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        return super().load(replace(code, code=b"good"), name, device)


class LoadsOnTheFirstDevice(FakeDriver):
    """It loads every kernel on device 0."""

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        return super().load(code, name, 0)


class RaisesWhenUnloading(FakeDriver):
    """Unloading raises."""

    def unload(self, function: Function, device: int) -> None:
        raise RuntimeError("the module is in use")


class AlignsNothing(FakeDriver):
    """Its memory begins at odd addresses."""

    def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Buffer:
        memory: Any = super().allocate(size + 1, alignment, device, stream)
        memory.ptr += 1
        return memory  # type: ignore[no-any-return]


class CopiesTooLittle(FakeDriver):
    """Its copies lack the last byte."""

    def copy(self, destination: int, source: int, size: int, device: int, stream: int) -> None:
        super().copy(destination, source, size - 1, device, stream)


class KnowsFewStatuses(FakeDriver):
    """It cannot name a status that it does not know."""

    def describe_status(self, status: int) -> tuple[str, str]:
        return {0: ("FAKE_SUCCESS", "no error"), 1: ("FAKE_ERROR", "an error")}[status]


class BreaksAfterFork(FakeDriver):
    """It says that it survives a fork, and does not."""

    fork_safe = True

    def __init__(self) -> None:
        super().__init__()
        self.process = os.getpid()

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        return 1 if os.getpid() != self.process else super()._record(name, device, shape, stream, values)


class SpeaksAtTheEnd(FakeDriver):
    """It complains when the process ends."""

    def __init__(self) -> None:
        super().__init__()
        atexit.register(sys.stderr.write, "the driver was not shut down\n")


class SharesItsMemory(FakeDriver):
    """It gives the same memory to all who ask for the same size."""

    def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Buffer:
        kept = self.__dict__.setdefault("kept", {})
        return kept.setdefault((size, alignment), super().allocate(size, alignment, device, stream))  # type: ignore[no-any-return]


class HasVariablesOnce(FakeDriver):
    """It has one memory for the variables of all modules."""

    def variable(self, function: Function, code: ObjectCode, name: str, device: int) -> tuple[int, int]:
        kept = self.__dict__.setdefault("kept", {})
        return kept.setdefault(name, super().variable(function, code, name, device))  # type: ignore[no-any-return]


class MovesVariables(FakeDriver):
    """It gives a variable another address each time."""

    def variable(self, function: Function, code: ObjectCode, name: str, device: int) -> tuple[int, int]:
        size = super().variable(function, code, name, device)[1]
        self.variables[function.module][name] = self.allocate(size, 256, device, 0)
        return super().variable(function, code, name, device)


class LosesAttributes(FakeDriver):
    """It launches without the attributes of the backend's own."""

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        shape.attribute_count = 0
        return super()._record(name, device, shape, stream, values)


class ShortensAttributes(FakeDriver):
    """It takes attributes for numbers of 31 bits."""

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        for attribute in shape.attributes[: shape.attribute_count]:
            attribute.value[0] &= 0x7FFFFFFF
        return super()._record(name, device, shape, stream, values)


class HasOneKeyTwice(FakeDriver):
    """It has one number for two attributes."""

    attribute_keys: ClassVar = {"priority": 8, "preferred_cluster": 8}


class SharesItsStream(FakeDriver):
    """It gives out one stream again and again."""

    def create_stream(self, device: int, priority: int) -> int:
        return next(iter(self.streams), None) or super().create_stream(device, priority)

    def destroy_stream(self, stream: int, device: int) -> None:
        self.streams.pop(stream, None)


class RaisesWhenEventsGo(FakeDriver):
    """Giving an event back raises."""

    def destroy_event(self, event: int, device: int) -> None:
        raise RuntimeError("the event is in use")


class NeverGetsToEvents(FakeDriver):
    """Its events have not passed, though they were waited for."""

    def event_done(self, event: int, device: int) -> bool:
        return False


class MeasuresNanoseconds(FakeDriver):
    """It gives the time between events in nanoseconds."""

    def elapsed(self, start: int, end: int, device: int) -> float:
        return super().elapsed(start, end, device) * 1e9


class MeasuresBackwards(FakeDriver):
    """It gives the time from the end to the start."""

    def elapsed(self, start: int, end: int, device: int) -> float:
        return super().elapsed(end, start, device)


class ForgetsWhatIsPinned(FakeDriver):
    """It takes pinned memory for any other of the host."""

    def pointer_device(self, address: int) -> tuple[int, int] | None:
        known = super().pointer_device(address)
        return (1, 0) if known is not None and known[0] == 3 else known


class MistakesPointers(FakeDriver):
    """It says of all memory that it is on another device."""

    def pointer_device(self, address: int) -> tuple[int, int] | None:
        return 12, 5


class CountsThreadsForBlocks(FakeDriver):
    """It says that more blocks run at once if they are larger."""

    def occupancy(self, function: Function, device: int, config: LaunchConfig) -> Occupancy:
        return Occupancy(config.block[0], 4, 4 * config.block[0])


class SuggestsTooMuch(FakeDriver):
    """It suggests blocks that are too large."""

    def suggested_block(self, function: Function, device: int, shared: int) -> tuple[int, int]:
        return 4096, 8


class AcceptsAnything(FakeDriver):
    """It takes code for any target."""

    def accepts(self, code: Target, device: Target) -> bool:
        return True


class KnowsNoVersion(FakeDriver):
    """It names a version that it does not know."""

    def versions(self) -> dict[str, str]:
        return {"driver": ""}


class ReplaysTheOldArguments(FakeDriver):
    """It forgets what a launch of a graph was changed to."""

    def update_node(
        self, graph: int, node: int, function: int, config: LaunchConfig, device: int, parameters: Any
    ) -> int:
        return 0


class LeavesWorkUnjoined(FakeDriver):
    """It takes a capture whose streams do not meet in the end."""

    def end_capture(self, device: int, stream: int) -> int:
        self._captures[stream].unjoined.clear()
        return super().end_capture(device, stream)


class HasOneCapture(FakeDriver):
    """It says of every stream that it takes part in the capture."""

    def capture_state(self, device: int, stream: int) -> tuple[int, int]:
        return super().capture_state(device, next(iter(self._captures), stream))


class Broken:
    """A broken driver, and the tests of the suite that must fail for it."""

    def __init__(self, driver_class: type[Driver], *tests: str) -> None:
        self.driver_class, self.tests = driver_class, tests

    def __repr__(self) -> str:
        return self.driver_class.__name__


BROKEN = [
    Broken(SwapsBytes, "test_scalars_arrive_exactly"),
    Broken(DropsTheLastArgument, "test_sixty_four_arguments"),
    Broken(HidesFailures, "test_launch_returns_the_status", "test_a_launch_that_the_driver_refuses_is_an_error"),
    Broken(IgnoresTheStream, "test_a_stream_can_be_named"),
    Broken(IgnoresSharedMemory, "test_static_and_dynamic_shared_memory"),
    Broken(SwapsAxes, "test_every_thread_runs_once_with_its_own_indices"),
    Broken(RoundsGridsUp, "test_every_thread_runs_once_with_its_own_indices"),
    Broken(RaisesInsteadOfReason, "test_the_reason_is_a_text_or_none"),
    Broken(ProbesWithAThread, "test_probing_initialises_nothing"),
    Broken(ProbesWithAProcess, "test_probing_initialises_nothing"),
    Broken(RenamesItsToolchain, "test_the_toolchain_stays_the_same"),
    Broken(HidesItsProcessInTheToolchain, "test_the_toolchain_stays_the_same"),
    Broken(LosesTheLog, "test_a_compile_error_carries_the_log"),
    Broken(PointsToTheWrongLine, "test_a_compile_error_points_into_the_users_source"),
    Broken(ForgetsEntries, "test_object_code_has_what_was_asked_for"),
    Broken(GivesNoHandle, "test_load_gives_a_handle"),
    Broken(LoadsAnything, "test_bytes_that_are_no_code_are_refused"),
    Broken(LoadsOnTheFirstDevice, "test_every_device_can_be_used"),
    Broken(RaisesWhenUnloading, "test_unload_raises_nothing_and_can_be_repeated_with_load"),
    Broken(AlignsNothing, "test_allocate_gives_aligned_memory"),
    Broken(CopiesTooLittle, "test_copy_goes_in_every_direction"),
    Broken(KnowsFewStatuses, "test_every_status_has_a_name_and_a_text"),
    Broken(BreaksAfterFork, "test_launching_in_a_forked_child"),
    Broken(SpeaksAtTheEnd, "test_a_process_ends_silently"),
    Broken(SharesItsMemory, "test_allocate_gives_aligned_memory"),
    Broken(HasVariablesOnce, "test_variables_do_not_overlap"),
    Broken(MovesVariables, "test_a_variable_is_an_array_in_its_own_memory"),
    Broken(
        LosesAttributes,
        "test_every_attribute_reaches_the_driver",
        "test_attributes_of_the_metadata_hold_for_every_launch",
    ),
    Broken(ShortensAttributes, "test_every_attribute_reaches_the_driver"),
    Broken(HasOneKeyTwice, "test_attributes_are_features_with_numbers_of_their_own"),
    Broken(ReplaysTheOldArguments, "test_a_replay_does_what_was_captured"),
    Broken(LeavesWorkUnjoined, "test_work_that_is_not_joined_is_an_error"),
    Broken(HasOneCapture, "test_streams_are_forked_and_joined", "test_a_driver_tells_what_is_captured"),
    Broken(SharesItsStream, "test_streams_are_made_and_given_back"),
    Broken(RaisesWhenEventsGo, "test_events_are_recorded_again_and_again"),
    Broken(NeverGetsToEvents, "test_events_are_recorded_again_and_again"),
    Broken(MeasuresNanoseconds, "test_elapsed_is_in_seconds"),
    Broken(MeasuresBackwards, "test_elapsed_is_in_seconds"),
    Broken(ForgetsWhatIsPinned, "test_pinned_arrays"),
    Broken(MistakesPointers, "test_pointers_are_known_or_not"),
    Broken(CountsThreadsForBlocks, "test_occupancy"),
    Broken(SuggestsTooMuch, "test_a_suggested_block_can_be_launched"),
    Broken(AcceptsAnything, "test_a_device_accepts_its_own_target"),
    Broken(KnowsNoVersion, "test_versions_are_short_texts"),
]
