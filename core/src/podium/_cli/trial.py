"""Trial launches: a small kernel, really compiled and launched on a device, and its result checked."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podium._bench.level import pinned_level
from podium._bench.room import block_in, elements_in
from podium._limits import find_device
from podium.errors import LaunchConfigError, ToolchainError

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["KERNELS", "Trial", "try_device"]

KERNELS = Path(__file__).parent / "kernels"

_ELEMENTS = 1000  # not a multiple of the block
_BLOCK = 128


@dataclass(frozen=True)
class Trial:
    """A trial launch. `outcome` is passed, failed, or unavailable: no launcher can be generated, or nothing compiled.

    `seconds` is what the first launch took, with compiling and loading. `refused` tells that it failed as a launch that
    does not fit the device, though it keeps to the limits that the backend states.
    """

    backend: str
    device: int
    level: str
    outcome: str
    seconds: float | None = None
    reason: str | None = None
    refused: bool = False


def try_device(driver: Driver, device: int, level: str) -> Trial:
    """Launch the kernel on a device, at one launcher level; a failure is an outcome and no error."""
    from podium._cli.backend_report import ask

    with pinned_level(level):
        answer = ask("it", lambda: _launch(driver, device, level), "the backend or of podium")
    if answer.error is not None:
        return Trial(driver.name, device, level, "failed", reason=answer.error)
    trial: Trial = answer.value
    return trial


def _launch(driver: Driver, device: int, level: str) -> Trial:
    import podium

    if "cuda" not in driver.languages:
        known = ", ".join(sorted(driver.languages)) or "no language"
        reason = f"the trial is a kernel in the dialect of CUDA, and the backend compiles {known}"
        return Trial(driver.name, device, level, "unavailable", reason=reason)
    if level == "generated" and not driver.launcher_cls.generated_level:
        return Trial(driver.name, device, level, "unavailable", reason="the backend has no launchers in C")
    with podium.use(driver):
        kernel = podium.kernel(KERNELS / "saxpy.cu")
        try:
            kernel.binding()
        except ToolchainError as error:
            return Trial(driver.name, device, level, "unavailable", reason=str(error))
        limits = find_device("the trial", driver, device)
        start = time.perf_counter()
        block = block_in(limits, min(_BLOCK, kernel.attributes(device)["max_threads"]))
        n = elements_in(limits, _ELEMENTS, block, 2 * 4)
        try:
            x = podium.asarray([float(i) for i in range(n)], device=device)
            y = podium.asarray([1.0] * n, device=device)
            kernel[-(-n // block), block](n, 2.0, x, y)
        except LaunchConfigError as error:
            return Trial(driver.name, device, level, "failed", reason=str(error), refused=True)
        result = y.tolist()
        seconds = time.perf_counter() - start
        wrong = next((i for i in range(n) if result[i] != 2.0 * i + 1.0), None)
        if wrong is not None:
            reason = f"wrong result: element {wrong} is {result[wrong]}, not {2.0 * wrong + 1.0}"
        elif kernel.level != level:
            reason = f"it ran at the {kernel.level} level"
        else:
            return Trial(driver.name, device, level, "passed", seconds)
        return Trial(driver.name, device, level, "failed", seconds, reason)
