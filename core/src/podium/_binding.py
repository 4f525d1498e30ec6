"""A kernel on one driver: its launcher, its code per target, and its functions per device."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, Any

from podium import _state
from podium._fork import ForkSafeLock
from podium._hooks import LoadEvent, hooks
from podium._launch import DynamicLaunch, Launch
from podium._launch_config import LaunchConfig
from podium._limits import check_limits, find_device, loadable_device
from podium._object_code import ObjectCode
from podium._status import complete
from podium._target import Device, Target
from podium.errors import LaunchConfigError, LoadError

if TYPE_CHECKING:
    from podium._kernel import Kernel
    from podium.backend import Driver, Function, Occupancy

__all__ = ["Binding"]

_MOST_LAUNCHES = 4096  # of one kernel that are kept; grids that depend on data must not fill memory


class Binding:
    """What a `Kernel` keeps for one driver. Codes are kept per target, functions and handles per device."""

    def __init__(self, kernel: Kernel, driver: Driver) -> None:
        self.kernel, self.driver, self.name = kernel, driver, kernel.name
        try:
            launcher_class = driver.launcher_cls
        except ImportError as error:  # where it is given by name
            raise LoadError(
                f"{self.name}: the launcher of backend {driver.name!r} cannot be imported: {error}. Its package was "
                f"removed, or is not whole. Install it again, and restart the process",
                kernel=self.name,
                backend=driver.name,
            ) from error
        self.launcher = launcher_class(kernel, kernel.metadata, driver)
        self.epoch = 0
        self.under_way: list[None] = []  # one for each launch from Python that has its function
        self.warm = False  # whether launches shall be generated from the next one on, whatever it costs that one
        self._codes: dict[Target, ObjectCode] = {}
        # Code that has variables belongs to the module; other code to the kernel, which gives it back.
        self._is_shared = kernel.module.program is not None
        self._functions = {} if self._is_shared else kernel.loaded.setdefault(driver, {})
        self._launches: dict[Any, Callable[..., None]] = {}
        self._keys: dict[int, Any] = {}
        self.shortcut: object = None  # for ``kernel[grid, block]`` in C, once there is a generated launch
        self._lock = ForkSafeLock()

    # ---- launches ----

    def get(self, key: Any) -> Callable[..., None]:
        """Return the launch for ``kernel[key]``."""
        try:
            launch = self._launches[key]
            if key.__class__ is tuple:
                # 1.0 finds what 1 has made; but only integers have divisors in common, and bits.
                grid, block = key
                if grid.__class__ is tuple:
                    grid = gcd(*grid)
                if block.__class__ is tuple:
                    block = gcd(*block)
                grid & block
            return launch
        except KeyError:
            hashable = True
        except TypeError:  # a list in the key, a float, or a tuple of another class
            known = self._launches.get(key) if _is_value(key) else None
            if known is not None:
                return known
            hashable = False
        made = self._make(key)
        if not isinstance(made, Launch):
            return made
        if hashable and _is_value(key):
            self._remember(key, made)
        return made.twin()  # a program may keep it for good

    def launch(self, grid: Any, block: Any) -> Callable[..., None]:
        """Return the launch for a grid and a block."""
        return self.get((tuple(grid) if isinstance(grid, list) else grid, block))

    def replace(self, launch: Launch, generated: Callable[..., None]) -> None:
        """Put the generated twin of a launch in its place."""
        key = self._keys.pop(id(launch), None)
        if key is not None and self._launches.get(key) is launch:
            self._launches[key] = generated
        if self.shortcut is None:
            self.shortcut = self.kernel._make_shortcut(self.launcher.module, self.driver, self._launches)

    def warm_up(self) -> None:
        """Wait for the generated level, and move launches there: those that are known now, others when called next."""
        self.launcher.wait()
        self.warm = True
        for launch in list(self._launches.values()):
            if isinstance(launch, Launch):
                launch.twin()

    def _remember(self, key: Any, launch: Launch) -> None:
        if len(self._launches) >= _MOST_LAUNCHES:
            self._launches.clear()
            self._keys.clear()
        self._launches[key] = launch
        self._keys[id(launch)] = key

    def _make(self, key: Any) -> Launch | DynamicLaunch:
        if isinstance(key, LaunchConfig):
            return Launch(self, key)
        if not isinstance(key, tuple) or len(key) != 2:
            raise LaunchConfigError(
                f"{self.name}: write kernel[grid, block](...) or kernel[LaunchConfig(...)](...); a grid of several "
                f"axes is a tuple of its own, kernel[(2, 3), (16, 16)]. Got kernel[{key!r}]",
                kernel=self.name,
            )
        grid, block = key
        if callable(grid):
            return DynamicLaunch(self, grid, block)
        launcher = self.launcher  # what compiled code says of its launches holds where the caller says nothing
        try:
            config = LaunchConfig(
                grid,
                block,
                cluster=launcher.cluster,
                shared=launcher.shared,
                cooperative=launcher.cooperative,
                dependent=launcher.dependent,
                attributes=launcher.attributes,
            )
        except LaunchConfigError as error:
            raise error.of_kernel(self.name) from None
        return Launch(self, config)

    # ---- code ----

    def device(self, index: int) -> Device:
        """Return a device of the driver. Raises `LaunchConfigError` if there is no such device."""
        return find_device(self.name, self.driver, index, self.name)

    def index(self, device: int | None) -> int:
        """Return the index of a device that a user named, by default the current one. Raises as `device` does."""
        return self.driver.current_device() if device is None else self.device(device).index

    def code(self, target: Target) -> ObjectCode:
        """Return the kernel's code for a target, compiling it if need be."""
        with self._lock:
            code = self._codes.get(target)
            if code is None:
                code = self._codes[target] = self.kernel.compile(target, self.driver)
            return code

    def load(self, device: int, stream: int | None = None) -> Function:
        """Return the kernel on a device, compiling and loading it if need be."""
        function = self._functions.get(device)
        if function is not None:
            return function
        driver = self.driver
        description = loadable_device(self.name, driver, device, stream)
        with self._lock:
            function = self._functions.get(device)
            if function is None:
                function = self._load(description)
            return function

    def occupancy(self, config: LaunchConfig, device: int | None) -> Occupancy:
        """Compute how many blocks of a launch run at once, after the checks of a launch."""
        index = self.index(device)
        launch = Launch(self, config)
        if launch.prepare(index, self.driver.current_stream(index)) is None:
            raise LaunchConfigError(f"{self.name}: an empty grid has no occupancy", kernel=self.name, axis="grid")
        return self.driver.occupancy(self.load(index), index, config)

    def suggested_block(self, shared: int, device: int | None) -> tuple[int, int]:
        """Return a number of threads in a block that fills a device, and the fewest blocks for that."""
        index = self.index(device)
        try:
            config = LaunchConfig(1, 1, shared=shared)
        except LaunchConfigError as error:
            raise error.of_kernel(self.name) from None
        check_limits(self.name, self.device(index), config)
        return self.driver.suggested_block(self.load(index), index, config.shared)

    def _load(self, device: Device) -> Function:
        code = self.code(device.target)
        if not self.driver.accepts(code.target, device.target):
            raise LoadError(
                f"{self.name}: the code was built for {code.target}, the device {device.index} ({device.name}) is "
                f"{device.target}",
                kernel=self.name,
                backend=self.driver.name,
            )
        size = self.launcher.parameter_bytes
        if size > device.max_parameter_bytes:
            raise LoadError(
                f"{self.name}: its parameters have {size} bytes, {device.name} takes {device.max_parameter_bytes}; "
                f"put them into an array",
                kernel=self.name,
                backend=self.driver.name,
            )
        self.launcher.binaries[device.index] = code.target
        start = time.perf_counter()
        # kept before anything else can fail, so that it is unloaded some day
        function = self._functions[device.index] = self._load_code(code, device)
        if not self.driver.fork_safe:
            _state.used(self.driver.name)
        for hook in hooks.load.functions():
            hook(LoadEvent(self.name, self.driver.name, device.index, time.perf_counter() - start, start))
        return function

    def _load_code(self, code: ObjectCode, device: Device) -> Function:
        """Load; what is damaged in the cache is compiled anew, once."""
        name = self.kernel.entry_name
        if self._is_shared:
            return self.kernel.module.loaded(self.driver, device, name).function(name)
        try:
            return self.driver.load(code, name, device.index)
        except LoadError as error:
            if not self.kernel._discard(device.target, self.driver, str(error)):
                complete(error, self.driver, device.index, code.target)
                raise
        code = self._codes[device.target] = self.kernel.compile(device.target, self.driver)
        try:
            return self.driver.load(code, name, device.index)
        except LoadError as error:
            complete(error, self.driver, device.index, code.target)
            raise

    def forget(self) -> bool:
        """Let every launch ask for its function again; tell whether one has its function, which must stay loaded."""
        if self._is_shared:
            self._functions.clear()
        self.epoch += 1
        return self.launcher.forget() or bool(self.under_way)


def _is_value(key: Any) -> bool:
    """Tell whether a key is made of what never changes; other hashable things may mean another grid the next time."""
    if isinstance(key, tuple):
        return all(map(_is_value, key))
    if type(key) is int or isinstance(key, LaunchConfig):
        return True
    from numbers import Integral  # for the integers of numpy and their like

    return isinstance(key, Integral)
