"""Hooks: looked at on every launch, at every level."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import podium
from podium.backend import Driver
from podium.errors import ArgumentTypeError, LaunchError
from podium.testing._conformance.child import add_kernel
from podium.testing._conformance.contract import contract
from podium.testing._conformance.launchers import refused_block
from podium.testing._conformance.subject import Level, Subject, bad

__all__ = ["Hooks"]


@contract("Hooks")
class Hooks(Subject):
    """What hooks see, and when."""

    def test_enter_and_exit_see_the_launch(self, driver: Driver, level: Level) -> None:
        """Both hooks get one event with kernel, backend, device, stream, grid, block, shared and arguments.

        Rows HKS-01.
        """
        events: list[tuple[str, Any]] = []
        kernel, x = add_kernel(), podium.asarray([1] * 6)
        kernel[2, 3](x, 4)
        podium.hooks.enter.add(lambda event: events.append(("enter", event)))
        podium.hooks.exit.add(lambda event: events.append(("exit", event)))
        kernel[2, 3](x, 5)
        assert [name for name, _ in events] == ["enter", "exit"]
        event = events[0][1]
        assert event is events[1][1]
        device = driver.current_device()
        assert (event.kernel, event.backend, event.device) == ("add", self.driver_class.name, device)
        assert (event.grid, event.block, event.shared) == ((2, 1, 1), (3, 1, 1), 0)
        assert event.stream == driver.current_stream(device)
        first, second = event.arguments
        assert (first.name, first.type, first.address) == ("x", "*i32", x.ptr)
        assert (second.name, second.type, second.value) == ("a", "i32", 5)
        assert event.error is None and event.seconds is not None and event.seconds >= 0
        if self.capabilities.executes:
            assert x.tolist() == [10] * 6
        level.check(kernel)

    def test_hooks_come_and_go_at_any_time(self, driver: Driver, level: Level) -> None:
        """A hook added after the first launch is called, and one that was removed is not; exit is in reverse.

        Rows HKS-06.
        """
        calls: list[str] = []
        kernel, x = add_kernel(), podium.asarray([0])
        launch = kernel[1, 1]
        launch(x, 1)
        hooks = {name: _noting(calls, name) for name in ("a", "b")}
        for name in hooks:
            podium.hooks.enter.add(hooks[name])
            podium.hooks.exit.add(hooks[name])
        launch(x, 1)
        assert calls == ["a", "b", "b", "a"]
        podium.hooks.enter.remove(hooks["a"])
        podium.hooks.exit.remove(hooks["b"])
        launch(x, 1)
        assert calls == ["a", "b", "b", "a", "b", "a"]
        podium.hooks.enter.clear()
        podium.hooks.exit.clear()
        launch(x, 1)
        assert len(calls) == 6
        if self.capabilities.executes:
            assert x.tolist() == [4]

    def test_an_enter_hook_can_stop_a_launch(self, driver: Driver, level: Level) -> None:
        """An exception in an enter hook stops the launch and reaches the caller; exit hooks run in any case.

        Rows HKS-05.
        """
        seen: list[Any] = []
        kernel, x = add_kernel(), podium.asarray([0])
        kernel[1, 1](x, 1)
        before = self.count(driver)

        def refuse(event: Any) -> None:
            raise KeyError("refused by a hook")

        podium.hooks.enter.add(refuse)
        podium.hooks.exit.add(seen.append)
        with pytest.raises(KeyError, match="refused by a hook"):
            kernel[1, 1](x, 1)
        assert isinstance(seen[0].error, KeyError) and self.count(driver) == before
        podium.hooks.enter.remove(refuse)
        kernel[1, 1](x, 1)
        assert seen[1].error is None
        if self.capabilities.executes:
            assert x.tolist() == [2]

    def test_what_is_not_launched_is_not_seen(self, driver: Driver, level: Level) -> None:
        """An empty grid and a refused argument reach no hook.

        Rows GRD-03.
        """
        seen: list[Any] = []
        podium.hooks.enter.add(seen.append)
        podium.hooks.exit.add(seen.append)
        kernel, x = add_kernel(), podium.asarray([0])
        kernel[0, 1](x, 1)
        with pytest.raises(ArgumentTypeError):
            kernel[1, 1](x, "1")
        assert seen == []
        kernel[1, 1](x, 1)
        assert len(seen) == 2

    def test_a_failed_launch_is_seen_with_its_error(self, driver: Driver, level: Level) -> None:
        """A launch that the driver refuses reaches the exit hooks with the error."""
        seen: list[Any] = []
        podium.hooks.exit.add(seen.append)
        kernel, x = add_kernel(), podium.asarray([0])
        launcher = driver.launcher_cls(kernel, {"name": "add", "block": 1}, driver)
        refused_block(driver, launcher)
        with pytest.raises(LaunchError):
            launcher(2, 1, 1, 0, kernel.load(), x, 1)
        assert isinstance(seen[0].error, LaunchError)

    def test_compiling_and_loading_are_seen_once(self, driver: Driver, level: Level) -> None:
        """The compile hook sees whether the cache had it, and the load hook each load on a device."""
        level.empty()
        compiled: list[Any] = []
        loaded: list[Any] = []
        podium.hooks.compile.add(compiled.append)
        podium.hooks.load.add(loaded.append)
        kernel, x = add_kernel(), podium.asarray([0])
        for _ in range(3):
            kernel[1, 1](x, 1)
        assert [(event.kernel, event.cached) for event in compiled] == [("add", level.temperature == "warm")]
        assert [(event.kernel, event.backend) for event in loaded] == [("add", self.driver_class.name)]
        assert loaded[0].device == driver.current_device() and loaded[0].seconds >= 0
        assert compiled[0].target == str(driver.devices()[driver.current_device()].target)

    def test_the_trace_has_every_launch(self, driver: Driver, compiled: None, tmp_path: Path) -> None:
        """PODIUM_TRACE names a file that is JSON in the end, and has each launch, compilation and load."""
        file = tmp_path / "trace.json"
        process = self.python("child.launch_add(executes)", PODIUM_TRACE=str(file))
        assert process.returncode == 0, bad(process)
        found = json.loads(file.read_text())
        events = found["traceEvents"] if isinstance(found, dict) else found
        assert sum("add" in json.dumps(event) for event in events) >= 3, events


def _noting(calls: list[str], name: str) -> Callable[[Any], None]:
    def note(event: Any) -> None:
        calls.append(name)

    return note
