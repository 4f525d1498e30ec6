"""Launches of kernels that are built for the sanitizer of addresses: their arrays lie in the arena meanwhile."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import podium
from podium.backend import LaunchConfig

from podium_cpu.arena import Allocation, arena
from podium_cpu.launcher import CpuLauncher

if TYPE_CHECKING:
    from podium_cpu.driver import CpuDriver

__all__ = ["CheckedLauncher"]

_PIECE = 4096


@dataclass
class _Range:
    """Memory of one array argument, or of several that overlap, and the copy of it that the kernel works on."""

    start: int
    end: int
    names: list[str]
    writable: bool
    copy: Allocation | None = None


class CheckedLauncher(CpuLauncher):
    """Gives kernels copies of their arrays, with closed memory around them, and copies back what they have changed.

    Podium's own arrays lie in the arena already. An address that is given as a number is passed on as it is.
    """

    generated_level = False  # the generated code does not know how long arrays are

    def fire(
        self,
        config: LaunchConfig,
        device: int,
        stream: int,
        function: int,
        packed: Any,
        args: Sequence[object],
        raw: bool = False,
    ) -> None:
        """Launch with copies, and wait for the launch."""
        driver = cast("CpuDriver", self.driver)
        if driver.checks is None or not driver.checks.sanitizers.address:
            super().fire(config, device, 0, function, packed, args, raw)
            return
        found = list(self._arrays(packed, args))
        ranges = _merge([each for _, each in found])
        names: dict[int, str] = {}
        values = list(packed.values)
        try:
            for each in ranges:
                title = " and ".join(f"the argument {name!r}" for name in dict.fromkeys(each.names))
                if arena().has(each.start):
                    names[each.start] = title
                    continue
                each.copy = arena().allocate(each.end - each.start, each.start % 256, title)
                ctypes.memmove(each.copy.start, each.start, each.end - each.start)
            for index, array in found:
                owner = next(each for each in ranges if each.start <= array.start and array.end <= each.end)
                if owner.copy is not None:
                    values[index] += owner.copy.start - owner.start
            with driver.checks.naming(names):
                super().fire(config, device, 0, function, type(packed)((values, *packed[1:])), args, raw)
        finally:
            for each in ranges:
                if each.copy is not None:
                    if each.writable:
                        _copy_changes(each.start, each.copy)
                    arena().release(each.copy)

    def _arrays(self, packed: Any, args: Sequence[object]) -> list[tuple[int, _Range]]:
        """Find the memory of each array among the arguments, with its index among the values."""
        found, index, owners = [], 0, iter(packed.owners)
        for parameter, value in zip(self.signature, args):
            kind = parameter.type.kind
            if kind == "constexpr":
                continue
            if kind == "pointer":
                address = packed.values[index]
                owner = next(owners)
                extent = _extent(value, owner, address) if address and not self._is_variable(value, address) else None
                if extent is not None:
                    found.append((index, _Range(*extent, [parameter.name], not parameter.type.const)))
            index += 1
        return found

    def _is_variable(self, value: object, address: int) -> bool:
        """Tell whether an array is a variable of a module, which kernels also reach by its name."""
        return isinstance(value, podium.Array) and value.driver is self.driver and not arena().has(address)


def _extent(value: Any, owner: object, address: int) -> tuple[int, int] | None:
    """Return where the memory of an array begins and ends; None if it does not say."""
    if isinstance(owner, memoryview):
        low = high = 0
        for length, stride in zip(owner.shape or (), owner.strides or ()):
            if length == 0:
                return address, address
            low, high = low + min(0, (length - 1) * stride), high + max(0, (length - 1) * stride)
        return address + low, address + high + owner.itemsize
    size = getattr(value, "nbytes", None)
    return (address, address + size) if isinstance(size, int) else None


def _merge(arrays: list[_Range]) -> list[_Range]:
    """Put arrays that overlap together, so that a kernel sees through one what it writes through another."""
    merged: list[_Range] = []
    for each in sorted(arrays, key=lambda each: (each.start, each.end)):
        last = merged[-1] if merged else None
        if last is not None and (each.start < last.end or (each.start, each.end) == (last.start, last.end)):
            last.end = max(last.end, each.end)
            last.names += each.names
            last.writable |= each.writable
        else:
            merged.append(_Range(each.start, each.end, list(each.names), each.writable))
    return merged


def _copy_changes(start: int, copy: Allocation) -> None:
    """Copy back the pieces that the kernel has changed: others may be in memory that cannot be written."""
    for offset in range(0, copy.size, _PIECE):
        size = min(_PIECE, copy.size - offset)
        if ctypes.string_at(copy.start + offset, size) != ctypes.string_at(start + offset, size):
            ctypes.memmove(start + offset, copy.start + offset, size)
