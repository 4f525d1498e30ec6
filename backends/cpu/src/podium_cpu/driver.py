"""The driver of the CPU backend: the host's memory, its C++ compiler, and one device."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from podium.backend import (
    Device,
    Driver,
    ForkSafeLock,
    Function,
    LaunchConfig,
    ObjectCode,
    Occupancy,
    Parameters,
    Program,
    SharedLibrary,
    Target,
    deferred,
    is_whole,
)
from podium.errors import LoadError

from podium_cpu import runtime
from podium_cpu.launcher import CpuLauncher
from podium_cpu.memory import HostBuffer
from podium_cpu.processor import can_run, host_arch, memory_bytes, processor_identity, processor_name
from podium_cpu.toolchain import check_unchanged, toolchain

if TYPE_CHECKING:
    from podium.backend import Buffer

    from podium_cpu.checks import Checks

__all__ = ["CpuDriver"]

WARP_SIZE = 32

# The statuses of include/podium_cpu_launch.h.
_STATUSES = {
    0: ("PODIUM_CPU_SUCCESS", "no error"),
    1: ("PODIUM_CPU_ERROR_INVALID_VALUE", "the launch has a shape that cannot be"),
    2: ("PODIUM_CPU_ERROR_OUT_OF_MEMORY", "no memory for the stacks of the threads of a block"),
    3: (
        "PODIUM_CPU_ERROR_BARRIER",
        "a barrier or a warp function was not reached by all threads that it waits for",
    ),
    4: ("PODIUM_CPU_ERROR_MASK", "a thread called a warp function with a mask that does not contain its own lane"),
    5: ("PODIUM_CPU_ERROR_ASSERT", "an assertion of the kernel failed"),
    6: ("PODIUM_CPU_ERROR_TRAP", "the kernel called __trap"),
    7: ("PODIUM_CPU_ERROR_INTERRUPTED", "the launch was interrupted by Ctrl-C"),
    8: ("PODIUM_CPU_ERROR_FAULT", "the kernel did what a processor cannot do"),
    9: ("PODIUM_CPU_ERROR_GRID_BARRIER", "only the blocks of a cooperative launch can wait for each other"),
    10: ("PODIUM_CPU_ERROR_SANITIZER", "a sanitizer has found something"),
}

SANITIZER_STATUS = 10

_ADVICE = {
    8: '. With podium.use("cpu", sanitize="address,undefined") the error has the line, the thread and the argument',
}

_lock = ForkSafeLock()


class _Launch(ctypes.Structure):
    """podium_cpu_launch of include/podium_cpu_launch.h."""

    _fields_: ClassVar = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_uint64),
        ("stream", ctypes.c_uint64),
        ("cooperative", ctypes.c_uint64),
    ]


# Calls of this type release the interpreter lock.
_Entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Launch), ctypes.c_void_p)
_Variable = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ctypes.c_ulonglong))


class CpuDriver(Driver):
    """Runs kernels on the host, on all of its processors.

    Stream 0 is the order of the host's own program, as it is for arrays of numpy and for torch's on the CPU: a launch
    there has ended when it returns. Any other number is a queue, which goes on beside the program.
    """

    name = "cpu"
    priority = 0
    launcher_cls = CpuLauncher
    # Memory of the host itself, and such that a GPU's runtime has pinned (3 and 11) or moves about (13).
    dlpack_devices = frozenset({1, 3, 11, 13})
    host_memory = True
    fork_safe = True
    features = frozenset({"cooperative", "streams", "events", "pinned", "occupancy"})
    environment: ClassVar = {
        "PODIUM_CPU_THREADS": "how many threads run the blocks of one launch; default: one for each processor",
        "PODIUM_CPU_ASYNC": "1 makes launches that name no stream go on beside the program, as on a GPU",
        "PODIUM_CPU_SANITIZE": "address, undefined or both with a comma: what kernels are checked for",
    }

    def __init__(self, *, sanitize: str | None = None) -> None:
        """Make the driver; `sanitize` names what kernels are checked for: "address", "undefined", or both with a comma.

        None stands for the variable PODIUM_CPU_SANITIZE. Raises ValueError for other names, `SettingError` if they are
        the variable's, and for wrong values of the other variables.
        """
        from_environment = sanitize is None and "PODIUM_CPU_SANITIZE" not in os.environ
        self.checks: Checks | None = None if from_environment else _checks(sanitize)
        if self.checks is not None:
            from podium_cpu.checked_launcher import CheckedLauncher

            self.launcher_cls = CheckedLauncher  # type: ignore[misc]  # for this instance
            self.features = self.features - {"cooperative"}  # type: ignore[misc]  # only one block runs at a time
        if "PODIUM_CPU_THREADS" in os.environ:
            runtime.thread_count()  # a wrong value is told now, and not by the first launch
        self._libraries: dict[bytes, SharedLibrary] = {}  # by code, whose hash takes a tenth of the time of a digest
        self._runtime: runtime.Runtime | None = None  # where its libraries run
        self._own: dict[int, SharedLibrary] = {}  # with variables, by the number of the module
        self._modules = itertools.count(1)
        self._current_stream = runtime.default_stream()

    @classmethod
    def inactive_reason(cls) -> str | None:
        """Say None: there is always a CPU. A missing compiler is an error of the first compilation."""
        return None

    def toolchain(self, language: str) -> str:
        """Name the host's C++ compiler and this backend's headers."""
        name = toolchain(language)
        return name if self.checks is None else f"{name}\nsanitize {self.checks.sanitizers}"

    def devices(self) -> Sequence[Device]:
        """Return the one device. Its limits on blocks are those of a large GPU: what runs here fits there."""
        return [_device(self.name, host_arch())]

    def default_target(self) -> Target:
        """Return the target for this machine's kind of processor."""
        return _device(self.name, host_arch()).target

    def compile(self, program: Program, target: Target) -> ObjectCode:
        """Compile with the host's C++ compiler."""
        check_unchanged()
        from podium_cpu.compiler import compile_program

        if self.checks is not None:
            return compile_program(program, target, self.checks.sanitizers)
        return compile_program(program, target)

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        """Map the shared object, once for all of its kernels, and look the kernel up.

        One with variables is mapped anew each time: each module has its own.
        """
        code.entry(name)
        if code.target.backend != self.name or not can_run(code.target.arch):
            raise LoadError(
                f"{name} was built for {code.target}, and this machine runs {self.default_target()}: compile it again",
                kernel=name,
                backend=self.name,
            )
        if code.metadata.get("processor", processor_identity()) != processor_identity():
            raise LoadError(
                f"{name} was built with =native for another processor than this {processor_name()}: compile it again",
                kernel=name,
                backend=self.name,
            )
        if code.code[4:5] == b"\2" and not is_whole(code.code):  # of 32 bits the loader itself says what is wrong
            raise LoadError(f"{name}: the code is cut short", kernel=name, backend=self.name)
        try:
            library = self._map(code) if code.variables else self._library(code)
            handle = library.address(code.symbol(name))
        except LoadError as error:
            raise LoadError(f"{name}: {error}", kernel=name, backend=self.name) from None
        module = 0
        if code.variables:
            module = next(self._modules)
            self._own[module] = library
        return Function(handle=handle, module=module, max_threads=1024)

    def load_beside(self, function: Function, code: ObjectCode, name: str, device: int) -> Function:
        """Look another kernel up in the library that is mapped."""
        code.entry(name)
        # Without a number: its variables are none that the host can reach, and all modules of this source share them.
        library = self._own.get(function.module) or self._library(code)
        return Function(handle=library.address(code.symbol(name)), module=function.module, max_threads=1024)

    def variable(self, function: Function, code: ObjectCode, name: str, device: int) -> tuple[int, int]:
        """Ask the library for the address and the size."""
        size = ctypes.c_ulonglong()
        address = _Variable(self._own[function.module].address(code.symbol(name)))(size)
        return address or 0, size.value

    def unload(self, function: Function, device: int) -> None:
        """Keep the code: thread-local memory and pointers to functions may outlive the kernel that they came from."""
        self._own.pop(function.module, None)

    def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Buffer:
        """Return memory of the host."""
        if self.checks is not None and self.checks.sanitizers.address:
            from podium_cpu.arena import ArenaBuffer

            return ArenaBuffer(size, alignment)
        return HostBuffer(size, alignment)

    def copy(self, destination: int, source: int, size: int, device: int, stream: int) -> None:
        """Copy bytes when the stream has come to an end; the two places may overlap."""
        if stream:
            runtime.wait(stream)
        ctypes.memmove(destination, source, size)

    def current_device(self) -> int:
        """Return 0."""
        return 0

    def current_stream(self, device: int) -> int:
        """Return 0, the host's own order; with PODIUM_CPU_ASYNC=1 it is a queue, 1."""
        return self._current_stream

    def synchronize(self, device: int, stream: int | None = None) -> int:
        """Wait for streams, and write out what kernels have printed, as a GPU does here too."""
        status = runtime.wait(stream)
        _c_library().fflush(None)
        return status

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        """Run all blocks and return their status, or put them into the stream's queue."""
        if self.checks is not None:
            return self.checks.launch(lambda: self._launch(function, config, 0, parameters), config.shared)
        return self._launch(function, config, stream, parameters)

    def _launch(self, function: int, config: LaunchConfig, stream: int, parameters: Parameters) -> int:
        shape = _Launch(config.grid, config.block, config.shared, stream, config.cooperative)
        status: int = _Entry(function)(shape, parameters.addresses())
        return status

    create_stream = deferred(Driver.create_stream, "podium_cpu.timeline")

    def destroy_stream(self, stream: int, device: int) -> None:
        """Do nothing: a queue that has come to its end is forgotten by itself."""

    create_event = deferred(Driver.create_event, "podium_cpu.timeline")
    destroy_event = deferred(Driver.destroy_event, "podium_cpu.timeline")
    record_event = deferred(Driver.record_event, "podium_cpu.timeline")
    wait_event = deferred(Driver.wait_event, "podium_cpu.timeline")
    event_done = deferred(Driver.event_done, "podium_cpu.timeline")
    synchronize_event = deferred(Driver.synchronize_event, "podium_cpu.timeline")
    elapsed = deferred(Driver.elapsed, "podium_cpu.timeline")

    def allocate_pinned(self, size: int, alignment: int, device: int) -> Buffer:
        """Return memory as any other: all of it is the host's."""
        return self.allocate(size, alignment, device, None)

    def occupancy(self, function: Function, device: int, config: LaunchConfig) -> Occupancy:
        """Say that each processor runs one block at a time."""
        processors = 1 if self.checks is not None else runtime.thread_count()
        return Occupancy(1, processors, processors)

    def suggested_block(self, function: Function, device: int, shared: int) -> tuple[int, int]:
        """Return 256 threads, enough for a loop over them to pay, and a block for each processor."""
        return 256, 1 if self.checks is not None else runtime.thread_count()

    def describe_status(self, status: int) -> tuple[str, str]:
        """Return the name and the text of a status, with what is known of the case if it has just come up."""
        name, text = _STATUSES.get(status, (f"PODIUM_CPU_ERROR_{status}", "unknown status"))
        detail = runtime.detail(status, self._runtime)
        if self.checks is not None and status == SANITIZER_STATUS:
            return name, self.checks.detail
        if detail:
            text = f"{text}: {detail}"
        return name, text + _ADVICE.get(status, "")

    def keep_alive(self, objects: Sequence[object], device: int, stream: int) -> None:
        """Hold on to the arguments of a queued launch until it has ended."""
        runtime.keep_alive(objects, stream)

    def _library(self, code: ObjectCode) -> SharedLibrary:
        with _lock:
            library = self._libraries.get(code.code)
            if library is None:
                library = self._libraries[code.code] = self._map(code)
            return library

    def _map(self, code: ObjectCode) -> SharedLibrary:
        if self.checks is not None:
            self.checks.prepare()
        debugged = bool(code.metadata.get("debug"))
        if debugged:
            from podium_cpu.debug_source import write_source

            write_source(code.metadata)
        library = SharedLibrary.from_bytes("podium_cpu_kernel", code.code, keep_file=debugged)
        self._runtime = runtime.serve(library)
        if self.checks is not None:
            self.checks.watch(library, code.code)
        return library


@functools.lru_cache(maxsize=1)
def _device(backend: str, arch: str) -> Device:
    return Device(
        index=0,
        name=processor_name(),
        target=Target(backend, arch, WARP_SIZE),
        max_grid=(2147483647, 65535, 65535),
        max_block=(1024, 1024, 64),
        max_threads=1024,
        max_shared=227 << 10,
        memory=memory_bytes(),
        max_parameter_bytes=32764,
    )


def _checks(sanitize: str | None) -> Checks | None:
    from podium_cpu.checks import Checks
    from podium_cpu.sanitizers import Sanitizers

    sanitizers = Sanitizers.of(sanitize)
    return Checks(sanitizers) if sanitizers else None


@functools.lru_cache(maxsize=1)
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
