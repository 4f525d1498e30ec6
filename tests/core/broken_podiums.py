"""More that is wrong on purpose: what a launcher, a plug-in or a patch of podium can break, and what breaks many rules.

These are run on the interpreted level, with a cold cache.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from broken_drivers import (
    Broken,
    HasVariablesOnce,
    HidesItsProcessInTheToolchain,
    LosesTheLog,
    MistakesPointers,
    Recording,
    RenamesItsToolchain,
)

import podium
from podium import _hooks, _launch, _launcher, _scratch, _selection
from podium._packing import Packed
from podium.backend import Buffer, Device, Driver, Function, LaunchConfig, Launcher, ObjectCode, Program, Target
from podium.errors import CompileError, SignatureError
from podium.testing import Capabilities, FakeDriver

__all__ = ["BROKEN_PODIUMS", "Patched"]

FakeLauncher: type[Launcher] = FakeDriver.launcher_cls


class Patched(Recording):
    """The suite on drivers that may break podium, too: `patches` has what they put in the place of what."""

    @pytest.fixture(autouse=True)
    def patched(self, registered: None, monkeypatch: pytest.MonkeyPatch) -> None:
        for owner, name, value in getattr(self.driver_class, "patches", ()):
            monkeypatch.setattr(owner, name, value)


class LosesLaunches(FakeDriver):
    """Nothing that is launched reaches the device."""

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        return 0


class CarelessLauncher(FakeLauncher):
    """It passes zeros where arguments do not fit."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        pack = self.pack

        def careless(given: Any) -> Packed:
            try:
                return pack(given)
            except Exception:
                return Packed(([0] * len(self.signature.passed), None, None, []))

        self.pack = careless  # type: ignore[method-assign]


class TakesAnything(FakeDriver):
    """Its launcher takes every argument."""

    launcher_cls = CarelessLauncher


class ForgivingLauncher(FakeLauncher):
    """It is made of any signature."""

    def __init__(self, *args: Any) -> None:
        with contextlib.suppress(SignatureError):
            super().__init__(*args)


class TakesAnySignature(FakeDriver):
    """Its launchers have signatures that are none."""

    launcher_cls = ForgivingLauncher


class NamelessLauncher(FakeLauncher):
    """It does not know on which level it is."""

    level = property(lambda self: "neither")  # type: ignore[assignment]


class KnowsNoLevel(FakeDriver):
    """Its launchers are on no level."""

    launcher_cls = NamelessLauncher


class ShellLauncher(FakeLauncher):
    """It tells a shell what it is called."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        subprocess.run(f"true {self.name}", shell=True, check=False, stderr=subprocess.DEVNULL)


class AsksAShell(FakeDriver):
    """The names of its kernels reach a shell."""

    launcher_cls = ShellLauncher


class VendorLauncher(FakeLauncher):
    """Its C includes a header that users do not have."""

    template = Path(__file__).parent / "vendor_launch.c.in"


class NeedsAVendorsHeader(FakeDriver):
    """Its template cannot be compiled by users."""

    launcher_cls = VendorLauncher


def _shape(given: Any) -> Any:
    try:
        LaunchConfig(given, 1)
        return given if given and 0 not in ((given,) if isinstance(given, int) else given) else 1
    except Exception:
        return 1


class TakesAnyShape(FakeDriver):
    """What is no grid, an empty one, or a negative one is a grid of one block; what is no stream is the default one."""

    _getitem: ClassVar[Any] = podium.Kernel.__getitem__
    patches: ClassVar = [
        (podium.Kernel, "__getitem__", lambda kernel, key: TakesAnyShape._getitem(kernel, (_shape(key[0]), key[1]))),
        (_launch, "stream_handle", lambda stream, driver: stream if type(stream) is int and 0 <= stream < 1 << 63 else 0),
    ]  # fmt: skip


class KnowsNoLimits(FakeDriver):
    """Nothing is compared with the limits of the device, nor with the features of the driver."""

    patches: ClassVar = [
        (module, name, lambda *_: None)
        for module in (_launch, _launcher)
        for name in ("check_limits", "check_features")
    ]


class CallsNoHooks(FakeDriver):
    """Launches go past the hooks, and compiling and loading are told twice."""

    patches: ClassVar = [
        (_hooks.Hooks, "around", lambda hooks, event, launch: launch()),
        (_hooks.Chain, "functions", lambda chain: chain._functions * 2),
    ]


class AllocatesNothing(FakeDriver):
    """Scratch memory is always at one odd address."""

    patches: ClassVar = [(_scratch, "allocate", lambda *_: (4097, None))]


class MakesADriverEachTime(FakeDriver):
    """Whoever names the backend gets another driver."""

    patches: ClassVar = [(_selection.Selection, "named", lambda selection, name, *_, **__: MakesADriverEachTime())]


@contextlib.contextmanager
def _use_for_good(config: Any, choice: Any, **_: object) -> Iterator[Driver]:
    config.set_active(choice)
    yield config.resolve()


class IsUsedForGood(FakeDriver):
    """`podium.use` chooses it beyond the block."""

    patches: ClassVar = [(podium, "use", partial(_use_for_good, podium.driver))]


class FailsInNewProcesses(FakeDriver):
    """It runs in the process of the tests only."""

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        return super()._record(name, device, shape, stream, values) if sys.argv[0] != "-c" else 1


class IgnoresTheVariable(FakeDriver):
    """Where a user names it in the environment, it is inactive."""

    @classmethod
    def inactive_reason(cls) -> str | None:
        return "do not ask for it" if "PODIUM_BACKEND" in os.environ else None


class ChangesItsMindAfterFork(FakeDriver):
    """It is inactive in a forked child."""

    _asked: ClassVar[int] = 0

    @classmethod
    def inactive_reason(cls) -> str | None:
        cls._asked = cls._asked or os.getpid()
        return None if cls._asked == os.getpid() else "this is another process"


class StartsWhenItIsMade(FakeDriver):
    """Constructing it starts a thread."""

    def __init__(self) -> None:
        super().__init__()
        threading.Thread(target=threading.Event().wait, daemon=True).start()


class DiesAfterFork(FakeDriver):
    """A forked child cannot launch, compile or give anything back."""

    fork_safe = True

    def __init__(self) -> None:
        super().__init__()
        self.process = os.getpid()

    def compile(self, program: Program, target: Target) -> ObjectCode:
        if os.getpid() != self.process:
            raise CompileError("the compiler is in another process")
        return super().compile(program, target)

    def unload(self, function: Function, device: int) -> None:
        if os.getpid() != self.process:
            os._exit(7)
        super().unload(function, device)

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        return 1 if os.getpid() != self.process else super()._record(name, device, shape, stream, values)


class StatesNonsense(FakeDriver):
    """What its class and its devices state is of the wrong kind, and it takes any language."""

    features: ClassVar = ["cluster"]
    languages: ClassVar = frozenset({"cuda", "esperanto"})

    def devices(self) -> Sequence[Device]:
        return [replace(each, index=each.index + 1) for each in super().devices()]

    def current_stream(self, device: int) -> int:
        return -1

    def synchronize(self, device: int, stream: int | None = None) -> int:
        return 1


class HasAnotherTarget(FakeDriver):
    """Its default target is none of its devices', and its code knows more than can be written down."""

    def default_target(self) -> Target:
        return Target(self.name, "fake_2", 32)

    def devices(self) -> Sequence[Device]:
        target = Target(self.name, "fake_1", 32)
        return [replace(each, target=target, max_parameter_bytes=1 << 17) for each in super().devices()]

    def compile(self, program: Program, target: Target) -> ObjectCode:
        return replace(super().compile(program, target), metadata={"shape": (1, 2)})


class HasNoMemory(FakeDriver):
    """It says in a way of its own that there is not enough memory."""

    def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Buffer:
        if size > 1 << 30:
            raise MemoryError(size)
        return super().allocate(size, alignment, device, stream)


class ReadsAnything(FakeDriver):
    """Bytes that are no object code are object code, and any name is in it."""

    patches: ClassVar = [(ObjectCode, "from_bytes", classmethod(lambda cls, data: data))]

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        return super().load(code, code.entries[0].name, device)


class CountsRegistersBackwards(FakeDriver):
    """It has kernels with fewer registers than none."""

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        return replace(super().load(code, name, device), attributes={"registers": -1})


class HasWhatItDoesNotState(FakeDriver):
    """It states no feature, and has them all."""

    features: ClassVar[frozenset[str]] = frozenset()
    attribute_keys: ClassVar[dict[str, int]] = {}


class FailsOnNewEvents(FakeDriver):
    """It cannot wait for an event that was not recorded."""

    def wait_event(self, device: int, stream: int, event: int) -> int:
        return 1 if self.events.get(event) is None else super().wait_event(device, stream, event)


class CountsFromOne(FakeDriver):
    """The time between an event and itself is a second."""

    def elapsed(self, start: int, end: int, device: int) -> float:
        return super().elapsed(start, end, device) + 1


class ExportsNothing(FakeDriver):
    """Its arrays give None to who asks for them, and say that they are CUDA's."""

    patches: ClassVar = [
        (podium.Array, "__dlpack__", lambda array, **_: None),
        (podium.Array, "__cuda_array_interface__", property(lambda array: {"shape": ()})),
    ]


class MendsNames(FakeDriver):
    """A name that is nearly its own is taken for its own."""

    _named: ClassVar[Callable[..., Driver]] = _selection.Selection.named
    patches: ClassVar = [
        (_selection.Selection, "named", lambda selection, name, *more, **options: MendsNames._named(selection, "fake", *more, **options)),
    ]  # fmt: skip


class SaysThatItIsTheHost(FakeDriver):
    """It says that kernels reach host memory, and its arrays are somewhere else."""

    host_memory = True
    patches: ClassVar = [(podium.Array, "__dlpack_device__", lambda array: (2, 0))]


class CopiesNothing(FakeDriver):
    """Nothing is copied."""

    def copy(self, destination: int, source: int, size: int, device: int, stream: int) -> None:
        pass


class TrustsEverybody(FakeDriver):
    """It has podium take code from a folder that others can write."""

    def __init__(self) -> None:
        super().__init__()
        os.environ["PODIUM_CACHE_TRUSTED"] = "1"


class ClaimsToExecute(FakeDriver):
    """It claims that it compiles and runs kernels, and does neither."""

    claimed = Capabilities()
    host_memory = True


class RemembersMistakes(FakeDriver):
    """After a source that it refuses it refuses every other."""

    claimed = Capabilities(executes=False)
    refused = False

    def compile(self, program: Program, target: Target) -> ObjectCode:
        if self.refused:
            raise CompileError("there was a mistake before")
        self.refused = "#error" in program.source
        return super().compile(program, target)


class LeavesFiles(FakeDriver):
    """It leaves a file behind when it compiles."""

    claimed = Capabilities(executes=False)

    def compile(self, program: Program, target: Target) -> ObjectCode:
        os.close(tempfile.mkstemp()[0])
        return super().compile(program, target)


class CompilesInAShell(FakeDriver):
    """It tells a shell where the source is, and with which options it compiles."""

    claimed = Capabilities(executes=False)

    def compile(self, program: Program, target: Target) -> ObjectCode:
        words = [str(program.path), *program.options.flags, *(value for _, value in program.options.defines)]
        subprocess.run(f"true {' '.join(words)}", shell=True, check=False, stderr=subprocess.DEVNULL)
        return super().compile(program, target)


_COMPUTED = (
    "a_kernel_can_be_unloaded_and_launched_again dropping_a_kernel_unloads_it numpy_arrays "
    "subclasses_of_int_have_the_value_of_an_int a_stream_keeps_its_order the_work_of_a_dropped_stream_goes_on "
    "a_copy_comes_after_the_work_of_its_stream the_choice_is_the_processs use_is_for_one_thread "
    "replays_keep_the_order_of_their_stream what_is_wrong_in_a_capture memory_is_freed_in_a_capture "
    "a_graph_keeps_arrays_and_code a_template_is_instantiated_by_name_expression a_kernel_in_a_namespace "
    "extern_c_and_several_kernels comments_and_line_ends device_globals_start_as_they_are_written mathematics "
    "variables_in_namespaces_and_kernels_that_are_templates kernels_go_on_after_the_module_was_unloaded reduction "
    "tiled_matrix_product histogram sums_of_warps half_precision atomics_in_global_memory "
    "a_mistake_in_a_kernel_is_found_at_its_line a_mistake_in_a_header_is_found_in_the_header damaged_code_is_refused "
    "an_arch_that_there_is_not_is_refused a_kernel_that_is_not_there_is_refused "
    "variables_begin_with_the_values_of_the_source expressions_and_statements functions "
    "structs_with_members_of_all_kinds warps_go_their_own_ways a_barrier_shows_what_others_have_written"
)
_OBSERVED = (
    "two_backends_at_once metadata_may_be_an_object constants_are_in_the_call_and_not_in_the_binary tuples_are_flattened "
    "grids_are_counted_in_clusters both_levels_hand_over_the_same a_new_signature_moves_over structs_by_value "
    "mixed_types_keep_their_order_and_alignment null_pointers_and_addresses a_kernel_without_parameters "
    "an_array_is_passed_as_its_address dlpack_arrays_of_others arrays_with_data_ptr the_largest_block_runs "
    "a_grid_computed_from_the_arguments the_drivers_stream_is_the_default a_launch_takes_a_stream "
    "a_first_launch_from_many_threads launches_in_parallel the_driver_allocates_it profile_scratch_follows "
    "a_variable_is_an_argument_of_kernels"
)
_CHECKED = (
    "values_that_do_not_fit_are_refused too_few_and_too_many_arguments its_checks_are_those_of_every_launch "
    "both_levels_raise_the_same what_is_no_array_is_refused arrays_of_other_devices_are_refused "
    "arrays_of_peers_without_access_are_refused read_only_arrays_need_a_const_parameter arrays_that_are_not_contiguous "
    "debugging_checks_element_types host_arrays_are_refused_where_kernels_do_not_reach_them numbers_that_lie_or_raise "
    "arrays_that_lie_or_raise"
)


def _tests(names: str) -> list[str]:
    return [f"test_{name}" for name in names.split()]


BROKEN_PODIUMS = [
    Broken(LosesLaunches, *_tests(_OBSERVED)),
    Broken(TakesAnything, *_tests(_CHECKED)),
    Broken(ClaimsToExecute, *_tests(_COMPUTED)),
    Broken(RemembersMistakes, "test_compiling_twice_gives_code_that_is_as_good"),
    Broken(LeavesFiles, "test_an_interrupted_compilation"),
    Broken(CompilesInAShell, "test_options_never_become_commands"),
    Broken(TakesAnySignature, "test_signatures_that_are_none_are_refused"),
    Broken(KnowsNoLevel, "test_a_launch_is_on_the_level_that_was_asked_for"),
    Broken(AsksAShell, "test_names_never_become_code"),
    Broken(NeedsAVendorsHeader, "test_the_template_needs_no_vendors_headers"),
    Broken(
        TakesAnyShape,
        *_tests("an_empty_grid_does_nothing a_negative_grid_is_refused what_is_no_stream_is_refused"),
        "test_grids_blocks_and_streams_that_lie_or_raise",
    ),
    Broken(
        KnowsNoLimits,
        *_tests("a_grid_over_the_devices_limit_is_refused a_block_over_the_devices_limit_is_refused"),
        *_tests("more_shared_memory_than_there_is features_that_are_not_there_are_refused_by_name"),
        "test_attributes_that_are_none_are_refused",
    ),
    Broken(
        CallsNoHooks,
        *_tests("enter_and_exit_see_the_launch hooks_come_and_go_at_any_time an_enter_hook_can_stop_a_launch"),
        *_tests("what_is_not_launched_is_not_seen a_failed_launch_is_seen_with_its_error"),
        "test_compiling_and_loading_are_seen_once",
    ),
    Broken(
        AllocatesNothing,
        *_tests("the_driver_allocates_it the_users_allocator_is_asked an_allocator_for_the_process"),
        "test_an_allocator_that_cannot_serve",
    ),
    Broken(MakesADriverEachTime, "test_set_active_chooses_it"),
    Broken(IsUsedForGood, "test_use_chooses_it_for_a_block"),
    Broken(
        FailsInNewProcesses,
        *_tests("the_variable_chooses_it_in_a_new_process spawned_workers without_a_folder_all_is_in_memory"),
        "test_the_trace_has_every_launch",
    ),
    Broken(IgnoresTheVariable, "test_the_variable_chooses_it"),
    Broken(MendsNames, "test_a_misspelt_name_is_never_replaced"),
    Broken(ChangesItsMindAfterFork, "test_probing_is_safe_before_fork"),
    Broken(StartsWhenItIsMade, "test_the_driver_is_made_without_being_initialised"),
    Broken(
        DiesAfterFork,
        *_tests("detecting_and_then_forking forking_with_kernels_that_are_never_used compiling_in_a_forked_child"),
    ),
    Broken(
        StatesNonsense,
        *_tests("what_the_class_states an_unknown_language_is_refused devices_are_listed_by_index_with_their_limits"),
        *_tests("the_current_device_and_stream_are_plain_integers waiting_for_nothing_succeeds"),
    ),
    Broken(
        HasAnotherTarget,
        *_tests("targets_survive_being_written_down object_code_survives_being_written_down"),
        "test_more_parameters_than_the_device_takes",
    ),
    Broken(HasNoMemory, "test_too_much_memory_is_an_error_that_says_how_much", "test_errors_can_be_pickled"),
    Broken(
        ReadsAnything,
        *_tests(
            "damaged_object_code_is_refused a_name_that_the_code_does_not_have_is_refused object_code_can_be_launched"
        ),
    ),
    Broken(CountsRegistersBackwards, "test_kernels_tell_what_the_backend_knows"),
    Broken(HasWhatItDoesNotState, "test_what_a_backend_does_not_have_is_refused"),
    Broken(FailsOnNewEvents, "test_waiting_for_an_event_that_was_not_recorded"),
    Broken(CountsFromOne, "test_what_takes_no_time_is_refused"),
    Broken(
        ExportsNothing,
        *_tests("arrays_are_exported_as_dlpack arrays_are_exported_by_the_cuda_array_interface"),
    ),
    Broken(SaysThatItIsTheHost, "test_arrays_are_seen_by_numpy"),
    Broken(TrustsEverybody, "test_a_cache_that_others_can_write_is_not_used"),
    Broken(
        CopiesNothing,
        *_tests("arrays_give_back_what_was_put_in brain_floats_give_back_their_bits arrays_are_made_of_arrays"),
        "test_copies_may_wait_for_one_stream_only",
    ),
    Broken(MistakesPointers, "test_an_address_on_the_host_is_refused_while_debugging"),
    Broken(HasVariablesOnce, "test_an_array_keeps_the_code_of_its_variable"),
    Broken(LosesTheLog, "test_compile_errors_can_be_pickled"),
    Broken(
        RenamesItsToolchain,
        *_tests("what_changes_the_output_changes_the_key a_changed_header_is_noticed"),
    ),
    Broken(
        HidesItsProcessInTheToolchain,
        *_tests("a_second_process_compiles_nothing a_damaged_entry_is_made_anew"),
    ),
]
