"""A program that drives generated launchers through all that they do, for the tools that watch memory.

    python exercise.py ROUNDS [TEMPLATE]

With a template it launches at the end one kernel of the fake driver through that template.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["PODIUM_LAUNCHER"] = "generated"
sys.path.insert(0, str(Path(__file__).parents[1] / "core"))
warnings.simplefilter("error")

from fake_launching import (  # noqa: E402
    INTERFACES,
    SCALARS,
    InterfaceArray,
    exchange,
    exchange_type,
    host_driver_class,
    knowing_driver_class,
    load,
    make_launcher,
)
from torchlike import as_torch, torchlike  # noqa: E402

import podium  # noqa: E402
from podium.errors import PodiumError  # noqa: E402
from podium.testing import FakeArray, FakeDriver  # noqa: E402

failures = launches = 0


def attempt(call: Callable[..., object], *args: Any, **keywords: Any) -> None:
    """Call, and count how it ended; only errors that podium or a hostile argument raises on purpose may come out."""
    global failures, launches
    try:
        call(*args, **keywords)
        launches += 1
    except (PodiumError, TypeError, ZeroDivisionError, OverflowError, IndexError, AttributeError):
        failures += 1


class Hostile:
    """It raises, or lies, wherever it is asked."""

    def __index__(self) -> int:
        raise ZeroDivisionError

    __float__ = __index__  # type: ignore[assignment]


class Lying:
    def __index__(self) -> str:  # type: ignore[override]
        return "five"


class Emptying:
    """An array that drops, while it is asked, what the launch was given."""

    def __init__(self, holder: list[object]) -> None:
        self.holder = holder

    def __dlpack_device__(self) -> tuple[int, int]:
        self.holder.clear()
        gc.collect()
        return 12, 0

    def __dlpack__(self, **keywords: Any) -> Any:
        return FakeArray(64).__dlpack__(**keywords)


def scalars(driver: FakeDriver) -> None:
    launcher = make_launcher(driver, {f"p_{name}": name for name in SCALARS})
    function = load(driver, launcher.signature)
    good: list[Any] = [True, 1, 2, 3, 4, 5, 6, 7, 8, 0.5, 0.25, 1.5, 2.5]
    odd: list[Any] = [
        2**63,
        -1,
        2**64,
        10**400,
        1e300,
        float("nan"),
        float("inf"),
        5e-324,
        None,
        "x",
        Hostile(),
        Lying(),
        True,
    ]
    attempt(launcher, 1, 1, 1, 0, function, *good)
    for position in range(len(good)):
        for value in odd:
            attempt(launcher, 1, 1, 1, 0, function, *good[:position], value, *good[position + 1 :])
    for count in range(len(good) + 3):
        attempt(launcher, 1, 1, 1, 0, function, *(good * 2)[:count])
    for value in (0, -1, 2**31, 2**32, 2**64, "x", None, 1.5):
        attempt(launcher, value, 1, 1, 0, function, *good)
        attempt(launcher, 1, 1, 1, value, function, *good)
        if not isinstance(value, int) or value <= 0:
            attempt(launcher, 1, 1, 1, 0, value, *good)
    attempt(launcher.generated)
    attempt(launcher.generated, 1, 2, 3, x=4)


def structs(driver: FakeDriver) -> None:
    launcher = make_launcher(
        driver, {"a": "i8", "s": "{fp32,i32}", "o": "opaque[128,64]", "f": "{fp32,fp32}@16", "c": "constexpr"}
    )
    function = load(driver, launcher.signature)
    attempt(launcher, 1, 1, 1, 0, function, 1, bytes(8), bytes(128), (ctypes.c_float * 4)(), object())
    for value in (bytes(7), bytes(200), "x", None, 5, Hostile()):
        attempt(launcher, 1, 1, 1, 0, function, 1, value, bytes(128), bytes(16), None)
        attempt(launcher, 1, 1, 1, 0, function, 1, bytes(8), value, bytes(16), None)


def arrays(driver: FakeDriver) -> None:
    kernel = podium.kernel("__global__ void k(float* x, const float* y, int n) {}")
    launch = kernel.binding(driver).get((2, 3))
    Library, Silent = exchange_type(), exchange_type(1)
    strange = [
        None, 64, 2**64 - 1, 2**64, -1, True, 1.5, "x", FakeArray(64), FakeArray(64, 1), FakeArray(64, 99), Library(), Silent(),
        Library(device_type=1), Library(shape=(2, 2), strides=(1, 2)), Library(strides=(1,), outcome=1),
        Library(strides=(1,), outcome=2), Hostile(), Lying(), bytearray(4), exchange_type(2)(), exchange_type(3)(),
    ]  # fmt: skip
    for outcome in (0, 1, 2):
        exchange().set_stream(outcome, 900)
        for x in strange:
            for y in (None, FakeArray(32), Library(device=1)):
                attempt(launch, x, y, 1)
    attempt(launch, None, x=None)
    attempt(launch, None, y=None, n=1)
    attempt(launch, None, None, 1, stream=5, shared=16)
    attempt(launch, None, None, 1, stream="x")
    holder: list[object] = [FakeArray(64), FakeArray(64)]
    attempt(launch, Emptying(holder), None, 1)
    for index in range(40):  # more types than the C code keeps
        attempt(launch, type("Passing", (FakeArray,), {})(64 * index), exchange_type(index % 4)(), 1)
    kernel.unload()
    attempt(launch, FakeArray(64), FakeArray(64), 1)
    del kernel, launch
    gc.collect()


def tensors(driver: FakeDriver) -> None:
    library = torchlike()
    with as_torch(library):
        launch = podium.kernel("__global__ void k(float* x, const float* y, int n) {}").binding(driver).get((2, 3))
        plain = library.Tensor()
        odd = [{"trouble": number} for number in range(4)] + [{"element": "float8_e5m2"}, {"contiguous": False}]
        given = [library.Tensor(**each) for each in (*odd, {"device": 1}, {"device_type": 1}, {"data": 0})]
        given += [library.nn.Parameter(plain), type("Tensor", (library.Tensor,), {"__slots__": ()})()]
        for mode in range(5):
            library._C.pretend(mode)
            for tensor in given:
                attempt(launch, plain, tensor, 1)
                attempt(launch, tensor, plain, 1)
                attempt(launch, tensor, tensor, "x")
    library._C.pretend(0)


def host(driver: FakeDriver) -> None:
    launcher = make_launcher(driver, {"x": "*fp32", "y": "*kfp32", "n": "i32"}, contiguous=True)
    function = load(driver, launcher.signature)
    block = (ctypes.c_float * 6)()
    view = memoryview(bytearray(24))
    for x in (
        block,
        view,
        view[::2],
        view[::-1],
        b"read only",
        bytearray(0),
        ctypes.c_void_p(5),
        (ctypes.py_object * 1)(1),
        "x",
        5,
    ):
        attempt(launcher, 1, 1, 1, 0, function, x, x, 1)
        attempt(launcher, 1, 1, 1, 0, function, x, x, "n")
    view.release()
    attempt(launcher, 1, 1, 1, 0, function, view, None, 1)


def scratch(driver: FakeDriver) -> None:
    launcher = make_launcher(
        driver, "*fp32, i32", global_scratch_size=64, global_scratch_align=256, profile_scratch_size=8
    )
    function = load(driver, launcher.signature)
    attempt(launcher, 4, 1, 1, 0, function, FakeArray(64), 1)
    attempt(launcher, 2**31 - 1, 1, 1, 0, function, FakeArray(64), 1)
    for buffer in (0, None, 5, -256, 2**64, "x", Hostile()):
        with podium.use_allocator(lambda size, alignment, stream, buffer=buffer: buffer):  # type: ignore[misc]
            attempt(launcher, 4, 1, 1, 0, function, FakeArray(64), 1)
    with podium.use_allocator(lambda size, alignment, stream: 1 // 0):
        attempt(launcher, 4, 1, 1, 0, function, FakeArray(64), 1)


def watched(driver: FakeDriver) -> None:
    launch = podium.kernel("__global__ void k(float* x, int n) {}").binding(driver).get((1, 1))
    for value in (1, "x"):
        for raising in (False, True):
            hook = (lambda event: 1 // 0) if raising else (lambda event: None)
            for chain in (podium.hooks.enter, podium.hooks.exit):
                chain.add(hook)
                attempt(launch, FakeArray(64), value)
                attempt(launch, 64, n=value)
                chain.remove(hook)
    with podium.debugging():
        driver.sync_status = 7
        attempt(launch, None, 1)
    for status in (1, -1, 2**31 - 1):
        driver.next_status = status
        attempt(launch, FakeArray(64, 1), 1)


class Stream:
    """A stream whose method gives anything."""

    def __init__(self, pair: Any) -> None:
        self.pair = pair

    def __cuda_stream__(self) -> Any:
        return self.pair() if callable(self.pair) else self.pair


def lookups(driver: FakeDriver) -> None:
    with podium.use(driver):
        kernel = podium.kernel("__global__ void k(float* x, int n) {}")
        array = podium.empty(4)
        sizes: list[Any] = [
            1,
            2,
            (3, 4),
            (5, 6, 7),
            2**20,
            1.0,
            True,
            None,
            "x",
            (),
            (1, 2.0),
            [1],
            -1,
            2**70,
            Hostile(),
        ]
        streams: list[Any] = [
            None, 5, 2**64 - 1, 2**64, -1, "x", podium.Stream(), Stream((0, 5)), Stream((1, 5)), Stream((0,)),
            Stream((0, -1)), Stream(5), Stream(lambda: 1 // 0), Hostile(), True,
        ]  # fmt: skip
        for _ in range(2):
            for grid in sizes:
                for block in sizes:
                    attempt(lambda grid, block: kernel[grid, block](array, 1), grid, block)
            for key in sizes:
                attempt(lambda key: kernel[key](array, 1), key)
            for stream in streams:
                attempt(kernel[1, 1], array, 1, stream=stream)
                attempt(kernel[1, 1], array, stream=stream)
                attempt(kernel[1, 1], FakeArray(64, 1), "n", stream=stream)
        binding = kernel.binding()
        kind = type(binding.shortcut)
        for arguments in ((), (5,), (driver, {}), (driver, 5), (driver, binding._launches)):
            attempt(kind, *arguments)
        kernel._shortcut = kind(driver, 5)  # not a table: nothing is found in it
        attempt(lambda: kernel[(9, 9), 1](array, 1))
        binding._launches.clear()
        attempt(lambda: kernel[1, 1](array, 1))
    attempt(lambda: podium.kernel("__global__ void k(float* x, int n) {}")[1, 1])


def interfaces(driver: FakeDriver) -> None:
    launcher = make_launcher(knowing_driver_class()(), "*fp32, *kfp32, i32")
    function = load(launcher.driver, launcher.signature)
    for fields in INTERFACES:
        for other in ({}, {"address": 2**40}, {"stream": 9}):
            attempt(launcher, 1, 1, 1, 0, function, InterfaceArray(**fields), InterfaceArray(**other), 1)
            attempt(launcher, 1, 1, 1, 0, function, InterfaceArray(**other), InterfaceArray(**fields), "n")


def wrong_owners(driver: FakeDriver) -> None:
    launcher = make_launcher(driver, "*fp32, i32")
    launcher.promote()
    kind, launch_kind = type(launcher.generated), launcher._launch_type
    for arguments in ((), (5,), (driver,), (launcher.packer,)):
        attempt(kind, *arguments)
    for arguments in ((), (5, 6, 7, 8), (launcher.generated, 1, 2, 3), (launcher.generated, 1, 2, launcher)):
        attempt(launch_kind, *arguments)
    del launcher
    gc.collect()


def one_template(template: Path) -> None:
    """Launch through a template of the caller's: a wrong one must be noticed by the tool that watches."""

    class Other(FakeDriver.launcher_cls):  # type: ignore[name-defined, misc]
        pass

    Other.template = template

    class OtherDriver(FakeDriver):
        launcher_cls = Other

    driver = OtherDriver()
    launcher = make_launcher(driver, "i32, i32, i32")
    launcher(1, 1, 1, 0, load(driver, launcher.signature), 1, 2, 3)


def main() -> None:
    for _ in range(int(sys.argv[1])):
        driver = FakeDriver()
        for part in (scalars, structs, arrays, tensors, scratch, watched, lookups, interfaces, wrong_owners):
            part(driver)
        host(host_driver_class()())
        gc.collect()
    print(f"{launches} launches, {failures} failures", flush=True)
    if len(sys.argv) > 2:
        print("the template", file=sys.stderr, flush=True)
        one_template(Path(sys.argv[2]))
        print("survived")


if __name__ == "__main__":
    main()
