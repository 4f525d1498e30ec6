"""What a launch costs: measured against a loop in C, with tables in Markdown and figures in JSON. See README.md."""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from costs import loop_over_entry

import podium
from podium.backend import Function, HostCompiler, ObjectCode, SharedLibrary
from podium.testing import FakeArray, FakeDriver

HERE = Path(__file__).parent

# The driver call that does nothing, and a loop in C over it: seconds per call.
LOOPS = r"""
#include <stdint.h>
#include <time.h>
#define EXPORT __attribute__((visibility("default")))

typedef int (*driver_call)(const void *shape, uint64_t stream, void **parameters, int count);

EXPORT int nothing(const void *shape, uint64_t stream, void **parameters, int count) {
    __asm__ volatile("" : : "r"(shape), "r"(stream), "r"(parameters), "r"(count) : "memory");
    return 0;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

EXPORT double loop_nothing(uint64_t function, void **parameters, int count, int calls) {
    char shape[64] = {0};
    double start = now();
    for (int i = 0; i < calls; i++) ((driver_call)(uintptr_t)function)(shape, 0, parameters, count);
    return (now() - start) / calls;
}
"""

ADD = """
__global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""

ARRAYS_AND_INT = "a: *fp32, b: *fp32, c: *fp32, n: i32"

Sample = tuple[float, float]  # median and minimum, in seconds


class Measurement:
    """How many samples are taken, and what came out."""

    def __init__(self, quick: bool) -> None:
        self.batches, self.calls, self.processes = (40, 200, 5) if quick else (400, 1000, 25)
        self.results: dict[str, Any] = {}

    def per_call(self, call: Callable[[], object]) -> Sample:
        """Time a call, in batches."""
        for _ in range(self.calls):
            call()
        samples = []
        for _ in range(self.batches):
            start = time.perf_counter()
            for _ in range(self.calls):
                call()
            samples.append((time.perf_counter() - start) / self.calls)
        return statistics.median(samples), min(samples)

    def in_c(self, loop: Callable[[int], float]) -> Sample:
        """Time a loop that times itself."""
        loop(self.calls)
        samples = [loop(self.calls) for _ in range(self.batches)]
        return statistics.median(samples), min(samples)

    def table(self, title: str, unit: str, rows: dict[str, Sample]) -> None:
        """Print a table and keep its figures."""
        factor = {"ns": 1e9, "µs": 1e6, "ms": 1e3}[unit]
        print(f"\n### {title}\n\n| | median ({unit}) | smallest ({unit}) |\n|---|---|---|")
        for name, (median, least) in rows.items():
            digits = 0 if unit == "ns" else 2 if unit == "µs" else 1
            print(f"| {name} | {median * factor:.{digits}f} | {least * factor:.{digits}f} |")
        self.results[title] = {name: {"median_s": median, "min_s": least} for name, (median, least) in rows.items()}


@contextmanager
def level(name: str) -> Iterator[None]:
    """Pin the launcher level of the kernels that are declared inside."""
    before = os.environ.get("PODIUM_LAUNCHER")
    os.environ["PODIUM_LAUNCHER"] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ["PODIUM_LAUNCHER"]
        else:
            os.environ["PODIUM_LAUNCHER"] = before


def loops() -> SharedLibrary:
    """Compile the loops in C."""
    code = HostCompiler.find("c").compile({"loops.c": LOOPS}, "loops.c", ["-O2", "-fvisibility=hidden"])
    return SharedLibrary.from_bytes("podium_benchmark_loops", code)


def tensor_module() -> ModuleType:
    """Build the arrays of a library that says by DLPack's exchange table where they are, and does nothing else."""
    from podium._extension import Extension

    module = Extension("tensor", "podium_benchmark_tensor", (HERE / "tensor.c").read_text(encoding="utf-8")).build()
    module.Tensor.__dlpack_c_exchange_api__ = module.table
    return module


def addresses(count: int) -> Any:
    """Make an array of addresses of parameters, as drivers take them."""
    values = (ctypes.c_uint64 * max(1, count))()
    array = (ctypes.c_void_p * max(1, count))(*(ctypes.addressof(values) + 8 * i for i in range(count)))
    array.values = values
    return array


def measure_nothing(measurement: Measurement, library: SharedLibrary) -> None:
    """Measure launches whose driver call does nothing: what is left is podium's own cost on the host."""
    nothing = library.address("nothing")

    class NothingDriver(FakeDriver):
        """The fake driver, with a driver call in C that does nothing."""

        def load(self, code: ObjectCode, name: str, device: int) -> Function:
            return Function(nothing)

        def unload(self, function: Function, device: int) -> None:
            """Do nothing: every kernel has the same function."""

        def launch(self, function: int, config: Any, device: int, stream: int, parameters: Any) -> int:
            return int(call_nothing(None, stream, parameters.addresses(), len(parameters.offsets)))

    call_nothing = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int)(
        nothing
    )
    in_c = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)(
        library.address("loop_nothing")
    )
    podium.driver.register(NothingDriver)
    tensors = tuple(tensor_module().Tensor() for _ in range(3))
    signatures = {
        "no argument": ("", ()),
        "3 pointers (ints) and 1 int": (ARRAYS_AND_INT, (4096, 8192, 12288, 8)),
        "3 arrays with DLPack's exchange table and 1 int": (ARRAYS_AND_INT, (*tensors, 8)),
        "16 ints": (", ".join(f"i{i}: i32" for i in range(16)), tuple(range(16))),
        "16 floats": (", ".join(f"f{i}: fp32" for i in range(16)), tuple(map(float, range(16)))),
    }
    rows: dict[str, Sample] = {}
    parameters = addresses(4)
    rows["C loop over the call, 4 parameters"] = measurement.in_c(lambda calls: in_c(nothing, parameters, 4, calls))
    with podium.use("fake"):
        signatures |= {
            "3 arrays of podium and 1 int": (ARRAYS_AND_INT, (*(podium.empty(4) for _ in range(3)), 8)),
            "3 arrays with __dlpack__ and 1 int": (ARRAYS_AND_INT, (*(FakeArray(4096) for _ in range(3)), 8)),
        }
        for name in ("generated", "interpreted"):
            for arguments, (signature, values) in signatures.items():
                with level(name):
                    kernel = podium.kernel("void nothing() {}", "nothing", signature=signature)
                    launch = kernel[1, 32]
                    launch(*values)
                    launch = kernel[1, 32]
                    rows[f"{name}: launch, {arguments}"] = measurement.per_call(lambda: launch(*values))  # noqa: B023
                    if arguments.startswith("3 pointers"):
                        given = lambda: launch(*values, stream=64)  # noqa: B023, E731
                        rows[f"{name}: launch with stream=, {arguments}"] = measurement.per_call(given)
                        subscript = lambda: kernel[1, 32](*values)  # noqa: B023, E731
                        rows[f"{name}: kernel[grid, block], {arguments}"] = measurement.per_call(subscript)
                        run, function = kernel.run, kernel.function
                        low = lambda: run(1, 1, 1, 0, function, *values)  # noqa: B023, E731
                        rows[f"{name}: low-level launcher, {arguments}"] = measurement.per_call(low)
    podium.driver.unregister("fake")
    measurement.table("One launch, with a driver call that does nothing", "ns", rows)


def measure_cpu(measurement: Measurement) -> None:
    """Measure launches of one block of 32 threads on the CPU backend."""
    import numpy

    rows: dict[str, Sample] = {}
    with podium.use("cpu"):
        ours = [podium.asarray([1.0] * 32) for _ in range(3)]
        theirs = [numpy.ones(32, numpy.float32) for _ in range(3)]
        pointers = [array.ptr for array in ours]
        kernel = podium.kernel(ADD)
        rows["C loop over the kernel's entry"] = measurement.in_c(loop_over_entry(kernel, 32, *ours, 32))
        for name in ("generated", "interpreted"):
            with level(name):
                kernel = podium.kernel(ADD)
                kernel[1, 32](*ours, 32)
                launch = kernel[1, 32]
                for what, arrays in (("ints", pointers), ("podium arrays", ours), ("numpy arrays", theirs)):
                    call = lambda: launch(*arrays, 32)  # noqa: B023, E731
                    rows[f"{name}: launch with {what}"] = measurement.per_call(call)
    measurement.table("One launch of one block of 32 threads on the CPU backend, 3 arrays and 1 int", "µs", rows)


def processes(measurement: Measurement, code: str, **environment: str) -> Sample:
    """Run code in new processes; it prints the seconds it took, or nothing if all of the process counts."""
    variables = {**os.environ, **environment}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # users have their modules compiled
    samples = []
    for _ in range(measurement.processes):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
        samples.append(float(done.stdout) if done.stdout else time.perf_counter() - start)
    return statistics.median(samples), min(samples)


FIRST = f"""
import time
import podium
start = time.perf_counter()
kernel = podium.kernel({ADD!r})
a, b, c = (podium.asarray([1.0] * 32) for _ in range(3))
kernel[1, 32](a, b, c, 32)
podium.synchronize()
print(time.perf_counter() - start)
"""


def measure_start(measurement: Measurement) -> None:
    """Measure import, choice of the driver and first launches, each in new processes."""
    choose = "import podium, time; start = time.perf_counter(); podium.driver.resolve()"
    processes(Measurement(quick=True), choose)
    rows = {
        "bare Python, start to end": processes(measurement, ""),
        "import podium, start to end": processes(measurement, "import podium"),
        "choosing the driver, after the import": processes(
            measurement, f"{choose}; print(time.perf_counter() - start)"
        ),
        "of it pluggy, imported alone": processes(
            measurement, "import time; start = time.perf_counter(); import pluggy; print(time.perf_counter() - start)"
        ),
    }
    measurement.table("Start", "ms", rows)
    cold = []
    for _ in range(max(3, measurement.processes // 3)):
        with tempfile.TemporaryDirectory() as folder:
            one = Measurement(quick=True)
            one.processes = 1
            cold.append(processes(one, FIRST, PODIUM_BACKEND="cpu", PODIUM_CACHE_DIR=folder)[0])
    with tempfile.TemporaryDirectory() as folder:
        of_cpu = {"PODIUM_BACKEND": "cpu", "PODIUM_CACHE_DIR": folder}
        processes(measurement, FIRST.replace("podium.synchronize()", "kernel.warm_up()"), **of_cpu)
        warm = processes(measurement, FIRST, **of_cpu)
    compiler = processes(
        measurement,
        "import time\nfrom podium.backend import HostCompiler\ncompiler = HostCompiler.find('c++')\n"
        "start = time.perf_counter()\n"
        "compiler.compile({'empty.cpp': ''}, 'empty.cpp', ['-O3'])\nprint(time.perf_counter() - start)\n",
    )
    measurement.table(
        "First launch on the CPU backend, after the import",
        "ms",
        {
            "cold cache: read, compile with the host's C++ compiler, load, launch": (
                statistics.median(cold),
                min(cold),
            ),
            "the host's C++ compiler alone, for an empty file": compiler,
            "warm cache": warm,
        },
    )


def measure_compiler(measurement: Measurement) -> None:
    """Measure the host compiler for one launcher: with podium's declarations, and with Python's headers."""
    import resource
    import sysconfig

    from podium._extension import INCLUDE_DIR
    from podium._launcher_source import signature_source
    from podium.backend import Signature

    template = podium.driver.get("cpu").launcher_cls.template
    signature = Signature.parse("a: *fp32, b: *fp32, c: *fp32, n: i32")
    own = signature_source(signature.parameters, 0)
    common = template.read_text(encoding="utf-8")
    python = Path(sysconfig.get_path("include"))
    ways = {"with podium's declarations": [f"-DPODIUM_PYTHON_MINOR={sys.version_info.minor}"]}
    if (python / "Python.h").is_file():
        ways["with Python.h"] = ["-DPODIUM_USE_PYTHON_H", f"-I{python}"]
    compiler = HostCompiler.find("c")
    folders = [f"-I{each}" for each in (INCLUDE_DIR, template.parent, template.parent / "include")]
    flags = ["-std=c11", "-O2", "-fvisibility=hidden", "-fPIC", *folders]

    def seconds(call: Callable[[], object]) -> float:
        """Time on processors, which other programs change less than time on the clock."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        call()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    rows = {}
    for way, more in ways.items():
        arguments = {"common.c": common}, "common.c", [*flags, *more, "-c"]
        objects = {"common.o": compiler.run(*arguments).data}
        steps = {
            "once on a machine, what all signatures have": lambda: compiler.run(*arguments),  # noqa: B023
            "for each signature": lambda: compiler.compile({"l.c": own}, "l.c", [*flags, *more], objects=objects),  # noqa: B023
        }
        for step, call in steps.items():
            samples = [seconds(call) for _ in range(measurement.processes)]
            rows[f"{step}, {way}"] = statistics.median(samples), min(samples)
    empty = [seconds(lambda: compiler.compile({"e.c": ""}, "e.c", flags)) for _ in range(measurement.processes)]
    rows["an empty file"] = statistics.median(empty), min(empty)
    measurement.table("The host compiler for one launcher, time on processors", "ms", rows)


def main() -> None:
    """Measure everything, print tables, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="take a tenth of the samples")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "launch.json", help="the JSON file")
    options = parser.parse_args()
    measurement = Measurement(options.quick)
    about = {
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "processor": podium.driver.get("cpu").devices()[0].name,
        "cores": os.cpu_count(),
        "compiler": HostCompiler.find("c").version,
        "podium": podium.__version__,
    }
    print("; ".join(f"{name} {value}" for name, value in about.items()))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PODIUM_CACHE_DIR"] = folder
        library = loops()
        measure_nothing(measurement, library)
        measure_cpu(measurement)
        measure_start(measurement)
        measure_compiler(measurement)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({"about": about, "results": measurement.results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
