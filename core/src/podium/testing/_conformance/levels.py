"""The two launcher levels: one behaviour, compared directly, and the way from one to the other."""

from __future__ import annotations

import struct
from typing import Any

import pytest

import podium
from podium.backend import Driver
from podium.errors import PodiumError
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject, require_host_compiler

__all__ = ["Levels"]

_SOURCE = """
extern "C" __global__ void keep(int* x, int a, float b) { x[0] = a; x[1] = b == 0.5f; }
"""
_LEVELS = ("interpreted", "generated")


@contract("Two levels, one behaviour")
class Levels(Subject):
    """``PODIUM_LAUNCHER=interpreted``, ``generated`` and ``auto``."""

    def test_a_launch_is_on_the_level_that_was_asked_for(self, driver: Driver, level: Level) -> None:
        """PODIUM_LAUNCHER pins the level, from the first launch on."""
        kernel, x = self._keep(), podium.asarray([0, 0])
        for _ in range(3):
            kernel[1, 1](x, 1, 0.5)
            level.check(kernel)

    @pytest.mark.needs("observes", "generated_level")
    def test_both_levels_hand_over_the_same(self, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        """The same call on both levels gives the driver the same bytes, shape and stream, and the same result."""
        require_host_compiler()
        seen: list[Any] = []
        x = podium.asarray([0, 0])
        for name in _LEVELS:
            monkeypatch.setenv("PODIUM_LAUNCHER", name)
            kernel = self._keep()
            for values in ((-5, 0.5), (True, 1), (1 << 30, -2.5)):
                kernel[(3, 1), (2, 1, 1)](x, *values)
                podium.synchronize()
                result = x.tolist() if self.capabilities.executes else None
                launch = self.last(driver) if self.capabilities.records else None
                seen.append((result, launch))
            assert kernel.level == name
        assert seen[:3] == seen[3:]
        if self.capabilities.records:
            assert seen[0][1].parameters == (struct.pack("=Q", x.ptr), struct.pack("=i", -5), struct.pack("=f", 0.5))

    @pytest.mark.needs("generated_level")
    def test_both_levels_raise_the_same(self, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        """The same mistake on both levels is the same error with the same text."""
        require_host_compiler()
        x = podium.asarray([0, 0])
        wrong: list[tuple[Any, ...]] = [
            (), (x,), (x, 1, 0.5, 1), ("x", 1, 0.5), (1.5, 1, 0.5), (-1, 1, 0.5), (x, 1 << 31, 0.5), (x, 1.0, 0.5),
            (x, None, 0.5), (x, 1, "y"), (x, 1, None), (x, 1, [0.5]), (object(), 1, 0.5), ([1], 1, 0.5),
        ]  # fmt: skip
        said: list[str] = []
        for name in _LEVELS:
            monkeypatch.setenv("PODIUM_LAUNCHER", name)
            kernel = self._keep()
            kernel[1, 1](x, 1, 0.5)
            assert kernel.level == name
            for args in wrong:
                with pytest.raises(PodiumError) as caught:
                    kernel[1, 1](*args)
                text = str(caught.value).partition(" at 0x")[0]
                said.append(f"{type(caught.value).__name__}: {text}")
        assert said[: len(wrong)] == said[len(wrong) :]

    @pytest.mark.needs("generated_level")
    def test_a_new_signature_moves_over(self, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        """With PODIUM_LAUNCHER=auto launches are right before, while and after the launcher in C is built."""
        require_host_compiler()
        monkeypatch.setenv("PODIUM_LAUNCHER", "auto")
        kernel, x = self._keep(), podium.asarray([0, 0])
        before = self.count(driver)
        for turn in range(4):
            if turn == 3:
                kernel.warm_up()
                assert kernel.level == "generated"
            kernel[1, 1](x, turn, 0.5)
            podium.synchronize()
            if self.capabilities.executes:
                assert x.tolist() == [turn, 1]
        if self.capabilities.records:
            assert self.count(driver) == before + 4

    def _keep(self) -> podium.Kernel:
        return podium.kernel(_SOURCE, "keep", signature="x: *i32, a: i32, b: fp32")
