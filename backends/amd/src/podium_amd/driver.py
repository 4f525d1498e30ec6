"""The driver of the AMD backend: what podium asks, passed on to the module that has the answer.

The modules are imported when they are first needed: choosing a driver must cost little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from podium.backend import Driver, deferred, deferred_launcher, environment_flag

from podium_amd.attribute_keys import KEYS
from podium_amd.default_stream import PER_THREAD, VARIABLE, default_stream_handle

if TYPE_CHECKING:
    from podium.backend import Device, Function, LaunchConfig, Parameters, Target

__all__ = ["AmdDriver"]


class AmdDriver(Driver):
    """Runs kernels on AMD GPUs, by HIP."""

    name = "amd"
    priority = 100
    launcher_cls = deferred_launcher("podium_amd.launcher:AmdLauncher")
    languages = frozenset({"cuda"})
    features = frozenset({"cooperative", "streams", "events", "pinned", "occupancy", *KEYS})
    attribute_keys = KEYS
    dlpack_devices = frozenset({10, 11})  # memory of devices, and of the host pinned for them
    environment: ClassVar = {
        "PODIUM_AMD_LIBHIP": "the file of the HIP runtime library, instead of the one that is found",
        "PODIUM_AMD_HIPRTC": "the file of hipRTC, which compiles kernels, instead of the one that is found",
        "PODIUM_AMD_ROCTX": "1 puts a ROCTX range around each launch, for profilers; needs ROCm's library roctx",
        VARIABLE: "the stream of launches that name none: legacy, which is the default, or per-thread",
    }

    def __init__(self, *, default_stream: str | None = None) -> None:
        """Make the driver; launches that name no stream go to the "legacy" default stream or the "per-thread" one.

        None stands for the variable PODIUM_AMD_STREAM. Raises ValueError for another name, `SettingError` if it is
        the variable's, or if PODIUM_AMD_ROCTX asks for ranges and the library roctx is missing.
        """
        self._devices: tuple[Device, ...] | None = None
        self._launch: Callable[[int, LaunchConfig, int, int, Parameters], int] | None = None
        self._default_stream = default_stream_handle(default_stream)
        if self._default_stream == PER_THREAD:
            from podium_amd.launcher import PerThreadLauncher

            self.launcher_cls = PerThreadLauncher  # type: ignore[misc]  # for this instance
        if environment_flag("PODIUM_AMD_ROCTX"):
            from podium_amd.roctx import start_from_environment

            start_from_environment()

    # ---- what there is ----

    @classmethod
    def inactive_reason(cls) -> str | None:
        """Say why there is no AMD GPU to use, and what to do."""
        from podium_amd.detection import inactive_reason

        return inactive_reason()

    def devices(self) -> Sequence[Device]:
        """Return the devices that the masks leave, in their order."""
        if self._devices is None:
            from podium_amd.device import devices

            self._devices = tuple(devices())
        return self._devices

    def default_target(self) -> Target:
        """Return the target for the device that is current, or else the first."""
        from podium_amd.device import target

        return target(self.current_device())

    current_device = deferred(Driver.current_device, "podium_amd.context")
    can_access = deferred(Driver.can_access, "podium_amd.peer_access")
    pointer_device = deferred(Driver.pointer_device, "podium_amd.memory")

    def describe_status(self, status: int) -> tuple[str, str]:
        """Return HIP's name and text of a status, with what to do where that is known.

        It becomes an error then, so the runtime need not keep it for this thread.
        """
        from podium_amd.status import describe, take_last_error

        take_last_error()
        return describe(status)

    versions = deferred(Driver.versions, "podium_amd.versions")

    # ---- code ----

    toolchain = deferred(Driver.toolchain, "podium_amd.toolchain")
    compile = deferred(Driver.compile, "podium_amd.compiler:compile_program")

    def accepts(self, code: Target, device: Target) -> bool:
        """Tell whether a device runs code that was built for a target."""
        from podium_amd.arch import Arch

        if code == device:
            return True
        try:
            return code.backend == self.name and Arch.parse(code.arch).runs_on(Arch.parse(device.arch))
        except ValueError:
            return False

    load = deferred(Driver.load, "podium_amd.function")
    load_beside = deferred(Driver.load_beside, "podium_amd.function")
    variable = deferred(Driver.variable, "podium_amd.function")
    unload = deferred(Driver.unload, "podium_amd.function")

    # ---- launches ----

    def check(self, kernel: str, function: Function, config: LaunchConfig, device: int) -> None:
        """Refuse what the device or its runtime lacks, and grids of too many threads or cooperative blocks."""
        from podium_amd.occupancy import check_shape

        check_shape(kernel, function, config, device)

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        """Launch by hip-python; return the status."""
        if self._launch is None:
            from podium_amd.launch import launch

            self._launch = launch
        return self._launch(function, config, device, stream, parameters)

    occupancy = deferred(Driver.occupancy, "podium_amd.occupancy")
    suggested_block = deferred(Driver.suggested_block, "podium_amd.occupancy")

    # ---- memory ----

    allocate = deferred(Driver.allocate, "podium_amd.memory:device_memory")
    allocate_pinned = deferred(Driver.allocate_pinned, "podium_amd.memory:pinned_memory")
    copy = deferred(Driver.copy, "podium_amd.memory")

    # ---- streams and events ----

    def current_stream(self, device: int) -> int:
        """Return the default stream: 0 is that of all threads, 2 that of the thread."""
        return self._default_stream

    dlpack_stream = deferred(Driver.dlpack_stream, "podium_amd.stream")
    stream_device = deferred(Driver.stream_device, "podium_amd.stream")
    capturing = deferred(Driver.capturing, "podium_amd.stream")
    synchronize = deferred(Driver.synchronize, "podium_amd.stream")
    create_stream = deferred(Driver.create_stream, "podium_amd.stream")
    destroy_stream = deferred(Driver.destroy_stream, "podium_amd.stream")
    create_event = deferred(Driver.create_event, "podium_amd.event")
    destroy_event = deferred(Driver.destroy_event, "podium_amd.event")
    record_event = deferred(Driver.record_event, "podium_amd.event")
    wait_event = deferred(Driver.wait_event, "podium_amd.event")
    event_done = deferred(Driver.event_done, "podium_amd.event")
    synchronize_event = deferred(Driver.synchronize_event, "podium_amd.event")
    elapsed = deferred(Driver.elapsed, "podium_amd.event")
