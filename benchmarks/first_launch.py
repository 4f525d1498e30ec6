"""First launches on an NVIDIA GPU, in new processes: cold, warm, and beside NVRTC and the loading of code alone."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from podium._bench.report import Report

__all__ = ["measure"]

KERNEL = r"""
extern "C" __global__ void NAME(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""

# What all programs do before the clock starts: the driver is initialised and its context made.
BEGIN = f"""
import json, sys, time
KERNEL = {KERNEL!r}
times = {{}}
def clock(name, start):
    times[name] = time.perf_counter() - start
"""

PODIUM = (
    BEGIN
    + """
start = time.perf_counter(); import podium; clock("import podium", start)
start = time.perf_counter(); driver = podium.driver.resolve(); clock("choosing the driver", start)
start = time.perf_counter(); arrays = [podium.asarray([1.0] * 32) for _ in range(3)]; podium.synchronize()
clock("initialising the driver, its context, three arrays", start)
for which, signature in (("first kernel", ""), ("second kernel", ""), ("third kernel, a new signature", ", int m")):
    source = KERNEL.replace("NAME", "add_" + which.partition(" ")[0]).replace("int n", "int n" + signature)
    start = time.perf_counter()
    kernel = podium.kernel(source)
    kernel[1, 32](*arrays, 32, *([5] if signature else []))
    clock(which, start)
    if len(sys.argv) > 1:
        kernel.warm_up()  # a launcher is built from a second launch on: let there be one
podium.synchronize()
print(json.dumps(times))
"""
)

ALONE = (
    BEGIN
    + """
from cuda.bindings import driver
def check(result):
    assert int(result[0]) == 0, result
    return result[1:]
check(driver.cuInit(0))
context, = check(driver.cuDevicePrimaryCtxRetain(0))
check(driver.cuCtxSetCurrent(context))
major, = check(driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0))
minor, = check(driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0))
for which in ("first kernel", "second kernel"):
    name = "add_" + which.partition(" ")[0]
    start = time.perf_counter()
    from cuda.bindings import nvrtc
    program, = check(nvrtc.nvrtcCreateProgram(KERNEL.replace("NAME", name).encode(), b"k.cu", 0, [], []))
    options = [f"-arch=sm_{major}{minor}".encode(), b"-std=c++17"]
    check(nvrtc.nvrtcCompileProgram(program, len(options), options))
    size, = check(nvrtc.nvrtcGetCUBINSize(program))
    code = bytes(size)
    check(nvrtc.nvrtcGetCUBIN(program, code))
    library, = check(driver.cuLibraryLoadData(code, [], [], 0, [], [], 0))
    kernel, = check(driver.cuLibraryGetKernel(library, name.encode()))
    function, = check(driver.cuKernelGetFunction(kernel))
    clock(which, start)
print(json.dumps(times))
"""
)

LOAD = (
    BEGIN
    + """
from cuda.bindings import driver
code = open(sys.argv[1], "rb").read()
driver.cuInit(0)
_, context = driver.cuDevicePrimaryCtxRetain(0)
driver.cuCtxSetCurrent(context)
start = time.perf_counter()
_, library = driver.cuLibraryLoadData(code, [], [], 0, [], [], 0)
_, kernel = driver.cuLibraryGetKernel(library, b"add_first")
status, function = driver.cuKernelGetFunction(kernel)
assert int(status) == 0
clock("loading alone", start)
print(json.dumps(times))
"""
)


def measure(report: Report, processes: int) -> None:
    """Measure first launches, and say how they compare with what cannot be left out."""
    rows: dict[str, dict[str, list[float]]] = {"cold": {}, "warm": {}, "alone": {}, "load": {}, "start": {}}
    with tempfile.TemporaryDirectory() as warm, tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        _run(PODIUM, warm, "warm up")
        _write_cubin(cubin.name)
        for _ in range(processes):
            with tempfile.TemporaryDirectory() as cold:
                _add(rows["cold"], _run(PODIUM, cold))
            _add(rows["warm"], _run(PODIUM, warm))
            _add(rows["alone"], _run(ALONE, warm))
            _add(rows["load"], _run(LOAD, warm, cubin.name))
            for name, code in (("bare Python", "pass"), ("import podium", "import podium")):
                start = time.perf_counter()
                subprocess.run([sys.executable, "-c", code], check=True, env=_environment(warm))
                _add(rows["start"], {name: time.perf_counter() - start})
    medians = {
        kind: {name: statistics.median(values) for name, values in found.items()} for kind, found in rows.items()
    }
    table = [
        (f"{titles[kind]}: {name}", f"{1e3 * seconds:.1f}", f"{1e3 * min(rows[kind][name]):.1f}")
        for kind, found in medians.items()
        for name, seconds in found.items()
    ]
    report.table("First launches, each in a new process", ("what", "median (ms)", "smallest (ms)"), table, rows)
    cold, warm_start, alone = medians["cold"], medians["warm"], medians["alone"]
    report.target(
        "first launch of a new kernel, cold, / NVRTC and loading alone",
        1.1,
        cold["first kernel"] / alone["first kernel"],
        "times",
    )
    report.target(
        "new signature, cold, / NVRTC and loading alone",
        1.1,
        cold["third kernel, a new signature"] / alone["second kernel"],
        "times",
    )
    beyond = warm_start["first kernel"] - medians["load"]["loading alone"]
    report.target("first launch, warm disk cache, beyond loading", 5, 1e3 * beyond, "ms")
    start = medians["start"]
    report.target("import podium over bare Python", 30, 1e3 * (start["import podium"] - start["bare Python"]), "ms")
    report.target("choosing the driver", 20, 1e3 * warm_start["choosing the driver"], "ms")


titles = {
    "cold": "podium, empty cache",
    "warm": "podium, full cache",
    "alone": "NVRTC and loading alone",
    "load": "the driver",
    "start": "whole process",
}


def _add(found: dict[str, list[float]], times: dict[str, float]) -> None:
    for name, seconds in times.items():
        found.setdefault(name, []).append(seconds)


def _environment(cache: str) -> dict[str, str]:
    variables = {**os.environ, "PODIUM_CACHE_DIR": cache, "PODIUM_LAUNCHER": "auto"}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # users have their modules compiled
    return variables


def _run(code: str, cache: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=_environment(cache), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    times: dict[str, Any] = json.loads(done.stdout)
    return times


def _write_cubin(path: str) -> None:
    import podium

    kernel = podium.kernel(KERNEL.replace("NAME", "add_first"))
    with open(path, "wb") as file:
        file.write(kernel.compile().code)
