"""Queues of pyopencl's that podium takes as streams."""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary, finalize

from podium.backend import ForkSafeLock
from podium.errors import ArgumentTypeError, ArgumentValueError

from podium_opencl.device import open_devices
from podium_opencl.opencl import opencl
from podium_opencl.stream import add_queue, destroy_stream, queue_handle

__all__ = ["SharedQueue", "share"]


class SharedQueue:
    """A queue of pyopencl's as a stream of podium: launches, copies and events take it wherever they take one."""

    def __init__(self, queue: Any, device: int) -> None:
        self.device, self.handle = device, int(queue.int_ptr)
        if queue_handle(device, self.handle) is None:  # else it is one of podium's own, which gives it back itself
            finalize(self, destroy_stream, add_queue(queue, device), device)

    def __cuda_stream__(self) -> tuple[int, int]:
        """Give the version of the protocol and the handle."""
        return 0, self.handle

    def __repr__(self) -> str:
        return f"<queue {self.handle:#x} of pyopencl's, a stream of device {self.device}>"


_lock = ForkSafeLock()
_shared: WeakValueDictionary[int, SharedQueue] = WeakValueDictionary()  # by handle


def share(queue: Any) -> SharedQueue:
    """Make a queue a stream, or return the one that it is. Raises `ArgumentTypeError` and `ArgumentValueError`."""
    cl = opencl()
    if not isinstance(queue, cl.CommandQueue):
        raise ArgumentTypeError(
            f"podium_opencl.as_stream takes a pyopencl.CommandQueue, not {queue!r:.100}",
            argument="queue",
            value=repr(queue),
        )
    problem = ""
    device = next((each.index for each in open_devices() if each.context == queue.context), None)
    if device is None:
        problem = "is in a context that is not podium's: make it with pyopencl.CommandQueue(podium_opencl.context())"
    elif queue.properties & cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE:
        problem = "does not keep the order of its commands: make it without OUT_OF_ORDER_EXEC_MODE_ENABLE"
    if device is None or problem:
        raise ArgumentValueError(f"The queue {queue!r} {problem}", argument="queue", value=repr(queue))
    with _lock:
        found = _shared.get(int(queue.int_ptr))
        if found is None:
            found = _shared[int(queue.int_ptr)] = SharedQueue(queue, device)
        return found
