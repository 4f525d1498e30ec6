"""What drivers hand out: memory, kernels that are loaded, and how many blocks of one run at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from podium._record import field, record

__all__ = ["Buffer", "Function", "Occupancy"]


class Buffer(Protocol):
    """Device memory that is freed when the object goes away; `ptr` is its address, `size` its bytes."""

    @property
    def ptr(self) -> int: ...

    @property
    def size(self) -> int: ...


@record(frozen=True)
class Function:
    """A kernel loaded on a device.

    `handle` is what a launch is given; `module` is what `Driver.unload` is given, and may be 0. `max_threads` is the
    most threads in a block that this kernel can have there, where it is lower than the device's. `attributes` has
    what else the backend knows, for `Kernel.attributes`; where it knows them, under these names: "registers" of a
    thread, "shared" (static, bytes of a block), "local" (bytes of a thread that did not fit into registers),
    "constant" (bytes) and "max_dynamic_shared" (bytes of a block).
    """

    handle: int
    module: int = 0
    max_threads: int | None = None
    attributes: Mapping[str, int] = field(default_factory=dict)


@record(frozen=True)
class Occupancy:
    """How many blocks of a launch run at the same time on a device.

    `max_active_blocks` is what all multiprocessors hold together, `blocks_per_multiprocessor` times `multiprocessors`
    or less. `max_active_clusters` is None for a launch without clusters.
    """

    blocks_per_multiprocessor: int
    multiprocessors: int
    max_active_blocks: int
    max_active_clusters: int | None = None
