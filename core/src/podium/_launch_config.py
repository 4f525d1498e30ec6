"""The shape of a launch: grid, block, cluster, shared memory and attributes. A pure, hashable value."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from podium._arguments import describe
from podium._record import record
from podium.errors import LaunchConfigError

__all__ = ["AXES", "Dim3", "LaunchConfig", "dim3"]

Dim3 = tuple[int, int, int]
AXES = ("x", "y", "z")


def dim3(value: int | Iterable[int], what: str) -> Dim3:
    """Read a grid, a block or a cluster: an int, or one to three of them. Raises `LaunchConfigError`."""
    if isinstance(value, (str, bytes)):
        raise LaunchConfigError(f"{what} must be one to three integers, not {value!r}", axis=what, value=value)
    sizes: tuple[Any, ...]
    try:
        sizes = tuple(islice(value, 4)) if isinstance(value, Iterable) else (value,)
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
    stream. `attributes` are the backend's own, by name.
    """

    grid: Dim3
    block: Dim3
    cluster: Dim3 = (1, 1, 1)
    shared: int = 0
    cooperative: bool = False
    dependent: bool = False
    attributes: tuple[tuple[str, int], ...] = ()

    def __init__(
        self,
        grid: int | Iterable[int],
        block: int | Iterable[int],
        *,
        cluster: int | Iterable[int] = (1, 1, 1),
        shared: int = 0,
        cooperative: bool = False,
        dependent: bool = False,
        attributes: Mapping[str, int] | Iterable[tuple[str, int]] = (),
    ) -> None:
        block_size, cluster_size = dim3(block, "block"), dim3(cluster, "cluster")
        for name, size in (("block", block_size), ("cluster", cluster_size)):
            for axis, number in zip(AXES, size):
                if number == 0:
                    raise LaunchConfigError(
                        f"{name}.{axis} is 0; it must be at least 1", axis=f"{name}.{axis}", value=0
                    )
        pairs = attributes.items() if isinstance(attributes, Mapping) else attributes
        assign = object.__setattr__
        assign(self, "grid", dim3(grid, "grid"))
        assign(self, "block", block_size)
        assign(self, "cluster", cluster_size)
        assign(self, "shared", _size(shared))
        assign(self, "cooperative", bool(cooperative))
        assign(self, "dependent", bool(dependent))
        assign(self, "attributes", tuple(sorted((str(name), operator.index(value)) for name, value in pairs)))

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
