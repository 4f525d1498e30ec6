"""The conformance suite on the CPU backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from capability_marks import asked

from podium.backend import ObjectCode, Program, Target
from podium.testing import DriverConformance

from podium_cpu.driver import CpuDriver


class TestCpu(DriverConformance):
    """The CPU backend claims everything."""

    driver_class = CpuDriver

    @pytest.fixture(autouse=True)
    def claims_are_asked_for(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """A test asks for every capability that its programs need, so that it is skipped where one is not claimed."""
        programs: list[Program] = []
        compile_program = CpuDriver.compile

        def note(driver: CpuDriver, program: Program, target: Target) -> ObjectCode:
            programs.append(program)
            return compile_program(driver, program, target)

        monkeypatch.setattr(CpuDriver, "compile", note)
        asked_for = {name for marker in request.node.iter_markers("needs") for name in marker.args}
        claims = self.claims
        monkeypatch.setattr(self, "claims", lambda name: asked_for.add(name) or claims(name))
        yield
        for program in programs:
            assert asked(program) <= asked_for, program.source
