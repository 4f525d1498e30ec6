"""An OpenCL backend of podium: runs kernels of the CUDA dialect on OpenCL devices with shared virtual memory.

Users need none of it by name, unless they use pyopencl beside podium: `context` and `queue` give what both share.
"""

from __future__ import annotations

from typing import Any

from podium_opencl._version import __version__

__all__ = ["__version__", "context", "queue"]


def context(device: int = 0) -> Any:
    """Return podium's context of a device, a ``pyopencl.Context``.

    Shared virtual memory is memory of a context: what pyopencl allocates in this one, podium's kernels can be given by
    its address. Raises `BackendError` if OpenCL cannot be used.
    """
    from podium_opencl.device import open_device

    return open_device(device).context


def queue(device: int = 0, stream: Any = None) -> Any:
    """Return the queue that a stream of podium is, a ``pyopencl.CommandQueue``; by default stream 0 of the device.

    Commands that pyopencl puts there run in one order with podium's launches. Raises `BackendError`.
    """
    from podium_opencl.stream import find_queue

    return find_queue(device, 0 if stream is None else int(getattr(stream, "handle", stream)))
