"""The shape of a launch: grid, block, cluster, shared memory and attributes. A pure, hashable value."""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from podium._arguments import describe
from podium._record import record
from podium.errors import LaunchConfigError

__all__ = ["AXES", "Attribute", "Dim3", "LaunchConfig", "dim3", "pack_attributes"]

Dim3 = tuple[int, int, int]
Attribute = int | tuple[int, ...]
AXES = ("x", "y", "z")


def dim3(value: int | Iterable[int], what: str) -> Dim3:
    """Read a grid, a block or a cluster: an int, or one to three of them. Raises `LaunchConfigError`."""
    if isinstance(value, (str, bytes)):
        raise LaunchConfigError(f"{what} must be one to three integers, not {value!r}", axis=what, value=value)
    sizes: tuple[Any, ...]
    try:
        # The class Iterable takes its time for the first value of each type, and most values are ints.
        sizes = (value,) if type(value) is int else tuple(islice(value, 4)) if isinstance(value, Iterable) else (value,)
    except TypeError:  # an array without axes says that it can be iterated
        sizes = (value,)
    if not 1 <= len(sizes) <= 3:
        raise LaunchConfigError(
            f"{what} has one to three axes, not {len(sizes) or 'none'}{' or more' * (len(sizes) > 3)}", axis=what
        )
    result = []
    for axis, size in zip(AXES, sizes):
        try:
            number = operator.index(size)
        except TypeError:
            raise LaunchConfigError(
                f"{what}.{axis} must be an integer, not {describe(size)}", axis=f"{what}.{axis}", value=describe(size)
            ) from None
        if number < 0:
            raise LaunchConfigError(
                f"{what}.{axis} is {number}; it cannot be negative", axis=f"{what}.{axis}", value=number
            )
        result.append(number)
    result += [1] * (3 - len(result))
    return result[0], result[1], result[2]


@record(frozen=True)
class LaunchConfig:
    """Grid in blocks, block in threads, cluster in blocks, and dynamic shared memory in bytes.

    Only what holds on every device is checked here; a device's own limits are checked when it is known.
    `cooperative` asks that all blocks run at once, `dependent` that the launch may overlap the one before it in its
    stream. `attributes` are the backend's own, by name; a value is an integer of 32 bits, or up to three of them.
    """

    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)
    shared: int = 0
    cooperative: bool = False
    dependent: bool = False
    attributes: tuple[tuple[str, Attribute], ...] = ()

    def __init__(
        self,
        grid: int | Iterable[int],
        block: int | Iterable[int],
        *,
        cluster: int | Iterable[int] = (1, 1, 1),
        shared: int = 0,
        cooperative: bool = False,
        dependent: bool = False,
        attributes: Mapping[str, Attribute] | Iterable[tuple[str, Attribute]] = (),
    ) -> None:
        block_size, cluster_size = dim3(block, "block"), dim3(cluster, "cluster")
        for name, size in (("block", block_size), ("cluster", cluster_size)):
            for axis, number in zip(AXES, size):
                if number == 0:
                    raise LaunchConfigError(
                        f"{name}.{axis} is 0; it must be at least 1", axis=f"{name}.{axis}", value=0
                    )
        assign = object.__setattr__
        assign(self, "grid", dim3(grid, "grid"))
        assign(self, "block", block_size)
        assign(self, "cluster", cluster_size)
        assign(self, "shared", _size(shared))
        assign(self, "cooperative", bool(cooperative))
        assign(self, "dependent", bool(dependent))
        assign(self, "attributes", _attributes(attributes) if attributes else ())
        sizes = (min(size, _MOST) for size in (*self.grid, *block_size))  # what is above is above every limit, too
        assign(self, "sizes", struct.pack("=6I", *sizes))
        assign(self, "is_plain", not (cooperative or dependent or attributes) and cluster_size == (1, 1, 1))

    if TYPE_CHECKING:
        # no fields: they follow from them

        @property
        def sizes(self) -> bytes:
            """Grid and block, as the record of launches has them."""

        @property
        def is_plain(self) -> bool:
            """Whether it is nothing more than a grid, a block and shared memory."""

    def with_sizes(self, grid: Any = None, block: Any = None, shared: Any = None) -> LaunchConfig:
        """Return the configuration with another grid, block or size of shared memory; None leaves one as it is."""
        return LaunchConfig(
            self.grid if grid is None else grid,
            self.block if block is None else block,
            cluster=self.cluster,
            shared=self.shared if shared is None else shared,
            cooperative=self.cooperative,
            dependent=self.dependent,
            attributes=self.attributes,
        )

    @property
    def blocks(self) -> int:
        """How many blocks the grid has."""
        return self.grid[0] * self.grid[1] * self.grid[2]


def _size(shared: int) -> int:
    try:
        size = operator.index(shared)
    except TypeError:
        text = describe(shared)
        raise LaunchConfigError(f"shared must be a number of bytes, not {text}", axis="shared", value=text) from None
    if size < 0:
        raise LaunchConfigError(f"shared is {size}; it cannot be negative", axis="shared", value=size)
    return size


_MOST = (1 << 32) - 1
_MOST_ATTRIBUTES = 16  # PODIUM_ATTRIBUTES of podium_launch.h


def _attributes(
    attributes: Mapping[str, Attribute] | Iterable[tuple[str, Attribute]],
) -> tuple[tuple[str, Attribute], ...]:
    try:
        pairs = [
            (name, value) for name, value in (attributes.items() if isinstance(attributes, Mapping) else attributes)
        ]
    except (TypeError, ValueError):
        text = describe(attributes)
        raise LaunchConfigError(
            f"attributes is a mapping of names to integers, such as {{'priority': -1}}, not {text}",
            axis="attributes",
            value=text,
        ) from None
    made = {str(name): _attribute(str(name), value) for name, value in pairs}
    if len(made) > _MOST_ATTRIBUTES:
        raise LaunchConfigError(
            f"A launch has at most {_MOST_ATTRIBUTES} attributes, not {len(made)}", axis="attributes", value=len(made)
        )
    return tuple(sorted(made.items(), key=operator.itemgetter(0)))


def _attribute(name: str, value: Any) -> Attribute:
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    try:
        numbers = tuple(map(operator.index, values))
    except TypeError:
        numbers = ()
    if not 1 <= len(numbers) <= 3 or not all(-(1 << 31) <= number < 1 << 32 for number in numbers):
        text = f"({', '.join(map(describe, values[:4]))})" if isinstance(value, (tuple, list)) else describe(value)
        raise LaunchConfigError(
            f"The launch attribute {name!r} is an integer of 32 bits or one to three of them, not {text}",
            axis=name,
            value=text,
        )
    return numbers if isinstance(value, (tuple, list)) else numbers[0]


def pack_attributes(attributes: Iterable[tuple[str, Attribute]], keys: Mapping[str, int]) -> bytes:
    """Return attributes as an array of ``struct podium_attribute``; `keys` are those of the driver."""
    packed = b""
    for name, value in attributes:
        values = value if isinstance(value, tuple) else (value,)
        words = [number & 0xFFFFFFFF for number in values] + [0] * (3 - len(values))
        packed += struct.pack("=5I", keys[name], *words, len(values))
    return packed
