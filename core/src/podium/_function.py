"""What drivers hand out: memory, kernels that are loaded, and how many blocks of one run at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NoReturn, Protocol

from podium._record import field, record
from podium.errors import PodiumError

__all__ = ["Buffer", "Function", "Occupancy", "OwnedMemory"]


class Buffer(Protocol):
    """Device memory that is freed when the object goes away; `ptr` is its address, `size` its bytes."""

    @property
    def ptr(self) -> int: ...

    @property
    def size(self) -> int: ...


class OwnedMemory:
    """Memory of a vendor's allocator as a `Buffer`: `size` bytes at `ptr`, given back when the object goes away.

    It is not given back in a forked child, whose parent still has it, nor at the end of the process, when the driver
    may be gone already.
    """

    _address = 0  # what a finalizer finds if there is no allocation

    def __init__(
        self, size: int, alignment: int, allocate: Callable[[int], int], free: Callable[[int], None], *, kept: int = 1
    ) -> None:
        """Take memory: `allocate` is given bytes and returns an address, `free` is given that.

        `kept` is what the allocator itself aligns to; for more, more is asked for, and the memory begins within it. An
        error of podium that `free` raises is dropped: the device is lost, and the memory with it. Raises ValueError for
        a size or an alignment that cannot be, and what `allocate` raises.
        """
        if size < 0:
            raise ValueError(f"A buffer of {size} bytes cannot be")
        if alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"An alignment is a power of two, not {alignment}")
        self.size, self._free, self._process = size, free, os.getpid()
        self._address = allocate(max(size, 1) + (alignment - kept if alignment > kept else 0))
        self.ptr = -(-self._address // alignment) * alignment

    def __repr__(self) -> str:
        return f"<memory of {self.size} bytes at {self.ptr:#x}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be copied or pickled: it is given back once, by the object that has it")

    def __del__(
        self, is_ending: Callable[[], bool] = sys.is_finalizing, process: Callable[[], int] = os.getpid
    ) -> None:
        if self._address and not is_ending() and process() == self._process:
            address, self._address = self._address, 0
            with suppress(PodiumError):
                self._free(address)


@record(frozen=True)
class Function:
    """A kernel loaded on a device.

    `handle` is what a launch is given; `module` is what `Driver.unload` is given, and may be 0. `max_threads` is the
    most threads in a block that this kernel can have there, where it is lower than the device's. `attributes` has
    what else the backend knows, for `Kernel.attributes`; where it knows them, under these names: "registers" of a
    thread, "shared" (static, bytes of a block), "local" (bytes of a thread that did not fit into registers),
    "constant" (bytes) and "max_dynamic_shared" (bytes of a block, which no launch goes beyond).
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
