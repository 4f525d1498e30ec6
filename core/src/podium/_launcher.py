"""The launcher of one kernel: `Launcher(src, metadata)`, called as a compiler calls it.

    launcher(grid_x, grid_y, grid_z, stream, function, *args)

A launcher begins on the interpreted level, in the methods of this class. In the background the C for its signature
shape is built (`podium._generated`), and calls move over to it when it is ready. The C hands everything that is not
plain back to the methods here, so there is one place for each decision and each error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from podium import _debug, _settings, _state
from podium._computed import computed
from podium._hooks import LaunchEvent, hooks
from podium._interpreter import is_main_interpreter
from podium._launch_config import AXES, Dim3, LaunchConfig, dim3, pack_attributes
from podium._limits import check_features, check_limits, grid_error
from podium._parameters import LARGEST, Layout
from podium._signature import Signature
from podium._state import ATTENDED, record, words
from podium._stream import stream_handle
from podium.errors import ForkedProcessError, LaunchConfigError, LoadError, SignatureError

if TYPE_CHECKING:
    from podium._folding import Nesting
    from podium._function import Buffer
    from podium._generated import Build
    from podium._packing import Packed
    from podium._target import Target
    from podium.backend import Driver

# A driver's module imports this one for its launcher class, and choosing a driver must cost little: what only a
# launcher needs is imported when the first one is made.

__all__ = ["Launcher"]


class Launcher:
    """Launches one kernel. A backend subclasses it to name itself and its template, and usually nothing else.

    `src` has `signature` (a mapping of names to types, or any other form that `Signature.parse` reads) and may have
    `constants`: names, positions or index paths of parameters that were folded away. `metadata`, a mapping or an object
    with attributes, may have

    ======================================  ==================================================================
    ``name``                                the kernel's name, for messages
    ``block``, or ``num_warps``             threads in a block, one of the two is needed; warps are counted in
                                            ``warp_size`` threads, the warp size of ``target``, or 32
    ``cluster``, or ``num_ctas``            blocks in a cluster; the grid is then counted in clusters
    ``shared``                              bytes of dynamic shared memory
    ``global_scratch_size``, ``_align``     scratch memory for each block; its address follows the arguments
    ``profile_scratch_size``, ``_align``    the same for profilers, after it
    ``cooperative`` or ``launch_cooperative_grid``, ``dependent`` or ``launch_pdl``    how the grid is launched
    ``attributes``                          launch attributes of the backend, as those of `LaunchConfig`
    ``contiguous``                          whether arrays that are not C-contiguous are refused
    ======================================  ==================================================================

    Calling it checks and converts the arguments and launches. It raises `ArgumentError`, `LaunchConfigError`,
    `LaunchError` or `ScratchError`, and `ForkedProcessError` in a child of a process that used the driver.
    """

    backend: ClassVar[str]
    """The name of the driver that the launcher belongs to."""

    template: ClassVar[Path]
    """The C file that the code for a signature is put into; headers in its folder can be included."""

    generated_level: ClassVar[bool] = True
    """Whether launches may be made by generated C at all; without, `fire` sees each of them."""

    def __init__(self, src: Any, metadata: Any, driver: Driver | None = None) -> None:
        from podium._packing import Packer

        _debug.start_from_environment()
        read = _reader(metadata)
        self.name = str(read("name", None) or getattr(src, "name", None) or "kernel")
        self.signature, self._nested = _signature(src.signature, getattr(src, "constants", None) or {})
        self.shared = int(read("shared", 0))
        warp_size = int(read("warp_size", None) or getattr(read("target", None), "warp_size", 32))
        block = read("block", None)
        warps = read("num_warps", None)
        if block is None and warps is None:
            raise LaunchConfigError(
                f"{self.name}: the metadata says neither block nor num_warps, so the size of a block is not known",
                kernel=self.name,
                axis="block",
            )
        self.block: Dim3 = dim3(block, "block") if block is not None else (int(warps) * warp_size, 1, 1)
        clusters = int(read("num_ctas", 1))
        cluster = read("cluster", None)
        self.cluster: Dim3 = dim3(cluster, "cluster") if cluster is not None else (clusters, 1, 1)
        self.cooperative = bool(read("cooperative", read("launch_cooperative_grid", False)))
        self.dependent = bool(read("dependent", read("launch_pdl", False)))
        attributes = read("attributes", None) or ()
        self.attributes = LaunchConfig(1, 1, attributes=attributes).attributes if attributes else ()
        self._grid_scale = clusters if cluster is None else 1
        self._contiguous = int(bool(read("contiguous", False)))
        self.scratch = [
            (int(read(f"{which}_scratch_size", 0)), max(1, int(read(f"{which}_scratch_align", 1))))
            for which in ("global", "profile")
            if read(f"{which}_scratch_size", None) is not None
        ]
        self.layout = Layout(self.signature, len(self.scratch))
        self.parameter_bytes = self.layout.size
        if self.parameter_bytes > LARGEST:
            raise SignatureError(
                f"{self.name}: its parameters have {self.parameter_bytes} bytes, and no launch takes more than "
                f"{LARGEST}; put them into an array",
                spelling=str(self.signature)[:200],
            )
        if driver is None:
            from podium._active import driver_config

            driver = driver_config.get(self.backend)
        self.driver = driver
        packer = self.packer = Packer(self.name, self.signature, self.driver, bool(self._contiguous))
        self.pack, self._encode, self._locate = packer.pack, packer.encode, packer.locate
        self._export_stream = packer.export_stream
        self.binaries: dict[int, Target] = {}  # by device: what the code that is loaded there was compiled for
        self._configs: dict[Dim3, LaunchConfig] = {}
        self._id = _state.new_id(self.name, self.driver.name)
        self._state_address = _state.address()
        self._flags = int(self.cooperative) | int(self.dependent) << 1
        self.generated: Any = None  # the Launcher of the generated module, once there is one
        self.made: Any = None  # the same, as soon as it is made; False while it is waited for
        self._entry: Any = self._launch
        self._quick: Any = None  # the same, if a call is nothing else than a call of it
        self._fits = False  # whether the limits of the device have been looked at
        self._build: Build | None = None
        self._launched = False  # once from Python: a second such launch is when C begins to be worth it
        check_features(self.name, self.driver, self.configuration((1, 1, 1)))
        self._packed_attributes = pack_attributes(self.attributes, self.driver.attribute_keys)
        self._choose_level(_settings.launcher_level(), getattr(src, "_look_up_in_c", None))
        self.may_move = self._build is not None  # whether there can be a generated level some day
        if _settings.trace_file() is not None:
            from podium import _trace

            _trace.start_from_environment()

    def __call__(self, grid_x: int, grid_y: int, grid_z: int, stream: Any, function: int, *args: Any) -> None:
        """Launch `function`, a handle that the driver's `load` gave, over a grid of blocks."""
        if self._nested is not None:
            from podium._folding import flatten

            args = tuple(flatten(self.name, self._nested, args))
        if self.generated is None:
            if not self._fits:
                self._check_device()
            self.promote()
        self._entry(grid_x, grid_y, grid_z, stream, function, *args)

    @property
    def level(self) -> str:
        """The level that the next call uses: "interpreted" or "generated"."""
        ready = self.generated is not None or (self._build is not None and self._build.module is not None)
        return "generated" if ready else "interpreted"

    @property
    def module(self) -> Any:
        """The generated module; None as long as there is none."""
        return self._build.module if self._build is not None else None

    @property
    def scratch_count(self) -> int:
        """How many scratch pointers follow the arguments."""
        return len(self.scratch)

    @computed
    def _grid_limit(self) -> Dim3:
        x, y, z = self.driver.devices()[0].max_grid
        return x // self._grid_scale, y, z

    def _check_device(self) -> None:
        """Check what all launches have in common against the device; once, since the driver may not be asked before."""
        self._check_fork()
        device = self.driver.devices()[0]
        check_limits(self.name, device, self.configuration((1, 1, 1)))
        if self.parameter_bytes > device.max_parameter_bytes:
            raise LoadError(
                f"{self.name}: its parameters have {self.parameter_bytes} bytes, {device.name} takes "
                f"{device.max_parameter_bytes}; put them into an array",
                kernel=self.name,
                backend=self.driver.name,
            )
        if not self.driver.fork_safe:
            _state.used(self.driver.name)
        self._fits = True

    def _check_fork(self) -> None:
        parent = _state.forked_from(self.driver.name)
        if parent is not None:
            raise ForkedProcessError(self.driver.name, parent)

    # ---- levels ----

    def _choose_level(self, level: str, look_up_in_c: Callable[[Any], None] | None) -> None:
        if not self.generated_level or level == "interpreted" or (level == "auto" and not is_main_interpreter()):
            return
        from podium import _generated

        prepare = partial(_generated.serve_all, Launcher, look_up_in_c)
        self._build = _generated.request(self.template, self.signature, self.scratch_count, prepare)
        if level == "generated":
            self._build.require()
        else:
            self._build.recall()

    def promote(self) -> bool:
        """Move over to the generated level if its module is there; tell whether the launcher is on it."""
        if self.generated is None and self._build is not None and (module := self._build.poll()) is not None:
            self._launch_type = module.Launch
            self.generated = self._entry = self.made or module.Launcher(self)
            if self._nested is None:
                self._quick = self.generated
        return self.generated is not None

    def build(self) -> None:
        """Begin to build the generated level in the background, unless it is there, begun or switched off."""
        if self.made is None and self.generated is None and self._build is not None:
            from podium import _generated

            self.made = False
            _generated.start(self._build, self)

    def wait(self) -> None:
        """Wait until the generated level is there, unless it is switched off or cannot be built."""
        if self._build is not None:
            self._build.run()
            self.promote()

    def bind(self, launch: Any) -> Callable[..., None]:
        """Make the generated twin of a `podium._launch.Launch`, once the launcher has been promoted."""
        twin: Callable[..., None] = self._launch_type(self.generated, launch.prepare, launch.slow, launch)
        return twin

    def forget(self) -> bool:
        """Make bound launches ask for their functions again; tell whether one in C has its function at this moment."""
        return self.generated is not None and self.generated.forget() != 0

    # ---- launching ----

    def _launch(self, grid_x: int, grid_y: int, grid_z: int, stream: Any, function: int, *args: object) -> None:
        grid = grid_x, grid_y, grid_z
        if not (type(grid_x) is type(grid_y) is type(grid_z) is int and min(grid) >= 0):
            grid = dim3(grid, "grid")
        for axis, size, limit in zip(AXES, grid, self._grid_limit):
            if size > limit:
                raise grid_error(self.name, axis, size, limit)
        handle = stream_handle(stream, self.driver)
        if not isinstance(function, int) or isinstance(function, bool) or not 0 < function < 1 << 64:
            from podium._arguments import describe

            raise LaunchConfigError(
                f"{self.name}: function must be the handle that load() gave, not {describe(function)}", kernel=self.name
            )
        packed = self.pack(args, handle or 0)
        if 0 in grid:
            return
        driver = self.driver
        device = driver.current_device() if packed.device is None else packed.device
        config = self.configuration(grid)
        if words[ATTENDED] & _state.CAPTURES:
            from podium import _capture, _captured_launch

            if (capture := _capture.current(driver)) is not None:
                shape = _captured_launch.HandedOver(self, function, device, config)
                capture.take(self, shape, device, packed, args, handle)
                return
        self.fire(config, device, handle or 0, function, packed, args)

    def configuration(self, grid: Dim3) -> LaunchConfig:
        """Return the configuration of a launch over a grid, which counts clusters if the metadata has ``num_ctas``."""
        config = self._configs.get(grid)
        if config is None:
            if len(self._configs) >= 256:
                self._configs.clear()
            config = self._configs[grid] = LaunchConfig(
                (grid[0] * self._grid_scale, grid[1], grid[2]),
                self.block,
                cluster=self.cluster,
                shared=self.shared,
                cooperative=self.cooperative,
                dependent=self.dependent,
                attributes=self.attributes,
            )
        return config

    def fire(
        self,
        config: LaunchConfig,
        device: int,
        stream: int,
        function: int,
        packed: Packed,
        args: Sequence[object],
        raw: bool = False,
    ) -> None:
        """Launch converted arguments from Python; what watches launches is called around it, unless it is `raw`."""
        if self._build is not None and not raw:
            if self._launched:
                self.build()
            self._launched = True
        if words[ATTENDED] and not raw:
            self._fire_watched(config, device, stream, function, packed, args)
            return
        values, driver, layout = packed[0], self.driver, self.layout
        scratch: list[object] | tuple[()] = ()
        if self.scratch:
            values, scratch = list(values), []
            for which in range(len(self.scratch)):
                address, owner = self._allocate_scratch(which, config.blocks, device, stream)
                values.append(address)
                scratch.append(owner)
        parameters = layout.lay_out(values)
        record(self._id, config.sizes, device, stream)
        status = driver.launch(function, config, device, stream, parameters)
        if status:
            self._raise_status(status, *config.grid, *config.block, device, stream)
        layout.give_back(parameters)
        if stream and driver.host_memory:
            self._keep_alive(device, stream, *args, *packed.owners, *scratch)

    _fire = fire  # a subclass's own `fire` has led here already

    def _fire_watched(
        self, config: LaunchConfig, device: int, stream: int, function: int, packed: Packed, args: Sequence[object]
    ) -> None:
        attended = words[ATTENDED]
        if attended & _state.FORKED:
            self._check_fork()

        def launch() -> None:
            self._fire(config, device, stream, function, packed, args, raw=True)
            if _debug.enabled() and not self.driver.capturing(device, stream):  # waiting would destroy the capture
                status = self.driver.synchronize(device, stream)
                if status:
                    self._raise_status(status, *config.grid, *config.block, device, stream)

        if attended & _state.HOOKS:
            hooks.around(self.event(config, device, stream, packed, args), launch)
        else:
            launch()

    def event(self, config: LaunchConfig, device: int, stream: int, packed: Packed, args: Any) -> LaunchEvent:
        """Return what hooks are told of a launch."""
        return LaunchEvent(
            kernel=self.name,
            backend=self.driver.name,
            device=device,
            stream=stream,
            grid=config.grid,
            block=config.block,
            shared=config.shared,
            arguments=self.packer.describe(packed, args),
        )

    def _allocate_scratch(self, which: int, blocks: int, device: int, stream: int) -> tuple[int, object]:
        size, alignment = self.scratch[which]
        if size == 0:
            return 0, None
        from podium import _scratch

        def own(size: int, alignment: int, stream: int) -> Buffer:
            return self.driver.allocate(size, alignment, device, stream)

        return _scratch.allocate(self.name, size * blocks, alignment, stream, own)

    def _keep_alive(self, device: int, stream: int, *objects: object) -> None:
        self.driver.keep_alive(objects, device, stream)

    def _raise_status(
        self, status: int, gx: int, gy: int, gz: int, bx: int, by: int, bz: int, device: int, stream: int
    ) -> None:
        self._check_fork()
        if status >= 1 << 31:  # C hands it over unsigned
            status -= 1 << 32
        from podium._status import status_error

        binary = self.binaries.get(device)
        raise status_error(self.driver, status, self.name, device, (gx, gy, gz), (bx, by, bz), stream, binary)


def _signature(given: Any, constants: Mapping[Any, Any]) -> tuple[Signature, Nesting | None]:
    if isinstance(given, Signature) and not constants:
        return given, None
    from podium._folding import fold_constants, nesting

    return fold_constants(Signature.parse(given), constants), nesting(given)


def _reader(metadata: Any) -> Any:
    if isinstance(metadata, Mapping):
        return metadata.get
    return lambda name, default: getattr(metadata, name, default)
