"""What a process pays up to its first launches: import, choosing the driver, first kernels with and without a cache."""

from __future__ import annotations

import tempfile
import time
from typing import TYPE_CHECKING

from podium._bench.comparison import compare
from podium._bench.launches import ADD, BLOCK
from podium._bench.processes import STEPS, add_steps, run_steps, whole_process
from podium._bench.room import block_in
from podium._bench.turns import Times
from podium._limits import find_device

if TYPE_CHECKING:
    from podium._bench.progress import Progress
    from podium._bench.report import Report
    from podium.backend import Driver

__all__ = ["measure_start"]

_MOST_S, _LEAST = 5.0, 2  # seconds after which there are no more processes, if there have been so many
WHAT = "in new processes"
BARE, IMPORT = "bare Python, whole process", "import podium, whole process"

_PROGRAM = f"""{STEPS}
block = int(sys.argv[2])
import podium
mark("import podium")
driver = podium.driver.resolve()
mark("choose the driver")
if driver.name != sys.argv[1]:
    sys.exit("a new process chooses the backend " + driver.name + ", and not " + sys.argv[1])
arrays = [podium.asarray([1.0] * block) for _ in range(3)]
podium.synchronize()
mark("the device, three arrays")
for which in ("first", "second"):
    source = {ADD!r}.replace("add(", which + "(")
    kernel = podium.kernel(source)
    kernel[1, block](*arrays, block)
    podium.synchronize()
    mark(which + " kernel")
if len(sys.argv) > 3:
    kernel.warm_up()  # whose launcher is built from a second launch on: let there be one
print(json.dumps(steps))
"""


def measure_start(report: Report, driver: Driver, backend: str | None, processes: int, progress: Progress) -> None:
    """Measure in new processes, with caches of their own; `backend` is named there, if the user named it here."""
    progress.begin("start of processes", processes)
    named = {} if backend is None else {"PODIUM_BACKEND": backend}
    block = str(block_in(find_device("the bench", driver, driver.current_device()), BLOCK))
    whole: dict[str, list[float]] = {}
    empty: dict[str, list[float]] = {}
    full: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as kept:
        in_full = {**named, "PODIUM_CACHE_DIR": kept}
        try:
            add_steps(empty, run_steps(_PROGRAM, driver.name, block, "fill the cache", environment=in_full))
            end = time.monotonic() + _MOST_S
            for turn in range(processes):
                if turn >= _LEAST and time.monotonic() > end:
                    break
                add_steps(whole, {BARE: whole_process("pass", in_full)})
                add_steps(whole, {IMPORT: whole_process("import podium", in_full)})
                if turn > 0:  # the first has filled the other cache
                    with tempfile.TemporaryDirectory() as folder:
                        in_empty = {**named, "PODIUM_CACHE_DIR": folder}
                        add_steps(empty, run_steps(_PROGRAM, driver.name, block, environment=in_empty))
                add_steps(full, run_steps(_PROGRAM, driver.name, block, environment=in_full))
                progress.advance()
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1]
            compare(report, "Start", Times({}), what=WHAT, unit="ms", missing={"processes": reason})
            return
    samples = {**whole, **{step: full[step] for step in list(full)[:3]}}
    for which in ("first", "second"):
        samples[f"{which} kernel, empty cache"] = empty[f"{which} kernel"]
        samples[f"{which} kernel, full cache"] = full[f"{which} kernel"]
    ours = [name for name in samples if name != BARE]
    compare(report, "Start", Times(samples), what=WHAT, unit="ms", ours=ours, sample="one is a process")
