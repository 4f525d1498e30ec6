"""Ways of the same launch beside each other: as a table, as figures, and as bars."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from podium._bench.chart import Bar, bar_chart
from podium._bench.report import Report
from podium._bench.turns import Times

__all__ = ["bars_of", "compare"]

_UNITS = {"ns": (1e9, 0), "µs": (1e6, 2), "ms": (1e3, 2)}


def compare(
    report: Report,
    title: str,
    times: Times,
    *,
    what: str,
    unit: str = "µs",
    reference: tuple[str, str] | None = None,
    ours: Collection[str] = (),
    missing: Mapping[str, str] | None = None,
    sample: str = "",
    ratios: bool = True,
) -> None:
    """Show the times of ways that took turns, and draw them; those that could not be measured have a row with why.

    `reference` is the way that the others are compared with, and a short name for it. `ours` are drawn in a colour of
    their own. `sample` says what one sample is. Differences
    to the reference are given, and with `ratios` how many times as long, too.
    """
    missing = missing or {}
    scale, digits = _UNITS[unit]
    names = list(times.samples)
    columns = [what, f"median\n({unit})", f"quartiles\n({unit})", f"smallest\n({unit})"]
    if reference is not None:
        columns += [f"{reference[1]} = 1"] * ratios + [f"beside\n{reference[1]}\n({unit})"]

    def number(seconds: float) -> str:
        return f"{scale * seconds:.{digits}f}"

    rows = []
    for name in names:
        lower, upper = times.quartiles(name)
        row = [name, number(times.median(name)), f"{number(lower)} to {number(upper)}", number(times.least(name))]
        if reference is not None:
            row += [str(times.ratio(name, reference[0]))] * ratios + [number(times.beside(name, reference[0]))]
        rows.append(row)
    rows += [[name, *[""] * (len(columns) - 2), reason] for name, reason in missing.items()]
    report.table(title, columns, rows, _figures(times, missing))
    if names:
        count = len(times.samples[names[0]])
        report.note(f"{count} sample{'s' * (count > 1)} of each, in turn{sample and f'; {sample}'}.")
        at = scale * times.median(reference[0]) if reference is not None else None
        report.chart(
            bar_chart(f"{title}: {what}", f"{unit}, medians with quartiles", bars_of(times, scale, ours), reference=at)
        )


def bars_of(times: Times, scale: float, ours: Collection[str] = ()) -> list[Bar]:
    """Return a bar for each way, of its times in seconds multiplied by a scale."""
    bars = []
    for name in times.samples:
        lower, upper = times.quartiles(name)
        bars.append(Bar(name, scale * times.median(name), scale * lower, scale * upper, name in ours))
    return bars


def _figures(times: Times, missing: Mapping[str, str]) -> dict[str, Any]:
    return {**times.figures(), **{name: {"reason": reason} for name, reason in missing.items()}}
