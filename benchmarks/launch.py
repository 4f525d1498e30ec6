"""What podium itself costs, without a device: launches whose driver call does nothing, and the start. See README.md."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from host_compiler import measure_compiler
from installed import measure_installed
from program import Program
from scale import measure_scale
from starting import measure_start

import podium
from podium._bench.chart import Line, line_chart
from podium._bench.comparison import compare
from podium._bench.level import pinned_level
from podium._bench.machine import about
from podium._bench.report import Report
from podium._bench.turns import Effort, Times, take_turns
from podium._bench.ways import bound, repeated, streamed, subscripted
from podium.backend import Function, HostCompiler, ObjectCode, SharedLibrary
from podium.testing import FakeArray, FakeDriver

HERE = Path(__file__).parent
PARTS = {
    "launch": "one launch, at both levels, with each kind of argument",
    "growth": "0 to 256 ints and tensors",
    "scale": "one kernel alone, one of ten thousand, and ten thousand in turn; one thousand if quick",
    "hooks": "with hooks, with a trace file, with debugging",
    "start": "import podium and the choice of the driver, beside a bare Python",
    "installed": "the choice of the driver among fifty installed backends",
    "compiler": "the host compiler's time for one launcher",
}

LAUNCHES = 500
"""Launches in one sample of the generated level; a hundredth of that at the interpreted one."""

COUNTS = (0, 1, 4, 16, 58, 256)
ARRAYS_AND_INT = "a: *fp32, b: *fp32, c: *fp32, n: i32"
LOOP = "C loop over the call, 4 parameters"
TENSORS = "3 arrays with DLPack's exchange table and 1 int"
LAUNCH_TARGET_NS, INT_TARGET_NS, TENSOR_TARGET_NS, INTERPRETED_TARGET_US = 300, 10, 50, 8

# The driver call that does nothing, and a loop in C over it.
LOOPS = r"""
#include <stdint.h>
#define EXPORT __attribute__((visibility("default")))

typedef int (*driver_call)(const void *shape, uint64_t stream, void **parameters, int count);

EXPORT int nothing(const void *shape, uint64_t stream, void **parameters, int count) {
    __asm__ volatile("" : : "r"(shape), "r"(stream), "r"(parameters), "r"(count) : "memory");
    return 0;
}

EXPORT void loop_nothing(uint64_t function, void **parameters, int count, int calls) {
    char shape[64] = {0};
    for (int i = 0; i < calls; i++) ((driver_call)(uintptr_t)function)(shape, 0, parameters, count);
}
"""

Way = Callable[[], object]


def main() -> int:
    """Measure what is asked for, print tables, write JSON and a picture."""
    program = Program(__doc__, "launch", PARTS)
    options = program.parse()
    effort = Effort(rounds=40 if options.quick else 400, sample_s=0, most_s=60)
    processes = 5 if options.quick else 25
    measure: dict[str, Callable[[Report], object]] = {
        "launch": lambda report: measure_launch(report, effort),
        "growth": lambda report: measure_growth(report, effort),
        "scale": lambda report: measure_scale(report, effort, kernel_at, 1000 if options.quick else 10_000),
        "hooks": lambda report: measure_hooks(report, effort),
        "start": lambda report: measure_start(report, processes),
        "installed": lambda report: measure_installed(report, processes),
        "compiler": lambda report: measure_compiler(report, processes),
    }
    podium.driver.register(nothing_driver())
    podium.set_active("fake")
    program.run(options, lambda: about(podium.driver.get("cpu")), measure)
    return 0


def nothing_driver() -> type[FakeDriver]:
    """Make the class of a fake driver with a driver call in C that does nothing."""
    nothing = loops().address("nothing")
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int)(nothing)

    class NothingDriver(FakeDriver):
        """The fake driver without its records."""

        def load(self, code: ObjectCode, name: str, device: int) -> Function:
            return Function(nothing)

        def unload(self, function: Function, device: int) -> None:
            """Do nothing: every kernel has the same function."""

        def launch(self, function: int, config: Any, device: int, stream: int, parameters: Any) -> int:
            return int(call(None, stream, parameters.addresses(), len(parameters.offsets)))

    return NothingDriver


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


def kernel_at(level: str, signature: str) -> podium.Kernel:
    """Make a kernel with its launcher at a level, ready for launches."""
    kernel = podium.kernel("void nothing() {}", "nothing", signature=signature)
    with pinned_level(level):
        kernel.warm_up()
    return kernel


def bind(kernel: podium.Kernel, values: Sequence[Any]) -> Callable[..., None]:
    """Give the launch of one block that a program keeps which has launched the kernel before."""
    kernel[1, 32](*values)
    return kernel[1, 32]


def in_turn(ways: Mapping[str, tuple[Way, int]], effort: Effort) -> Times:
    """Time ways that launch so many times a call."""
    return take_turns(
        {name: way for name, (way, _) in ways.items()}, effort, {name: count for name, (_, count) in ways.items()}
    )


def measure_launch(report: Report, effort: Effort) -> None:
    """Measure launches with all kinds of arguments; what is left is podium's own cost on the host."""
    library = loops()
    in_c = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)(
        library.address("loop_nothing")
    )
    nothing, parameters = library.address("nothing"), addresses(4)
    tensors = tuple(tensor_module().Tensor() for _ in range(3))
    ints = 4096, 8192, 12288, 8
    arguments: dict[str, tuple[str, tuple[Any, ...]]] = {
        "no argument": ("", ()),
        "3 pointers (ints) and 1 int": (ARRAYS_AND_INT, ints),
        TENSORS: (ARRAYS_AND_INT, (*tensors, 8)),
        "3 arrays of podium and 1 int": (ARRAYS_AND_INT, (*(podium.empty(4) for _ in range(3)), 8)),
        "3 arrays with __dlpack__ and 1 int": (ARRAYS_AND_INT, (*(FakeArray(4096) for _ in range(3)), 8)),
        "16 ints": (", ".join(f"i{i}: i32" for i in range(16)), tuple(range(16))),
        "16 floats": (", ".join(f"f{i}: fp32" for i in range(16)), tuple(map(float, range(16)))),
    }
    ways: dict[str, tuple[Way, int]] = {LOOP: (lambda: in_c(nothing, parameters, 4, 10 * LAUNCHES), 10 * LAUNCHES)}
    for level in ("generated", "interpreted"):
        count = LAUNCHES if level == "generated" else LAUNCHES // 100
        for what, (signature, values) in arguments.items():
            launch = bind(kernel_at(level, signature), values)
            way = bound(launch, count, *values) if len(values) == 4 else repeated(launch, count, *values)
            ways[f"{level}: launch, {what}"] = way, count
        kernel = kernel_at(level, ARRAYS_AND_INT)
        others = {
            "launch with stream=": streamed(bind(kernel, ints), 64, count, *ints),
            "kernel[grid, block]": subscripted(kernel, 1, 32, count, *ints),
            "low-level launcher": repeated(kernel.run, count, 1, 1, 1, 0, kernel.function, *ints),
        }
        ways |= {f"{level}: {what}, 3 pointers (ints) and 1 int": (way, count) for what, way in others.items()}
    times = in_turn(ways, effort)
    compare(report, "A driver call that does nothing", times, what="one launch", unit="ns", ours=list(ways)[1:])
    report.target(f"launch, {TENSORS}", LAUNCH_TARGET_NS, 1e9 * times.least(f"generated: launch, {TENSORS}"), "ns")
    interpreted = times.least("interpreted: launch, 3 pointers (ints) and 1 int")
    report.target("interpreted launch, 3 pointers and 1 int", INTERPRETED_TARGET_US, 1e6 * interpreted, "µs")


def addresses(count: int) -> Any:
    """Make an array of addresses of parameters, as drivers take them."""
    values = (ctypes.c_uint64 * max(1, count))()
    array = (ctypes.c_void_p * max(1, count))(*(ctypes.addressof(values) + 8 * i for i in range(count)))
    array.values = values
    return array


def measure_growth(report: Report, effort: Effort) -> None:
    """Measure how launches grow with the number of their arguments."""
    make = tensor_module().Tensor
    ways: dict[str, tuple[Way, int]] = {}
    for kind, type, values in (("ints", "i32", range(256)), ("tensors", "*fp32", [make() for _ in range(256)])):
        for count in COUNTS:
            kernel = kernel_at("generated", ", ".join(f"x{index}: {type}" for index in range(count)))
            launches = max(20, LAUNCHES // max(1, count // 4))
            launch = bind(kernel, values[:count])
            ways[f"{count} {kind}"] = repeated(launch, launches, *values[:count]), launches
    times = in_turn(ways, effort)
    kinds = "ints", "tensors"
    rows = [
        (
            f"{count}",
            *(f"{1e9 * figure(f'{count} {kind}'):.0f}" for kind in kinds for figure in (times.median, times.least)),
        )
        for count in COUNTS
    ]
    columns = ("arguments", "ints: median (ns)", "smallest (ns)", "tensors: median (ns)", "smallest (ns)")
    report.table("Growth with arguments", columns, rows, times.figures())
    lines = [
        Line(kind, [(count, 1e9 * times.median(f"{count} {kind}")) for count in COUNTS], colour)
        for colour, kind in enumerate(kinds)
    ]
    report.chart(line_chart("Growth with arguments, a driver call that does nothing", "arguments", "ns", lines))
    for kind, limit in (("int", INT_TARGET_NS), ("tensor", TENSOR_TARGET_NS)):
        further = (times.least(f"256 {kind}s") - times.least(f"1 {kind}s")) / 255
        report.target(f"each further {kind}, up to 256", limit, 1e9 * further, "ns")


def measure_hooks(report: Report, effort: Effort) -> None:
    """Measure what watching launches costs: hooks, a trace file, debugging."""
    ints = 4096, 8192, 12288, 8
    launch = bind(kernel_at("generated", ARRAYS_AND_INT), ints)
    count = LAUNCHES // 100
    once = bound(launch, count, *ints)

    def see(event: object) -> None:
        pass

    @contextmanager
    def hooked(both: bool) -> Iterator[None]:
        podium.hooks.enter.add(see)
        if both:
            podium.hooks.exit.add(see)
        try:
            yield
        finally:
            podium.hooks.enter.clear()
            podium.hooks.exit.clear()

    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace.json")

        def within(context: Callable[[], Any]) -> Way:
            def way() -> None:
                with context():
                    once()

            return way

        ways = {
            "no hook": (bound(launch, LAUNCHES, *ints), LAUNCHES),
            "an enter hook that does nothing": (within(lambda: hooked(False)), count),
            "an enter and an exit hook that do nothing": (within(lambda: hooked(True)), count),
            "debugging, which waits for each launch": (within(podium.debugging), count),
        }
        times = in_turn(ways, effort)
        with podium.trace(trace):
            traced = in_turn({"a trace file": (once, count)}, effort)
    samples = Times({**times.samples, **traced.samples})
    compare(
        report, "Watched launches", samples, what="3 pointers (ints) and 1 int", unit="ns", ours=list(samples.samples)
    )


if __name__ == "__main__":
    sys.exit(main())
