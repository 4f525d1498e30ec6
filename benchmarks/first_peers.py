"""What peers pay before and at their first launch: each in a new process, with caches that are empty."""

from __future__ import annotations

import tempfile
from pathlib import Path

from launch_peers import is_installed, reason_of

from podium._bench.chart import bar_chart
from podium._bench.comparison import bars_of
from podium._bench.processes import STEPS, add_steps, run_steps
from podium._bench.report import Report
from podium._bench.turns import Times

__all__ = ["measure"]

SOURCES = Path(__file__).parent / "gpu"

# The device is there, and three arrays on it, before the clock of the first launch starts.
KERNELS = r"""
import pathlib, sys
code = pathlib.Path(sys.argv[1], "kernels.cu").read_text()
sources = {"first": code, "second": code.replace("add(", "plus(").replace("int n", "int n, int m")}
names = {"first": "add", "second": "plus"}
"""
TORCH_ARRAYS = """
import torch
mark("import torch")
arrays = [torch.ones(1024, device="cuda") for _ in range(3)]
torch.cuda.synchronize()
mark("the device, its context, three arrays")
"""
END = "\nprint(json.dumps(steps))"

PROGRAMS = {
    "podium": (
        "podium",
        """
import podium
mark("import")
arrays = [podium.asarray([1.0] * 1024) for _ in range(3)]
podium.synchronize()
mark("the device, its context, three arrays")
for which, more in (("first", ()), ("second", (5,))):
    podium.kernel(sources[which], names[which])[1, 32](*arrays, 32, *more)
    podium.synchronize()
    mark(f"{which} kernel")
""",
    ),
    "cuda.core": (
        "cuda.core",
        """
import numpy
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
mark("import")
device = Device()
device.set_current()
stream = device.create_stream()
arch = "".join(map(str, device.compute_capability))
buffers = [device.allocate(4096, stream=stream) for _ in range(3)]
stream.sync()
mark("the device, its context, three arrays")
for which, more in (("first", ()), ("second", (numpy.int32(5),))):
    program = Program(sources[which], code_type="c++", options=ProgramOptions(arch=f"sm_{arch}"))
    kernel = program.compile("cubin", name_expressions=(names[which],)).get_kernel(names[which])
    launch(stream, LaunchConfig(grid=1, block=32), kernel, *buffers, numpy.int32(32), *more)
    stream.sync()
    mark(f"{which} kernel")
""",
    ),
    "CuPy": (
        "cupy",
        """
import cupy
mark("import")
arrays = [cupy.ones(1024, dtype="float32") for _ in range(3)]
cupy.cuda.Device().synchronize()
mark("the device, its context, three arrays")
for which, more in (("first", ()), ("second", (cupy.int32(5),))):
    cupy.RawKernel(sources[which], names[which])((1,), (32,), (*arrays, cupy.int32(32), *more))
    cupy.cuda.Device().synchronize()
    mark(f"{which} kernel")
""",
    ),
    "Triton": (
        "triton",
        TORCH_ARRAYS
        + """
import triton
mark("import")
sys.path.insert(0, sys.argv[1])
from triton_kernels import add
for which, n in (("first", 31), ("second", 1 << 40)):  # an int of another width is another signature
    add[(1,)](*arrays, n)
    torch.cuda.synchronize()
    mark(f"{which} kernel")
""",
    ),
    "torch._compile_kernel": (
        "torch",
        TORCH_ARRAYS
        + """
for which, more in (("first", ()), ("second", (5,))):
    kernel = torch.cuda._compile_kernel(sources[which], names[which])
    kernel((1, 1, 1), (32, 1, 1), (*arrays, 32, *more))
    torch.cuda.synchronize()
    mark(f"{which} kernel")
""",
    ),
    "numba-cuda": (
        "numba.cuda",
        """
import numba.cuda, numpy
mark("import")
arrays = [numba.cuda.to_device(numpy.ones(1024, numpy.float32)) for _ in range(3)]
numba.cuda.synchronize()
mark("the device, its context, three arrays")
@numba.cuda.jit
def add(a, b, c, n):
    i = numba.cuda.grid(1)
    if i < n:
        c[i] = a[i] + b[i]
for which, n in (("first", 32), ("second", 32.0)):
    add[1, 32](*arrays, n)
    numba.cuda.synchronize()
    mark(f"{which} kernel")
""",
    ),
}
CACHES = (
    "PODIUM_CACHE_DIR",
    "CUPY_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "NUMBA_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "XDG_CACHE_HOME",
)


def measure(report: Report, processes: int) -> None:
    """Measure import, first kernel, and a second one with a new signature, all peers in turn."""
    samples: dict[str, dict[str, list[float]]] = {name: {} for name in PROGRAMS}
    missing = {name: "not installed" for name, (module, _) in PROGRAMS.items() if not is_installed(module)}
    for _ in range(processes):
        for name, (_, program) in PROGRAMS.items():
            if name in missing:
                continue
            with tempfile.TemporaryDirectory() as folder:
                environment = {variable: f"{folder}/{variable}" for variable in CACHES}
                try:
                    steps = run_steps(STEPS + KERNELS + program + END, str(SOURCES), environment=environment)
                except RuntimeError as error:
                    missing[name] = reason_of(error)
                else:
                    add_steps(samples[name], steps)
    rows = []
    for name, steps in samples.items():
        times = Times(steps)
        rows += [
            (f"{name}: {step}", f"{1e3 * times.median(step):.1f}", f"{1e3 * times.least(step):.1f}") for step in steps
        ]
    rows += [(name, "", reason) for name, reason in missing.items()]
    figures = {name: Times(steps).figures() for name, steps in samples.items() if steps}
    reasons = {name: {"reason": reason} for name, reason in missing.items()}
    columns = ("first launches of peers, empty caches", "median (ms)", "smallest (ms)")
    report.table("First launches of peers", columns, rows, {**figures, **reasons})
    report.note(f"{processes} process{'es' * (processes > 1)} of each, in turn.")
    firsts = Times({name: steps["first kernel"] for name, steps in samples.items() if steps})
    if firsts.samples:
        bars = bars_of(firsts, 1e3, ours=("podium",))
        report.chart(bar_chart("First kernel, empty caches", "ms, medians with quartiles", bars))
