"""The driver of the OpenCL backend: what podium asks, passed on to the module that has the answer.

The modules are imported when they are first needed: choosing a driver must cost little, and pyopencl takes a while.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from podium.backend import Device, Driver, Function, LaunchConfig, ObjectCode, Parameters, Program, Target
from podium.errors import LaunchConfigError

from podium_opencl.detection import inactive_reason
from podium_opencl.launcher import OpenclLauncher

if TYPE_CHECKING:
    from podium.backend import Buffer

__all__ = ["OpenclDriver"]


class OpenclDriver(Driver):
    """Runs kernels on OpenCL devices that have shared virtual memory, so that a pointer is an address.

    Streams are command queues that keep their order; stream 0 is a queue of each device.
    """

    name = "opencl"
    priority = 50
    launcher_cls = OpenclLauncher
    languages = frozenset({"cuda", "opencl"})
    features = frozenset({"streams", "events"})
    dlpack_devices = frozenset({4})  # kDLOpenCL
    environment: ClassVar = {
        "PODIUM_OPENCL_PLATFORM": "a part of the name of the OpenCL platform to use; default: all of them",
    }

    # ---- what there is ----

    @classmethod
    def inactive_reason(cls) -> str | None:
        """Say why there is no OpenCL device to use, and what to do."""
        return inactive_reason()

    def devices(self) -> Sequence[Device]:
        """Return the devices with shared virtual memory, GPUs first."""
        from podium_opencl.device import open_devices

        return [device.record for device in open_devices()]

    def default_target(self) -> Target:
        """Return the target of the first device."""
        from podium_opencl.device import open_device

        return open_device(0).target

    def current_device(self) -> int:
        """Return the first device: OpenCL has no device that is current in a thread."""
        return 0

    def pointer_device(self, address: int) -> tuple[int, int] | None:
        """Return the device whose memory is at an address, if podium allocated it."""
        from podium_opencl.memory import pointer_device

        return pointer_device(address)

    def describe_status(self, status: int) -> tuple[str, str]:
        """Return OpenCL's name of a status, and its text."""
        from podium_opencl.status import describe

        return describe(status)

    def versions(self) -> Mapping[str, str]:
        """Return the versions of pyopencl, and of the first device's platform and driver once OpenCL is in use."""
        from podium_opencl.device import known_versions

        return known_versions()

    # ---- code ----

    def toolchain(self, language: str) -> str:
        """Name the compilers of the platforms, with their versions. Starts OpenCL."""
        from podium_opencl.compiler import toolchain

        return toolchain(language)

    def compile(self, program: Program, target: Target) -> ObjectCode:
        """Translate CUDA's dialect to OpenCL C, and build it for a device that is here."""
        from podium_opencl.compiler import compile_program

        return compile_program(program, target)

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        """Load code, with a block of memory for its variables."""
        from podium_opencl.function import load

        return load(code, name, device)

    def load_beside(self, function: Function, code: ObjectCode, name: str, device: int) -> Function:
        """Return another kernel of code that is loaded."""
        from podium_opencl.function import load_beside

        return load_beside(function, code, name)

    def variable(self, function: Function, code: ObjectCode, name: str, device: int) -> tuple[int, int]:
        """Return the address and the bytes of a variable."""
        from podium_opencl.function import variable

        return variable(function, code, name)

    def unload(self, function: Function, device: int) -> None:
        """Release code."""
        from podium_opencl.function import unload

        unload(function)

    # ---- launches ----

    def check(self, kernel: str, function: Function, config: LaunchConfig, device: int) -> None:
        """Refuse dynamic shared memory that does not fit beside the kernel's own."""
        most = function.attributes["max_dynamic_shared"]
        if config.shared > most:
            raise LaunchConfigError(
                f"{kernel}: {config.shared} bytes of dynamic shared memory do not fit: the kernel declares "
                f"{function.attributes['shared']} bytes, which leaves {most}",
                kernel=kernel,
                axis="shared",
                value=config.shared,
            )

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        """Launch by pyopencl; return the status."""
        from podium_opencl.launch import launch

        self.launch = launch  # type: ignore[method-assign]  # from now on without this step
        return launch(function, config, device, stream, parameters)

    # ---- memory ----

    def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Buffer:
        """Return shared virtual memory, freed in the order of a stream or after all work of the device."""
        from podium_opencl.memory import SvmBuffer

        return SvmBuffer(size, alignment, device, stream)

    def copy(self, destination: int, source: int, size: int, device: int, stream: int) -> None:
        """Copy bytes in any direction, after what is in the stream; done when it returns."""
        from podium_opencl.memory import copy

        copy(destination, source, size, device, stream)

    # ---- streams and events ----

    def current_stream(self, device: int) -> int:
        """Return stream 0, the queue of each device that launches go to which name none."""
        return 0

    def synchronize(self, device: int, stream: int | None = None) -> int:
        """Wait for a stream, or for the device; return the status."""
        from podium_opencl.stream import synchronize

        return synchronize(device, stream)

    def create_stream(self, device: int, priority: int) -> int:
        """Make a queue; all have the same priority."""
        from podium_opencl.stream import create_stream

        return create_stream(device, priority)

    def destroy_stream(self, stream: int, device: int) -> None:
        """Give a queue back; its work goes on."""
        from podium_opencl.stream import destroy_stream

        destroy_stream(stream, device)

    def create_event(self, device: int, timed: bool) -> int:
        """Make an event."""
        from podium_opencl.event import create_event

        return create_event(device)

    def destroy_event(self, event: int, device: int) -> None:
        """Give an event back."""
        from podium_opencl.event import destroy_event

        destroy_event(event)

    def record_event(self, event: int, device: int, stream: int) -> int:
        """Put an event behind the work that is in a stream now; return the status."""
        from podium_opencl.event import record_event

        return record_event(event, device, stream)

    def wait_event(self, device: int, stream: int, event: int) -> int:
        """Let the later work of a stream wait for an event; return the status."""
        from podium_opencl.event import wait_event

        return wait_event(device, stream, event)

    def event_done(self, event: int, device: int) -> bool:
        """Tell whether the work before an event has ended."""
        from podium_opencl.event import event_done

        return event_done(event, device)

    def synchronize_event(self, event: int, device: int) -> int:
        """Wait for the work before an event; return the status."""
        from podium_opencl.event import synchronize_event

        return synchronize_event(event)

    def elapsed(self, start: int, end: int, device: int) -> float:
        """Return the seconds between two events."""
        from podium_opencl.event import elapsed

        return elapsed(start, end, device)
