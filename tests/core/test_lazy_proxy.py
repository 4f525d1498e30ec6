"""The proxy stands for the active driver, and looks for it when it is first used."""

from __future__ import annotations

import copy
import inspect
import pickle
import pprint
import sys
import unittest.mock
from collections.abc import Callable
from typing import Any

import pytest
import rich.pretty
from plugin_distributions import Site

from podium._active import DriverConfig, LazyProxy, driver_config
from podium.backend import Driver
from podium.errors import (
    NoActiveBackendError,
)


def refused(kind: type[Exception], action: Callable[[], object]) -> None:
    with pytest.raises(kind):
        action()


FREE: dict[str, Callable[[Any], object]] = {
    "repr": repr,
    "str": str,
    "format": lambda proxy: f"{proxy} {proxy!r:>5}",
    "pprint": pprint.pformat,
    "dir": dir,
    "hash": hash,
    "equal": lambda proxy: (proxy == proxy, proxy != 5, proxy in [1, proxy]),
    "bool": bool,
    "copy": copy.copy,
    "deepcopy": lambda proxy: copy.deepcopy([proxy]),
    "pickle": pickle.dumps,
    "isinstance": lambda proxy: isinstance(proxy, (int, LazyProxy, Driver)),
    "callable": callable,
    "wrapped": lambda proxy: hasattr(proxy, "__wrapped__"),
    "unwrap": inspect.unwrap,
    "getmembers": inspect.getmembers,
    "isroutine": inspect.isroutine,
    "isabstract": inspect.isabstract,
    "isawaitable": inspect.isawaitable,
    "iscoroutinefunction": inspect.iscoroutinefunction,
    "getdoc": inspect.getdoc,
    "getmodule": inspect.getmodule,
    "getattr_static": lambda proxy: inspect.getattr_static(proxy, "compile", None),
    "signature": lambda proxy: refused(TypeError, lambda: inspect.signature(proxy)),
    "autospec": unittest.mock.create_autospec,
    "mock spec": lambda proxy: unittest.mock.Mock(spec=proxy),
    "ipython": lambda proxy: [
        getattr(proxy, name, None)
        for name in (
            "_ipython_canary_method_should_not_exist_",
            "_ipython_display_",
            "_repr_html_",
            "_repr_mimebundle_",
        )
    ],
    "ipython help": lambda proxy: hasattr(proxy, "getdoc"),
    "rich": lambda proxy: rich.pretty.pretty_repr([proxy]),
    "numpy": lambda proxy: [hasattr(proxy, name) for name in ("__array__", "__cuda_array_interface__", "__dlpack__")],
    "weakref": lambda proxy: __import__("weakref").ref(proxy)(),
    "vars": lambda proxy: refused(TypeError, lambda: vars(proxy)),
    "set": lambda proxy: refused(AttributeError, lambda: setattr(proxy, "name", "x")),
    "delete": lambda proxy: refused(AttributeError, lambda: delattr(proxy, "name")),
}


@pytest.mark.parametrize("operation", FREE)
def test_proxy_does_not_look(config: DriverConfig, site: Site, operation: str) -> None:
    """Looking at the proxy from outside neither discovers nor probes anything (ACT-01)."""
    FREE[operation](config.active)
    assert "podium_gpu" not in sys.modules
    assert site.calls("gpu") == []
    assert isinstance(config.active, LazyProxy)
    assert config.chosen() is None


@pytest.mark.parametrize("operation", FREE)
def test_proxy_without_any_backend(site: Site, operation: str) -> None:
    """What does not look cannot fail on a machine without a device (ACT-01)."""
    FREE[operation](DriverConfig().active)


def test_proxy_looks_at_first_use(config: DriverConfig, site: Site) -> None:
    """Reading a public attribute chooses the driver; from then on `active` is the driver itself."""
    proxy = config.active
    assert proxy.name == "gpu"
    assert site.calls("gpu") == ["probe", "construct"]
    assert type(config.active) is sys.modules["podium_gpu.driver"].FakeDriver
    assert proxy.launch.__self__ is config.active  # type: ignore[attr-defined]
    assert "launch" in dir(proxy)
    assert repr(proxy) == "<LazyProxy of the active driver: gpu>"
    with pytest.raises(AttributeError, match="'FakeDriver' object has no attribute 'lanch'"):
        proxy.lanch  # type: ignore[attr-defined]  # noqa: B018


def test_proxy_fails_at_first_use(site: Site) -> None:
    """Where nothing is active, using the proxy is an error that `hasattr` does not swallow."""
    proxy = DriverConfig().active
    with pytest.raises(NoActiveBackendError):
        hasattr(proxy, "compile")


def test_proxy_follows(config: DriverConfig) -> None:
    """A proxy that somebody holds follows every later choice (ACT-09)."""
    held = config.active
    assert held.name == "gpu"
    config.set_active("other")
    assert held.name == "other"
    with config.use("host"):
        assert held.name == "host"
    config.reset_active()
    assert held.name == "gpu"


def test_proxy_refuses_assignment(config: DriverConfig) -> None:
    """Neither the proxy's attributes nor `active` can be assigned; the error says what to do (ACT-09)."""
    with pytest.raises(AttributeError, match=r"Cannot set 'priority' through podium.driver.active.*set_active"):
        config.active.priority = 5  # type: ignore[misc]
    with pytest.raises(AttributeError, match=r"cannot be assigned.*set_active.*podium.use"):
        config.active = config.resolve()


def test_proxy_stands_for_a_driver(config: DriverConfig) -> None:
    """`isinstance` gives the same answer before the choice and after it."""
    assert isinstance(config.active, Driver)
    assert isinstance(config.active, LazyProxy)
    assert not isinstance(config.active, type)
    assert isinstance(config.resolve(), Driver)


def test_proxy_copies_and_pickles() -> None:
    """Copies are the proxy itself; a pickled one is the proxy of the process that reads it."""
    proxy = driver_config._proxy
    assert copy.copy(proxy) is copy.deepcopy(proxy) is proxy
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(proxy, protocol)) is proxy
        assert pickle.loads(pickle.dumps(driver_config, protocol)) is driver_config
    assert pickle.loads(pickle.dumps(DriverConfig().active)) is proxy
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(DriverConfig())
