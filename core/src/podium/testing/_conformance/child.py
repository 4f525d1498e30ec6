"""What programs of the suite use that run in a process of their own."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import podium
import podium.errors
from podium.backend import Driver
from podium.errors import UnknownBackendError

__all__ = ["ADD", "add_kernel", "adopt", "launch_add", "range_of", "show_compiles"]

ADD = 'extern "C" __global__ void add(int* x, int a) { x[blockIdx.x * blockDim.x + threadIdx.x] += a; }'


def adopt(module_name: str, qualified_name: str, file: str | None) -> type[Driver]:
    """Import the driver class under test, and register it if no distribution provides it."""
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError:
        if file is None:
            raise
        spec = importlib.util.spec_from_file_location(module_name, file)
        if spec is None or spec.loader is None:
            raise
        module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    driver_class: type[Driver] = attrgetter(qualified_name)(module)
    try:
        podium.driver.get(driver_class.name)
    except UnknownBackendError:
        podium.driver.register(driver_class)
    return driver_class


def add_kernel() -> podium.Kernel:
    """Declare a small kernel that adds a number to each element of an array of ints."""
    return podium.kernel(ADD, "add", signature="x: *i32, a: i32")


def launch_add(executes: bool, kernel: podium.Kernel | None = None, amount: int = 5) -> None:
    """Launch the kernel of `add_kernel` once, and check its result if the backend executes."""
    x = podium.asarray(range_of(8))
    (kernel or add_kernel())[2, 4](x, amount)
    podium.synchronize()
    if executes:
        expected = [value + amount for value in range_of(8)]
        if x.tolist() != expected:
            raise AssertionError(f"{x.tolist()} instead of {expected}")


def range_of(count: int) -> list[int]:
    """Return some ints."""
    return list(range(count))


def show_compiles() -> list[Any]:
    """Collect the compile events from now on."""
    events: list[Any] = []
    append: Callable[[Any], None] = events.append
    podium.hooks.compile.add(append)
    return events
