"""Streams: command queues that keep their order. Stream 0 of a device is a queue, too.

A handle that is no queue would end the process, since OpenCL reads where it points to. So every handle is looked up
among those that podium made or was given: here, and by the generated C in a list that is kept for it.
"""

from __future__ import annotations

import atexit
import ctypes
from collections import defaultdict, deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from podium.errors import LaunchError, PodiumError

from podium_opencl.device import is_forked, open_device, started_devices
from podium_opencl.opencl import opencl
from podium_opencl.status import INVALID_QUEUE, SUCCESS, launch_error, status_of

__all__ = [
    "add_queue",
    "all_work",
    "create_stream",
    "destroy_stream",
    "find_queue",
    "known_streams",
    "marker",
    "queue_handle",
    "synchronize",
    "wait_for",
]

# No locks, since finalizers give streams back, in the middle of anything; each step is one by itself.
_queues: dict[int, tuple[Any, int]] = {}  # by handle: those that podium made or was given, and their device
_leaving: defaultdict[int, deque[Any]] = defaultdict(deque)  # by device: events behind queues that were given back
# By device: where the generated C finds the list of its streams, and the last lists.
_known: defaultdict[int, ctypes.c_void_p] = defaultdict(ctypes.c_void_p)
_lists: defaultdict[int, deque[Any]] = defaultdict(lambda: deque(maxlen=16))


def find_queue(device: int, stream: int) -> Any:
    """Return the queue that a stream is. Raises `LaunchError` for what is no stream of the device."""
    if stream == 0:
        return open_device(device).queue
    queue, owner = _queues.get(stream, (None, device))
    if queue is None or owner != device:
        raise launch_error(INVALID_QUEUE, f"stream {stream:#x}", device)
    return queue


def queue_handle(device: int, stream: int) -> int | None:
    """Return the cl_command_queue that a stream is; None for what is no stream of the device."""
    if stream == 0:
        return open_device(device).queue_handle
    _, owner = _queues.get(stream, (None, None))
    return stream if owner == device else None


def add_queue(queue: Any, device: int) -> int:
    """Make a queue a stream of a device until `destroy_stream`; return its handle."""
    handle = int(queue.int_ptr)
    _queues[handle] = queue, device
    _list_again(device)
    return handle


def known_streams(device: int) -> int:
    """Return the address where the generated C finds the list of a device's streams: their number, then the handles."""
    if not _lists[device]:
        _list_again(device)
    return ctypes.addressof(_known[device])


def _list_again(device: int) -> None:
    """List the streams for the generated C, which reads the list with the interpreter lock."""
    while True:
        handles = [handle for handle, (_, owner) in list(_queues.items()) if owner == device]
        block = (ctypes.c_uint64 * (1 + len(handles)))(len(handles), *handles)
        _lists[device].append(block)
        _known[device].value = ctypes.addressof(block)
        # Who came between has changed the queues, and perhaps listed them before this list was put there.
        if handles == [handle for handle, (_, owner) in list(_queues.items()) if owner == device]:
            return


def create_stream(device: int, priority: int) -> int:
    """Make a queue. OpenCL as such has no priorities, so that all queues have the same. Raises `LaunchError`."""
    try:
        queue = open_device(device).make_queue()
    except opencl().Error as error:
        raise launch_error(status_of(error), "making a stream", device) from None
    return add_queue(queue, device)


def destroy_stream(stream: int, device: int) -> None:
    """Give a queue back; its work goes on, and who waits for the device waits for it, too. It does not raise."""
    queue, _ = _queues.pop(stream, (None, device))
    if queue is None or is_forked():
        return
    _list_again(device)
    with suppress(PodiumError, opencl().Error):
        _leaving[device].append(marker(queue))


def synchronize(device: int, stream: int | None = None) -> int:
    """Wait for a stream, or for all of a device; return the status of the work."""
    try:
        return wait_for([marker(find_queue(device, stream))] if stream is not None else all_work(device))
    except (opencl().Error, LaunchError) as error:
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
        for device in started_devices():
            synchronize(device.index)
