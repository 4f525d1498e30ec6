"""Launches among many: does one take longer with thousands of kernels loaded, and what if all are launched in turn?"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import podium
from podium._bench.comparison import compare
from podium._bench.report import Report
from podium._bench.turns import Effort, Times, take_turns

SHAPES, LAUNCHES = 50, 500

Make = Callable[[str, str], podium.Kernel]


def measure_scale(report: Report, effort: Effort, make: Make, kernels: int) -> None:
    """Time one kernel's launch alone and among so many others, which have `SHAPES` signature shapes between them."""
    one = _bound(make, 4)
    before = take_turns({"1 of 1": _repeated(one)}, effort, {"1 of 1": LAUNCHES})
    # from the second kernel of a shape on there is nothing to build: the launcher is there
    crowd = [_bound(make, index % SHAPES) for index in range(kernels)]
    everyone = itertools.cycle([(launch, tuple(range(index % SHAPES))) for index, launch in enumerate(crowd)])

    def in_turn() -> None:
        for launch, values in itertools.islice(everyone, LAUNCHES):
            launch(*values)

    name, all_names = f"1 of {kernels}", f"all {kernels} in turn"
    after = take_turns({name: _repeated(one), all_names: in_turn}, effort, dict.fromkeys((name, all_names), LAUNCHES))
    times = Times({**before.samples, **after.samples})
    compare(report, "Launches among many kernels", times, what="generated, 4 ints", unit="ns", ours=list(times.samples))


def _bound(make: Make, count: int) -> Callable[..., None]:
    kernel = make("generated", ", ".join(f"i{index}: i32" for index in range(count)))
    kernel[1, 32](*range(count))
    return kernel[1, 32]


def _repeated(launch: Callable[..., Any]) -> Callable[[], None]:
    def way() -> None:
        for _ in range(LAUNCHES):
            launch(0, 1, 2, 3)

    return way
