"""All arguments of a launch, checked and converted: the slow path of both launcher levels, and the only one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any

from podium._arguments import Slot, describe
from podium._arrays import ANYWHERE, CPU, DEVICE_NAMES, HOST_TYPES, ArrayLocation, has_masked, is_address, locate
from podium._debug import enabled as debugging
from podium._exchange import ExchangeTable, Tensor, exchange_table
from podium._hooks import ArgumentInfo
from podium._record import record
from podium._signature import Signature, Type
from podium.errors import ArgumentCountError, ArrayDeviceError

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["Packed", "Packer"]


_Stream = int | tuple[ExchangeTable, int, int]
"""A stream, or the table to ask for it, with the type and the index of the device."""

_Place = tuple[int, int, _Stream | None, object]
"""The memory of a pointer argument: address, device or -1, its library's stream or None, its owner."""


@record
class Packed:
    """Arguments after conversion: the values in order, and what the arrays among them told."""

    values: tuple[bytes, ...]
    device: int | None
    stream: int | None
    owners: tuple[object, ...]


class Packer:
    """Converts the arguments of one kernel for one driver. `contiguous` refuses arrays that are not C-contiguous."""

    def __init__(self, kernel: str, signature: Signature, driver: Driver, contiguous: bool) -> None:
        self.kernel, self.signature, self.driver, self.contiguous = kernel, signature, driver, contiguous
        self._reached = driver.dlpack_devices
        self._slots = [Slot(kernel, index, parameter) for index, parameter in enumerate(signature)]
        self._conversions = [(slot, *_conversion(slot.parameter.type)) for slot in self._slots]

    def pack(self, args: Sequence[object]) -> Packed:
        """Check and convert all arguments; raise for the first that does not fit."""
        if len(args) != len(self._slots):
            raise self.count_error(len(args))
        values: list[bytes] = []
        owners: list[object] = []
        places: list[tuple[Slot, int]] = []
        streams: list[tuple[int, _Stream]] = []
        is_debugging, tensor = debugging(), Tensor()
        for value, (slot, plain, pack) in zip(args, self._conversions):
            if plain is not None:
                if type(value) is plain and value == value:  # a NaN's bits are for Slot to say
                    try:
                        values.append(pack(value))
                        continue
                    except (struct.error, OverflowError):
                        pass
                values.append(slot.encode(value))
            elif pack is not _nothing:
                place = None if is_debugging else self._plain_place(value, tensor)
                if place is None:
                    place = self.locate(slot.index, value)
                address, where, stream, owner = place
                values.append(pack(address))
                owners.append(owner)
                if stream is not None:
                    streams.append((where, stream))
                if where >= 0:
                    places.append((slot, where))
        device = self._common_device(places)
        if is_debugging:
            self._check_addresses(args, device)
        stream = self._first_stream(streams, device) if streams else None
        return Packed(tuple(values), device, stream, tuple(owners))

    def _plain_place(self, value: object, tensor: Tensor) -> _Place | None:
        """Find the memory of what is read fast, as the generated level does in C; None if it needs a closer look."""
        kind = type(value)
        table = exchange_table(kind)
        if table is not None:
            found = table.place(value, tensor)
            if found is None:
                return None
            address, device_type, device, contiguous = found
            if device_type not in self._reached or (self.contiguous and not contiguous):
                return None
            stream = None if device_type in HOST_TYPES else (table, device_type, device)
            return address, -1 if device_type in ANYWHERE else device, stream, value
        if value is None:
            return 0, -1, None, None
        if kind is int:
            return (value, -1, None, None) if 0 <= value < 1 << 64 else None  # type: ignore[operator, return-value]
        if hasattr(kind, "_podium_place") and (packed := getattr(value, "_podium_place", None)):
            address, device_type, device = _PLACE.unpack(packed)
            if device_type in self._reached:
                return address, -1 if device_type in ANYWHERE else device, None, value
        return None

    @staticmethod
    def _first_stream(streams: Sequence[tuple[int, _Stream]], device: int | None) -> int | None:
        """Return the stream of the library of the first array that has one.

        A stream is one of a device: that of an array on another one, which is within reach, cannot be launched in.
        """
        for where, source in streams:
            if where in (-1, device):
                stream = source if isinstance(source, int) else source[0].stream(source[1], source[2])
                if stream is not None:
                    return stream
        return None

    def _common_device(self, places: Sequence[tuple[Slot, int]]) -> int | None:
        """Return the device of the first array; the others must be there or within its reach."""
        device = places[0][1] if places else None
        for slot, where in places:
            if device is not None and where != device and not self.driver.can_access(device, where):
                raise self._peer_error(slot, device, where)
        return device

    def encode(self, index: int, value: object) -> bytes:
        """Convert one scalar or struct."""
        return self._slots[index].encode(value)

    def locate(self, index: int, value: object) -> tuple[int, int, int | None, object]:
        """Find the memory of a pointer argument: address, device or -1, its library's stream or None, its owner."""
        slot, driver = self._slots[index], self.driver
        if value is None:
            return 0, -1, None, None
        if is_address(value):
            return slot.integer_address(value), -1, None, None
        if has_masked(value):
            raise slot.value_error(
                value, "elements of it are masked, and the kernel sees no mask; pass array.filled(value), or array.data"
            )
        found = locate(value, driver.host_memory, self._reached, self.export_stream)
        if found is None:
            raise slot.type_error(value, "an array, None or an integer address is needed" + _cure(value))
        device_type, device = self._place(found)
        if device_type not in self._reached and device_type != -1:
            raise self._device_error(slot, value, device_type)
        self._check_array(slot, value, found)
        return found.address, -1 if device_type in ANYWHERE else device, found.stream, found.owner

    def _place(self, found: ArrayLocation) -> tuple[int, int]:
        """Return the device type and the index of an array; the driver knows them where the protocol does not tell.

        It also knows host memory that is pinned, which libraries export as host memory.
        """
        place = found.device_type, found.device
        unknown = found.device < 0 or (found.device_type in HOST_TYPES and found.device_type not in self._reached)
        known = self.driver.pointer_device(found.address) if unknown and found.address else None
        return place if known is None else known

    def _check_addresses(self, args: Sequence[object], device: int | None) -> None:
        """Refuse addresses that the driver knows to be out of reach; while debugging is on, since it takes time."""
        device = self.driver.current_device() if device is None else device
        for slot, value in zip(self._slots, args):
            if slot.parameter.type.kind != "pointer" or value is None or not is_address(value):
                continue
            address = slot.integer_address(value)
            known = self.driver.pointer_device(address) if address else None
            if known is None or known[0] in ANYWHERE & self._reached:
                continue
            if known[0] not in self._reached:
                raise self._device_error(slot, value, known[0])
            if known[1] != device and not self.driver.can_access(device, known[1]):
                raise self._peer_error(slot, device, known[1])

    def export_stream(self, device: int) -> int | None:
        return self.driver.dlpack_stream(self.driver.current_stream(device))

    def _check_array(self, slot: Slot, value: object, found: ArrayLocation) -> None:
        pointer = slot.parameter.type
        if found.swapped:
            raise slot.value_error(
                value,
                "the bytes of its elements are in the other order; convert them, array.astype(dtype.newbyteorder('='))",
            )
        if self.contiguous and not found.contiguous:
            raise slot.value_error(
                value,
                "the array is not C-contiguous, and the kernel would see its elements in another order; make it "
                "contiguous, or, if the kernel is given the strides, declare it with contiguous=False",
            )
        if found.readonly and not pointer.const:
            raise slot.value_error(
                value, "the array is read-only, and the kernel may write to it; declare the parameter const, or copy"
            )
        pointee = pointer.pointee.spelling if pointer.pointee is not None else "void"
        if debugging() and found.typed and pointee != "void" and found.element != pointee:
            elements = found.element or "of a type that podium has no name for"
            raise slot.type_error(value, f"its elements are {elements} (checked since debugging is on)")

    def describe(self, packed: Packed, args: Sequence[object]) -> tuple[ArgumentInfo, ...]:
        """Give what hooks may know of the arguments."""
        values = iter(packed.values)
        infos = []
        for slot, value in zip(self._slots, args):
            name, type = slot.parameter.name, slot.parameter.type
            if type.kind == "constexpr":
                infos.append(ArgumentInfo(name, "constexpr"))
            elif type.kind == "pointer":
                infos.append(ArgumentInfo(name, str(type), address=_ADDRESS.unpack(next(values))[0]))
            else:
                next(values)
                infos.append(ArgumentInfo(name, str(type), value=value if isinstance(value, (int, float)) else None))
        return tuple(infos)

    def count_error(self, given: int) -> ArgumentCountError:
        """Make the error for a wrong number of arguments."""
        names, expected = self.signature.names, len(self.signature)
        if given < expected:
            detail = f"missing {', '.join(map(repr, names[given:]))}"
        else:
            detail = f"{given - expected} too many"
        return ArgumentCountError(
            f"{self.kernel}({self.signature}) takes {expected} argument{'s' * (expected != 1)}, got {given}: {detail}",
            kernel=self.kernel,
            index=min(given, expected),
            argument=names[given] if given < expected else None,
        )

    def _device_error(self, slot: Slot, value: object, device_type: int) -> ArrayDeviceError:
        backend = self.driver.name
        if device_type == CPU:
            kind, why = "host", "it is in host memory; copy it to the device first"
        else:
            where = DEVICE_NAMES.get(device_type, f"device type {device_type}")
            kind, why = "device", f"it is in {where} memory, which the backend {backend!r} does not reach"
        name, expected = slot.parameter.name, str(slot.parameter.type)
        return ArrayDeviceError(
            f"{self.kernel}: argument {slot.index} ({name!r}) expects {expected} on {backend!r}, "
            f"got {describe(value)}: {why}",
            kind=kind,
            kernel=self.kernel,
            argument=name,
            index=slot.index,
            value=describe(value),
            expected=expected,
        )

    def _peer_error(self, slot: Slot, device: int, other: int) -> ArrayDeviceError:
        name = slot.parameter.name
        return ArrayDeviceError(
            f"{self.kernel}: argument {slot.index} ({name!r}) is on device {other}, but the launch is on device "
            f"{device}, where the first array is, and device {device} has no peer access to device {other}",
            kind="peer",
            kernel=self.kernel,
            argument=name,
            index=slot.index,
            expected=str(slot.parameter.type),
        )


_PLACE = Struct("=Qii")  # podium._memory packs it
_ADDRESS = Struct("=Q")

# What struct packs as C does, for values of exactly one type; the others, and those that do not fit, are for Slot.
_CODES = {"i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
_CODES |= {"fp32": "f", "fp64": "d"}
_PLAIN = {"boolean": bool, "signed": int, "unsigned": int, "float": float}


def _conversion(type: Type) -> tuple[type | None, Callable[[Any], bytes]]:
    """Return the plain Python type of a parameter's values, and what packs one; no type for addresses and structs."""
    if type.kind == "constexpr":
        return None, _nothing
    if type.kind == "pointer":
        return None, _ADDRESS.pack
    code = _CODES.get(type.spelling)
    return (_PLAIN[type.kind], Struct("=" + code).pack) if code else (_Never, bytes)


class _Never:
    """The type of no value."""


def _nothing(value: object) -> bytes:
    """Stand for the packing of what is not passed."""
    return b""


def _cure(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "; podium.asarray makes an array of a sequence"
    if isinstance(value, (int, float)):
        return "; a single value is passed in an array of one element"
    return ""
