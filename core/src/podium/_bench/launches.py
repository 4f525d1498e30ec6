"""What one launch costs on the active driver, in each way to make it, beside the driver call alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from podium._bench.comparison import compare
from podium._bench.driver_loop import driver_loop
from podium._bench.level import pinned_level
from podium._bench.room import block_in
from podium._bench.turns import Effort, take_turns
from podium._bench.ways import bound, repeated, streamed, subscripted
from podium._graph import capture
from podium._limits import find_device
from podium._memory import asarray
from podium._module import kernel as declare
from podium._synchronize import synchronize
from podium.errors import CompileError, LoadError, ToolchainError

if TYPE_CHECKING:
    from podium._bench.progress import Progress
    from podium._bench.report import Report
    from podium._kernel import Kernel
    from podium.backend import Driver

__all__ = ["ADD", "BLOCK", "DRIVER_CALL", "LAUNCHES", "make_ready", "measure_launches"]

ADD = """
extern "C" __global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""

BLOCK = 32
"""Threads of the block, where the device takes as many."""

LAUNCHES = 50
"""Launches in one sample: few enough that the queue of a driver never fills."""

DRIVER_CALL = "driver call, loop in C"
BOUND, SUBSCRIPT, LOW = "bound launch", "kernel[grid, block](...)", "kernel.run(...)"
STREAM, ADDRESSES, NUMPY = "bound, stream=", "bound, addresses", "bound, numpy's arrays"
INTERPRETED = "bound, interpreted level"

GRAPH_LAUNCHES, REPLAYS = 20, 2
GRAPH = f"in a graph of {GRAPH_LAUNCHES}"


def measure_launches(report: Report, driver: Driver, effort: Effort, progress: Progress) -> None:
    """Measure launches of one block with three arrays and an int. What cannot be measured has a row with why."""
    progress.begin("one launch", effort.rounds)
    device = driver.current_device()
    stream = driver.current_stream(device)
    block = block_in(find_device("the bench", driver, device), BLOCK)
    n = 4 * block
    a, b, c = (asarray([1.0] * n, driver=driver) for _ in range(3))
    arrays, addresses = (a, b, c, n), (a.ptr, b.ptr, c.ptr, n)
    ways: dict[str, Callable[[], object]] = {}
    missing: dict[str, str] = {}
    kernel, slow = declare(ADD), declare(ADD)
    reason = make_ready(kernel, "generated")
    if reason is not None:
        missing = dict.fromkeys((DRIVER_CALL, BOUND, SUBSCRIPT, STREAM, ADDRESSES, LOW, GRAPH), reason)
    else:
        ways[DRIVER_CALL] = driver_loop(kernel, block, device, stream, addresses, LAUNCHES)
        launch = kernel[1, block]
        ways[BOUND] = bound(launch, LAUNCHES, *arrays)
        ways[SUBSCRIPT] = subscripted(kernel, 1, block, LAUNCHES, *arrays)
        ways[STREAM] = streamed(launch, stream, LAUNCHES, *arrays)
        ways[ADDRESSES] = bound(launch, LAUNCHES, *addresses)
        if driver.host_memory:
            theirs = _numpy_arrays(n)
            if theirs is None:
                missing[NUMPY] = "not installed"
            else:
                ways[NUMPY] = bound(launch, LAUNCHES, *theirs, n)
        ways[LOW] = repeated(kernel.run, LAUNCHES, 1, 1, 1, stream, kernel.function, *arrays)
        with capture() as graph:
            for _ in range(GRAPH_LAUNCHES):
                launch(*arrays)
        ways[GRAPH] = repeated(graph.replay, REPLAYS)
    reason = make_ready(slow, "interpreted")
    if reason is not None:
        missing[INTERPRETED] = reason
    else:
        ways[INTERPRETED] = bound(slow[1, block], LAUNCHES, *arrays)
    loops = {name: GRAPH_LAUNCHES * REPLAYS if name == GRAPH else LAUNCHES for name in ways}
    settle = partial(synchronize, device, driver=driver)
    times = take_turns(ways, effort, loops, settle, progress.advance, clocked=(DRIVER_CALL,))
    reference = (DRIVER_CALL, "call") if DRIVER_CALL in times else None
    ours = [name for name in times.samples if name != DRIVER_CALL]
    what = "one launch"
    compare(
        report,
        "Launches",
        times,
        what=what,
        ratios=False,
        reference=reference,
        ours=ours,
        missing=missing,
        sample=f"one is {LAUNCHES} launches of one block of {block} threads, with three arrays and an int",
    )


def make_ready(kernel: Kernel, level: str) -> str | None:
    """Make a kernel ready with its launcher at a level; return why that cannot be, if so."""
    with pinned_level(level):
        try:
            kernel.binding()
        except (ToolchainError, CompileError, LoadError) as error:
            return str(error).splitlines()[0]
    try:
        kernel.warm_up()
    except CompileError as error:
        return str(error).splitlines()[0]
    return None if kernel.level == level else f"launches of this backend stay {kernel.level} here"


def _numpy_arrays(n: int) -> tuple[Any, Any, Any] | None:
    try:
        import numpy
    except ImportError:
        return None
    return numpy.ones(n, numpy.float32), numpy.ones(n, numpy.float32), numpy.ones(n, numpy.float32)
