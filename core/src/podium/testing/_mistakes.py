"""Mistakes that would fail every test of the suite in the same way: each is told once, in one line."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import podium
from podium._plugin_loading import unfit
from podium._plugins import BY_HAND, probe
from podium.errors import InactiveBackendError, PodiumError
from podium.testing._capabilities import Capabilities

__all__ = ["of_class", "of_options", "without"]


def of_options(config: pytest.Config) -> str | None:
    """Say what is wrong with the options of the command line; None if nothing is."""
    name = config.getoption("--podium-backend")
    try:
        without(config)
        if name:
            podium.driver.resolve(name)
    except InactiveBackendError as error:
        return _line(InactiveBackendError(error.name, error.reason, "--podium-backend"))
    except (PodiumError, ValueError) as error:
        return _line(error)
    return None


def without(config: pytest.Config) -> Capabilities:
    """Return what a backend claims by the options of the command line. Raises ValueError for what is no capability."""
    names = [each.strip() for each in config.getoption("--podium-without").split(",")]
    return Capabilities().without(*filter(None, names))


def of_class(subject: Any, config: pytest.Config) -> str | None:
    """Say what is wrong with a class of tests; None if nothing is."""
    if hasattr(subject, "choose") and not hasattr(subject, "driver_class"):
        try:
            subject.choose(config)
        except PodiumError as error:
            return _line(error)
    driver_class: Any = getattr(subject, "driver_class", None)
    name: str = getattr(driver_class, "name", "?")
    if driver_class is None:
        return "it does not say what to test: set driver_class to the class of the driver"
    if not inspect.isclass(driver_class):
        return (
            f"driver_class is {driver_class!r}: set it to the class of the driver, not to an object of it or its name"
        )
    if (reason := unfit(driver_class, name)) is not None:
        return f"driver_class is {reason}"
    if not isinstance(subject.capabilities, Capabilities):
        return f"capabilities is {subject.capabilities!r}: set it to an object of podium.testing.Capabilities"
    for backend in podium.driver.backends():
        if backend.name == name and backend.distribution != BY_HAND:
            if backend.driver_class is None:
                return f"the installed backend {backend.name!r} cannot be used: {backend.failure}"
            if backend.driver_class is not driver_class:
                return (
                    f"driver_class is {_place(driver_class)}, but {backend.name!r} is installed with "
                    f"{_place(backend.driver_class)} by {backend.distribution} {backend.version}: uninstall that, or "
                    f"install this one instead"
                )
    answer = probe(driver_class)
    return f"inactive_reason() is broken: {answer.reason}" if answer.state == "unready" else None


def _place(driver_class: type) -> str:
    return f"{driver_class.__module__}.{driver_class.__qualname__}"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
