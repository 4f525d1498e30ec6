"""The driver of the NVIDIA backend: what podium asks, passed on to the module that has the answer.

The modules are imported when they are first needed: choosing a driver must cost little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from podium.backend import (
    Device,
    Driver,
    Function,
    LaunchConfig,
    ObjectCode,
    Parameters,
    Program,
    Target,
    environment_flag,
)

from podium_nvidia.attribute_keys import KEYS
from podium_nvidia.default_stream import PER_THREAD, VARIABLE, default_stream_handle
from podium_nvidia.launcher import NvidiaLauncher, PerThreadLauncher

if TYPE_CHECKING:
    from podium.backend import Buffer, Occupancy

__all__ = ["NvidiaDriver"]


class NvidiaDriver(Driver):
    """Runs kernels on NVIDIA GPUs, in whatever context of a device is current, or else in its primary one."""

    name = "nvidia"
    priority = 100
    launcher_cls = NvidiaLauncher
    languages = frozenset({"cuda", "ptx"})
    features = frozenset(
        {"cluster", "cooperative", "dependent", "streams", "events", "graphs", "pinned", "occupancy", *KEYS}
    )
    attribute_keys = KEYS
    dlpack_devices = frozenset({2, 3, 13})  # memory of devices, of the host pinned for them, and managed
    environment: ClassVar = {
        "PODIUM_NVIDIA_LIBCUDA": "the file of the CUDA driver library, instead of the one that the loader finds",
        "PODIUM_NVIDIA_NVRTC": "the file of NVRTC, which compiles CUDA C++, instead of the one that is found",
        "PODIUM_NVIDIA_NVTX": "1 puts an NVTX range around each launch, for profilers; needs the package nvtx",
        VARIABLE: "the stream of launches that name none: legacy, which is the default, or per-thread",
    }

    def __init__(self, *, default_stream: str | None = None) -> None:
        """Make the driver; launches that name no stream go to the "legacy" default stream or the "per-thread" one.

        None stands for the variable PODIUM_NVIDIA_STREAM. Raises ValueError for another name, `SettingError` if it is
        the variable's, or if PODIUM_NVIDIA_NVTX asks for ranges and the package nvtx is missing.
        """
        self._devices: tuple[Device, ...] | None = None
        self._default_stream = default_stream_handle(default_stream)
        if self._default_stream == PER_THREAD:
            self.launcher_cls = PerThreadLauncher  # type: ignore[misc]  # for this instance
        if environment_flag("PODIUM_NVIDIA_NVTX"):
            from podium_nvidia.nvtx import start_from_environment

            start_from_environment()

    # ---- what there is ----

    @classmethod
    def inactive_reason(cls) -> str | None:
        """Say why there is no NVIDIA GPU to use, and what to do."""
        from podium_nvidia.detection import inactive_reason

        return inactive_reason()

    def devices(self) -> Sequence[Device]:
        """Return the devices that CUDA_VISIBLE_DEVICES leaves, in its order."""
        if self._devices is None:
            from podium_nvidia.device import devices

            self._devices = tuple(devices())
        return self._devices

    def default_target(self) -> Target:
        """Return the target for the device that is current, or else the first."""
        from podium_nvidia.device import target

        return target(self.current_device())

    def current_device(self) -> int:
        """Return the device of the context that is current in this thread; 0 if there is none."""
        from podium_nvidia.context import current_device

        return current_device() or 0

    def can_access(self, device: int, peer: int) -> bool:
        """Tell whether kernels on a device can reach the memory of a peer, and let them."""
        from podium_nvidia.peer_access import can_access

        return can_access(device, peer)

    def pointer_device(self, address: int) -> tuple[int, int] | None:
        """Return the DLPack device type and the device of the memory at an address."""
        from podium_nvidia.memory import pointer_device

        return pointer_device(address)

    def describe_status(self, status: int) -> tuple[str, str]:
        """Return the CUDA driver's name and text of a status, with what to do where that is known."""
        from podium_nvidia.status import describe

        return describe(status)

    def versions(self) -> Mapping[str, str]:
        """Return the versions of the NVIDIA driver and of NVRTC."""
        from podium_nvidia.versions import versions

        return versions()

    # ---- code ----

    def toolchain(self, language: str) -> str:
        """Name the compiler of a language, with its version."""
        from podium_nvidia.toolchain import toolchain

        return toolchain(language)

    def compile(self, program: Program, target: Target) -> ObjectCode:
        """Compile, or link, with NVIDIA's libraries; works without a device."""
        from podium_nvidia.compiler import compile_program

        return compile_program(program, target)

    def accepts(self, code: Target, device: Target) -> bool:
        """Tell whether a device runs code that was built for a target."""
        from podium_nvidia.arch import Arch, runs_on

        if code == device:
            return True
        try:
            return code.backend == self.name and runs_on(Arch.parse(code.arch), Arch.parse(device.arch))
        except ValueError:
            return False

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        """Load code, with the largest dynamic shared memory and clusters that the device has."""
        from podium_nvidia.function import load

        return load(code, name, device)

    def load_beside(self, function: Function, code: ObjectCode, name: str, device: int) -> Function:
        """Return another kernel of code that is loaded."""
        from podium_nvidia.function import load_beside

        return load_beside(function, code, name, device)

    def variable(self, function: Function, code: ObjectCode, name: str, device: int) -> tuple[int, int]:
        """Return the address and the bytes of a variable."""
        from podium_nvidia.function import variable

        return variable(function, code, name, device)

    def unload(self, function: Function, device: int) -> None:
        """Release code, unless a graph may still launch a kernel of it."""
        from podium_nvidia.function import unload

        unload(function)

    # ---- launches ----

    def check(self, kernel: str, function: Function, config: LaunchConfig, device: int) -> None:
        """Refuse attributes that the device lacks, and blocks, clusters and cooperative grids that do not fit."""
        known = function.attributes
        if not config.is_plain or "cluster_x" in known or config.shared > known["max_dynamic_shared"]:
            from podium_nvidia.occupancy import check_shape

            check_shape(kernel, function, config, device)

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        """Launch by cuda-python; return the status."""
        from podium_nvidia.launch import launch

        self.launch = launch  # type: ignore[method-assign]  # from now on without this step
        return launch(function, config, device, stream, parameters)

    def occupancy(self, function: Function, device: int, config: LaunchConfig) -> Occupancy:
        """Compute how many blocks of a launch run at once."""
        from podium_nvidia.occupancy import occupancy

        return occupancy(function, device, config)

    def suggested_block(self, function: Function, device: int, shared: int) -> tuple[int, int]:
        """Return threads in a block that fill the device, and the fewest blocks for that."""
        from podium_nvidia.occupancy import suggested_block

        return suggested_block(function, device, shared)

    # ---- memory ----

    def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Buffer:
        """Return memory of a device, in the order of a stream or for any of them."""
        from podium_nvidia.memory import DeviceBuffer

        return DeviceBuffer(size, alignment, device, stream)

    def allocate_pinned(self, size: int, alignment: int, device: int) -> Buffer:
        """Return memory of the host that all devices reach."""
        from podium_nvidia.memory import PinnedBuffer

        return PinnedBuffer(size, alignment, device)

    def copy(self, destination: int, source: int, size: int, device: int, stream: int) -> None:
        """Copy bytes in any direction, after what is in the stream; done when it returns."""
        from podium_nvidia.memory import copy

        copy(destination, source, size, device, stream)

    # ---- streams and events ----

    def current_stream(self, device: int) -> int:
        """Return the default stream: 0 is the legacy one, 2 that of the thread."""
        return self._default_stream

    def dlpack_stream(self, stream: int) -> int:
        """Return a stream in DLPack's numbering."""
        from podium_nvidia.stream import dlpack_stream

        return dlpack_stream(stream)

    def capturing(self, device: int, stream: int) -> bool:
        """Tell whether a stream is captured, or cannot be used since another one is."""
        from podium_nvidia.stream import capturing

        return capturing(device, stream)

    def synchronize(self, device: int, stream: int | None = None) -> int:
        """Wait for a stream, or for the device; return the status."""
        from podium_nvidia.stream import synchronize

        return synchronize(device, stream)

    def create_stream(self, device: int, priority: int) -> int:
        """Make a stream that waits for no other."""
        from podium_nvidia.stream import create_stream

        return create_stream(device, priority)

    def destroy_stream(self, stream: int, device: int) -> None:
        """Give a stream back; its work ends."""
        from podium_nvidia.stream import destroy_stream

        destroy_stream(stream, device)

    def create_event(self, device: int, timed: bool) -> int:
        """Make an event."""
        from podium_nvidia.event import create_event

        return create_event(device, timed)

    def destroy_event(self, event: int, device: int) -> None:
        """Give an event back."""
        from podium_nvidia.event import destroy_event

        destroy_event(event, device)

    def record_event(self, event: int, device: int, stream: int) -> int:
        """Put an event behind the work that is in a stream now; return the status."""
        from podium_nvidia.event import record_event

        return record_event(event, device, stream)

    def wait_event(self, device: int, stream: int, event: int) -> int:
        """Let the later work of a stream wait for an event; return the status."""
        from podium_nvidia.event import wait_event

        return wait_event(device, stream, event)

    def event_done(self, event: int, device: int) -> bool:
        """Tell whether the work before an event has ended."""
        from podium_nvidia.event import event_done

        return event_done(event, device)

    def synchronize_event(self, event: int, device: int) -> int:
        """Wait for the work before an event; return the status."""
        from podium_nvidia.event import synchronize_event

        return synchronize_event(event, device)

    def elapsed(self, start: int, end: int, device: int) -> float:
        """Return the seconds between two events."""
        from podium_nvidia.event import elapsed

        return elapsed(start, end, device)

    # ---- graphs ----

    def begin_capture(self, device: int, stream: int) -> None:
        """Begin to capture a stream, such that nothing outside of it breaks the capture but to wait for the device."""
        from podium_nvidia.graph import begin_capture

        begin_capture(device, stream)

    def capture_state(self, device: int, stream: int) -> tuple[int, int]:
        """Return the number of the capture that a stream takes part in, and its last node."""
        from podium_nvidia.graph import capture_state

        return capture_state(device, stream)

    def end_capture(self, device: int, stream: int) -> int:
        """End a capture and return its graph."""
        from podium_nvidia.graph import end_capture

        return end_capture(device, stream)

    def launch_graph(self, graph: int, device: int, stream: int) -> int:
        """Launch a graph; return the status."""
        from podium_nvidia.graph import launch_graph

        return launch_graph(graph, device, stream)

    def update_node(
        self, graph: int, node: int, function: int, config: LaunchConfig, device: int, parameters: Parameters
    ) -> int:
        """Change a kernel of a graph; return the status."""
        from podium_nvidia.graph import update_node

        return update_node(graph, node, config, device, parameters)

    def destroy_graph(self, graph: int, device: int) -> None:
        """Give a graph back; its launches end."""
        from podium_nvidia.graph import destroy_graph

        destroy_graph(graph, device)
