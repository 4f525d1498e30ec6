"""Streams: command queues that keep their order. Stream 0 of a device is a queue, too."""

from __future__ import annotations

import atexit
from collections import defaultdict, deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from podium.errors import PodiumError

from podium_opencl.device import is_forked, open_device, open_devices
from podium_opencl.opencl import opencl
from podium_opencl.status import SUCCESS, launch_error, status_of

__all__ = ["all_work", "create_stream", "destroy_stream", "find_queue", "marker", "synchronize", "wait_for"]

# No locks, since finalizers give streams back, in the middle of anything; each step is one by itself.
_queues: dict[int, tuple[Any, int]] = {}  # by handle: those that podium made, and their device
_leaving: defaultdict[int, deque[Any]] = defaultdict(deque)  # by device: events behind queues that were given back


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
    _queues[handle] = queue, device
    return handle


def destroy_stream(stream: int, device: int) -> None:
    """Give a queue back; its work goes on, and who waits for the device waits for it, too. It does not raise."""
    queue, _ = _queues.pop(stream, (None, device))
    if queue is None or is_forked():
        return
    with suppress(PodiumError, opencl().Error):
        _leaving[device].append(marker(queue))


def synchronize(device: int, stream: int | None = None) -> int:
    """Wait for a stream, or for all of a device; return the status of the work."""
    try:
        return wait_for([marker(find_queue(device, stream))] if stream is not None else all_work(device))
    except opencl().Error as error:
        return status_of(error)


def all_work(device: int) -> list[Any]:
    """Return events that stand for all work that a device has been given."""
    queues = [queue for queue, owner in list(_queues.values()) if owner == device]
    leaving = _leaving[device]
    for _ in range(len(leaving)):
        with suppress(IndexError):  # another thread was faster
            event = leaving.popleft()
            if int(event.command_execution_status) > 0:
                leaving.append(event)
    return [*leaving, *(marker(queue) for queue in [open_device(device).queue, *queues])]


def marker(queue: Any) -> Any:
    """Return an event behind all that is in a queue, which is on its way to the device from now on."""
    event = opencl().enqueue_marker(queue)
    queue.flush()
    return event


def wait_for(events: Iterable[Any]) -> int:
    """Wait for all of the events, also if one of them stands for work that failed; return the first failure."""
    status = SUCCESS
    for event in events:
        try:
            event.wait()
        except opencl().Error as error:
            status = status or status_of(error)
    return status


@atexit.register
def _finish() -> None:
    """Wait for all work: what it works on goes away with the process."""
    with suppress(PodiumError):
        if not is_forked():
            for device in open_devices():
                synchronize(device.index)
