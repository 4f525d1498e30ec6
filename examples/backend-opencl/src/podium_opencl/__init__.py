"""An OpenCL backend of podium: runs kernels of the CUDA dialect on OpenCL devices with shared virtual memory.

Users need none of it by name, unless they use pyopencl beside podium: `context` and `queue` give what both share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium_opencl._version import __version__

if TYPE_CHECKING:
    from podium_opencl.shared_queue import SharedQueue

__all__ = ["__version__", "as_stream", "context", "queue"]


def context(device: int = 0) -> Any:
    """Return podium's context of a device, a ``pyopencl.Context``.

    Shared virtual memory is memory of a context: what pyopencl allocates in this one, podium's kernels can be given by
    its address. Raises `BackendError` if OpenCL cannot be used, `LaunchConfigError` for a device that there is not.
    """
    from podium_opencl.device import open_device

    return open_device(device).context


def queue(device: int = 0, stream: Any = None) -> Any:
    """Return the queue that a stream of podium is, a ``pyopencl.CommandQueue``; by default stream 0 of the device.

    Commands that pyopencl puts there run in one order with podium's launches. Raises `BackendError` if OpenCL cannot be
    used, `LaunchConfigError` for a device that there is not, `ArgumentTypeError` for what is no stream, and
    `LaunchError` for one that is none of the device's.
    """
    from podium.errors import ArgumentTypeError

    from podium_opencl.stream import find_queue

    handle = 0 if stream is None else getattr(stream, "handle", stream)
    if not isinstance(handle, int):
        raise ArgumentTypeError(
            f"podium_opencl.queue takes a podium.Stream or its handle, not {stream!r:.100}",
            argument="stream",
            value=repr(stream),
        )
    return find_queue(device, handle)


def as_stream(queue: Any) -> SharedQueue:
    """Return what podium takes as a stream for a ``pyopencl.CommandQueue`` in one of podium's contexts.

    The queue is one of the device's streams for as long as that object lives. Raises `ArgumentTypeError` for what is no
    queue, and `ArgumentValueError` for one of another context, or one that does not keep its order.
    """
    from podium_opencl.shared_queue import share

    return share(queue)
