"""`capture` and `Graph`: launches that are captured once and replayed many times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from podium import _capture
from podium._active import driver_config
from podium._captured_launch import CapturedLaunch
from podium._executable_graph import DriverGraph, ExecutableGraph, NotedGraph
from podium._stream import device_for, stream_handle
from podium._timeline import Stream
from podium.errors import CaptureError

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["Graph", "capture"]


class Graph:
    """Launches that were captured, to be replayed at once: ``graph.replay()``, or ``graph()``.

    It keeps the arguments of its launches alive, their scratch memory and their code. Drop it when its replays have
    ended, and use it in one thread at a time. `capture` makes one.
    """

    def __init__(self, driver: Driver, device: int, stream: Any) -> None:
        self.driver, self.device, self.stream = driver, device, stream
        self._executable: ExecutableGraph | None = None
        self._launches: tuple[CapturedLaunch, ...] | None = None
        self._is_open = True

    @property
    def launches(self) -> tuple[CapturedLaunch, ...]:
        """The launches, in the order in which they were captured; a launch of an empty grid is none."""
        if self._launches is None:
            executable = self._whole()
            self._launches = tuple(CapturedLaunch(executable, captured) for captured in executable.launches)
        return self._launches

    def replay(self, stream: Any = None) -> None:
        """Launch everything again.

        The stream is the one that is named, else the one that was given to `capture`, else the current one of the
        arrays' library, else the driver's default. Raises `LaunchError`, and `CaptureError` inside a capture.
        """
        executable = self._whole()
        quick = executable.quick()
        if quick is not None:
            self.replay = quick  # type: ignore[method-assign]  # from now on there is nothing between
        executable.replay(stream)

    def __call__(self, stream: Any = None) -> None:
        """Replay."""
        if stream is None:
            self.replay()
        else:
            self.replay(stream=stream)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be copied or pickled: it belongs to one process; capture another")

    def __repr__(self) -> str:
        if self._executable is None:
            name = "graph that is being captured" if self._is_open else "graph whose capture failed"
        else:
            name = self._executable.name
        return f"<podium {name} on {self.driver.name} device {self.device}>"

    def _whole(self) -> ExecutableGraph:
        if self._executable is None:
            state = "its capture has not ended yet" if self._is_open else "its capture failed"
            raise CaptureError(f"There is no graph to use: {state}", backend=self.driver.name)
        return self._executable


@contextmanager
def capture(*, stream: Any = None, device: int | None = None, driver: Driver | str | None = None) -> Iterator[Graph]:
    """Capture the launches inside the ``with`` block into a `Graph`, instead of making them.

    What names no stream is captured in `graph.stream`: the given one, or one that is made. Another stream takes part
    from when it waits for an event that was recorded in the capture, and `graph.stream` must wait for it in the end.
    Kernels are to be loaded before, by a launch or `Kernel.warm_up`. Launches of other threads and of other drivers are
    made as ever.

    A driver with the feature "graphs" makes a graph of its own. Elsewhere podium makes the launches again, one after
    the other, each as it was captured.

    Raises `CaptureError` for a stream that cannot be captured, and at the end if the capture failed. What the block
    raises ends the capture, and there is no graph.
    """
    driver = driver_config._given(driver, "capture")
    index, given = device_for("capture", driver, device, stream), stream_handle(stream, driver)
    if stream is None and "streams" in driver.features:
        stream = Stream(index, driver=driver)
    handle = stream_handle(stream, driver)
    kind = _capture.DriverCapture if "graphs" in driver.features else _capture.NotedCapture
    captured = kind(driver, index, driver.current_stream(index) if handle is None else handle)
    graph = Graph(driver, index, captured.stream if stream is None else stream)
    _capture.begin(captured)
    try:
        yield graph
    except BaseException:
        graph._is_open = False
        with suppress(CaptureError):
            made = _capture.end(captured)
            if made:
                driver.destroy_graph(made, index)
        raise
    graph._is_open = False
    made = _capture.end(captured)
    if made:
        graph._executable = DriverGraph(driver, index, captured.launches, given, made)
    else:
        graph._executable = NotedGraph(driver, index, captured.launches, given)
