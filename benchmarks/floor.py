"""What a launch with arrays of a library cannot be below: the library's own functions, and the driver's call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import podium
from podium._extension import Extension

from podium_nvidia import libcuda

__all__ = ["FROM_C", "FROM_PYTHON", "floor_ways"]

SOURCE = Path(__file__).parent / "gpu" / "floor.c"
CUDA = 2

FROM_C = "C loop over torch's exchange functions and cuLaunchKernel"
FROM_PYTHON = "the same in a function called from Python, without the lock"


def floor_ways(
    kernel: podium.Kernel, tensors: tuple[Any, Any, Any], n: int, block: int, launches: int
) -> dict[str, Callable[[], object]]:
    """Launch a loaded kernel with nothing but what tells where tensors are: in a loop in C, and in one in Python.

    Nothing, where their type has no exchange table.
    """
    table = getattr(type(tensors[0]), "__dlpack_c_exchange_api__", None)
    if table is None:
        return {}
    module: Any = Extension("benchmark", "podium_benchmark_floor", SOURCE.read_text(encoding="utf-8")).build()
    call = ctypes.cast(libcuda.library().cuLaunchKernel, ctypes.c_void_p).value
    module.setup(call, kernel.load(), block, CUDA, table)
    a, b, c = tensors
    launch = module.launch

    def from_python() -> None:
        for _ in range(launches):
            launch(a, b, c, n)

    return {FROM_C: lambda: module.loop(a, b, c, n, launches), FROM_PYTHON: from_python}
