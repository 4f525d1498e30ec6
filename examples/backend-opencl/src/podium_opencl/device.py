"""The devices with shared virtual memory, of all platforms, each with a context and a default queue of its own."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from podium.backend import Device, ForkSafeLock, Target
from podium.errors import BackendError, ForkedProcessError, LaunchConfigError, SettingError

from podium_opencl.detection import note_unusable
from podium_opencl.facts import WARP_SIZE, DeviceFacts
from podium_opencl.opencl import opencl
from podium_opencl.status import describe, status_of, unusable

__all__ = [
    "OpenDevice",
    "device_of_arch",
    "is_forked",
    "known_versions",
    "open_device",
    "open_devices",
    "started_devices",
    "tell_apart",
]

_PLATFORM_VARIABLE = "PODIUM_OPENCL_PLATFORM"

_LARGEST_GRID = (1 << 31) - 1
_COARSE_GRAIN = 1  # CL_DEVICE_SVM_COARSE_GRAIN_BUFFER

_lock = ForkSafeLock()
_devices: tuple[OpenDevice, ...] | None = None
_process = 0  # the one that started OpenCL


class OpenDevice:
    """A device: what it can do, its context, and its queues."""

    def __init__(self, index: int, handle: Any) -> None:
        self.index, self.handle = index, handle
        self.platform = _name(handle.platform)
        self.name = _name(handle)
        self.versions = {
            "platform": f"{self.platform} {str(handle.platform.version).strip()}",
            "driver": str(handle.driver_version).strip(),
        }
        self.arch = f"{_word(self.platform)}.{_word(self.name)}"

    @cached_property
    def facts(self) -> DeviceFacts:
        """What a translation has to know of it."""
        return DeviceFacts(frozenset(str(self.handle.extensions).split()))

    @cached_property
    def target(self) -> Target:
        """What code for it is compiled for: binaries are for one kind of device of one platform."""
        return Target("opencl", self.arch, WARP_SIZE)

    @cached_property
    def record(self) -> Device:
        """The device as podium knows it."""
        x, y, z = (int(size) for size in list(self.handle.max_work_item_sizes)[:3])
        return Device(
            index=self.index,
            name=self.name,
            target=self.target,
            max_grid=(_LARGEST_GRID, _LARGEST_GRID, _LARGEST_GRID),
            max_block=(x, y, z),
            max_threads=int(self.handle.max_work_group_size),
            max_shared=int(self.handle.local_mem_size),
            memory=int(self.handle.global_mem_size),
            max_parameter_bytes=int(self.handle.max_parameter_size),
        )

    @cached_property
    def context(self) -> Any:
        """The context of the device, which has no other device in it."""
        return opencl().Context([self.handle])

    @cached_property
    def queue(self) -> Any:
        """The queue that is stream 0."""
        return self.make_queue()

    @cached_property
    def queue_handle(self) -> int:
        """The cl_command_queue that stream 0 is."""
        return int(self.queue.int_ptr)

    def make_queue(self) -> Any:
        """Make a queue that keeps its order and takes the time of commands."""
        cl = opencl()
        return cl.CommandQueue(self.context, self.handle, cl.command_queue_properties.PROFILING_ENABLE)


def open_devices() -> tuple[OpenDevice, ...]:
    """Return the devices with shared virtual memory, those of one platform next to each other, GPUs first.

    Raises `BackendError` if there is none, `SettingError` if PODIUM_OPENCL_PLATFORM names none, and
    `ForkedProcessError` in a child of a process that had asked, since the threads of the platforms are not there.
    """
    global _devices, _process
    found = started_devices()
    if found:
        return found
    with _lock:
        if is_forked():
            raise ForkedProcessError("opencl", _process)
        if _devices is None:
            found = _find()
            _process = os.getpid()  # before the devices are there, or others would take this process for a child
            _devices = found
        return _devices


def started_devices() -> tuple[OpenDevice, ...]:
    """Return the devices that this process has opened: none before OpenCL is used, and none of its parent's."""
    return _devices if _devices is not None and _process == os.getpid() else ()


def is_forked() -> bool:
    """Tell whether OpenCL was started by a process that this one was forked from."""
    return _devices is not None and _process != os.getpid()


def open_device(index: int) -> OpenDevice:
    """Return a device by its index. Raises `LaunchConfigError` if there is none."""
    devices = open_devices()
    if not 0 <= index < len(devices):
        raise LaunchConfigError(
            f"There is no OpenCL device {index}: those with shared virtual memory are 0 to {len(devices) - 1}",
            value=index,
        )
    return devices[index]


def known_versions() -> dict[str, str]:
    """Return the version of pyopencl and, once OpenCL is in use, what the first device has. It starts nothing."""
    try:
        known = {"pyopencl": version("pyopencl")}
    except PackageNotFoundError:
        known = {}
    return known | (_devices[0].versions if _devices else {})


def device_of_arch(arch: str) -> OpenDevice | None:
    """Return a device that code for an arch is made for."""
    return next((each for each in open_devices() if each.target.arch == arch), None)


def _find() -> tuple[OpenDevice, ...]:
    """Open every device that can be used. One that cannot, or a whole platform, does not keep the others from it."""
    cl, wanted = opencl(), os.environ.get(_PLATFORM_VARIABLE, "").strip()
    problems: list[str] = []
    handles: list[Any] = []
    for platform in _platforms(wanted):
        try:
            found = platform.get_devices()
        except cl.Error as error:
            problems.append(f"{_name(platform)}: {': '.join(describe(status_of(error)))}")
        else:
            handles += found
            problems += [] if found else [f"{_name(platform)} has no device"]
    devices: list[OpenDevice] = []
    for handle in sorted(handles, key=lambda handle: not handle.type & cl.device_type.GPU):
        if not _has_svm(handle):
            problems.append(f"{_name(handle)} has no shared virtual memory, which podium needs: kernels take addresses")
            continue
        device = OpenDevice(len(devices), handle)
        try:
            _ = device.context, device.queue  # made once, and not by two threads
        except cl.Error as error:
            problems.append(f"{_name(handle)} cannot be opened: {': '.join(describe(status_of(error)))}")
        else:
            devices.append(device)
    if not devices:
        reason = (
            f"no OpenCL device can be used: {'; '.join(problems)}. PoCL has one on every processor, unless its own "
            "variables say otherwise: pip install podium-opencl[pocl]"
        )
        note_unusable(reason)
        raise BackendError(reason)
    tell_apart(devices)
    return tuple(devices)


def tell_apart(devices: Sequence[OpenDevice]) -> None:
    """Put the driver's version behind an architecture that several platforms have, such as two of one vendor.

    The binaries of the one are nothing to the other.
    """
    seen = {(each.arch, each.versions["platform"], each.versions["driver"]) for each in devices}
    shared = Counter(arch for arch, _, _ in seen)
    for each in devices:
        if shared[each.arch] > 1:
            each.arch += f".{_word(each.versions['driver'])}"


def _platforms(wanted: str) -> list[Any]:
    """Return the platforms with a word in their names; nothing is in all of them."""
    cl = opencl()
    try:
        platforms = cl.get_platforms()
        names = [f"{_name(each)} {str(each.version).strip()}" for each in platforms]
    except cl.Error as error:
        failure = unusable(error, "asking for platforms")
        note_unusable(str(failure))
        raise failure from None
    chosen = [each for each, name in zip(platforms, names) if wanted.lower() in name.lower()]
    if wanted and not chosen:
        raise SettingError(
            _PLATFORM_VARIABLE, wanted, f"a part of the name of a platform; there are: {'; '.join(names) or 'none'}"
        )
    return chosen


def _name(handle: Any) -> str:
    return str(handle.name).strip()


def _has_svm(handle: Any) -> bool:
    try:
        return bool(int(handle.svm_capabilities) & _COARSE_GRAIN)
    except opencl().Error:  # a device of OpenCL 1.2 does not know the question
        return False


def _word(text: str) -> str:
    """Make a part of a target: no colons, which separate those, and no blanks."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-") or "unknown"
