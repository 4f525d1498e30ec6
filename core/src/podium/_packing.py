"""All arguments of a launch, checked and converted: the slow path of both launcher levels, and the only one."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Any

from podium._arguments import Slot, describe
from podium._arrays import ANYWHERE, CPU, DEVICE_NAMES, HOST_TYPES, ArrayLocation, has_masked, is_address, locate
from podium._debug import enabled as debugging
from podium._exchange import Answer, ExchangeTable, exchange_table, first_strides, has_order_of_c, tensor_fields
from podium._hooks import ArgumentInfo
from podium._parameters import value_code
from podium._signature import Signature, Type
from podium._state import ATTENDED, DEBUG, words
from podium._stream import let_wait
from podium.errors import ArgumentCountError, ArrayDeviceError

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["Packed", "Packer"]


_Stream = int | tuple[ExchangeTable, int, int]
"""A stream, or the table to ask for it, with the type and the index of the device."""


class Packed(tuple[list[Any], "int | None", "int | None", list[object]]):
    """Arguments after conversion: the values, as `podium._parameters.Layout` takes them, and what the arrays told."""

    __slots__ = ()
    values: list[Any] = property(itemgetter(0))  # type: ignore[assignment]
    device: int | None = property(itemgetter(1))  # type: ignore[assignment]
    stream: int | None = property(itemgetter(2))  # type: ignore[assignment]
    owners: list[object] = property(itemgetter(3))  # type: ignore[assignment]


_new = tuple.__new__  # which takes less than to call the class


class Packer:
    """Converts the arguments of one kernel for one driver. `contiguous` refuses arrays that are not C-contiguous."""

    def __init__(self, kernel: str, signature: Signature, driver: Driver, contiguous: bool) -> None:
        self.kernel, self.signature, self.driver, self.contiguous = kernel, signature, driver, contiguous
        self._reached = driver.dlpack_devices
        self._slots = [Slot(kernel, index, parameter) for index, parameter in enumerate(signature)]
        self._plan = [(slot, *_plain(slot.parameter.type)) for slot in self._slots]
        self._answers: list[Answer] = []  # that no launch uses at the moment

    def pack(self, args: Sequence[object], given: int | None = None) -> Packed:
        """Check and convert all arguments; raise for the first that does not fit.

        `given` is the stream that the launch names, if it names one. Let it, or else the one that the arguments tell,
        wait for the work before which arrays are not ready.
        """
        if len(args) != len(self._plan):
            raise self.count_error(len(args))
        values: list[Any] = []
        owners: list[object] = []
        streams: list[_Stream] = []
        others: list[tuple[Slot, int]] = []  # arrays that are not where the first is
        pending: list[tuple[int, int]] = []  # devices and streams that have work before which arrays are not ready
        table: Any
        device, kind, ask, reached, any_order = -1, None, None, self._reached, not self.contiguous
        is_debugging = words[ATTENDED] & DEBUG
        try:
            answer = self._answers.pop()
        except IndexError:
            answer = Answer()
        array, tensor, reference = answer.array, answer.tensor, answer.reference
        for value, (slot, plain, low, high) in zip(args, self._plan):
            if plain is not None:
                values.append(value if type(value) is plain and low <= value <= high else _decoded(slot, value))
                continue
            if low is None:  # a constant, which is not passed
                continue
            if type(value) is not kind:
                kind = type(value)
                table = None if is_debugging else exchange_table(kind)
                ask = None if table is None else table.ask
            fits = False
            if ask is not None:
                array.value = value
                if not ask(array, reference):
                    address, device_type, where, axes, strides, offset = tensor_fields(tensor)
                    fits = device_type in reached and (
                        any_order
                        or not strides
                        or (axes == 1 and first_strides[strides].value == 1)
                        or has_order_of_c(tensor)
                    )
            if fits:
                values.append(address + offset if offset else address)
                owners.append(value)
                if where == device and streams:
                    continue
                stream = (table, device_type, where) if table.knows_stream and device_type not in HOST_TYPES else None
                if device_type in ANYWHERE:
                    where = -1
            else:
                address, where, stream, owner, queue = self._place_of(slot, value, is_debugging, given)
                values.append(address)
                owners.append(owner)
                if queue is not None:
                    pending.append((where, queue))
            # A stream is one of a device: that of an array on another one, which is within reach, is no choice.
            if stream is not None and (where < 0 or device < 0 or where == device):
                streams.append(stream)
            if where != device and where >= 0:
                if device < 0:
                    device = where
                else:
                    others.append((slot, where))
        library = None
        for source in streams:  # the first library that tells
            library = source if isinstance(source, int) else source[0].stream(source[1], source[2], answer)
            if library is not None:
                break
        array.value = None
        self._answers.append(answer)
        if others:
            self._check_reach(device, others)
        if is_debugging:
            self._check_addresses(args, None if device < 0 else device)
        if pending:
            let_wait(self.kernel, self.driver, device, library if given is None else given, pending)
        return _new(Packed, (values, None if device < 0 else device, library, owners))

    def _place_of(
        self, slot: Slot, value: Any, is_debugging: int, given: int | None
    ) -> tuple[int, int, Any, object, int | None]:
        """Find the memory of what has no exchange table, or needs a closer look."""
        if not is_debugging:
            kind = type(value)
            if value is None:
                return 0, -1, None, None, None
            if kind is int:
                if 0 <= value < 1 << 64:
                    return value, -1, None, None, None
            elif hasattr(kind, "_podium_place") and (packed := getattr(value, "_podium_place", None)):
                address, device_type, device = _PLACE.unpack(packed)
                if device_type in self._reached:
                    return address, -1 if device_type in ANYWHERE else device, None, value, None
        return self.locate(slot.index, value, given)

    def _check_reach(self, device: int, others: Sequence[tuple[Slot, int]]) -> None:
        """Raise for the first of the arrays on other devices that the device of the launch does not reach."""
        for slot, where in others:
            if where != device and not self.driver.can_access(device, where):
                raise self._peer_error(slot, device, where)

    def encode(self, index: int, value: object) -> bytes:
        """Convert one scalar or struct."""
        return self._slots[index].encode(value)

    def locate(
        self, index: int, value: object, given: int | None = None
    ) -> tuple[int, int, int | None, object, int | None]:
        """Find the memory of a pointer argument for a launch in a given stream, or in any.

        Return address, device or -1, its library's stream or None, its owner, and the stream, if there is one, that has
        the work before which it is not ready.
        """
        slot, driver = self._slots[index], self.driver
        if value is None:
            return 0, -1, None, None, None
        if is_address(value):
            return slot.integer_address(value), -1, None, None, None
        if has_masked(value):
            raise slot.value_error(
                value, "elements of it are masked, and the kernel sees no mask; pass array.filled(value), or array.data"
            )
        told: list[int] = []  # the stream that the array's owner let wait for its work

        def export(device: int) -> int | None:
            told.append(self._export_to(device, given))
            return driver.dlpack_stream(told[0])

        found = locate(value, driver.host_memory, self._reached, export, stream_first=given is None)
        if found is None:
            raise slot.type_error(value, "an array, None or an integer address is needed" + _cure(value))
        device_type, device = self._place(found)
        is_nowhere = found.address == 0 and found.device < 0  # an empty array, of which no driver knows the device
        if device_type not in self._reached and device_type != -1 and not is_nowhere:
            raise self._device_error(slot, value, device_type)
        self._check_array(slot, value, found)
        pending = found.pending if found.pending is not None or not told else told[0]
        return found.address, -1 if device_type in ANYWHERE else device, found.stream, found.owner, pending

    def _place(self, found: ArrayLocation) -> tuple[int, int]:
        """Return the device type and the index of an array; the driver knows them where the protocol does not tell.

        It also knows host memory that is pinned, which libraries export as host memory.
        """
        place = found.device_type, found.device
        unknown = found.device < 0 or (found.device_type in HOST_TYPES and found.device_type not in self._reached)
        known = self.driver.pointer_device(found.address) if unknown and found.address else None
        is_foreign = found.device_type > CPU and found.device_type not in HOST_TYPES | self._reached
        if known is None or (is_foreign and known[0] == CPU):
            return place  # memory of another vendor's device is to this driver what nobody has allocated
        return known

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

    def export_stream(self, device: int, given: int | None = None) -> int | None:
        """Return the stream that an array's owner is told to let wait, in DLPack's numbering."""
        return self.driver.dlpack_stream(self._export_to(device, given))

    def _export_to(self, device: int, given: int | None) -> int:
        """Return the stream that shall wait for an array: one that is captured waits for nothing but its capture."""
        current = self.driver.current_stream(device)
        return current if given is None or given == current or self.driver.capturing(device, given) else given

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
                infos.append(ArgumentInfo(name, str(type), address=next(values)))
            else:
                next(values)
                infos.append(ArgumentInfo(name, str(type), value=value if isinstance(value, (int, float)) else None))
        return tuple(infos)

    def order(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        """Put arguments given by name behind those given by position. Raises `ArgumentCountError`."""
        names = self.signature.names
        values = dict(zip(names, args))
        for name, value in keywords.items():
            problem = None
            if name not in names:
                problem = f"has no parameter {name!r}; it has: {self.signature}"
                if name in _OPTIONS:
                    problem += f". As an option of the launch: kernel[LaunchConfig(grid, block, {name}=...)](...)"
            elif name in values:
                problem = f"got {name!r} by position and by name"
            if problem:
                raise ArgumentCountError(f"{self.kernel} {problem}", kernel=self.kernel, argument=name)
            values[name] = value
        missing = [name for name in names if name not in values]
        if missing and keywords:
            raise ArgumentCountError(
                f"{self.kernel}({self.signature}): missing {', '.join(map(repr, missing))}",
                kernel=self.kernel,
                argument=missing[0],
            )
        return (*(values[name] for name in names if name in values), *args[len(names) :])

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


_OPTIONS = ("cluster", "cooperative", "dependent", "attributes")  # of LaunchConfig, and of no call
_PLACE = Struct("=Qii")  # podium._memory packs it

_PLAIN = {"boolean": bool, "signed": int, "unsigned": int, "float": float}
_LARGEST_FLOATS = {"fp32": 3.4028234663852886e38, "fp64": math.inf}


def _plain(type: Type) -> tuple[type | None, Any, Any]:
    """Return the Python type of a scalar's plain values, the least and the greatest of them.

    No type for pointers, and no limits either for constants.
    """
    kind = type.kind
    if kind in ("pointer", "constexpr"):
        return None, (0 if kind == "pointer" else None), None
    if value_code(type).endswith("s"):  # bytes are made of all values
        return _Never, 0, 0
    if kind == "float":  # a NaN is not between them: its bits are for Slot to say
        return float, -_LARGEST_FLOATS[type.spelling], _LARGEST_FLOATS[type.spelling]
    bits = 1 if kind == "boolean" else 8 * type.size
    return _PLAIN[kind], *((-(1 << bits - 1), (1 << bits - 1) - 1) if kind == "signed" else (0, (1 << bits) - 1))


def _decoded(slot: Slot, value: object) -> object:
    """Convert any value of a scalar or a struct to what is written for it: a number, or bytes."""
    data, code = slot.encode(value), value_code(slot.parameter.type)
    return data if code.endswith("s") else struct.unpack("=" + code, data)[0]


class _Never:
    """The type of no value."""


def _cure(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "; podium.asarray makes an array of a sequence"
    if isinstance(value, (int, float)):
        return "; a single value is passed in an array of one element"
    return ""
