"""Targets that code is compiled for, and devices that it runs on."""

from __future__ import annotations

from podium._record import record

__all__ = ["Device", "Target"]


@record(frozen=True)
class Target:
    """What code is compiled for: the backend's name, its full architecture, and the threads in a warp."""

    backend: str
    arch: str
    warp_size: int

    @staticmethod
    def parse(text: str) -> Target:
        """Read ``backend:arch:warp_size``, the form that `str` gives; an arch may contain colons itself."""
        backend, _, rest = text.partition(":")
        arch, _, warp_size = rest.rpartition(":")
        if not backend or not arch or not warp_size.isdigit():
            hint = f"; the threads of a warp are missing: {text}:32, or 64" if text.count(":") == 1 else ""
            raise ValueError(f"A target is spelled backend:arch:warp_size, such as nvidia:sm_90:32, not {text!r}{hint}")
        return Target(backend, arch, int(warp_size))

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}:{self.warp_size}"


@record(frozen=True)
class Device:
    """A device and its limits, asked of the driver once.

    `max_grid` and `max_block` are per axis, `max_threads` per block; `max_shared` is the most bytes of shared memory
    that a block can have with opting in; `memory` is in bytes; `max_parameter_bytes` bounds a launch's arguments.
    """

    index: int
    name: str
    target: Target
    max_grid: tuple[int, int, int]
    max_block: tuple[int, int, int]
    max_threads: int
    max_shared: int
    memory: int
    max_parameter_bytes: int = 4096
    max_cluster: int = 1
