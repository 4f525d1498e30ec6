"""Trial launches: a small kernel, really compiled and launched on a device, and its result checked."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podium._bench.level import pinned_level
from podium.errors import ToolchainError

if TYPE_CHECKING:
    from podium.backend import Driver

__all__ = ["KERNELS", "Trial", "try_device"]

KERNELS = Path(__file__).parent / "kernels"

_ELEMENTS = 1000  # not a multiple of the block
_BLOCK = 128


@dataclass(frozen=True)
class Trial:
    """A trial launch. `outcome` is passed, failed, or unavailable where no launcher can be generated.

    `seconds` is what the first launch took, with compiling and loading.
    """

    backend: str
    device: int
    level: str
    outcome: str
    seconds: float | None = None
    reason: str | None = None


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

    with podium.use(driver):
        kernel = podium.kernel(KERNELS / "saxpy.cu")
        try:
            kernel.binding()
        except ToolchainError as error:
            return Trial(driver.name, device, level, "unavailable", reason=str(error))
        start = time.perf_counter()
        x = podium.asarray([float(i) for i in range(_ELEMENTS)], device=device)
        y = podium.asarray([1.0] * _ELEMENTS, device=device)
        kernel[-(-_ELEMENTS // _BLOCK), _BLOCK](_ELEMENTS, 2.0, x, y)
        result = y.tolist()
        seconds = time.perf_counter() - start
        wrong = next((i for i in range(_ELEMENTS) if result[i] != 2.0 * i + 1.0), None)
        if wrong is not None:
            reason = f"wrong result: element {wrong} is {result[wrong]}, not {2.0 * wrong + 1.0}"
        elif kernel.level != level:
            reason = f"it ran at the {kernel.level} level"
        else:
            return Trial(driver.name, device, level, "passed", seconds)
        return Trial(driver.name, device, level, "failed", seconds, reason)
