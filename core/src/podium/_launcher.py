"""The launcher of one kernel: `Launcher(src, metadata)`, called as a compiler calls it.

    launcher(grid_x, grid_y, grid_z, stream, function, *args)

A launcher begins on the interpreted level, in the methods of this class. In the background the C for its signature
shape is built (`podium._generated`), and calls move over to it when it is ready. The C hands everything that is not
plain back to the methods here, so there is one place for each decision and each error.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from podium import _generated, _hooks, _scratch, _settings, _state
from podium._arguments import Slot, describe
from podium._arrays import CPU, DEVICE_NAMES, locate
from podium._debug import enabled as debugging
from podium._launch_config import AXES, Dim3, LaunchConfig, dim3
from podium._limits import check_features, grid_error
from podium._signature import Signature
from podium._stream import stream_handle
from podium.errors import (
    ArgumentCountError,
    ArrayDeviceError,
    ForkedProcessError,
    LaunchConfigError,
    LaunchError,
    SignatureError,
)

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["Launcher", "Packed", "Parameters"]

_PARAMETER_ALIGNMENT = 128  # at least that of any parameter type; tensor maps ask for 64


@dataclass(frozen=True)
class Parameters:
    """The bytes of a kernel's parameters: one after the other with their natural alignment, at `offsets`."""

    data: bytes
    offsets: tuple[int, ...]

    def addresses(self) -> ctypes.Array[ctypes.c_void_p]:
        """Return an array of the address of each parameter, as drivers take them.

        The memory lives as long as the array.
        """
        storage = ctypes.create_string_buffer(len(self.data) + _PARAMETER_ALIGNMENT)
        base = -(-ctypes.addressof(storage) // _PARAMETER_ALIGNMENT) * _PARAMETER_ALIGNMENT
        ctypes.memmove(base, self.data, len(self.data))
        array = (ctypes.c_void_p * max(1, len(self.offsets)))(*(base + offset for offset in self.offsets))
        array.storage = storage  # type: ignore[attr-defined]  # keeps the memory alive
        return array


@dataclass(frozen=True)
class Packed:
    """Arguments after conversion: the values in order, and what the arrays among them told."""

    values: tuple[bytes, ...]
    device: int | None
    stream: int | None
    owners: tuple[object, ...]


class Launcher:
    """Launches one kernel. A backend subclasses it to name itself and its template, and usually nothing else.

    `src` has `signature` (a mapping of names to types, or any other form that `Signature.parse` reads) and may have
    `constants`: names, positions or index paths of parameters that were folded away. `metadata`, a mapping or an object
    with attributes, may have

    ======================================  ==================================================================
    ``name``                                the kernel's name, for messages
    ``block``, or ``num_warps``             threads in a block; warps are counted in ``warp_size`` threads, the
                                            warp size of ``target``, or 32
    ``cluster``, or ``num_ctas``            blocks in a cluster; the grid is then counted in clusters
    ``shared``                              bytes of dynamic shared memory
    ``global_scratch_size``, ``_align``     scratch memory for each block; its address follows the arguments
    ``profile_scratch_size``, ``_align``    the same for profilers, after it
    ``cooperative`` or ``launch_cooperative_grid``, ``dependent`` or ``launch_pdl``    launch attributes
    ``contiguous``                          whether arrays that are not C-contiguous are refused
    ======================================  ==================================================================

    Calling it checks and converts the arguments and launches. It raises `ArgumentError`, `LaunchConfigError`,
    `LaunchError` or `ScratchError`, and `ForkedProcessError` in a child of a process that used the driver.
    """

    backend: ClassVar[str]
    """The name of the driver that the launcher belongs to."""

    template: ClassVar[Path]
    """The C file that the code for a signature is put into; headers in its folder can be included."""

    def __init__(self, src: Any, metadata: Any, driver: Driver | None = None) -> None:
        read = _reader(metadata)
        self.name = str(read("name", None) or getattr(src, "name", None) or "kernel")
        self.signature = _with_constants(Signature.parse(src.signature), getattr(src, "constants", None) or {})
        self.shared = int(read("shared", 0))
        warp_size = int(read("warp_size", None) or getattr(read("target", None), "warp_size", 32))
        block = read("block", None)
        self.block: Dim3 = dim3(block, "block") if block is not None else (int(read("num_warps", 4)) * warp_size, 1, 1)
        clusters = int(read("num_ctas", 1))
        cluster = read("cluster", None)
        self.cluster: Dim3 = dim3(cluster, "cluster") if cluster is not None else (clusters, 1, 1)
        self.cooperative = bool(read("cooperative", read("launch_cooperative_grid", False)))
        self.dependent = bool(read("dependent", read("launch_pdl", False)))
        self._grid_scale = clusters if cluster is None else 1
        self._contiguous = int(bool(read("contiguous", False)))
        self._scratch = [
            (int(read(f"{which}_scratch_size", 0)), max(1, int(read(f"{which}_scratch_align", 1))))
            for which in ("global", "profile")
            if read(f"{which}_scratch_size", None) is not None
        ]
        self._nested = _nesting(src.signature)
        self._slots = [
            Slot(self.name, index, parameter)
            for index, parameter in enumerate(self.signature)
        ]
        self._offsets = _offsets(self.signature, len(self._scratch))
        self._driver = driver
        self._configs: dict[Dim3, LaunchConfig] = {}
        self._id = _state.new_id(self.name)
        self._state_address = _state.address()
        self._flags = int(self.cooperative) | int(self.dependent) << 1
        self.generated: Any = None  # the Launcher of the generated module, once there is one
        self._entry: Any = self._launch
        self._build: _generated.Build | None = None
        check_features(self.name, self.driver, self._config((1, 1, 1)))
        self._choose_level(_settings.launcher_level())

    def __call__(self, grid_x: int, grid_y: int, grid_z: int, stream: Any, function: int, *args: Any) -> None:
        """Launch `function`, a handle that the driver's `load` gave, over a grid of blocks."""
        if self._nested is not None:
            args = tuple(_flatten(self.name, self._nested, args))
        if self.generated is None:
            self.promote()
        self._entry(grid_x, grid_y, grid_z, stream, function, *args)

    @property
    def level(self) -> str:
        """The level that the next call uses: "interpreted" or "generated"."""
        return "interpreted" if self.generated is None else "generated"

    @property
    def driver(self) -> Driver:
        """The driver that launches."""
        if self._driver is None:
            from podium._active import driver_config

            self._driver = driver_config.get(self.backend)
        return self._driver

    @property
    def scratch_count(self) -> int:
        """How many scratch pointers follow the arguments."""
        return len(self._scratch)

    @property
    def _grid_limit(self) -> Dim3:
        return self.driver.devices()[0].max_grid

    # ---- levels ----

    def _choose_level(self, level: str) -> None:
        if level == "interpreted":
            return
        self._build = _generated.request(self.template, self.signature, self.scratch_count)
        if level == "generated":
            self._build.require()
        else:
            _generated.start(self._build)

    def promote(self) -> bool:
        """Move over to the generated level if its module is there; tell whether the launcher is on it."""
        if self.generated is None and self._build is not None and (module := self._build.poll()) is not None:
            self._launch_type = module.Launch
            self.generated = self._entry = module.Launcher(self)
        return self.generated is not None

    def wait(self) -> None:
        """Wait until the generated level is there, unless it is switched off or cannot be built."""
        if self._build is not None:
            self._build.run()
            self.promote()

    def bind(self, launch: Any) -> Callable[..., None]:
        """Make the generated twin of a `podium._launch.Launch`, once the launcher has been promoted."""
        twin: Callable[..., None] = self._launch_type(self.generated, launch.prepare, launch.slow, launch)
        return twin

    def forget(self) -> None:
        """Make bound launches ask for their functions again, since loaded code has been released."""
        if self.generated is not None:
            self.generated.forget()

    # ---- conversion ----

    def pack(self, args: Sequence[object]) -> Packed:
        """Check and convert all arguments; raise for the first that does not fit."""
        if len(args) != len(self._slots):
            raise self.count_error(len(args))
        values: list[bytes] = []
        owners: list[object] = []
        device: int | None = None
        stream: int | None = None
        for slot, value in zip(self._slots, args):
            kind = slot.parameter.type.kind
            if kind == "constexpr":
                continue
            if kind != "pointer":
                values.append(slot.encode(value))
                continue
            address, where, array_stream, owner = self._locate(slot.index, value)
            values.append(address.to_bytes(8, sys.byteorder))
            owners.append(owner)
            stream = array_stream if stream is None else stream
            if where >= 0:
                if device is not None and where != device and not self.driver.can_access(device, where):
                    raise self._peer_error(slot, device, where)
                device = where if device is None else device
        return Packed(tuple(values), device, stream, tuple(owners))

    def _encode(self, index: int, value: object) -> bytes:
        return self._slots[index].encode(value)

    def _locate(self, index: int, value: object) -> tuple[int, int, int | None, object]:
        """Find the memory of a pointer argument: address, device or -1, its library's stream or None, its owner."""
        slot = self._slots[index]
        if value is None:
            return 0, -1, None, None
        driver = self.driver
        if not isinstance(value, bool) and hasattr(type(value), "__index__") and not hasattr(type(value), "__dlpack__"):
            return slot.address(int(value.__index__())), -1, None, None  # type: ignore[attr-defined]
        found = locate(value, driver.host_memory, lambda: driver.dlpack_stream(driver.current_stream(0)))
        if found is None:
            raise slot.type_error(value, "an array, None or an integer address is needed" + _cure(value))
        if found.device_type not in driver.dlpack_devices and found.device_type != -1:
            raise self._device_error(slot, value, found.device_type)
        if self._contiguous and not found.contiguous:
            raise slot.value_error(
                value,
                "the array is not C-contiguous, and the kernel would see its elements in another order; make it "
                "contiguous, or, if the kernel is given the strides, declare it with contiguous=False",
            )
        pointer = slot.parameter.type
        if found.readonly and not pointer.const:
            raise slot.value_error(
                value, "the array is read-only, and the kernel may write to it; declare the parameter const, or copy"
            )
        pointee = pointer.pointee.spelling if pointer.pointee is not None else "void"
        if debugging() and found.element is not None and pointee != "void" and found.element != pointee:
            raise slot.type_error(value, f"its elements are {found.element} (checked since debugging is on)")
        return found.address, found.device, found.stream, found.owner

    # ---- launching ----

    def _launch(self, grid_x: int, grid_y: int, grid_z: int, stream: Any, function: int, *args: object) -> None:
        grid = dim3((grid_x, grid_y, grid_z), "grid")
        for axis, size, limit in zip(AXES, grid, self._grid_limit):
            if size > limit:
                raise grid_error(self.name, axis, size, limit)
        handle = stream_handle(stream)
        if not isinstance(function, int) or isinstance(function, bool) or not 0 < function < 1 << 64:
            raise LaunchConfigError(
                f"{self.name}: function must be the handle that load() gave, not {describe(function)}", kernel=self.name
            )
        packed = self.pack(args)
        if 0 in grid:
            return
        driver = self.driver
        device = driver.current_device() if packed.device is None else packed.device
        self.fire(self._config(grid), device, handle or 0, function, packed, args)

    def _config(self, grid: Dim3) -> LaunchConfig:
        config = self._configs.get(grid)
        if config is None:
            if len(self._configs) >= 256:
                self._configs.clear()
            config = self._configs[grid] = LaunchConfig(
                (grid[0] * self._grid_scale, grid[1], grid[2]),
                self.block,
                cluster=self.cluster,
                shared=self.shared,
                cooperative=self.cooperative,
                dependent=self.dependent,
            )
        return config

    def fire(
        self, config: LaunchConfig, device: int, stream: int, function: int, packed: Packed, args: Sequence[object]
    ) -> None:
        """Launch converted arguments from Python: scratch, hooks, the record of launches, the driver call."""
        parent = _state.forked_from(self.backend)
        if parent is not None:
            raise ForkedProcessError(self.backend, parent)
        if not _state.attended() & _state.HOOKS:
            self._drive(config, device, stream, function, packed)
            return
        event = _hooks.LaunchEvent(
            kernel=self.name,
            backend=self.backend,
            device=device,
            stream=stream,
            grid=config.grid,
            block=config.block,
            shared=config.shared,
            arguments=self._argument_infos(packed, args),
        )
        _hooks.hooks.around(event, lambda: self._drive(config, device, stream, function, packed))

    def _drive(self, config: LaunchConfig, device: int, stream: int, function: int, packed: Packed) -> None:
        values = list(packed.values)
        scratch = []
        for which in range(len(self._scratch)):
            address, owner = self._allocate_scratch(which, config.blocks, device, stream)
            values.append(address.to_bytes(8, sys.byteorder))
            scratch.append(owner)
        _state.record(self._id, config.grid, config.block, device, stream)
        status = self.driver.launch(function, config, stream, Parameters(self._lay_out(values), self._offsets))
        if status:
            self._raise_status(status, *config.grid, *config.block, device, stream)
        if debugging():
            status = self.driver.synchronize(device, stream)
            if status:
                self._raise_status(status, *config.grid, *config.block, device, stream)

    def _lay_out(self, values: Sequence[bytes]) -> bytes:
        data = bytearray()
        for offset, value in zip(self._offsets, values):
            data += bytes(offset - len(data)) + value
        return bytes(data)

    def _allocate_scratch(self, which: int, blocks: int, device: int, stream: int) -> tuple[int, object]:
        size, alignment = self._scratch[which]
        if size == 0:
            return 0, None
        total = size * blocks
        driver = self.driver
        return _scratch.allocate(
            self.name, total, alignment, stream, lambda size, alignment, stream: driver.allocate(size, alignment, device, stream)
        )

    def _argument_infos(self, packed: Packed, args: Sequence[object]) -> tuple[_hooks.ArgumentInfo, ...]:
        values = iter(packed.values)
        infos = []
        for slot, value in zip(self._slots, args):
            parameter = slot.parameter
            if parameter.type.kind == "constexpr":
                infos.append(_hooks.ArgumentInfo(parameter.name, "constexpr"))
                continue
            data = next(values)
            if parameter.type.kind == "pointer":
                address = int.from_bytes(data, sys.byteorder)
                infos.append(_hooks.ArgumentInfo(parameter.name, str(parameter.type), address=address))
            else:
                plain = value if isinstance(value, (int, float)) else None
                infos.append(_hooks.ArgumentInfo(parameter.name, str(parameter.type), value=plain))
        return tuple(infos)

    # ---- errors ----

    def count_error(self, given: int) -> ArgumentCountError:
        """Make the error for a wrong number of arguments."""
        names, expected = self.signature.names, len(self.signature)
        if given < expected:
            detail = f"missing {', '.join(map(repr, names[given:]))}"
        else:
            detail = f"{given - expected} too many"
        return ArgumentCountError(
            f"{self.name}({self.signature}) takes {expected} argument{'s' * (expected != 1)}, got {given}: {detail}",
            kernel=self.name,
            index=min(given, expected),
            argument=names[given] if given < expected else None,
        )

    def _device_error(self, slot: Slot, value: object, device_type: int) -> ArrayDeviceError:
        where = DEVICE_NAMES.get(device_type, f"device type {device_type}")
        if device_type == CPU:
            kind, cure = "host", "it is in host memory; copy it to the device first"
        else:
            kind, cure = "device", f"it is in {where} memory, which the backend {self.backend!r} does not reach"
        name = slot.parameter.name
        return ArrayDeviceError(
            f"{self.name}: argument {slot.index} ({name!r}) expects {slot.parameter.type} on {self.backend!r}, got "
            f"{describe(value)}: {cure}",
            kind=kind,
            kernel=self.name,
            argument=name,
            index=slot.index,
            value=describe(value),
            expected=str(slot.parameter.type),
        )

    def _peer_error(self, slot: Slot, device: int, other: int) -> ArrayDeviceError:
        name = slot.parameter.name
        return ArrayDeviceError(
            f"{self.name}: argument {slot.index} ({name!r}) is on device {other}, but the launch is on device {device}, "
            f"where the first array is, and device {device} has no peer access to device {other}",
            kind="peer",
            kernel=self.name,
            argument=name,
            index=slot.index,
            expected=str(slot.parameter.type),
        )

    def _raise_status(
        self, status: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, device: int, stream: int
    ) -> None:
        if parent := _state.forked_from(self.backend):
            raise ForkedProcessError(self.backend, parent)
        if status >= 1 << 31:  # C hands it over unsigned
            status -= 1 << 32
        raise status_error(self.driver, status, self.name, device, (gx, gy, gz), (bx, by, bz), stream)


def status_error(
    driver: Driver, status: int, kernel: str, device: int, grid: Dim3, block: Dim3, stream: int
) -> LaunchError:
    """Make the error for a status of a driver; unless debugging is on it may come from an earlier launch."""
    name, text = driver.describe_status(status)
    recent = [str(each) for each in _state.recent()[-8:]]
    message = (
        f"{kernel}: {name}: {text} (status {status}; backend {driver.name}, device {device}, grid {grid}, block {block}, "
        f"stream {stream:#x})"
    )
    if not debugging() and recent:
        message += (
            "\nIf the device runs asynchronously, an earlier launch may be at fault; PODIUM_DEBUG=1 finds out which."
            " The last launches:\n  " + "\n  ".join(recent)
        )
    return LaunchError(
        message,
        status=status,
        status_name=name,
        status_text=text,
        kernel=kernel,
        backend=driver.name,
        device=device,
        grid=grid,
        block=block,
        recent=recent,
    )


def _reader(metadata: Any) -> Any:
    if isinstance(metadata, Mapping):
        return metadata.get
    return lambda name, default: getattr(metadata, name, default)


def _offsets(signature: Signature, scratch: int) -> tuple[int, ...]:
    offsets, position = [], 0
    sizes = [(parameter.type.size, parameter.type.alignment) for parameter in signature.passed] + [(8, 8)] * scratch
    for size, alignment in sizes:
        position = -(-position // alignment) * alignment
        offsets.append(position)
        position += size
    return tuple(offsets)


def _cure(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "; podium.asarray makes an array of a sequence"
    if isinstance(value, (int, float)):
        return "; a single value is passed in an array of one element"
    return ""


# ---- constants and tuples, as compilers hand them over ----


def _with_constants(signature: Signature, constants: Mapping[Any, Any]) -> Signature:
    """Mark the parameters that constants name as ``constexpr``. A key is a name, a position, or an index path."""
    if not constants:
        return signature
    paths = _index_paths(signature)
    folded = {path for key in constants for path in _normalise(key, signature, paths)}
    return Signature.parse(
        {
            parameter.name: "constexpr" if path in folded else parameter.type
            for path, parameter in zip(paths, signature)
        }
    )


def _index_paths(signature: Signature) -> list[tuple[int, ...]]:
    """Give the index path of each parameter: (2,) for a plain one, (1, 0) for the first member of a tuple."""
    tops: dict[str, int] = {}
    paths = []
    for name in signature.names:
        top, *rest = name.split(".")
        paths.append((tops.setdefault(top, len(tops)), *map(int, rest)))
    return paths


def _normalise(key: Any, signature: Signature, paths: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    if isinstance(key, str):
        found = [
            path
            for path, name in zip(paths, signature.names)
            if name == key or name.startswith(f"{key}.")
        ]
    else:
        prefix = (key,) if isinstance(key, int) else tuple(key)
        found = [path for path in paths if path[: len(prefix)] == prefix]
    if not found:
        raise SignatureError(f"The constant {key!r} is none of the parameters: {signature}")
    return found


def _nesting(signature: Any) -> tuple[Any, ...] | None:
    """Return the tuple structure of a signature, leaves as None; None if there are no tuples in it."""
    if isinstance(signature, (str, Signature)):
        return None
    types = signature.values() if isinstance(signature, Mapping) else signature
    structure = tuple(_structure(each) for each in types)
    return structure if any(each is not None for each in structure) else None


def _structure(spelling: Any) -> tuple[Any, ...] | None:
    return tuple(map(_structure, spelling)) if isinstance(spelling, (tuple, list)) else None


def _flatten(kernel: str, structure: tuple[Any, ...], values: Iterable[Any]) -> Iterable[Any]:
    missing = object()
    for inner, value in itertools.zip_longest(structure, values, fillvalue=missing):
        if value is missing:  # too few: what is there goes on, and the count is reported with the names
            return
        if inner is None or inner is missing:
            yield value
        elif isinstance(value, (tuple, list)) and len(value) == len(inner):
            yield from _flatten(kernel, inner, value)
        else:
            raise ArgumentCountError(
                f"{kernel}: a tuple of {len(inner)} values is needed, got {describe(value)}", kernel=kernel
            )
