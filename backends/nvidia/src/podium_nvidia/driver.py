"""The driver of the NVIDIA backend: what podium asks, passed on to the module that has the answer.

The modules are imported when they are first needed: choosing a driver must cost little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from podium.backend import Driver, deferred, deferred_launcher, environment_flag

from podium_nvidia.attribute_keys import KEYS
from podium_nvidia.default_stream import PER_THREAD, VARIABLE, default_stream_handle

if TYPE_CHECKING:
    from podium.backend import Device, Function, LaunchConfig, Parameters, Target

__all__ = ["NvidiaDriver"]


class NvidiaDriver(Driver):
    """Runs kernels on NVIDIA GPUs, in whatever context of a device is current, or else in its primary one."""

    name = "nvidia"
    priority = 100
    launcher_cls = deferred_launcher("podium_nvidia.launcher:NvidiaLauncher")
    languages = frozenset({"cuda", "ptx"})
    features = frozenset(
        {"cluster", "cooperative", "dependent", "streams", "events", "graphs", "pinned", "occupancy", *KEYS}
    )
    attribute_keys = KEYS
    dlpack_devices = frozenset({2, 3, 13})  # memory of devices, of the host pinned for them, and managed
    environment: ClassVar = {
        "PODIUM_NVIDIA_LIBCUDA": "the file of the CUDA driver library, instead of the one that the loader finds",
        "PODIUM_NVIDIA_NVRTC": "the file of NVRTC, which compiles CUDA C++, instead of the one that is found",
        "PODIUM_NVIDIA_NVJITLINK": "the file of nvJitLink, which links, instead of the one that is found",
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
            from podium_nvidia.launcher import PerThreadLauncher

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

    can_access = deferred(Driver.can_access, "podium_nvidia.peer_access")
    pointer_device = deferred(Driver.pointer_device, "podium_nvidia.memory")
    describe_status = deferred(Driver.describe_status, "podium_nvidia.status:describe")
    versions = deferred(Driver.versions, "podium_nvidia.versions")

    # ---- code ----

    toolchain = deferred(Driver.toolchain, "podium_nvidia.toolchain")
    compile = deferred(Driver.compile, "podium_nvidia.compiler:compile_program")

    def accepts(self, code: Target, device: Target) -> bool:
        """Tell whether a device runs code that was built for a target."""
        from podium_nvidia.arch import Arch, runs_on

        if code == device:
            return True
        try:
            return code.backend == self.name and runs_on(Arch.parse(code.arch), Arch.parse(device.arch))
        except ValueError:
            return False

    load = deferred(Driver.load, "podium_nvidia.function")
    load_beside = deferred(Driver.load_beside, "podium_nvidia.function")
    variable = deferred(Driver.variable, "podium_nvidia.function")
    unload = deferred(Driver.unload, "podium_nvidia.function")

    # ---- launches ----

    def check(self, kernel: str, function: Function, config: LaunchConfig, device: int) -> None:
        """Refuse attributes that the device lacks, and blocks, clusters and cooperative grids that do not fit."""
        if not config.is_plain or "cluster_x" in function.attributes:
            from podium_nvidia.occupancy import check_shape

            check_shape(kernel, function, config, device)

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        """Launch by cuda-python; return the status."""
        from podium_nvidia.launch import launch

        self.launch = launch  # type: ignore[method-assign]  # from now on without this step
        return launch(function, config, device, stream, parameters)

    occupancy = deferred(Driver.occupancy, "podium_nvidia.occupancy")
    suggested_block = deferred(Driver.suggested_block, "podium_nvidia.occupancy")

    # ---- memory ----

    allocate = deferred(Driver.allocate, "podium_nvidia.memory:device_memory")
    allocate_pinned = deferred(Driver.allocate_pinned, "podium_nvidia.memory:pinned_memory")
    copy = deferred(Driver.copy, "podium_nvidia.memory")

    # ---- streams and events ----

    def current_stream(self, device: int) -> int:
        """Return the default stream: 0 is the legacy one, 2 that of the thread."""
        return self._default_stream

    dlpack_stream = deferred(Driver.dlpack_stream, "podium_nvidia.stream")
    stream_device = deferred(Driver.stream_device, "podium_nvidia.stream")
    capturing = deferred(Driver.capturing, "podium_nvidia.stream")
    synchronize = deferred(Driver.synchronize, "podium_nvidia.stream")
    create_stream = deferred(Driver.create_stream, "podium_nvidia.stream")
    destroy_stream = deferred(Driver.destroy_stream, "podium_nvidia.stream")
    create_event = deferred(Driver.create_event, "podium_nvidia.event")
    destroy_event = deferred(Driver.destroy_event, "podium_nvidia.event")
    record_event = deferred(Driver.record_event, "podium_nvidia.event")
    wait_event = deferred(Driver.wait_event, "podium_nvidia.event")
    event_done = deferred(Driver.event_done, "podium_nvidia.event")
    synchronize_event = deferred(Driver.synchronize_event, "podium_nvidia.event")
    elapsed = deferred(Driver.elapsed, "podium_nvidia.event")

    # ---- graphs ----

    begin_capture = deferred(Driver.begin_capture, "podium_nvidia.graph")
    capture_state = deferred(Driver.capture_state, "podium_nvidia.graph")
    end_capture = deferred(Driver.end_capture, "podium_nvidia.graph")
    launch_graph = deferred(Driver.launch_graph, "podium_nvidia.graph")
    update_node = deferred(Driver.update_node, "podium_nvidia.graph")
    destroy_graph = deferred(Driver.destroy_graph, "podium_nvidia.graph")
