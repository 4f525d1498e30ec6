"""First launches on an NVIDIA GPU, in new processes: cold, warm, and beside NVRTC and the loading of code alone."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import podium
from podium._bench.processes import STEPS, add_steps, run_steps, whole_process
from podium._bench.report import Report
from podium._bench.turns import Times

__all__ = ["measure"]

KERNEL = r"""
extern "C" __global__ void NAME(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"""

FIRST, SECOND, THIRD = "first kernel", "second kernel", "third kernel, a new signature"
DEVICE = "initialising CUDA, its context"
DRIVER_BINDING, NVRTC_BINDING = "import cuda.bindings.driver", "import cuda.bindings.nvrtc"
CHOICE, LOADING = "choosing the driver", "loading the first kernel's code"
WHOLE = "all of it, from the first import to the first kernel"

BEGIN = f"KERNEL = {KERNEL!r}\nimport sys\n{STEPS}"
END = "\nprint(json.dumps(steps))"

PODIUM = f"""{BEGIN}
import podium
mark("import podium")
podium.driver.resolve()
mark({CHOICE!r})
arrays = [podium.asarray([1.0] * 32) for _ in range(3)]
podium.synchronize()
mark({DEVICE + ", three arrays"!r})
for which, signature in (({FIRST!r}, ""), ({SECOND!r}, ""), ({THIRD!r}, ", int m")):
    source = KERNEL.replace("NAME", "add_" + which.partition(" ")[0]).replace("int n", "int n" + signature)
    mark("")
    kernel = podium.kernel(source)
    kernel[1, 32](*arrays, 32, *([5] if signature else []))
    mark(which)
    if len(sys.argv) > 1:
        kernel.warm_up()  # a launcher is built from a second launch on: let there be one
podium.synchronize()
{END}"""

CHECK = """
def check(result):
    assert int(result[0]) == 0, result
    return result[1:]
"""

# The bindings are those that podium uses, and each import is a step of its own.
ALONE = f"""{BEGIN}{CHECK}
from cuda.bindings import driver
mark({DRIVER_BINDING!r})
check(driver.cuInit(0))
context, = check(driver.cuDevicePrimaryCtxRetain(0))
check(driver.cuCtxSetCurrent(context))
major, = check(driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0))
minor, = check(driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0))
mark({DEVICE!r})
from cuda.bindings import nvrtc
mark({NVRTC_BINDING!r})
for which in ({FIRST!r}, {SECOND!r}):
    name = "add_" + which.partition(" ")[0]
    program, = check(nvrtc.nvrtcCreateProgram(KERNEL.replace("NAME", name).encode(), b"k.cu", 0, [], []))
    options = [f"-arch=sm_{{major}}{{minor}}".encode(), b"-std=c++17"]
    check(nvrtc.nvrtcCompileProgram(program, len(options), options))
    size, = check(nvrtc.nvrtcGetCUBINSize(program))
    code = bytes(size)
    check(nvrtc.nvrtcGetCUBIN(program, code))
    library, = check(driver.cuLibraryLoadData(code, [], [], 0, [], [], 0))
    kernel, = check(driver.cuLibraryGetKernel(library, name.encode()))
    function, = check(driver.cuKernelGetFunction(kernel))
    mark(which)
{END}"""

LOAD = f"""{BEGIN}{CHECK}
from cuda.bindings import driver
code = open(sys.argv[1], "rb").read()
check(driver.cuInit(0))
context, = check(driver.cuDevicePrimaryCtxRetain(0))
check(driver.cuCtxSetCurrent(context))
mark({DEVICE!r})
library, = check(driver.cuLibraryLoadData(code, [], [], 0, [], [], 0))
kernel, = check(driver.cuLibraryGetKernel(library, b"add_first"))
function, = check(driver.cuKernelGetFunction(kernel))
mark({LOADING!r})
{END}"""

COLD, WARM, BARE, IMPORT = "podium, empty cache", "podium, full cache", "bare Python", "import podium"
BY_HAND = "cuda-python alone"


def measure(report: Report, processes: int) -> None:
    """Measure first launches, and say how they compare with what cannot be left out."""
    samples: dict[str, list[float]] = {}

    def add(kind: str, program: str, cache: str, *arguments: str) -> None:
        steps = run_steps(program, *arguments, environment={"PODIUM_CACHE_DIR": cache})
        steps.pop("", None)
        add_steps(samples, {f"{kind}: {name}": seconds for name, seconds in steps.items()})

    with tempfile.TemporaryDirectory() as folder:
        warm, cubin = f"{folder}/warm", Path(folder, "kernel.cubin")
        cubin.write_bytes(podium.kernel(KERNEL.replace("NAME", "add_first")).compile().code)
        run_steps(PODIUM, "warm up", environment={"PODIUM_CACHE_DIR": warm})
        for number in range(processes):
            add(COLD, PODIUM, f"{folder}/cold-{number}")
            add(WARM, PODIUM, warm)
            add(BY_HAND, ALONE, warm)
            add(BY_HAND, LOAD, warm, str(cubin))
            for name in (BARE, IMPORT):
                seconds = whole_process("pass" if name == BARE else name, {"PODIUM_CACHE_DIR": warm})
                add_steps(samples, {f"whole process: {name}": seconds})
    _add_sums(samples)
    times = Times(samples)
    rows = [(name, f"{1e3 * times.median(name):.1f}", f"{1e3 * times.least(name):.1f}") for name in samples]
    report.table(
        "First launches, each in a new process", ("what", "median (ms)", "smallest (ms)"), rows, times.figures()
    )
    _say_targets(report, times)


# What a user waits for is more than the last step, since what one program does in it another does before.
SUMS = {
    f"{COLD}: {WHOLE}": (
        COLD,
        (IMPORT, CHOICE, f"{DEVICE}, three arrays", FIRST),
    ),
    f"{BY_HAND}: {WHOLE}": (BY_HAND, (DRIVER_BINDING, DEVICE, NVRTC_BINDING, FIRST)),
    f"{BY_HAND}: {FIRST}, with NVRTC's binding": (BY_HAND, (NVRTC_BINDING, FIRST)),
    f"{BY_HAND}: {FIRST}, with both bindings": (BY_HAND, (DRIVER_BINDING, NVRTC_BINDING, FIRST)),
}


def _add_sums(samples: dict[str, list[float]]) -> None:
    def total(kind: str, steps: Iterable[str]) -> list[float]:
        return [sum(each) for each in zip(*(samples[f"{kind}: {step}"] for step in steps))]

    samples |= {name: total(kind, steps) for name, (kind, steps) in SUMS.items()}


def _say_targets(report: Report, times: Times) -> None:
    cold, warm = times.median(f"{COLD}: {FIRST}"), times.median(f"{WARM}: {FIRST}")
    for bindings in (", with NVRTC's binding", ""):
        ratio = cold / times.median(f"{BY_HAND}: {FIRST}{bindings}")
        report.target(f"first kernel, empty cache / NVRTC and loading alone{bindings}", 1.1, ratio, "times")
    report.target("first kernel, empty cache", 55, 1e3 * cold, "ms")
    whole = times.median(f"{COLD}: {WHOLE}") / times.median(f"{BY_HAND}: {WHOLE}")
    report.target("the whole start, empty cache / with cuda-python alone", 1.1, whole, "times")
    signature = times.median(f"{COLD}: {THIRD}") / times.median(f"{BY_HAND}: {SECOND}")
    report.target("new signature, empty cache / NVRTC and loading alone", 1.1, signature, "times")
    beyond = warm - times.median(f"{BY_HAND}: {LOADING}")
    report.target("first kernel, full cache, beyond loading", 5, 1e3 * beyond, "ms")
    over = times.beside(f"whole process: {IMPORT}", f"whole process: {BARE}")
    report.target("import podium over bare Python", 30, 1e3 * over, "ms")
    report.target(CHOICE, 20, 1e3 * times.median(f"{WARM}: {CHOICE}"), "ms")
