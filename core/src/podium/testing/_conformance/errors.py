"""Errors: those that the backend raises, and that podium raises for it, can be sent to other processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import podium
from podium.backend import Driver, Entry, Program, Signature
from podium.errors import CompileError, PodiumError
from podium.testing._conformance.child import add_kernel
from podium.testing._conformance.contract import contract
from podium.testing._conformance.foreign_array import DlpackArray
from podium.testing._conformance.launchers import refused_block
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Errors"]


@contract("Errors")
class Errors(Subject):
    """One tree, typed, picklable."""

    def test_errors_can_be_pickled(self, driver: Driver, level: Level) -> None:
        """Every error of a launch is a PodiumError that comes back from pickle with its text and its attributes."""
        kernel, x = add_kernel(), podium.asarray([1])
        device = driver.devices()[driver.current_device()]
        code = kernel.compile(device.target)
        launcher = driver.launcher_cls(kernel, {"name": "add", "block": 1}, driver)
        refused_block(driver, launcher)
        foreign = DlpackArray(x, x.ptr, (1,), "i32", (15, 0))
        failing: dict[str, Callable[[], Any]] = {
            "type": lambda: kernel[1, 1](x, "1"),
            "value": lambda: kernel[1, 1](x, 1 << 31),
            "count": lambda: kernel[1, 1](x),
            "device": lambda: kernel[1, 1](foreign, 1),
            "grid": lambda: kernel[-1, 1],
            "block": lambda: kernel[1, (device.max_block[0] + 1)](x, 1),
            "shared": lambda: kernel[1, 1](x, 1, shared=device.max_shared + 1),
            "launch": lambda: launcher(2, 1, 1, 0, kernel.load(), x, 1),
            "load": lambda: driver.load(replace(code, code=b"broken"), "add", device.index),
            "memory": lambda: driver.allocate(1 << 60, 256, device.index, driver.current_stream(device.index)),
            "backend": lambda: podium.set_active("podium_no_such_backend"),
        }
        for name, fail in failing.items():
            self._check_pickles(name, fail)

    def test_compile_errors_can_be_pickled(self, compiler: Driver, target: Any) -> None:
        """A compile error comes back from pickle with its log and its diagnostics."""
        program = Program("#error no\n", "cuda", (Entry("fill", Signature.parse("x: *i32")),))
        error = self._check_pickles("compile", lambda: compiler.compile(program, target))
        assert isinstance(error, CompileError) and error.log and error.diagnostics

    def _check_pickles(self, name: str, fail: Callable[[], Any]) -> PodiumError:
        with pytest.raises(PodiumError) as caught:
            fail()
        error = caught.value
        again: PodiumError = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error), name
        assert vars(again) == vars(error), name
        assert len(str(error)) > 20, f"{name}: {error!r} says nothing"
        return error
