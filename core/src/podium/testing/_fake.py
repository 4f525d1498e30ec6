"""A driver without a device: it records what reaches it, at both launcher levels, down to the parameter bytes."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from podium.backend import (
    Buffer,
    Device,
    Function,
    LaunchConfig,
    Launcher,
    ObjectCode,
    Occupancy,
    Parameters,
    Program,
    Target,
)
from podium.errors import CompileError, Diagnostic, LoadError, OutOfResourcesError
from podium.testing._fake_graphs import FakeGraphs, RecordedLaunch

__all__ = ["FAKE_DEVICE_TYPE", "FakeArray", "FakeDriver", "FakeLauncher", "RecordedLaunch"]

FAKE_DEVICE_TYPE = 12
"""DLPack's kDLExtDev, reserved for devices under test."""

_MAX_THREADS = 1024
_MULTIPROCESSORS = 4
_PINNED = 3  # DLPack's kDLCUDAHost, since there is no such memory of devices under test


class FakeArray:
    """An array on a fake device: it speaks DLPack, and its address points nowhere."""

    def __init__(self, address: int, device: int = 0, strides: tuple[int, ...] | None = None) -> None:
        self.address, self.device, self.strides = address, device, strides

    def __dlpack_device__(self) -> tuple[int, int]:
        return FAKE_DEVICE_TYPE, self.device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        from podium import _dlpack
        from podium._element_types import element_type

        return _dlpack.export(self, self.address, self.__dlpack_device__(), element_type("fp32"), (4,), max_version)


class _Attribute(ctypes.Structure):
    """struct podium_attribute of podium_launch.h."""

    _fields_ = [("key", ctypes.c_uint32), ("value", ctypes.c_uint32 * 3), ("count", ctypes.c_uint32)]


class _Shape(ctypes.Structure):
    """struct podium_shape of podium_launch.h."""

    _fields_ = [
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("cluster", ctypes.c_uint32 * 3),
        ("flags", ctypes.c_uint32),
        ("shared", ctypes.c_uint64),
        ("attribute_count", ctypes.c_uint32),
        ("attributes", ctypes.POINTER(_Attribute)),
    ]


_Recorder = ctypes.PYFUNCTYPE(
    ctypes.c_int,
    ctypes.POINTER(_Shape),
    ctypes.c_int,
    ctypes.c_uint64,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_int,
)


@dataclass(eq=False)
class _Memory:
    """Host memory that plays device memory, or pinned memory; `place` is DLPack's device type and index."""

    size: int
    ptr: int
    place: tuple[int, int]
    storage: Any = field(repr=False)


class FakeLauncher(Launcher):
    """The launcher of the fake driver."""

    backend = "fake"
    template = Path(__file__).parent / "fake_launch.c.in"


class FakeDriver(FakeGraphs):
    """A driver for tests of podium itself and of code that uses it: no device, no compiler, nothing executed.

    `launches` has what reached it. Set `next_status` to let the next launch fail with that status, `reason` to make the
    backend inactive, `captured` to pretend that streams are being captured; compiled "code" is the program's text.
    `variables` has the memory of those of each module that is loaded, `streams` and `events` the handles of those that
    there are, `order` what happened to them: ("record", event, stream) and ("wait", event, stream). An event has passed
    when it is recorded, and each launch takes a nanosecond. A launch in a capture is kept in `graphs`, by the handle of
    the graph and the node, until a replay records it in `launches`.
    """

    name = "fake"
    priority = 50
    launcher_cls = FakeLauncher
    features = frozenset(
        {
            "cluster",
            "cooperative",
            "dependent",
            "priority",
            "preferred_cluster",
            "streams",
            "events",
            "graphs",
            "pinned",
            "occupancy",
        }
    )
    attribute_keys: ClassVar = {"priority": 8, "preferred_cluster": 11}
    dlpack_devices = frozenset({FAKE_DEVICE_TYPE, _PINNED})
    reason: ClassVar[str | None] = None
    device_count: ClassVar[int] = 2

    def __init__(self) -> None:
        super().__init__()
        self.loaded: dict[int, tuple[str, int]] = {}
        self.unloaded: list[str] = []
        self.compiled: list[Program] = []
        self.sync_status = 0
        self.captured = False
        self.peers = False
        self.version = "1"
        self.variables: dict[int, dict[str, Buffer]] = {}
        self.streams: dict[int, int] = {}  # their priorities
        self._homes: dict[int, int] = {}  # their devices
        self._memory: weakref.WeakSet[_Memory] = weakref.WeakSet()
        self._beside: dict[int, list[int]] = {}
        self._sizes: dict[int, tuple[int, ...]] = {}

    @classmethod
    def inactive_reason(cls) -> str | None:
        return cls.reason

    def toolchain(self, language: str) -> str:
        return f"fake compiler {self.version}"

    def devices(self) -> Sequence[Device]:
        return [
            Device(
                index=index,
                name=f"fake device {index}",
                target=self.default_target(),
                max_grid=(2147483647, 65535, 65535),
                max_block=(1024, 1024, 64),
                max_threads=_MAX_THREADS,
                max_shared=100_000,
                memory=1 << 30,
                max_cluster=8,
            )
            for index in range(self.device_count)
        ]

    def default_target(self) -> Target:
        return Target(self.name, "fake_1", 32)

    def compile(self, program: Program, target: Target) -> ObjectCode:
        self.compiled.append(program)
        for number, line in enumerate(program.source.splitlines(), 1):
            if line.startswith("#error"):
                place = Diagnostic(program.label, number, 1, "error", line)
                log = f"{program.label}:{number}:1: error: {line}"
                raise CompileError(
                    "the source says #error",
                    log=log,
                    diagnostics=[place],
                    program=program.label,
                    target=str(target),
                )
        return ObjectCode(program.source.encode(), "fake", target, program.entries, variables=program.variables)

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        if code.code == b"broken":
            raise LoadError(f"{name}: the code is broken", kernel=name, backend=self.name)
        function = self._load(code, name, device)
        self.variables[function.module] = {
            variable.name: self.allocate(variable.size, 256, device, 0) for variable in code.variables
        }
        return function

    def load_beside(self, function: Function, code: ObjectCode, name: str, device: int) -> Function:
        loaded = replace(self._load(code, name, device), module=function.module)
        self._beside.setdefault(function.module, []).append(loaded.handle)
        return loaded

    def variable(self, function: Function, code: ObjectCode, name: str, device: int) -> tuple[int, int]:
        memory = self.variables[function.module][name]
        return memory.ptr, memory.size

    def _load(self, code: ObjectCode, name: str, device: int) -> Function:
        sizes = tuple(parameter.type.size for parameter in code.entry(name).signature.passed)

        def record(shape: Any, launched_on: int, stream: int, parameters: Any, count: int) -> int:
            own = [*sizes, *[8] * (count - len(sizes))]
            values = tuple(ctypes.string_at(parameters[index], size) for index, size in enumerate(own))
            own_shape = shape.contents
            own_shape.launched_on = launched_on
            return self._record(name, device, own_shape, stream, values)

        recorder = _Recorder(record)
        handle = ctypes.cast(recorder, ctypes.c_void_p).value or 0
        self._recorders[handle] = recorder
        self.loaded[handle] = (name, device)
        self._sizes[handle] = sizes
        limit = 512 if "small_blocks" in name else None
        return Function(handle, module=handle, max_threads=limit, attributes={"registers": 32, "shared": 0, "local": 0})

    def unload(self, function: Function, device: int) -> None:
        for handle in (function.handle, *self._beside.pop(function.module, ())):
            self.unloaded.append(self.loaded.pop(handle)[0])
        del self.variables[function.module]

    def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Buffer:
        if size > 1 << 30:
            raise OutOfResourcesError("allocate", "memory in bytes", size, 1 << 30)
        return self._allocate(size, alignment, (FAKE_DEVICE_TYPE, device))

    def allocate_pinned(self, size: int, alignment: int, device: int) -> Buffer:
        return self._allocate(size, alignment, (_PINNED, 0))

    def _allocate(self, size: int, alignment: int, place: tuple[int, int]) -> Buffer:
        storage = ctypes.create_string_buffer(size + alignment)
        memory = _Memory(size, -(-ctypes.addressof(storage) // alignment) * alignment, place, storage)
        self._memory.add(memory)
        return memory

    def pointer_device(self, address: int) -> tuple[int, int] | None:
        for memory in list(self._memory):
            if memory.ptr <= address < memory.ptr + memory.size:
                return memory.place
        return None

    def copy(self, destination: int, source: int, size: int, device: int, stream: int) -> None:
        for address in (destination, source):
            kind, owner = self.pointer_device(address) or (_PINNED, 0)
            if kind == FAKE_DEVICE_TYPE and not self.can_access(device, owner):
                raise self.failure(f"copy with memory of device {owner}, which is not reached,", 1, device)
        ctypes.memmove(destination, source, size)

    def current_device(self) -> int:
        return 0

    def current_stream(self, device: int) -> int:
        return 7000 + device

    def synchronize(self, device: int, stream: int | None = None) -> int:
        status, self.sync_status = self.sync_status, 0
        return status

    def launch(self, function: int, config: LaunchConfig, device: int, stream: int, parameters: Parameters) -> int:
        attributes = (_Attribute * len(config.attributes))()
        for attribute, (name, value) in zip(attributes, config.attributes):
            values = value if isinstance(value, tuple) else (value,)
            attribute.key, attribute.count = self.attribute_keys[name], len(values)
            attribute.value[: len(values)] = [each & 0xFFFFFFFF for each in values]
        shape = _Shape(
            config.grid,
            config.block,
            config.cluster,
            int(config.cooperative) | int(config.dependent) << 1,
            config.shared,
            len(attributes),
            attributes,
        )
        recorder = self._recorders[function]
        return int(recorder(ctypes.pointer(shape), device, stream, parameters.addresses(), len(parameters.offsets)))

    def create_stream(self, device: int, priority: int) -> int:
        handle = next(self._handles)
        self.streams[handle] = priority
        self._homes[handle] = device
        return handle

    def destroy_stream(self, stream: int, device: int) -> None:
        del self.streams[stream]

    def create_event(self, device: int, timed: bool) -> int:
        handle = next(self._handles)
        self.events[handle] = None
        return handle

    def destroy_event(self, event: int, device: int) -> None:
        del self.events[event]

    def event_done(self, event: int, device: int) -> bool:
        return self.events[event] is not None

    def synchronize_event(self, event: int, device: int) -> int:
        return self.synchronize(device)

    def elapsed(self, start: int, end: int, device: int) -> float:
        return ((self.events[end] or 0) - (self.events[start] or 0)) / 1e9

    def occupancy(self, function: Function, device: int, config: LaunchConfig) -> Occupancy:
        threads = config.block[0] * config.block[1] * config.block[2]
        blocks = min(2048 // threads, 100_000 // max(1, config.shared))
        in_cluster = config.cluster[0] * config.cluster[1] * config.cluster[2]
        clusters = _MULTIPROCESSORS * blocks // in_cluster if in_cluster > 1 else None
        return Occupancy(blocks, _MULTIPROCESSORS, _MULTIPROCESSORS * blocks, clusters)

    def suggested_block(self, function: Function, device: int, shared: int) -> tuple[int, int]:
        return function.max_threads or _MAX_THREADS, _MULTIPROCESSORS * 2

    def describe_status(self, status: int) -> tuple[str, str]:
        return f"FAKE_ERROR_{status}", f"the fake driver was told to fail with {status}"

    def stream_device(self, stream: int) -> int | None:
        return self._homes.get(stream)

    def capturing(self, device: int, stream: int) -> bool:
        return self.captured or stream in self._captures

    def can_access(self, device: int, peer: int) -> bool:
        return device == peer or self.peers

    def dlpack_stream(self, stream: int) -> int | None:
        return stream

    def _record(self, name: str, device: int, shape: Any, stream: int, values: tuple[bytes, ...]) -> int:
        status = self._status()
        if shape.block[0] * shape.block[1] * shape.block[2] > _MAX_THREADS:
            status = 1  # as on a device: what podium should have refused, the driver does
        if status == 0:
            capture = self._captures.get(stream)
            put = self.launches.append if capture is None else capture.put
            put(
                RecordedLaunch(
                    name,
                    device,
                    tuple(shape.grid),
                    tuple(shape.block),
                    tuple(shape.cluster),
                    shape.shared,
                    shape.flags,
                    stream,
                    values,
                    tuple(
                        (each.key, tuple(each.value[: each.count]))
                        for each in shape.attributes[: shape.attribute_count]
                    ),
                    shape.launched_on,
                )
            )
        return status
