"""The driver's launch call in other ways, and what stands between two of them, in loops in C. A part of gpu.py."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

from floor import CUDA
from launch_peers import Arguments

import podium
from podium._bench.comparison import compare
from podium._bench.report import Report
from podium._bench.turns import Effort, take_turns
from podium._extension import Extension
from podium._tensor_reader import tensor_reader

from podium_nvidia import libcuda

__all__ = ["measure"]

SOURCE = Path(__file__).parent / "gpu" / "calls.c"
LAUNCHES, BLOCK = 50, 32
VERSION = 13000
PLAIN = "cuLaunchKernel, a CUkernel, kernelParams"
WAYS = {
    PLAIN: 0,
    "the address by cuGetProcAddress": 1,
    "its CUfunction in the context": 2,
    "one buffer of parameters, in `extra`": 3,
    "its CUfunction, and one buffer": 4,
    "the default stream by its handle, 1": 5,
    "another stream": 6,
    "cuLaunchKernelEx": 7,
    "the interpreter lock let go of and taken back": 8,
    "torch asked for three tensors": 9,
    "torch asked for the current stream": 10,
    "torch asked for both": 11,
    "torch asked for both, the lock let go of": 12,
    "three tensors of torch read as podium does": 13,
}
"""Ways by their numbers in calls.c; those from `OF_TORCH` on ask a library that has an exchange table."""

OF_TORCH, READ = 9, 13


def measure(report: Report, effort: Effort, kernel: podium.Kernel) -> None:
    """Measure launches with three pointers and an int, each beside the plain one in the same round."""
    arguments = Arguments.of_torch()
    table = getattr(type(arguments.tensors[0]), "__dlpack_c_exchange_api__", None)
    library, stream, handle = libcuda.library(), podium.Stream(), kernel.load()
    found, status, function = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_void_p()
    _check(library.cuGetProcAddress_v2(b"cuLaunchKernel", ctypes.byref(found), VERSION, 0, ctypes.byref(status)))
    call, extended = (_address(getattr(library, name)) for name in ("cuLaunchKernel", "cuLaunchKernelEx"))
    module: Any = Extension("benchmark", "podium_benchmark_calls", SOURCE.read_text(encoding="utf-8")).build()
    kernel[1, BLOCK](*arguments.tensors, arguments.n)  # which makes the context current
    _check(library.cuKernelGetFunction(ctypes.byref(function), ctypes.c_void_p(handle)))
    numbers = (call, found.value, extended, handle, function.value, BLOCK, stream.handle)
    reader = tensor_reader(type(arguments.tensors[0]))
    module.setup((*numbers, *arguments.addresses, arguments.n, CUDA), *arguments.tensors, table, reader)
    loop = module.loop

    def clocked(number: int) -> Callable[[], object]:
        return lambda: LAUNCHES * loop(number, LAUNCHES)

    missing = {number for number in WAYS.values() if number >= OF_TORCH and table is None}
    missing |= {READ} if reader is None else set()
    ways = {name: clocked(number) for name, number in WAYS.items() if number not in missing}
    times = take_turns(ways, effort, dict.fromkeys(ways, LAUNCHES), podium.synchronize, clocked=ways)
    sample = f"one is {LAUNCHES} launches"
    compare(report, "The driver's call", times, what="in a loop in C", reference=(PLAIN, "plain"), sample=sample)


def _check(status: int) -> None:
    """Raise RuntimeError for a status of the driver: what a row is about would not be what its name says."""
    if status:
        raise RuntimeError(f"the CUDA driver gave status {status} where another way to launch was looked up")


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
