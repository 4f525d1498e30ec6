"""The choice of the active driver."""

from __future__ import annotations

import sys
from _thread import get_ident  # of `threading`, which choosing a driver does not need
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NoReturn, cast
from weakref import WeakSet, ref

from podium import _settings
from podium._import_aware_lock import ImportAwareLock
from podium.errors import PodiumError, PodiumWarning

if TYPE_CHECKING:
    from podium._plugins import Backend
    from podium._selection import Choice, Selection
    from podium.backend import Driver

__all__ = ["DriverConfig", "LazyProxy", "driver", "driver_config", "reset_active", "set_active", "use"]

ASKED_BY_TOOLS = frozenset({"getdoc", "awehoi234_wdfjwljet234_234wdfoijsdfmmnxpi492"})
"""Public names that no driver has. IPython asks for the first when an object is inspected; rich asks for the second,
before it prints an object, to see whether it claims to have every attribute."""


class LazyProxy:
    """Stands for the active driver, and looks for it when one of its public attributes is first read.

    Nothing else makes it look: printing, comparing, copying, pickling and inspecting it are free, on a machine without
    any device too. It follows every later choice, in whatever thread or task it is used.
    """

    __slots__ = ("__weakref__", "_config")

    _config: DriverConfig

    def __init__(self, config: DriverConfig) -> None:
        object.__setattr__(self, "_config", config)

    def __getattr__(self, name: str) -> object:
        if name.startswith("_") or name in ASKED_BY_TOOLS:
            raise AttributeError(f"'LazyProxy' object has no attribute {name!r}")
        return getattr(self._config.resolve(), name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"Cannot set {name!r} through podium.driver.active, which stands for whatever driver is active; "
            f"set it on podium.driver.resolve(), or choose a driver with podium.driver.set_active()"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Cannot delete {name!r} through podium.driver.active; see podium.driver.resolve()")

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # For isinstance: whoever has the class Driver in hand has imported its module.
        return getattr(sys.modules.get("podium.backend"), "Driver", LazyProxy)

    def __dir__(self) -> list[str]:
        chosen = self._config.chosen()
        public = [] if chosen is None else [name for name in dir(chosen) if not name.startswith("_")]
        return [*dir(LazyProxy), *public]

    def __repr__(self) -> str:
        return f"<LazyProxy of the active driver: {self._config.describe()}>"

    def __copy__(self) -> LazyProxy:
        return self

    def __deepcopy__(self, memo: object) -> LazyProxy:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _proxy_of_this_process, ()


class _Use:
    """One ``with podium.use(...)`` block, and the one around it."""

    __slots__ = ("__weakref__", "driver", "is_open", "outer", "runner")

    def __init__(self, driver: Driver, outer: _Use | None) -> None:
        self.driver, self.outer, self.is_open, self.runner = driver, outer, True, _runner()

    def holds(self) -> bool:
        """Tell whether it holds here: a task that was started in it keeps it for good, who opened it until its end."""
        return self.is_open or self.runner != _runner()


def _runner() -> tuple[int, ref[object] | None]:
    """Return what runs the caller: a thread, and in it a task of asyncio, if that is in use."""
    current_task = getattr(sys.modules.get("asyncio.tasks"), "current_task", None)
    try:
        task = current_task() if current_task is not None else None
    except RuntimeError:  # the thread runs no event loop
        task = None
    return get_ident(), None if task is None else ref(task)


class DriverConfig:
    """Knows the backends, and which driver is active; `podium.driver` is the one that programs use.

    The active driver is, in this order: the one of the innermost `use`, the one given to `set_active`, the one that
    the variable PODIUM_BACKEND names, and the one with the highest priority among those that can run here. A backend
    that was named is the only one that is looked at, and is never replaced: if it cannot run, that is an error.

    The variable is read when a driver is first needed; `reset_active` makes it be read again.

    All methods can be called from any thread.
    """

    _watcher: Callable[[bool, bool], None] | None = None
    _is_used = False
    _is_astray = False  # whether others may have closed a block that the variables of whoever ran it still have

    def __init__(self) -> None:
        self._lock = ImportAwareLock()
        self._used: ContextVar[Driver | None] = ContextVar("podium_use", default=None)  # read by C, too
        self._innermost: ContextVar[_Use | None] = ContextVar("podium_use_block", default=None)
        self._set: Driver | None = None
        self._remembered: Driver | None = None
        self._astray: WeakSet[_Use] = WeakSet()
        self._warned: set[str] = set()
        self._proxy = LazyProxy(self)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if self._watcher is not None:
            self._watcher(self._is_used, self._is_astray)

    def _watch(self, watcher: Callable[[bool, bool], None]) -> None:
        """Have a function called now, and whenever another driver may have become the active one.

        It is told whether there has been a `use`, so that the active driver need not be the same everywhere; and
        whether the variable of a context may hold the driver of a block that is over.
        """
        self._watcher = watcher

    @property
    def active(self) -> Driver:
        """The active driver, or a `LazyProxy` that stands for it until it has been chosen.

        Reading this chooses nothing and never fails.
        """
        chosen = self.chosen()
        return cast("Driver", self._proxy) if chosen is None else chosen

    @active.setter
    def active(self, value: object) -> NoReturn:
        raise AttributeError(
            "podium.driver.active cannot be assigned: others keep what they have read from it. "
            "Call podium.driver.set_active(...), or use `with podium.use(...)`"
        )

    def chosen(self) -> Driver | None:
        """Return the active driver if it has been chosen already; chooses nothing."""
        used = self._used.get()
        if used is not None and self._is_astray:
            used = self._settled()
        if used is not None:
            return used
        if self._set is not None:
            return self._set
        return self._remembered

    def resolve(self, name: str | None = None) -> Driver:
        """Return the active driver, choosing it if need be; with a name, that backend's driver if it can run here.

        Raises `UnknownBackendError` or `InactiveBackendError` for a backend that was named, and otherwise
        `NoActiveBackendError` or `AmbiguousBackendError`; `SettingError` if an environment variable that the driver
        reads has a value that means nothing. Warns once with `PodiumWarning` where a broken backend was passed over.
        """
        if name is not None:
            return self._selection.named(name, "podium.driver.resolve")
        if (chosen := self.chosen()) is not None:
            return chosen
        with self._lock.turn():
            if (chosen := self.chosen()) is not None:
                return chosen
            choice = self._choose(_settings.backend())
            if choice.final:
                self._remembered = choice.driver
        self._warn(choice)
        return choice.driver

    def get(self, name: str) -> Driver:
        """Return the driver of a backend by name, whether it can run here or not: it may still be able to compile.

        Raises `UnknownBackendError`, and `InactiveBackendError` if its plug-in is broken.
        """
        return self._selection.named(name, "podium.driver.get", probing=False)

    def _given(self, choice: Driver | str | None, taker: str, *, probing: bool = True) -> Driver:
        """Return the driver that a function was given as its ``driver``: the active one for None, else by name.

        A backend that was named must be able to run here, if it is to be `probing`; a driver is taken as it is. Raises
        as `resolve` and `get` do, and TypeError for anything else.
        """
        if choice is None:
            return self.resolve()
        if isinstance(choice, str):
            return self._selection.named(choice, taker, probing=probing)
        if isinstance(choice, LazyProxy):
            return choice._config.resolve()
        from podium.backend import Driver

        if not isinstance(choice, Driver):
            raise TypeError(f"{taker} takes as driver the name of a backend or a driver, not {choice!r}")
        return choice

    def preferred(self) -> str | None:
        """Return the name of the backend that `resolve` would give; None if it would fail. Keeps nothing."""
        try:
            chosen = self.chosen()
            return (self._choose(_settings.backend()).driver if chosen is None else chosen).name
        except PodiumError:
            return None

    def backends(self) -> list[Backend]:
        """Return all backends that are installed or registered, the broken ones included, sorted by name."""
        return self._selection.discovery.backends()

    def set_active(self, choice: str | Driver | None, **options: object) -> None:
        """Make a backend, by name, or a driver the active one of this process; None takes that back.

        `options` are those of the backend, as for `use`. Raises as `use` does, and then changes nothing.
        """
        if choice is None:
            if options:
                raise TypeError(f"set_active(None) takes no options: {', '.join(options)}")
            self._set = None
        else:
            self._set = self._checked(choice, "set_active", options)

    def reset_active(self) -> None:
        """Forget what `set_active` was given and what was chosen automatically; `use` stays in force."""
        with self._lock.turn():
            self._set = self._remembered = None

    @contextmanager
    def use(self, choice: str | Driver, **options: object) -> Iterator[Driver]:
        """Make a backend, by name, or a driver the active one inside a ``with`` block.

        `options` are what the backend lets its users choose, such as ``podium.use("cpu", sanitize="address")``. There
        is one driver for each combination of them, and what kernels have on one of them they do not share with others.

        It holds for the code in the block, and for asyncio tasks that are started there, until they end; not for other
        threads, nor for threads that are started in the block: use it again in those. Blocks can be nested.

        A ``yield`` in the block of a generator leaves it in force for whoever runs the generator, until that goes on
        and leaves the block, or is closed, by whichever thread or task.

        Raises `UnknownBackendError` or `InactiveBackendError` on entry, TypeError for an option that the backend does
        not have, and ValueError for a value that an option cannot have.
        """
        block = _Use(self._checked(choice, "podium.use", options), self._holding_block())
        if not self._is_used:
            self._is_used = True
        self._innermost.set(block)
        self._used.set(block.driver)
        try:
            yield block.driver
        finally:
            block.is_open = False
            if block.runner != _runner():
                with self._lock.turn():
                    self._astray.add(block)
                    self._is_astray = True
            self._leave(block)

    def register(self, driver_class: type[Driver]) -> type[Driver]:
        """Add a backend that no distribution provides, by its driver class; returns the class.

        Raises `PluginError` if the class is no usable driver or its name is taken.
        """
        with self._lock.turn():
            self._selection.discovery.register(driver_class)
            self._remembered = None
        return driver_class

    def unregister(self, name: str) -> None:
        """Remove a backend that was given to `register`, and forget the choice of it."""
        with self._lock.turn():
            driver_class = self._selection.discovery.unregister(name)
            self._selection.forget(driver_class)
            self._remembered = None
            if type(self._set) is driver_class:
                self._set = None

    def rediscover(self) -> None:
        """Look for backends anew: what was installed, removed or mended since the first look is seen.

        Modules that are imported stay so; a plug-in whose import failed is imported again.
        """
        with self._lock.turn():
            self._selection.discovery.rediscover()
            self._remembered = None
            self._warned.clear()

    def describe(self) -> str:
        """Name the active driver, or say that there is none yet; chooses nothing."""
        chosen = self.chosen()
        return "not chosen yet" if chosen is None else chosen.name

    def __repr__(self) -> str:
        return f"<podium.driver: {self.describe()}>"

    def __reduce__(self) -> str:
        return "driver_config"

    @property
    def _selection(self) -> Selection:
        made: Selection | None = self.__dict__.get("_made_selection")
        if made is None:
            from podium._selection import Selection

            made = self.__dict__.setdefault("_made_selection", Selection(self._lock))
        return made

    def _leave(self, closed: _Use | None = None) -> Driver | None:
        """Go back to the innermost block that holds: a generator may be closed in any order, and in any thread."""
        block = self._holding_block(closed)
        driver = None if block is None else block.driver
        self._innermost.set(block)
        self._used.set(driver)
        return driver

    def _settled(self) -> Driver | None:
        """Return the driver of the innermost block that holds, and leave those that others have closed."""
        block = self._innermost.get()
        with self._lock.turn():
            while block is not None:
                if not block.holds():
                    self._astray.discard(block)
                block = block.outer
            if not self._astray:  # of those that were there, nobody is left who could have them
                self._is_astray = False
        return self._leave()

    def _holding_block(self, closed: _Use | None = None) -> _Use | None:
        block = self._innermost.get()
        while block is not None and (block is closed or not block.holds()):
            block = block.outer
        return block

    def _checked(self, choice: object, chosen_by: str, options: Mapping[str, object]) -> Driver:
        if isinstance(choice, str):
            return self._selection.named(choice, chosen_by, options)
        if options:
            raise TypeError(f"{chosen_by} takes options with the name of a backend; a driver has its own already")
        if isinstance(choice, LazyProxy):
            return choice._config.resolve()
        return self._selection.given(choice, chosen_by)

    def _choose(self, variable: str | None) -> Choice:
        if variable is None:
            return self._selection.automatic()
        from podium._selection import Choice

        return Choice(self._selection.named(variable, "PODIUM_BACKEND"))

    def _warn(self, choice: Choice) -> None:
        broken = {name: text for name, text in choice.broken.items() if name not in self._warned}
        if not broken:
            return
        self._warned.update(broken)
        from warnings import warn

        from podium._caller import frames_of_podium

        warn(
            f"podium uses backend {choice.driver.name!r}, because what would come before it is broken: "
            f"{'; '.join(broken.values())}. Repair or remove that, "
            f"or leave it out with PODIUM_DISABLED_PLUGINS={','.join(broken)}",
            PodiumWarning,
            stacklevel=frames_of_podium(),
        )


driver_config: DriverConfig = DriverConfig()
"""What programs know as `podium.driver`."""

driver, use = driver_config, driver_config.use
set_active, reset_active = driver_config.set_active, driver_config.reset_active


def _proxy_of_this_process() -> LazyProxy:
    return driver_config._proxy
