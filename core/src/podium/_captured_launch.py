"""A launch that is a part of a graph: what it was captured with, and other arguments for the replays to come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from podium import _scratch
from podium._launch_config import Dim3, LaunchConfig, dim3
from podium._limits import check_limits, find_device
from podium.errors import ArrayDeviceError, LaunchConfigError

if TYPE_CHECKING:
    from podium._executable_graph import ExecutableGraph
    from podium._launcher import Launcher
    from podium._packing import Packed
    from podium._parameters import Parameters

__all__ = ["Captured", "CapturedLaunch", "HandedOver", "Shape"]


class Shape(Protocol):
    """What a launch has beside its arguments: a `podium._launch.Launch`, or a function that was handed over."""

    config: LaunchConfig

    def prepare(self, device: int, stream: int) -> int | None:
        """Return the function for a device, after checking what holds for it; None if the grid is empty."""
        ...

    def resized(self, grid: Any, block: Any, shared: Any) -> Shape:
        """Return the same with other sizes, checked; None leaves one as it is."""
        ...

    def twin(self) -> Any:
        """Return the generated launch of the same behaviour if there is one, else this object."""
        ...


class HandedOver:
    """The shape of a launch whose function was given with it, as a compiler calls a launcher."""

    def __init__(self, launcher: Launcher, function: int, device: int, config: LaunchConfig) -> None:
        self.launcher, self.function, self.device, self.config = launcher, function, device, config

    def prepare(self, device: int, stream: int) -> int | None:
        """Return the function, if there is anything to launch."""
        return self.function if self.config.blocks else None

    def resized(self, grid: Any, block: Any, shared: Any) -> HandedOver:
        """Return the same with other sizes; the grid is counted as in a call of the launcher."""
        launcher = self.launcher
        try:
            config = launcher.configuration(dim3(grid, "grid")) if grid is not None else self.config
            config = config.with_sizes(block=block, shared=shared)
        except LaunchConfigError as error:
            raise error.of_kernel(launcher.name) from None
        check_limits(launcher.name, find_device(launcher.name, launcher.driver, self.device, launcher.name), config)
        return HandedOver(launcher, self.function, self.device, config)

    def twin(self) -> HandedOver:
        """Return this object: its generated launch has sizes of its own."""
        return self


class Captured:
    """What a graph keeps of a launch: its arguments and its scratch memory stay alive, as it has their addresses."""

    def __init__(
        self, launcher: Launcher, shape: Shape, device: int, function: int, packed: Packed, arguments: tuple[Any, ...]
    ) -> None:
        self.launcher, self.shape, self.device, self.function = launcher, shape, device, function
        self.packed, self.arguments = packed, arguments
        self.node = 0  # the driver's
        self.stream = 0  # that it was captured in
        self.scratch: list[tuple[int, int, object]] = []  # bytes, address and owner

    def generated(self) -> Callable[..., None] | None:
        """Return a launch in C that takes the converted arguments, if there is one and they are all that it takes."""
        values, launcher = self.packed.values, self.launcher
        if len(values) != len(launcher.signature.names) or bytes in map(type, values):
            return None  # some are folded away, or were given as something that has these bytes
        twin = self.shape.twin()
        return None if twin is self.shape else twin

    def parameters(self) -> Parameters:
        """Return the bytes of the parameters, with scratch memory of the launch's own, which is made if need be."""
        self.scratch = self.scratch_for(self.shape.config)
        return self.with_scratch(self.packed, self.scratch)

    def with_scratch(self, packed: Packed, scratch: list[tuple[int, int, object]]) -> Parameters:
        """Return the bytes of converted arguments and of the addresses behind them, in memory to be given back."""
        return self.launcher.layout.lay_out([*packed.values, *(address for _, address, _ in scratch)])

    def scratch_for(self, config: LaunchConfig) -> list[tuple[int, int, object]]:
        """Return scratch memory for a launch of a graph: it stays where it is, and is made anew for a larger grid.

        It is in no stream's order, since replays go to any.
        """
        launcher, device, found = self.launcher, self.device, []
        for which, (size, alignment) in enumerate(launcher.scratch):
            total = size * config.blocks
            known = self.scratch[which] if self.scratch else (0, 0, None)
            if total > known[0]:
                known = (
                    total,
                    *_scratch.allocate(
                        launcher.name,
                        total,
                        alignment,
                        self.stream,
                        lambda size, alignment, stream: launcher.driver.allocate(size, alignment, device, None),
                    ),
                )
            found.append(known)
        return found


class CapturedLaunch:
    """One launch of a graph, in `Graph.launches`; it keeps the graph. `update` changes it."""

    def __init__(self, graph: ExecutableGraph, captured: Captured) -> None:
        self._graph, self._captured = graph, captured

    kernel: str = property(lambda self: self._captured.launcher.name, doc="The kernel's name.")  # type: ignore[assignment]
    device: int = property(lambda self: self._captured.device, doc="The index of its device.")  # type: ignore[assignment]
    node: int = property(lambda self: self._captured.node, doc="The driver's handle of it; 0 if it has no graphs.")  # type: ignore[assignment]
    arguments: tuple[Any, ...] = property(lambda self: self._captured.arguments, doc="What it was given last.")  # type: ignore[assignment]
    grid: Dim3 = property(lambda self: self._captured.shape.config.grid, doc="In blocks.")  # type: ignore[assignment]
    block: Dim3 = property(lambda self: self._captured.shape.config.block, doc="In threads.")  # type: ignore[assignment]
    shared: int = property(lambda self: self._captured.shape.config.shared, doc="In bytes.")  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<captured launch of {self.kernel}: grid {self.grid}, block {self.block}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be copied or pickled: it is a part of its graph; capture another")

    def update(
        self,
        *args: Any,
        grid: int | Iterable[int] | Callable[[Mapping[str, Any]], Any] | None = None,
        block: int | Iterable[int] | None = None,
        shared: int | None = None,
        **named: Any,
    ) -> None:
        """Change the launch for the replays to come; those that are under way are not changed.

        It takes all arguments, or by name those that change, with the checks and conversions of a launch, and another
        grid, block or size of shared memory. With an empty grid the launch is left out of replays. A parameter that is
        named grid, block or shared is given by position.

        Raises what a launch would, and `CaptureError` inside a capture.
        """
        graph, captured = self._graph, self._captured
        launcher, shape = captured.launcher, captured.shape
        graph.check(launcher.name)
        arguments, packed = captured.arguments, captured.packed
        if launcher._nested is not None and any(isinstance(each, (tuple, list)) for each in args):
            from podium._folding import flatten

            args = tuple(flatten(launcher.name, launcher._nested, args))
        if named:
            args = self._ordered(args, named)
        if args or not launcher.signature.names:
            arguments, packed = args, launcher.pack(args)
        if packed.device not in (None, captured.device):
            raise ArrayDeviceError(
                f"{launcher.name}: the launch was captured on device {captured.device}, where it stays, and the first "
                f"array is on device {packed.device}; capture another launch there",
                kind="peer",
                kernel=launcher.name,
            )
        scratch = captured.scratch
        if not (grid is block is shared is None):
            if callable(grid):
                grid = grid(dict(zip(launcher.signature.names, arguments)))
            shape = shape.resized(grid, block, shared)
            shape.prepare(captured.device, launcher.driver.current_stream(captured.device))
            scratch = captured.scratch_for(shape.config)
        graph.update(captured, shape.config, packed, scratch)
        captured.arguments, captured.packed, captured.shape, captured.scratch = arguments, packed, shape, scratch

    def _ordered(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Put arguments by name behind those by position, or in the place of what was given before."""
        captured = self._captured
        packer, names = captured.launcher.packer, captured.launcher.signature.names
        if args or not named.keys() <= set(names):
            return packer.order(args, named)
        values = list(captured.arguments)
        for name, value in named.items():
            values[names.index(name)] = value
        return tuple(values)
