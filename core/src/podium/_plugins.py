"""Discovery of the installed backends.

Each entry point of group ``podium`` is loaded on its own, in a guard: a plug-in that is broken costs its own backend
and no other, and its whole failure is kept. A plug-in is loaded when its backend is asked about, and at most once; its
driver class, where the plug-in says by itself what choosing asks, only when that is needed.
"""

from __future__ import annotations

import os
from _thread import _local, get_ident  # of `threading`, which choosing a driver does not need
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal

from podium import _settings
from podium._entry_points import EntryPoint, installed_entry_points
from podium._plugin_loading import NotReady, Plugin, PluginFailure, guarded, load_plugin, stated_api, unfit
from podium._record import field, record
from podium.errors import BackendError, PluginError

if TYPE_CHECKING:
    from podium._import_aware_lock import ImportAwareLock
    from podium.backend import Driver

__all__ = ["BY_HAND", "Backend", "Discovery", "Probe", "probe"]

GROUP = "podium"

BY_HAND = "(registered by hand)"
"""What stands for the distribution of a backend that no distribution brought."""


@record(frozen=True)
class Probe:
    """What asking a backend whether it can run here gave.

    "failed" means that the plug-in or its answer is broken, "unready" that it is too early to ask; only an active
    backend has no `reason`. `traceback` is the full text of the error, if there was one.
    """

    state: Literal["active", "inactive", "failed", "disabled", "unready"]
    reason: str | None
    traceback: str | None = None


@record(frozen=True)
class Backend:
    """A backend that an installed distribution claims to provide.

    `failure` says in one line why it cannot be used, `traceback` has the whole text of the plug-in's error; a backend
    that is "ready" has neither. "found" is one whose plug-in answers for itself and whose driver class is not loaded.
    `api` is the version of the plug-in API that the plug-in speaks, if it got so far.
    """

    name: str
    distribution: str
    version: str
    module: str
    state: Literal["ready", "found", "failed", "disabled", "unready"]
    driver_class: type[Driver] | None = None
    failure: str | None = None
    traceback: str | None = None
    api: int | None = None
    plugin: Plugin | None = field(default=None, repr=False)

    @property
    def priority(self) -> int | None:
        """The priority of the driver; None if it is not known."""
        if self.driver_class is not None:
            return self.driver_class.priority
        return None if self.plugin is None else self.plugin.priority

    def probe(self) -> Probe:
        """Ask whether the backend can run here, anew each time: the plug-in if it answers, else the driver class."""
        if self.state in ("ready", "found"):
            with _interrupt_names(f"backend {self.name!r} of {self.distribution} was asked if it can run", self.name):
                if self.plugin is not None and self.plugin.detects:
                    return _ask("podium_inactive_reason()", self.plugin.inactive_reason, self.plugin)
                if self.driver_class is not None:
                    return probe(self.driver_class)
        state: Literal["failed", "disabled", "unready"] = (
            self.state if self.state in ("disabled", "unready") else "failed"
        )
        return Probe(state, self.failure or "it has no driver class", self.traceback)

    def reason(self) -> str | None:
        """Say why the backend cannot run here; None if it can."""
        return self.probe().reason


@contextmanager
def _interrupt_names(what: str, name: str) -> Iterator[None]:
    """Let Ctrl-C say what it has interrupted, since what hangs is a plug-in's and nobody else sees which."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.args = interrupt.args or (f"while {what}; PODIUM_DISABLED_PLUGINS={name} leaves it out",)
        raise


class _Asking(_local):
    """Whom the calling thread is asking: a forked child has this of its own thread, and of no other."""

    def __init__(self) -> None:
        self.owners: set[int] = set()


_asking = _Asking()


def probe(driver_class: type[Driver]) -> Probe:
    """Ask a driver class for its reason not to run here; an error counts as one."""
    name = "inactive_reason()"
    return _ask(name, driver_class.inactive_reason, driver_class)


def _ask(name: str, question: Callable[[], object], owner: object) -> Probe:
    if id(owner) in _asking.owners:
        return Probe("unready", f"{name} asks for itself")
    _asking.owners.add(id(owner))
    try:
        return guarded(name, lambda: _answer(name, question()))
    except NotReady as failure:
        return Probe("unready", str(failure), failure.traceback)
    except PluginFailure as failure:
        return Probe("failed", str(failure), failure.traceback)
    finally:
        _asking.owners.discard(id(owner))


def _answer(name: str, reason: object) -> Probe:
    if reason is None:
        return Probe("active", None)
    if not isinstance(reason, str) or not reason.strip():
        return Probe("failed", f"{name} returned {reason!r}, neither a reason nor None")
    return Probe("inactive", " ".join(reason.split()))


class Discovery:
    """The backends that are installed or registered by hand, each loaded on first need.

    What was found stays for the process, until `rediscover`; that a plug-in is "unready" is not kept.
    """

    def __init__(self, lock: ImportAwareLock) -> None:
        self._lock = lock
        self._entries: dict[str, tuple[EntryPoint, ...]] | None = None
        self._by_hand: dict[str, type[Driver]] = {}
        self._found: dict[str, Backend] = {}
        self._settled: dict[str, Backend] = {}
        self._loading: dict[tuple[str, int], int] = {}

    def names(self) -> list[str]:
        """Return the names of all backends, sorted; reads entry points and imports nothing."""
        return sorted({*self._installed(), *self._by_hand})

    def backends(self) -> list[Backend]:
        """Return all backends, sorted by name; loads those that are not loaded yet."""
        return [backend for name in self.names() if (backend := self.backend(name)) is not None]

    def candidates(self) -> list[Backend]:
        """Return all backends, sorted by name; loads no more than `candidate` does."""
        return [backend for name in self.names() if (backend := self.candidate(name)) is not None]

    def backend(self, name: str) -> Backend | None:
        """Return one backend, loading it and no other; None if there is none of that name.

        Raises `PluginError` if it cannot be used and PODIUM_STRICT_PLUGINS is set.
        """
        return self._settled.get(name) or self._look(name, whole=True)

    def candidate(self, name: str) -> Backend | None:
        """Return one backend without its driver class, if its plug-in says by itself what choosing asks.

        It is then "found", unless it is loaded already; else as `backend`, and so is it with PODIUM_STRICT_PLUGINS.
        """
        known = self._settled.get(name) or self._found.get(name)
        return known or self._look(name, whole=_settings.strict_plugins())

    def _look(self, name: str, whole: bool) -> Backend | None:
        with self._lock.turn():
            known = self._settled.get(name) or (None if whole else self._found.get(name))
            if known is not None:
                return known
            if name not in self._by_hand and name not in self._installed():
                return None
            with _interrupt_names(f"the plug-in of backend {name!r} was loaded", name):
                backend = self._load(name, whole)
            if backend.state == "unready":
                return backend
            return (self._found if backend.state == "found" else self._settled).setdefault(name, backend)

    def rediscover(self) -> None:
        """Forget what was found, so that what was installed, removed or mended since then is seen."""
        from importlib import invalidate_caches

        with self._lock.turn():
            invalidate_caches()
            self._entries = None
            self._found.clear()
            self._settled.clear()

    def register(self, driver_class: type[Driver]) -> None:
        """Add a backend without an entry point; raises `PluginError` if the class is no usable driver."""
        stated = getattr(driver_class, "name", None)
        name = stated if isinstance(stated, str) else repr(driver_class)
        if (reason := unfit(driver_class, name)) is not None:
            raise PluginError(name, BY_HAND, f"got {reason}")
        with self._lock.turn():
            if self._by_hand.setdefault(name, driver_class) is not driver_class:
                raise PluginError(name, BY_HAND, f"{self._by_hand[name]!r} is registered under this name already")
            self._found.pop(name, None)
            self._settled.pop(name, None)

    def unregister(self, name: str) -> type[Driver]:
        """Remove a backend that was registered by hand, and return its class."""
        with self._lock.turn():
            if name not in self._by_hand:
                known = ", ".join(sorted(self._by_hand)) or "none"
                raise BackendError(f"Backend {name!r} was not registered by hand; those that were: {known}")
            self._found.pop(name, None)
            self._settled.pop(name, None)
            return self._by_hand.pop(name)

    def _installed(self) -> dict[str, tuple[EntryPoint, ...]]:
        entries = self._entries
        if entries is None:
            entries = {}
            for entry in installed_entry_points(GROUP):
                claims = entries.get(entry.name, ())
                entries[entry.name] = claims if entry in claims else (*claims, entry)
            self._entries = entries
        return entries

    def _load(self, name: str, whole: bool) -> Backend:
        entries = self._installed().get(name, ())
        by_hand = self._by_hand.get(name)
        disabled = bool(entries) and name in _settings.disabled_plugins()
        if disabled and by_hand is not None:
            entries, disabled = (), False
        owners = dict.fromkeys((entry.distribution, entry.version) for entry in entries)
        distribution = " and ".join([*(owner for owner, _ in owners), *([BY_HAND] if by_hand else ())])
        version = " and ".join(version for _, version in owners)
        module = entries[0].module if entries else by_hand.__module__ if by_hand else ""
        described = partial(Backend, name, distribution, version, module)
        if disabled:
            return described("disabled", failure="disabled by PODIUM_DISABLED_PLUGINS")
        plugin: Plugin | None = None
        try:
            if len(entries) + (by_hand is not None) > 1:
                raise PluginFailure(_too_many(entries, by_hand is not None))
            if by_hand is not None:
                return described("ready", by_hand, api=stated_api(module))
            with self._loading_of(name):
                found = self._found.get(name)
                plugin = found.plugin if found is not None and found.plugin is not None else load_plugin(entries[0])
                if plugin.answers and not whole:
                    return described("found", api=stated_api(module), plugin=plugin)
                return described("ready", plugin.driver_class(), api=stated_api(module), plugin=plugin)
        except PluginFailure as failure:
            state: Literal["failed", "unready"] = "unready" if isinstance(failure, NotReady) else "failed"
            if state == "failed" and _settings.strict_plugins():
                raise PluginError(name, distribution, str(failure)) from (failure.__cause__ or failure)
            return described(state, None, str(failure), failure.traceback, stated_api(module), plugin)

    @contextmanager
    def _loading_of(self, name: str) -> Iterator[None]:
        """Note that this thread loads a plug-in; raises `PluginFailure` where it does so already, or never can."""
        mine, here = (name, get_ident()), os.getpid()
        if mine in self._loading:
            raise NotReady("it is being loaded")
        if any(other == name and process != here for (other, _), process in self._loading.items()):
            raise PluginFailure(
                "this process was forked while another thread was importing it, so the import cannot be finished here; "
                "choose the backend before forking, or start workers with the 'spawn' method"
            )
        self._loading[mine] = here
        try:
            yield
        finally:
            self._loading.pop(mine, None)


def _too_many(entries: tuple[EntryPoint, ...], by_hand: bool) -> str:
    """Say who provides a backend that must have one provider."""
    claims = [f"{entry.distribution} {entry.version}".strip() for entry in entries]
    if not by_hand and len(set(claims)) == 1:
        lines = " and ".join(f"{entry.name} = {entry.value}" for entry in entries)
        return f"{claims[0]} has more than one entry point of this name: {lines}; install another version of it"
    claims += [BY_HAND] if by_hand else []
    return f"it is provided by {' and by '.join(claims)}; remove all but one"
