"""The methods of a driver that not every backend has: streams, events, graphs, pinned memory and occupancy."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from podium.errors import UnsupportedError

if TYPE_CHECKING:
    from podium._function import Buffer, Function, Occupancy
    from podium._launch_config import LaunchConfig
    from podium._parameters import Parameters

__all__ = ["FeatureMethods"]


class FeatureMethods:
    """What `Driver.features` names; without a feature its methods raise `UnsupportedError`. Statuses as of `launch`."""

    name: ClassVar[str]

    def create_stream(self, device: int, priority: int) -> int:
        """Make a stream that runs beside all others ("streams"). A lower number has priority over a higher one."""
        raise UnsupportedError(self.name, "streams")

    def destroy_stream(self, stream: int, device: int) -> None:
        """Give a stream back; its work goes on ("streams"). Called from finalizers, so it must not raise."""
        raise UnsupportedError(self.name, "streams")

    def create_event(self, device: int, timed: bool) -> int:
        """Make an event, which takes the time if it is `timed` ("events")."""
        raise UnsupportedError(self.name, "events")

    def destroy_event(self, event: int, device: int) -> None:
        """Give an event back, also one that is waited for ("events"). Called from finalizers, so it must not raise."""
        raise UnsupportedError(self.name, "events")

    def record_event(self, event: int, device: int, stream: int) -> int:
        """Put an event behind the work that is in a stream now ("events"); return the status."""
        raise UnsupportedError(self.name, "events")

    def wait_event(self, device: int, stream: int, event: int) -> int:
        """Let the later work of a stream wait for an event, also of another device ("events"); return the status."""
        raise UnsupportedError(self.name, "events")

    def event_done(self, event: int, device: int) -> bool:
        """Tell whether the work before an event has ended ("events"). Raises `LaunchError` if it failed."""
        raise UnsupportedError(self.name, "events")

    def synchronize_event(self, event: int, device: int) -> int:
        """Wait for the work before an event ("events"); return the status of that."""
        raise UnsupportedError(self.name, "events")

    def elapsed(self, start: int, end: int, device: int) -> float:
        """Return the seconds between two timed events that have come to pass ("events"). Raises `LaunchError`."""
        raise UnsupportedError(self.name, "events")

    def begin_capture(self, device: int, stream: int) -> None:
        """Capture a stream's work from now on ("graphs"); memory is freed meanwhile. Raises `CaptureError`."""
        raise UnsupportedError(self.name, "graphs")

    def capture_state(self, device: int, stream: int) -> tuple[int, int]:
        """Return the number of the capture that a stream is in, and its last node there ("graphs"); zeros for none."""
        raise UnsupportedError(self.name, "graphs")

    def end_capture(self, device: int, stream: int) -> int:
        """End the capture that began in a stream, in any case; return its graph, ready to be launched ("graphs").

        Raises `CaptureError`. From now on `unload` leaves the code of the graph's launches.
        """
        raise UnsupportedError(self.name, "graphs")

    def launch_graph(self, graph: int, device: int, stream: int) -> int:
        """Launch all that a graph has, in a stream; return the status, and no more if that is captured ("graphs")."""
        raise UnsupportedError(self.name, "graphs")

    def update_node(
        self, graph: int, node: int, function: int, config: LaunchConfig, device: int, parameters: Parameters
    ) -> int:
        """Change parameters and sizes of a launch, for later replays; without blocks it is left out ("graphs")."""
        raise UnsupportedError(self.name, "graphs")

    def destroy_graph(self, graph: int, device: int) -> None:
        """Give a graph back; its launches go on ("graphs"). Called from finalizers, so it must not raise."""
        raise UnsupportedError(self.name, "graphs")

    def allocate_pinned(self, size: int, alignment: int, device: int) -> Buffer:
        """Return host memory that kernels reach; freeing it waits for work ("pinned"). Raises `OutOfResourcesError`."""
        raise UnsupportedError(self.name, "pinned")

    def occupancy(self, function: Function, device: int, config: LaunchConfig) -> Occupancy:
        """Compute how many blocks of a launch run at once ("occupancy")."""
        raise UnsupportedError(self.name, "occupancy")

    def suggested_block(self, function: Function, device: int, shared: int) -> tuple[int, int]:
        """Return threads in a block that fill the device, and the fewest blocks; `shared` is in bytes ("occupancy")."""
        raise UnsupportedError(self.name, "occupancy")
