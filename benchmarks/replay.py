"""Replays of a graph of 20 launches, and what it costs to change one. A part of gpu.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from driver_loop import loop_over_graph
from launch_peers import Arguments

import podium
from podium._bench.comparison import compare
from podium._bench.report import Report
from podium._bench.turns import Effort, take_turns
from podium._bench.ways import repeated
from podium._captured_launch import CapturedLaunch
from podium._executable_graph import DriverGraph

__all__ = ["measure"]

LAUNCHES = 20
"""In the graph."""

REPLAYS = 10
"""In one sample: few enough that the driver's queue never fills."""

BLOCK = 32
LOOP = "C loop over cuGraphLaunch"
REPLAY, CALL, NAMED = "graph.replay()", "graph()", "graph.replay(stream=stream)"
INTERPRETED = "graph.replay(), interpreted level"
TORCH, SEPARATE = "torch, CUDAGraph.replay()", "20 bound launches"
LIMIT = 0.30


def measure(report: Report, effort: Effort, kernel: podium.Kernel) -> None:
    """Measure replays of launches with three tensors of torch and an int; times are of one launch in the graph."""
    import torch

    arguments = Arguments.of_torch()
    tensors, n = arguments.tensors, arguments.n
    launch = kernel[1, BLOCK]
    launch(*tensors, n)
    with podium.capture() as graph:
        for _ in range(LAUNCHES):
            launch(*tensors, n)
    theirs = torch.cuda.CUDAGraph()
    with torch.cuda.graph(theirs):
        for _ in range(LAUNCHES):
            launch(*tensors, n)
    graph.replay()
    theirs.replay()
    podium.synchronize()
    executable = cast("DriverGraph", graph._executable)
    loop = loop_over_graph(executable.handle, arguments.stream)
    ways: dict[str, Callable[[], object]] = {
        LOOP: lambda: loop(REPLAYS),
        REPLAY: repeated(graph.replay, REPLAYS),
        CALL: repeated(graph, REPLAYS),
        NAMED: _named(graph, arguments.stream),
        INTERPRETED: repeated(executable.replay, REPLAYS),
        TORCH: repeated(theirs.replay, REPLAYS),
        SEPARATE: repeated(launch, LAUNCHES * REPLAYS, *tensors, n),
    }
    times = take_turns(ways, effort, dict.fromkeys(ways, LAUNCHES * REPLAYS), podium.synchronize)
    what = f"one of {LAUNCHES} launches of a graph"
    compare(report, "Replay", times, what=what, reference=(LOOP, "C loop"), ours=(REPLAY, CALL, NAMED, INTERPRETED))
    report.target(REPLAY, LIMIT, 1e6 * times.median(REPLAY), "µs for each launch")
    first = graph.launches[0]
    changes: dict[str, Callable[[], object]] = {
        "update(*args), all four": repeated(first.update, REPLAYS, *tensors, n),
        "update(n=...)": _by_name(first, n),
    }
    updates = take_turns(changes, effort, dict.fromkeys(changes, REPLAYS), podium.synchronize)
    compare(report, "Changing one launch of a graph", updates, what="one update", ours=changes)


def _named(graph: podium.Graph, stream: int) -> Callable[[], object]:
    replay = graph.replay

    def work() -> None:
        for _ in range(REPLAYS):
            replay(stream=stream)

    return work


def _by_name(launch: CapturedLaunch, n: int) -> Callable[[], object]:
    update = launch.update

    def work() -> None:
        for _ in range(REPLAYS):
            update(n=n)

    return work
