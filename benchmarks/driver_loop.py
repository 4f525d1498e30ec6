"""The loops in C over the CUDA driver's calls: what every launch and every replay is measured against."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import podium
from podium.backend import HostCompiler, SharedLibrary

from podium_nvidia import libcuda

__all__ = ["DriverLoop", "loop_over_graph"]

SOURCE = Path(__file__).parent / "gpu" / "launches.c"


@lru_cache(maxsize=1)
def _library() -> SharedLibrary:
    code = HostCompiler.find("c").compile({"launches.c": SOURCE.read_text()}, "launches.c", ["-O2", "-pthread"])
    return SharedLibrary.from_bytes("podium_benchmark_launches", code)


class DriverLoop:
    """Launches a loaded kernel from C: one block, with pointers and at most one int behind them."""

    def __init__(self, kernel: podium.Kernel, addresses: Sequence[int], n: int | None, stream: int, block: int) -> None:
        cuda = libcuda.library()
        values = [*addresses] if n is None else [*addresses, n]
        self._values = (ctypes.c_uint64 * max(1, len(values)))(*values)
        base = ctypes.addressof(self._values)
        self._parameters = (ctypes.c_void_p * max(1, len(values)))(*(base + 8 * i for i in range(len(values))))
        self._stream, self._block, self._function = stream, block, kernel.load()
        self._call = ctypes.cast(cuda.cuLaunchKernel, ctypes.c_void_p).value
        self._set_context = ctypes.cast(cuda.cuCtxSetCurrent, ctypes.c_void_p).value
        current = ctypes.c_void_p()
        cuda.cuCtxGetCurrent(ctypes.byref(current))
        self._context = current.value or 0
        number, pointer = ctypes.c_uint64, ctypes.c_void_p
        types = (number, number, number, ctypes.c_uint32, pointer, ctypes.c_int)
        self._loop = ctypes.CFUNCTYPE(ctypes.c_double, *types)(_library().address("loop_over_launch"))
        types = (number, number, number, number, pointer, ctypes.c_int, ctypes.c_uint32, pointer, ctypes.c_int)
        self._threads = ctypes.CFUNCTYPE(ctypes.c_double, *types)(_library().address("loop_in_threads"))

    def __call__(self, calls: int) -> float:
        """Launch so many times; return the seconds of one. Raises RuntimeError with the driver's status."""
        return _checked(self._loop(self._call, self._function, self._stream, self._block, self._parameters, calls))

    def in_threads(self, streams: Sequence[int], calls: int) -> float:
        """Launch so many times on each stream, each in a thread of its own; return the seconds divided by `calls`."""
        handles = (ctypes.c_uint64 * len(streams))(*streams)
        fixed = (self._call, self._set_context, self._context, self._function)
        return _checked(self._threads(*fixed, handles, len(streams), self._block, self._parameters, calls))


def loop_over_graph(graph: int, stream: int) -> Callable[[int], float]:
    """Make a function that launches a graph so many times, and returns the seconds of one."""
    number = ctypes.c_uint64
    loop = ctypes.CFUNCTYPE(ctypes.c_double, number, number, number, ctypes.c_int)(
        _library().address("loop_over_graph")
    )
    call = ctypes.cast(libcuda.library().cuGraphLaunch, ctypes.c_void_p).value
    return lambda calls: _checked(loop(call, graph, stream, calls))


def _checked(seconds: float) -> float:
    if seconds < 0:
        raise RuntimeError(f"the loop in C ended with CUDA status {-seconds:.0f}")
    return seconds
