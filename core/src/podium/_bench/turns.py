"""Ways of doing the same work, timed in turn: what slows the machine for a while slows all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Effort", "Ratio", "Times", "figures_of", "quartiles", "take_turns"]

Way = Callable[[], object]


@dataclass(frozen=True)
class Effort:
    """How much is measured: rounds, fewer where they take long; and seconds that a sample takes at least."""

    rounds: int
    sample_s: float
    most_s: float = 20.0
    least_rounds: int = 5


@dataclass(frozen=True)
class Ratio:
    """How many times as long one way takes as another: median and quartiles of rounds."""

    median: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.lower:.2f} to {self.upper:.2f})"


@dataclass(frozen=True)
class Times:
    """Seconds per call of each way; the n-th samples of all were taken in the n-th round."""

    samples: dict[str, list[float]]

    def __contains__(self, way: str) -> bool:
        return way in self.samples

    def median(self, way: str) -> float:
        """Give the median of a way, in seconds per call."""
        return statistics.median(self.samples[way])

    def least(self, way: str) -> float:
        """Give the fastest sample of a way, in seconds per call."""
        return min(self.samples[way])

    def quartiles(self, way: str) -> tuple[float, float]:
        """Give the lower and the upper quartile of a way, in seconds per call."""
        lower, _, upper = quartiles(self.samples[way])
        return lower, upper

    def ratio(self, way: str, other: str) -> Ratio:
        """Compare two ways, each round for itself."""
        lower, median, upper = quartiles([a / b for a, b in zip(self.samples[way], self.samples[other])])
        return Ratio(median, lower, upper)

    def beside(self, way: str, other: str) -> float:
        """Give the seconds that a way takes more than another: the median of rounds."""
        return statistics.median(a - b for a, b in zip(self.samples[way], self.samples[other]))

    def figures(self) -> dict[str, Any]:
        """Give what is kept in a file."""
        return {way: figures_of(samples) for way, samples in self.samples.items()}


def quartiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """Give the lower quartile, the median and the upper quartile of samples, also of a single one."""
    if len(samples) < 2:
        return samples[0], samples[0], samples[0]
    lower, median, upper = statistics.quantiles(samples, n=4, method="inclusive")
    return lower, median, upper


def figures_of(samples: Sequence[float]) -> dict[str, Any]:
    """Give what is kept in a file of samples in seconds."""
    lower, median, upper = quartiles(samples)
    return {"median_s": median, "lower_s": lower, "upper_s": upper, "min_s": min(samples), "samples": len(samples)}


def take_turns(
    ways: Mapping[str, Way],
    effort: Effort,
    loops: Mapping[str, int] | None = None,
    settle: Way | None = None,
    between: Way | None = None,
    clocked: Collection[str] = (),
) -> Times:
    """Time each way once a round, each round beginning with another.

    Before each sample the way is called once untimed, so that none begins with what another left in the caches, or
    with threads of another that have not gone to sleep. `loops` says how often a way does its work in one call, if
    more than once. `settle` is called before each sample, such as to wait for a device, `between` after each round.
    Ways that are `clocked` read the clock themselves and return the seconds: loops in C, without the call into C.
    """
    calls = {name: _calls_in(way, effort.sample_s) for name, way in ways.items()}
    samples: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    end = time.monotonic() + effort.most_s
    for turn in range(effort.rounds if ways else 0):
        if turn >= effort.least_rounds and time.monotonic() > end:
            break
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            sample = _clocked_sample if name in clocked else _sample
            samples[name].append(sample(ways[name], calls[name], settle))
        if between is not None:
            between()
    for name, count in (loops or {}).items():
        samples[name] = [seconds / count for seconds in samples[name]]
    return Times(samples)


def _sample(way: Way, calls: int, settle: Way | None) -> float:
    way()
    if settle is not None:
        settle()
    start = time.perf_counter()
    for _ in range(calls):
        way()
    return (time.perf_counter() - start) / calls


def _clocked_sample(way: Way, calls: int, settle: Way | None) -> float:
    way()
    if settle is not None:
        settle()
    seconds: Any = [way() for _ in range(calls)]
    return float(sum(seconds) / calls)


def _calls_in(way: Way, seconds: float) -> int:
    """Find how many calls fill some seconds; the first call may prepare something, and is left out."""
    way()
    start = time.perf_counter()
    way()
    return max(1, round(seconds / max(time.perf_counter() - start, 1e-7)))
