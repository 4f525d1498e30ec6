"""The AMD backend on the stand-in with kernels that run: each has a twin, which the CPU backend makes of its source.

hipRTC compiles every program as for a real device, and the launchers hand over what they would hand to one; the stand-in
then calls the twin with the bytes that arrived. So results are real numbers, of what reached the runtime.
"""

from __future__ import annotations

import threading
from functools import wraps
from typing import Any

from recording.hip.library import Recording

from podium.backend import Function, ObjectCode, Program, Target

from podium_amd.driver import AmdDriver
from podium_cpu.driver import CpuDriver


class Twins:
    """The twins of the kernels that drivers of this process have loaded."""

    def __init__(self, recording: Recording) -> None:
        """Have none yet."""
        self._recording = recording
        self._cpu = CpuDriver()
        self._programs: dict[bytes, Program] = {}
        self._made: dict[bytes, ObjectCode] = {}
        self._lock = threading.Lock()

    def remember(self, program: Program, code: ObjectCode) -> None:
        """Remember of what code was made."""
        self._programs[code.code] = program

    def pair(self, code: ObjectCode, name: str) -> None:
        """Tell the stand-in the twin of a kernel; there is none for code that another process has made."""
        program = self._programs.get(code.code)
        if program is None:
            return
        with self._lock:
            twin = self._made.get(code.code)
            if twin is None:
                twin = self._made[code.code] = self._cpu.compile(program, self._cpu.default_target())
            self._recording.twin(code.symbol(name), self._cpu.load(twin, name, 0).handle)


def give_twins(recording: Recording) -> None:
    """Let every kernel that the backend loads from now on in this process have a twin."""
    twins = Twins(recording)
    driver: Any = AmdDriver
    compile_program, load, load_beside = driver.compile, driver.load, driver.load_beside

    @wraps(compile_program)
    def compile_both(self: AmdDriver, program: Program, target: Target) -> ObjectCode:
        code: ObjectCode = compile_program(self, program, target)
        twins.remember(program, code)
        return code

    @wraps(load)
    def load_both(self: AmdDriver, code: ObjectCode, name: str, device: int) -> Function:
        function: Function = load(self, code, name, device)
        twins.pair(code, name)
        return function

    @wraps(load_beside)
    def load_both_beside(self: AmdDriver, function: Function, code: ObjectCode, name: str, device: int) -> Function:
        found: Function = load_beside(self, function, code, name, device)
        twins.pair(code, name)
        return found

    driver.compile, driver.load, driver.load_beside = compile_both, load_both, load_both_beside
