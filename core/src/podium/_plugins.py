"""Discovery of the installed backends.

Each entry point of group ``podium`` is loaded on its own, in a guard: a plug-in that is broken costs its own backend
and no other, and its whole failure is kept. A plug-in is loaded when its backend is asked about, and at most once.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Literal

from podium import _settings
from podium._entry_points import EntryPoint, installed_entry_points
from podium._plugin_loading import NotReady, PluginFailure, guarded, load_driver_class, stated_api, unfit
from podium._record import record
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
    that is "ready" has neither. `api` is the version of the plug-in API that the plug-in speaks, if it got so far.
    """

    name: str
    distribution: str
    version: str
    module: str
    state: Literal["ready", "failed", "disabled", "unready"]
    driver_class: type[Driver] | None = None
    failure: str | None = None
    traceback: str | None = None
    api: int | None = None

    @property
    def priority(self) -> int | None:
        """The priority of the driver; None if there is none."""
        return None if self.driver_class is None else self.driver_class.priority

    def probe(self) -> Probe:
        """Ask whether the backend can run here, anew each time."""
        if self.driver_class is not None:
            return probe(self.driver_class)
        state: Literal["failed", "disabled", "unready"] = "failed" if self.state == "ready" else self.state
        return Probe(state, self.failure or "it has no driver class", self.traceback)

    def reason(self) -> str | None:
        """Say why the backend cannot run here; None if it can."""
        return self.probe().reason


_being_asked: set[tuple[type[Driver], int]] = set()


def probe(driver_class: type[Driver]) -> Probe:
    """Ask a driver class for its reason not to run here; an error counts as one."""
    asked = (driver_class, threading.get_ident())
    if asked in _being_asked:
        return Probe("unready", "inactive_reason() asks for itself")
    _being_asked.add(asked)
    try:
        reason: object = guarded("inactive_reason()", driver_class.inactive_reason)
    except NotReady as failure:
        return Probe("unready", str(failure), failure.traceback)
    except PluginFailure as failure:
        return Probe("failed", str(failure), failure.traceback)
    finally:
        _being_asked.discard(asked)
    if reason is None:
        return Probe("active", None)
    if not isinstance(reason, str) or not reason.strip():
        return Probe("failed", f"inactive_reason() returned {reason!r}, neither a reason nor None")
    return Probe("inactive", " ".join(reason.split()))


class Discovery:
    """The backends that are installed or registered by hand, each loaded on first need.

    What was found stays for the process, until `rediscover`; that a plug-in is "unready" is not kept.
    """

    def __init__(self, lock: ImportAwareLock) -> None:
        self._lock = lock
        self._entries: dict[str, tuple[EntryPoint, ...]] | None = None
        self._by_hand: dict[str, type[Driver]] = {}
        self._settled: dict[str, Backend] = {}
        self._loading: dict[tuple[str, int], int] = {}

    def names(self) -> list[str]:
        """Return the names of all backends, sorted; reads entry points and imports nothing."""
        return sorted({*self._installed(), *self._by_hand})

    def backends(self) -> list[Backend]:
        """Return all backends, sorted by name; loads those that are not loaded yet."""
        return [backend for name in self.names() if (backend := self.backend(name)) is not None]

    def backend(self, name: str) -> Backend | None:
        """Return one backend, loading it and no other; None if there is none of that name.

        Raises `PluginError` if it cannot be used and PODIUM_STRICT_PLUGINS is set.
        """
        if (settled := self._settled.get(name)) is not None:
            return settled
        with self._lock.turn():
            if (settled := self._settled.get(name)) is not None:
                return settled
            if name not in self._by_hand and name not in self._installed():
                return None
            backend = self._load(name)
            return backend if backend.state == "unready" else self._settled.setdefault(name, backend)

    def rediscover(self) -> None:
        """Forget what was found, so that what was installed, removed or mended since then is seen."""
        from importlib import invalidate_caches

        with self._lock.turn():
            invalidate_caches()
            self._entries = None
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
            self._settled.pop(name, None)

    def unregister(self, name: str) -> type[Driver]:
        """Remove a backend that was registered by hand, and return its class."""
        with self._lock.turn():
            if name not in self._by_hand:
                known = ", ".join(sorted(self._by_hand)) or "none"
                raise BackendError(f"Backend {name!r} was not registered by hand; those that were: {known}")
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

    def _load(self, name: str) -> Backend:
        entries = self._installed().get(name, ())
        by_hand = self._by_hand.get(name)
        disabled = bool(entries) and name in _settings.disabled_plugins()
        if disabled and by_hand is not None:
            entries, disabled = (), False
        strict = _settings.strict_plugins()
        distribution = " and ".join([*(entry.distribution for entry in entries), *([BY_HAND] if by_hand else ())])
        version = " and ".join(entry.version for entry in entries)
        module = entries[0].module if entries else by_hand.__module__ if by_hand else ""
        if disabled:
            reason = "disabled by PODIUM_DISABLED_PLUGINS"
            return Backend(name, distribution, version, module, "disabled", failure=reason)
        cause: PluginFailure
        try:
            driver_class = self._driver_class(name, entries, by_hand)
            return Backend(name, distribution, version, module, "ready", driver_class, api=stated_api(module))
        except PluginFailure as failure:
            cause = failure
        state: Literal["failed", "unready"] = "unready" if isinstance(cause, NotReady) else "failed"
        if strict and state == "failed":
            raise PluginError(name, distribution, str(cause)) from (cause.__cause__ or cause)
        return Backend(
            name, distribution, version, module, state, None, str(cause), cause.traceback, stated_api(module)
        )

    def _driver_class(self, name: str, entries: tuple[EntryPoint, ...], by_hand: type[Driver] | None) -> type[Driver]:
        if len(entries) + (by_hand is not None) > 1:
            claims = [f"{entry.distribution} {entry.version}".strip() for entry in entries]
            claims += [BY_HAND] if by_hand else []
            raise PluginFailure(f"it is provided by {' and by '.join(claims)}; remove all but one")
        if by_hand is not None:
            return by_hand
        mine, here = (name, threading.get_ident()), os.getpid()
        if mine in self._loading:
            raise NotReady("it is being loaded")
        if any(other == name and process != here for (other, _), process in self._loading.items()):
            raise PluginFailure(
                "this process was forked while another thread was importing it, so the import cannot be finished here; "
                "choose the backend before forking, or start workers with the 'spawn' method"
            )
        self._loading[mine] = here
        try:
            return load_driver_class(entries[0])
        finally:
            self._loading.pop(mine, None)
