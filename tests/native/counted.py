"""A program whose launches callgrind counts the instructions of: as many of each kind, then a call of `forget`.

    python counted.py LAUNCHES [nvidia]

It prints the kinds in the order in which they are launched. callgrind looks on from the first of them: until then, and
without callgrind, the program is a plain one. The fake driver's call does nothing; on the recording CUDA
driver the calls of the driver are there, and whoever counts leaves them out.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "core"))

from torchlike import as_torch, torchlike

import podium
from podium._extension import Extension
from podium.backend import Function, HostCompiler, ObjectCode, SharedLibrary
from podium.testing import FakeDriver

ROOT = Path(__file__).parents[2]
ARRAYS = "x: *fp32, y: *fp32, z: *fp32, n: i32"
INSTRUMENTED = """#include <valgrind/callgrind.h>
__attribute__((visibility("default"))) void instrumented(void) { CALLGRIND_START_INSTRUMENTATION; }
"""
MANY = ", ".join(f"x{index}: *fp32" for index in range(16))
NOTHING = '__attribute__((visibility("default"))) int nothing(void) { return 0; }\n'


class NothingDriver(FakeDriver):
    """The fake driver, with a driver call in C that does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.nothing = address("nothing", NOTHING)

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        return Function(self.nothing)

    def unload(self, function: Function, device: int) -> None:
        """Do nothing: every kernel has the same function."""


def address(name: str, source: str) -> int:
    """Return the address of a function in C."""
    code = HostCompiler.find("c").compile({"source.c": source}, "source.c", ["-O2"])
    return SharedLibrary.from_bytes(f"podium_{name}", code).address(name)


def kernel(parameters: str) -> podium.Kernel:
    """Make a kernel whose launches go to C from the first one on."""
    return podium.kernel("void nothing() {}", "nothing", signature=parameters)


def bound(parameters: str, *arguments: Any, **keywords: Any) -> Callable[[], object]:
    """Make a function that launches a bound kernel."""
    made = kernel(parameters)
    for _ in range(3):
        made[1, 32](*arguments, **keywords)
    launch = made[1, 32]
    return lambda: launch(*arguments, **keywords)


def tensors(macros: str = "") -> list[Any]:
    """Make arrays of a library with DLPack's exchange table."""
    source = macros + (ROOT / "benchmarks" / "tensor.c").read_text()
    module = Extension("tensor", "podium_benchmark_tensor", source).build()
    module.Tensor.__dlpack_c_exchange_api__ = module.table
    return [module.Tensor() for _ in range(16)]


def read_tensors() -> list[Any]:
    """Make tensors of a library in the place of PyTorch, which are read without their table."""
    library: Any = torchlike()
    with as_torch(library):
        x = [library.Tensor() for _ in range(16)]
        bound(MANY, *x)()
    return x


def fake_kinds() -> tuple[dict[str, Callable[[], object]], podium.Kernel]:
    """Return launches on the fake driver, and a kernel among them."""
    podium.driver.register(NothingDriver)
    podium.set_active("fake")
    x = tensors()
    looked_up = kernel(ARRAYS)
    for grid in (1, 2):
        for _ in range(3):
            looked_up[grid, 32](None, None, None, 1)
    return {
        "no argument": bound(""),
        "16 ints": bound(", ".join(f"i{index}: i32" for index in range(16)), *range(16)),
        "3 tensors and an int": bound(ARRAYS, *x[:3], 8),
        "16 tensors": bound(MANY, *x),
        "16 tensors of a library like PyTorch": bound(MANY, *read_tensors()),
        "3 tensors and an int, in a stream": bound(ARRAYS, *x[:3], 8, stream=5),
        "3 arrays of podium and an int": bound(ARRAYS, *(podium.empty(4) for _ in range(3)), 8),
        "kernel[grid, block] of the last launch": lambda: looked_up[1, 32](None, None, None, 1),
    }, looked_up


def nvidia_kinds() -> tuple[dict[str, Callable[[], object]], podium.Kernel]:
    """Return launches on the recording CUDA driver, and a kernel among them."""
    sys.path.insert(0, str(ROOT / "tests"))
    from recording.cuda.library import Recording

    Recording()
    podium.set_active("nvidia")
    x = tensors("#define DEVICE_TYPE 2\n#define STREAM 0\n")
    made = podium.kernel('extern "C" __global__ void add(float *a, float *b, float *c, int n) {}')
    stream = podium.Stream()
    for _ in range(3):
        made[1, 32](*x[:3], 8)
    launch, (a, b, c) = made[1, 32], x[:3]
    with podium.capture() as graph:
        for _ in range(20):
            launch(a, b, c, 8)
    graph.replay()
    replay = graph.replay  # the generated one from now on
    return {
        "nvidia: 3 tensors and an int": lambda: launch(a, b, c, 8),
        "nvidia: 3 tensors and an int, in a stream": lambda: launch(a, b, c, 8, stream=stream.handle),
        "nvidia: 3 addresses and an int": lambda: launch(64, 128, 256, 8),
        "nvidia: kernel[grid, block] with 3 tensors and an int": lambda: made[1, 32](a, b, c, 8),
        "nvidia: replay of a graph": replay,
    }, made


def main(launches: int, *backend: str) -> None:
    kinds, made = nvidia_kinds() if backend else fake_kinds()
    launcher = made.binding().launcher.generated
    ctypes.CFUNCTYPE(None)(address("instrumented", INSTRUMENTED))()
    launcher.forget()
    for name, work in kinds.items():
        for _ in range(launches):
            work()
        launcher.forget()
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
