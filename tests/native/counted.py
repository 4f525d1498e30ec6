"""A program whose launches callgrind counts the instructions of: as many of each kind, then a call of `forget`.

    python counted.py LAUNCHES

The driver call does nothing. It prints the kinds in the order in which they are launched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import podium
from podium._extension import Extension
from podium.backend import Function, HostCompiler, ObjectCode, SharedLibrary
from podium.testing import FakeDriver

ROOT = Path(__file__).parents[2]
NOTHING = '__attribute__((visibility("default"))) int nothing(void) { return 0; }\n'


class NothingDriver(FakeDriver):
    """The fake driver, with a driver call in C that does nothing."""

    def __init__(self) -> None:
        super().__init__()
        code = HostCompiler.find("c").compile({"nothing.c": NOTHING}, "nothing.c", ["-O2"])
        self.nothing = SharedLibrary.from_bytes("podium_nothing", code).address("nothing")

    def load(self, code: ObjectCode, name: str, device: int) -> Function:
        return Function(self.nothing)

    def unload(self, function: Function, device: int) -> None:
        """Do nothing: every kernel has the same function."""


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


def main(launches: int) -> None:
    module = Extension("tensor", "podium_benchmark_tensor", (ROOT / "benchmarks" / "tensor.c").read_text()).build()
    module.Tensor.__dlpack_c_exchange_api__ = module.table
    tensors = [module.Tensor() for _ in range(16)]
    arrays = "x: *fp32, y: *fp32, z: *fp32, n: i32"
    looked_up = kernel(arrays)
    for grid in (1, 2):
        for _ in range(3):
            looked_up[grid, 32](None, None, None, 1)
    kinds: dict[str, Callable[[], object]] = {
        "no argument": bound(""),
        "16 ints": bound(", ".join(f"i{index}: i32" for index in range(16)), *range(16)),
        "3 tensors and an int": bound(arrays, *tensors[:3], 8),
        "16 tensors": bound(", ".join(f"x{index}: *fp32" for index in range(16)), *tensors),
        "3 tensors and an int, in a stream": bound(arrays, *tensors[:3], 8, stream=5),
        "3 arrays of podium and an int": bound(arrays, *(podium.empty(4) for _ in range(3)), 8),
        "kernel[grid, block] of the last launch": lambda: looked_up[1, 32],
    }
    launcher = looked_up.binding().launcher.generated
    launcher.forget()
    for name, work in kinds.items():
        for _ in range(launches):
            work()
        launcher.forget()
        sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    podium.driver.register(NothingDriver)
    podium.set_active("fake")
    main(int(sys.argv[1]))
