"""Choosing among the backends: the one that was named, or the best of those that can run here."""

from __future__ import annotations

import os
import sys
from collections.abc import Hashable, Mapping
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING

from podium._plugin_api import farewell
from podium._plugin_loading import PluginFailure, guarded
from podium._plugins import Backend, Discovery, Probe, probe
from podium._record import record
from podium.errors import (
    AmbiguousBackendError,
    InactiveBackendError,
    NoActiveBackendError,
    PodiumDeprecationWarning,
    SettingError,
    UnknownBackendError,
)

if TYPE_CHECKING:
    from podium._import_aware_lock import ImportAwareLock
    from podium.backend import Driver

__all__ = ["Choice", "Selection"]

_FILE_LOADERS = (SourceFileLoader, SourcelessFileLoader)

UNKNOWN_PRIORITY = 100
"""What a backend counts as that failed before it could state its priority: a GPU, whose loss is worth a warning."""


@record(frozen=True)
class Choice:
    """A driver that was chosen, and the backends that were passed over, each with what speaks against it."""

    driver: Driver
    passed_over: tuple[tuple[Backend, Probe], ...] = ()

    @property
    def final(self) -> bool:
        """Whether every backend was ready to be asked."""
        return all(answer.state != "unready" for _, answer in self.passed_over)

    @property
    def broken(self) -> dict[str, str]:
        """What was passed over because it is broken, though it would have come before the driver: name and text."""
        return {
            backend.name: f"{backend.name} ({backend.distribution}): {answer.reason}"
            for backend, answer in self.passed_over
            if answer.state == "failed" and _priority(backend) > self.driver.priority
        }


class Selection:
    """Chooses drivers, and keeps the one instance of each."""

    def __init__(self, lock: ImportAwareLock) -> None:
        self.discovery = Discovery(lock)
        self._lock = lock
        self._instances: dict[type[Driver], dict[Hashable, Driver]] = {}

    def automatic(self) -> Choice:
        """Choose the active backend with the highest priority.

        Levels of priority are looked at from the top, and no further than to the first with an active backend. Raises
        `AmbiguousBackendError` if there are two on it, `NoActiveBackendError` if none is active at all,
        `SettingError` if an environment variable of the one that is chosen has a value that means nothing.
        """
        backends = self.discovery.candidates()
        passed_over = [(backend, backend.probe()) for backend in backends if not _is_usable(backend)]
        ready = sorted(filter(_is_usable, backends), key=_priority, reverse=True)
        for priority, level in groupby(ready, key=_priority):
            probed = [self._probe(backend) for backend in level]
            active = [backend for backend, answer in probed if answer.state == "active"]
            if len(active) > 1:
                raise AmbiguousBackendError([backend.name for backend in active], priority)
            passed_over += [(backend, answer) for backend, answer in probed if answer.state != "active"]
            for backend in active:
                try:
                    return Choice(self._instance(backend), tuple(passed_over))
                except PluginFailure as failure:
                    passed_over.append((backend, Probe("failed", str(failure), failure.traceback)))
        passed_over.sort(key=lambda pair: pair[0].name)
        raise NoActiveBackendError(
            {backend.name: (backend.distribution, answer.reason or "") for backend, answer in passed_over}
        )

    def named(
        self, name: str, chosen_by: str, options: Mapping[str, object] | None = None, *, probing: bool = True
    ) -> Driver:
        """Return the driver of a backend that was named, and look at no other.

        Without `probing` it need not be able to run here. Raises `UnknownBackendError` or `InactiveBackendError`,
        `SettingError`, and TypeError for options that the backend does not have, or what is no name.
        """
        if not isinstance(name, str):
            raise TypeError(f"{chosen_by} takes the name of a backend, not {name!r}")
        backend = self.discovery.candidate(name)
        if backend is None:
            from difflib import get_close_matches

            known = self.discovery.names()
            asked = name.lower()  # "gpu" is close to "cpu", and means the opposite
            close = get_close_matches(asked, known, n=1) if asked != "gpu" else []
            raise UnknownBackendError(name, known, close[0] if close else None)
        reason = backend.reason() if probing else None
        if reason is None:
            backend = self._whole(backend)
            reason = backend.failure
        if reason is not None:
            raise InactiveBackendError(name, reason, chosen_by)
        try:
            return self._instance(backend, options or {})
        except PluginFailure as failure:
            if options and isinstance(failure.__cause__, ValueError):  # the backend's own word on the value
                raise failure.__cause__ from None
            raise InactiveBackendError(name, str(failure), chosen_by) from (failure.__cause__ or failure)

    def given(self, driver: object, chosen_by: str) -> Driver:
        """Return a driver that the user made. Raises `InactiveBackendError` if it cannot run here."""
        from podium.backend import Driver

        if not isinstance(driver, Driver):
            raise TypeError(f"{chosen_by} takes the name of a backend or a driver, not {driver!r}")
        if (reason := probe(type(driver)).reason) is not None:
            raise InactiveBackendError(driver.name, reason, chosen_by)
        return driver

    def forget(self, driver_class: type[Driver]) -> None:
        """Forget the instance of a driver class."""
        self._instances.pop(driver_class, None)

    def _probe(self, backend: Backend) -> tuple[Backend, Probe]:
        """Ask a backend whether it can run here; load its driver class if the plug-in says so."""
        answer = backend.probe()
        if answer.state == "active" and (whole := self._whole(backend)) is not backend:
            backend = whole
            answer = answer if _is_usable(whole) else whole.probe()
        return backend, answer

    def _whole(self, backend: Backend) -> Backend:
        """Return a backend with its driver class, or with what is wrong with that."""
        return backend if backend.state != "found" else self.discovery.backend(backend.name) or backend

    def _instance(self, backend: Backend, options: Mapping[str, object] = MappingProxyType({})) -> Driver:
        driver_class = backend.driver_class
        if driver_class is None:
            raise PluginFailure(backend.failure)
        key: tuple[tuple[str, object], ...] = ()
        if options:
            key = _chosen_options(backend.name, driver_class, options)
            options = dict(key)
        if (instance := self._instances.get(driver_class, {}).get(key)) is not None:
            return instance
        with self._lock.turn():
            instances = self._instances.setdefault(driver_class, {})
            if (instance := instances.get(key)) is not None:
                return instance
            _check_there(backend)
            try:
                made = guarded(f"{driver_class.__name__}()", lambda: driver_class(**options))
            except PluginFailure as failure:
                if isinstance(failure.__cause__, SettingError):  # the user's to mend; the backend is not broken
                    raise failure.__cause__ from None
                raise
            instance = instances.setdefault(key, made)
        _warn_of_its_end(backend)
        return instance


def _check_there(backend: Backend) -> None:
    """Raise `PluginFailure` for a backend that was found and then removed: the rest of it could not be imported."""
    spec = getattr(sys.modules.get(backend.module), "__spec__", None)
    file = spec.origin if spec is not None and isinstance(spec.loader, _FILE_LOADERS) else None
    if file is not None and not os.path.exists(file):
        raise PluginFailure(
            f"{backend.distribution} was removed after this process had found it: {file} is gone. Install it again"
        )


def _chosen_options(
    name: str, driver_class: type[Driver], options: Mapping[str, object]
) -> tuple[tuple[str, object], ...]:
    """Return the options that are not as they are by default. Raises TypeError for those that a class does not have."""
    from inspect import signature

    parameters = signature(driver_class).parameters.values()
    known = {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}
    for option, value in options.items():
        if option not in known:
            has = f"its options are {', '.join(sorted(known))}" if known else "it has none"
            raise TypeError(f"The backend {name!r} has no option {option!r}; {has}")
        try:
            hash(value)
        except TypeError:
            raise TypeError(f"The option {option!r} of the backend {name!r} cannot be {value!r}") from None
    return tuple((option, options[option]) for option in sorted(options) if options[option] != known[option])


def _is_usable(backend: Backend) -> bool:
    return backend.state in ("ready", "found")


def _priority(backend: Backend) -> int:
    return UNKNOWN_PRIORITY if backend.priority is None else backend.priority


def _warn_of_its_end(backend: Backend) -> None:
    """Warn if a backend that is about to be used speaks an API that podium will not speak for ever."""
    if (text := farewell(backend.api)) is not None:
        from warnings import warn

        from podium._caller import frames_of_podium

        owner = f"{backend.distribution} {backend.version}".strip()
        warn(
            f"Backend {backend.name!r} ({owner}): {text}. Upgrade {backend.distribution}",
            PodiumDeprecationWarning,
            stacklevel=frames_of_podium(),
        )
