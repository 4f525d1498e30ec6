"""The driver of the OpenCL backend: what podium asks, passed on to the module that has the answer.

The modules are imported when they are first needed: choosing a driver must cost little, and pyopencl takes a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from podium.backend import Device, Driver, deferred

from podium_opencl.launcher import OpenclLauncher

__all__ = ["OpenclDriver"]


class OpenclDriver(Driver):
    """Runs kernels on OpenCL devices that have shared virtual memory, so that a pointer is an address.

    Streams are command queues that keep their order; stream 0 is a queue of each device. OpenCL has no device that is
    current in a thread, so it is always the first one, and stream 0 is always the current stream.
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
        from podium_opencl.detection import inactive_reason

        return inactive_reason()

    def devices(self) -> Sequence[Device]:
        """Return the devices with shared virtual memory, GPUs first."""
        from podium_opencl.device import open_devices

        return [device.record for device in open_devices()]

    pointer_device = deferred(Driver.pointer_device, "podium_opencl.memory")
    describe_status = deferred(Driver.describe_status, "podium_opencl.status:describe")
    versions = deferred(Driver.versions, "podium_opencl.device:known_versions")

    # ---- code ----

    toolchain = deferred(Driver.toolchain, "podium_opencl.compiler")
    compile = deferred(Driver.compile, "podium_opencl.compiler:compile_program")
    load = deferred(Driver.load, "podium_opencl.function")
    load_beside = deferred(Driver.load_beside, "podium_opencl.function")
    variable = deferred(Driver.variable, "podium_opencl.function")
    unload = deferred(Driver.unload, "podium_opencl.function")

    # ---- launches ----

    launch = deferred(Driver.launch, "podium_opencl.launch")

    # ---- memory ----

    allocate = deferred(Driver.allocate, "podium_opencl.memory:SvmBuffer")
    copy = deferred(Driver.copy, "podium_opencl.memory")

    # ---- streams and events ----

    synchronize = deferred(Driver.synchronize, "podium_opencl.stream")
    create_stream = deferred(Driver.create_stream, "podium_opencl.stream")
    destroy_stream = deferred(Driver.destroy_stream, "podium_opencl.stream")
    create_event = deferred(Driver.create_event, "podium_opencl.event")
    destroy_event = deferred(Driver.destroy_event, "podium_opencl.event")
    record_event = deferred(Driver.record_event, "podium_opencl.event")
    wait_event = deferred(Driver.wait_event, "podium_opencl.event")
    event_done = deferred(Driver.event_done, "podium_opencl.event")
    synchronize_event = deferred(Driver.synchronize_event, "podium_opencl.event")
    elapsed = deferred(Driver.elapsed, "podium_opencl.event")
