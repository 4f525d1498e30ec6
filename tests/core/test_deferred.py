"""Methods of drivers that are functions of other modules, and names of modules that other modules define."""

from __future__ import annotations

import importlib.metadata
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podium.backend import Driver, deferred, deferred_launcher, late_names
from podium.testing import FakeDriver

PLACES = """
calls = []

def create_stream(device, priority):
    calls.append((device, priority))
    return 7

class Memory:
    def __init__(self, size, alignment, device, stream):
        self.size, self.ptr = size, 0
"""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a driver whose module was not imported before."""
    (tmp_path / "lent_streams.py").write_text(PLACES, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lent_streams", raising=False)

    class Lent(FakeDriver):
        create_stream = deferred(Driver.create_stream, "lent_streams")
        allocate = deferred(Driver.allocate, "lent_streams:Memory")
        destroy_stream = deferred(Driver.destroy_stream, "lent_streams")
        create_event = deferred(Driver.create_event, "lent_nowhere")

    return Lent()


def test_a_deferred_method_imports_its_module_when_it_is_called(driver: Any) -> None:
    """Neither the class nor an instance imports it; the function gets the arguments, without the driver."""
    assert "lent_streams" not in sys.modules
    assert driver.create_stream(1, priority=-2) == 7
    assert sys.modules["lent_streams"].calls == [(1, -2)]
    assert driver.allocate(64, 16, 0, None).size == 64  # a class behind a colon
    assert type(driver).create_stream(driver, 3, 4) == 7


def test_a_subclass_overrides_a_deferred_method(driver: Any) -> None:
    """It is a method like any other: `super` finds it, and what overrides it is used again and again."""

    class Counting(type(driver)):  # type: ignore[misc]
        count = 0

        def create_stream(self, device: int, priority: int) -> int:
            self.count += 1
            return int(super().create_stream(device, priority)) + self.count

    counting = Counting()
    assert [counting.create_stream(0, 0), counting.create_stream(0, 0)] == [8, 9]


def test_a_deferred_method_has_the_words_of_the_protocol(driver: Any) -> None:
    """Name and docstring are those of the driver's method, and it is no longer abstract."""
    assert (driver.allocate.__name__, driver.allocate.__doc__) == ("allocate", Driver.allocate.__doc__)
    assert type(driver).__abstractmethods__ == frozenset()


def test_what_importing_raises_reaches_the_caller(driver: Any) -> None:
    """A module or a function that is not there is an error of the call, each time."""
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match="lent_nowhere"):
            driver.create_event(0, True)
        with pytest.raises(AttributeError, match="destroy_stream"):
            driver.destroy_stream(1, 0)


def test_a_name_that_is_no_launcher_class_is_told_with_its_place(driver: Any) -> None:
    """What `deferred_launcher` names is imported when it is asked for, and must be a launcher class."""

    class Wrong(FakeDriver):
        launcher_cls = deferred_launcher("lent_streams:Memory")

    with pytest.raises(TypeError, match=r"Wrong\.launcher_cls names lent_streams:Memory, which is .* no subclass of"):
        _ = Wrong().launcher_cls


def test_the_functions_of_installed_backends_take_what_the_protocol_gives() -> None:
    """A type checker does not look behind `deferred`, so this does: parameters have the protocol's names and defaults."""

    def parameters(function: Any) -> list[Any]:
        return [(each.name, each.default) for each in inspect.signature(function).parameters.values()]

    looked_at = set()
    for point in importlib.metadata.entry_points(group="podium"):
        try:
            driver_class = point.load().podium_register_driver()
        except ImportError:  # of a vendor's package that is not here
            continue
        for name, method in vars(driver_class).items():
            code = getattr(method, "__code__", None)
            if code is None or code is not deferred(Driver.load, "x").__code__:  # type: ignore[attr-defined]
                continue
            module, _, function = method.__qualname__.rpartition(".")
            try:
                found = getattr(importlib.import_module(module), function)
            except ImportError:
                continue
            wanted = parameters(getattr(Driver, name))[1:]
            assert parameters(found) == wanted, f"{point.name}: {module}.{function}"
            looked_at.add(f"{point.name}.{name}")
    if not looked_at:
        pytest.skip("no backend that is installed defers methods")


def test_late_names_are_imported_when_first_asked_for(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is then the module's own; all of them come with a star, and one that there is not gets a suggestion."""
    module: Any = ModuleType("lent_names")
    module.__all__ = ["create_stream", "Memory"]
    module.__getattr__, module.__dir__ = late_names("lent_names", {"lent_streams": "create_stream Memory"})
    monkeypatch.setitem(sys.modules, "lent_names", module)
    with pytest.raises(AttributeError, match="^module 'lent_names' has no attribute 'Memry'$") as caught:
        _ = module.Memry
    assert (caught.value.name, caught.value.obj) == ("Memry", module)
    assert dir(module) == ["Memory", "create_stream"] and "lent_streams" not in sys.modules
    assert module.Memory is vars(module)["Memory"] is sys.modules["lent_streams"].Memory
    namespace: dict[str, Any] = {}
    exec("from lent_names import *", namespace)
    assert namespace["create_stream"](0, 0) == 7
