"""What a CUDA driver answers to calls, as lines that can be compared with those of another driver.

A line has a status, and what came beside it as far as it can be the same on two machines: numbers and texts, and of
handles and addresses only that they are there.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

SOURCE = b"""
struct pair { double a; int b[3]; };
__device__ int counter; __device__ float table[16] = {1, 2}; __constant__ float weights[8]; __managed__ int shared_int;
extern "C" __global__ void nothing() {}
extern "C" __global__ void fill(int *x, int value, char c, pair p, double d) {
    if (x) x[threadIdx.x] = value + c + p.b[1] + (int)d + counter + (int)table[3] + (int)weights[2] + shared_int;
}
extern "C" __global__ void dynamic(int *x) {
    extern __shared__ int s[]; __shared__ float t[32];
    if (!x) return; /* as in all launches here */
    s[threadIdx.x] = 1; t[threadIdx.x & 31] = 2; __syncthreads();
    x[threadIdx.x] = s[threadIdx.x ^ 1] + t[3];
}
extern "C" __global__ void __launch_bounds__(128) bounded(int *x) { if (x) x[0] = 1; }
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(int *x) { if (x) x[0] = 1; }
#endif
"""


class Answers:
    """What the calls of a group have answered, in their order."""

    def __init__(self) -> None:
        """Open the library that the variable names before cuda-python opens any."""
        path = os.environ.get("PODIUM_NVIDIA_LIBCUDA")
        if path:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        from cuda.bindings import driver

        self.driver: Any = driver
        self.lines: list[tuple[str, str]] = []

    def __call__(self, label: str, result: tuple[Any, ...]) -> Any:
        """Note what a call answered, and return what came beside the status."""
        status, *values = result
        shown = [] if status else list(map(_shown, values))
        self.lines.append((label, " ".join([status.name.removeprefix("CUDA_ERROR_"), *shown])))
        return values[0] if len(values) == 1 else values

    def both(self, label: str, result: tuple[Any, ...]) -> tuple[Any, Any]:
        """Note what a call answered, and return its status too."""
        return result[0], self(label, result)

    def context(self, device: int = 0) -> Any:
        """Make the primary context current."""
        self.driver.cuInit(0)
        _, context = self.driver.cuDevicePrimaryCtxRetain(device)
        self.driver.cuCtxSetCurrent(context)
        return context

    def library(self) -> tuple[Any, bytes]:
        """Load the kernels, and return the library with its cubin."""
        from cuda.bindings import nvrtc

        driver = self.driver
        major = driver.cuDeviceGetAttribute(driver.CUdevice_attribute(75), 0)[1]
        minor = driver.cuDeviceGetAttribute(driver.CUdevice_attribute(76), 0)[1]
        _, program = nvrtc.nvrtcCreateProgram(SOURCE, b"calls.cu", 0, [], [])
        (status,) = nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture=sm_{major}{minor}".encode()])
        assert status == 0, status
        code = bytes(nvrtc.nvrtcGetCUBINSize(program)[1])
        nvrtc.nvrtcGetCUBIN(program, code)
        return driver.cuLibraryLoadData(code, [], [], 0, [], [], 0)[1], code


def _shown(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float)):
        if hasattr(value, "name"):
            return str(value.name)
        return "large" if isinstance(value, int) and value > 1 << 40 else str(value)
    if isinstance(value, bytes):
        return value.rstrip(b"\0 ").decode(errors="replace")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_shown, value)) + "]"
    try:
        return type(value).__name__ + (" NULL" if int(value) == 0 else "")
    except TypeError:
        return type(value).__name__


GROUPS: dict[str, Callable[[Answers], None]] = {}
"""Calls that are made in one process, by the name of the function."""


def group(function: Callable[[Answers], None]) -> Callable[[Answers], None]:
    """Put a function among the groups."""
    GROUPS[function.__name__] = function
    return function
