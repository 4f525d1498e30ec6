"""Streams: command queues that keep their order. Stream 0 of a device is a queue, too."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from podium.backend import ForkSafeLock
from podium.errors import PodiumError

from podium_opencl.device import open_device
from podium_opencl.opencl import opencl
from podium_opencl.status import SUCCESS, launch_error, status_of

__all__ = ["create_stream", "destroy_stream", "find_queue", "synchronize"]

_lock = ForkSafeLock()
_queues: dict[int, tuple[Any, int]] = {}  # by handle: those that podium made, and their device
_leaving: dict[int, list[Any]] = {}  # by device: events behind the work of queues that were given back


def find_queue(device: int, stream: int) -> Any:
    """Return the queue that a stream is: stream 0 of the device, one of `create_stream`, or a cl_command_queue."""
    if stream == 0:
        return open_device(device).queue
    known = _queues.get(stream)
    if known is not None:
        return known[0]
    return opencl().CommandQueue.from_int_ptr(stream, retain=True)


def create_stream(device: int, priority: int) -> int:
    """Make a queue. OpenCL as such has no priorities, so that all queues have the same. Raises `LaunchError`."""
    try:
        queue = open_device(device).make_queue()
    except opencl().Error as error:
        raise launch_error(status_of(error), "making a stream", device) from None
    handle = int(queue.int_ptr)
    with _lock:
        _queues[handle] = queue, device
    return handle


def destroy_stream(stream: int, device: int) -> None:
    """Give a queue back; its work goes on, and who waits for the device waits for it, too. It does not raise."""
    with _lock:
        queue, _ = _queues.pop(stream, (None, device))
    if queue is None:
        return
    with suppress(PodiumError, opencl().Error):
        last = opencl().enqueue_marker(queue)
        queue.flush()
        with _lock:
            _leaving.setdefault(device, []).append(last)


def synchronize(device: int, stream: int | None = None) -> int:
    """Wait for a stream, or for all of a device; return the status of the work."""
    cl = opencl()
    try:
        if stream is not None:
            return _wait_for([_marker(find_queue(device, stream))])
        with _lock:
            queues = [queue for queue, owner in _queues.values() if owner == device]
            events = _leaving.pop(device, [])
        return _wait_for([*events, *(_marker(queue) for queue in [open_device(device).queue, *queues])])
    except cl.Error as error:
        return status_of(error)


def _marker(queue: Any) -> Any:
    event = opencl().enqueue_marker(queue)
    queue.flush()
    return event


def _wait_for(events: list[Any]) -> int:
    """Wait for all of the events, also if one of them stands for work that failed; return the first failure."""
    status = SUCCESS
    for event in events:
        try:
            event.wait()
        except opencl().Error as error:
            status = status or status_of(error)
    return status
