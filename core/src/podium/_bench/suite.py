"""What ``podium bench`` measures: its parts, and how much of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from podium._bench.copies import measure_copies
from podium._bench.growth import measure_growth
from podium._bench.launches import measure_launches
from podium._bench.start import measure_start
from podium._bench.turns import Effort

if TYPE_CHECKING:
    from podium._bench.progress import Progress
    from podium._bench.report import Report
    from podium.backend import Driver

__all__ = ["PARTS", "measure_parts", "reservations"]

PARTS = {
    "launch": "one launch, in each way to make it, beside the driver call alone",
    "growth": "0 to 58 arguments",
    "copy": "copies between host and device",
    "start": "import, choice of the driver, first kernels with and without a cache",
}


def measure_parts(
    report: Report, driver: Driver, parts: Sequence[str], progress: Progress, *, backend: str | None, quick: bool
) -> None:
    """Measure parts on a driver. `backend` is the one that the user named, for the processes of the part "start"."""
    for part in parts:
        if part == "launch":
            measure_launches(report, driver, _effort(quick, 300, 4.0), progress)
        elif part == "growth":
            measure_growth(report, driver, _effort(quick, 100, 2.0), progress)
        elif part == "copy":
            measure_copies(report, driver, _effort(quick, 50, 2.0), progress)
        else:
            measure_start(report, driver, backend, 1 if quick else 5, progress)


def _effort(quick: bool, rounds: int, seconds: float) -> Effort:
    return Effort(rounds // 10, 0, seconds / 4) if quick else Effort(rounds, 0, seconds)


def reservations(about: dict[str, Any]) -> Iterator[str]:
    """Say what in this process or on this machine makes launches slower than they are elsewhere.

    Raises `SettingError` if a variable that would make them so means nothing.
    """
    from podium import _debug, _settings, _state

    _debug.start_from_environment()  # as the first launcher would do, which is made later
    if _settings.trace_file() is not None:
        from podium import _trace

        _trace.start_from_environment()
    attended = _state.attended()
    if _debug.enabled():
        yield "debugging is on, so every launch goes through Python and is waited for"
    elif attended & _state.HOOKS:
        yield "hooks or a trace are set, so every launch goes through Python"
    if about.get("load", 0) > about.get("cores", 1) / 2:
        yield f"other programs are running here (load {about['load']}): the smallest figures have the least of them"
