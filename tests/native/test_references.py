"""Nothing leaks: reference counts, blocks of memory and objects are after many launches what they were before."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "core"))

from fake_launching import (
    INTERFACES,
    SCALARS,
    InterfaceArray,
    exchange_type,
    host_driver_class,
    knowing_driver_class,
    load,
    make_launcher,
)
from torchlike import as_torch, torchlike

import podium
from podium import _generated
from podium.errors import ArgumentError, LaunchConfigError, LaunchError
from podium.testing import FakeArray, FakeDriver

MANY = 5_000
SOME = 400


class Quiet(FakeDriver):
    """A driver that keeps no record, so that memory says something about podium."""

    def _record(self, *args: Any) -> int:
        status, self.next_status = self.next_status, 0
        return status


@pytest.fixture
def driver() -> FakeDriver:
    return Quiet()


def counts(objects: list[Any]) -> list[int]:
    return [sys.getrefcount(each) for each in objects]


def unchanged(objects: list[Any], work: Callable[[], object], times: int) -> None:
    """Work many times, and require that each object has exactly as many references as after the first times.

    Everything refers to None, which is let go of with objects that other tests have left, before Python 3.12 made it
    immortal; of None, a leak would show once for each time.
    """
    for _ in range(50):
        work()
    gc.collect()
    before = counts(objects)
    for _ in range(times):
        work()
    gc.collect()
    changes = [after - each for after, each in zip(counts(objects), before)]
    most = [times // 4 if each is None else 0 for each in objects]
    assert all(abs(change) <= bound for change, bound in zip(changes, most)), changes


GOOD: dict[str, Any] = {
    **{name: 5 for name in SCALARS if name[0] in "iu"},
    **{name: 5.5 for name in SCALARS if name[0] in "fb"},
    "i1": True,
    "*fp32": 2**70 // 2**8,
    "*kfp32": None,
    "{fp32,i32}": bytes(8),
    "constexpr": object(),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_arguments_of_every_type(driver: FakeDriver, level: str, name: str) -> None:
    """HKS-05: twenty thousand launches change no reference count: of the argument, the launcher, None, the types."""
    launcher = make_launcher(driver, name)
    function = load(driver, launcher.signature)
    launcher(1, 1, 1, 0, function, GOOD[name])
    value = GOOD[name]
    call = launcher.generated or launcher
    objects = [value, launcher, call, type(call), None, True, function, driver]
    unchanged(objects, lambda: call(1, 1, 1, 0, function, value), MANY if level == "generated" else SOME)


SLOW: list[tuple[str, Any]] = [
    ("i32", "text"),
    ("i32", 2**40),
    ("i32", object()),
    ("u8", -1),
    ("fp32", None),
    ("fp16", 10**400),
    ("{fp32,i32}", bytes(9)),
    ("*fp32", 1.5),
    ("*fp32", 2**64),
    ("*fp32", FakeArray(64, 1)),
    ("*fp32", exchange_type),
    ("*fp32", ctypes.c_void_p(5)),
    ("fp64", ctypes.c_float(1)),
]


@pytest.mark.parametrize("index", range(len(SLOW)))
def test_arguments_of_the_slow_path_and_wrong_ones(driver: FakeDriver, level: str, index: int) -> None:
    """HKS-05: arguments that Python converts, and those that raise, leave no reference behind."""
    name, value = SLOW[index]
    value = value()() if value is exchange_type else value
    launcher = make_launcher(driver, [name, "*fp32"])
    function = load(driver, launcher.signature)
    other = FakeArray(128)

    def work() -> None:
        try:
            launcher(1, 1, 1, 0, function, value, other)
        except ArgumentError:
            pass

    unchanged([value, other, launcher, launcher.generated, type(value), None, driver], work, SOME)


def test_arrays_that_c_asks(level: str) -> None:
    """HKS-05: arrays that are asked through methods, what they answer, and what they are told are released again."""
    driver = type("Quiet", (Quiet, knowing_driver_class()), {})()
    kernel = podium.kernel("__global__ void k(float* x, const float* y, int n) {}")
    launch = kernel.binding(driver).get((1, 1))
    launch(None, None, 1)
    launch = kernel.binding(driver).get((1, 1))
    exported, interfaces = FakeArray(64), [InterfaceArray(**fields) for fields in INTERFACES]
    answers = [each.fields for each in interfaces]

    def work() -> None:
        for array in (exported, *interfaces):
            try:
                launch(array, exported, 1)
                launch(exported, array, 1, stream=3)
            except (ArgumentError, ZeroDivisionError):
                pass

    unchanged([exported, *interfaces, *answers, launch, driver, None], work, SOME // 4)


def test_tensors_that_c_reads(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """HKS-05: tensors that are read by the functions of their library, and those that cannot be, keep no reference."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
    with as_torch(torchlike()) as library:
        launcher = make_launcher(driver, "*fp32, *kfp32, i32", contiguous=True)
        function = load(driver, launcher.signature)
        plain, parameter = library.Tensor(), library.nn.Parameter(library.Tensor())
        others = [library.Tensor(**each) for each in ({"trouble": 2}, {"contiguous": False}, {"device": 1})]

        def work() -> None:
            for tensor in (plain, parameter, *others):
                try:
                    launcher(1, 1, 1, 0, function, plain, tensor, 1)
                except (ArgumentError, TypeError):
                    pass

        types = [library.Tensor, library.nn.Parameter]
        unchanged([plain, parameter, *others, *types, launcher.generated, driver, None], work, SOME // 4)


def test_bound_launches_with_and_without_hooks(driver: FakeDriver, level: str) -> None:
    """HKS-05: hooks, those that raise too, and their events are released after each launch."""
    kernel = podium.kernel("__global__ void k(float* x, int n) {}")
    launch = kernel.binding(driver).get((1, 1))
    launch(None, 1)
    launch = kernel.binding(driver).get((1, 1))
    array, number, events = FakeArray(64), 2**40 // 2**12, []
    own, stream, grid = podium.empty(4, driver=driver), podium.Stream(driver=driver), (1, 2)

    def hook(event: Any) -> None:
        if not events:
            events.append(weakref.ref(event))

    def raising(event: Any) -> None:
        raise ZeroDivisionError

    def work() -> None:
        try:
            launch(array, number)
            launch(array, n=number)
            launch(array, number, stream=5)
            launch(array, number, stream=stream)
            launch(own, number)
            with podium.use(driver):
                kernel[1, 1](array, number)
                kernel[grid, 1](own, number, stream=stream)
        except ZeroDivisionError:
            pass

    objects = [
        kernel,
        launch,
        array,
        own,
        stream,
        grid,
        number,
        hook,
        raising,
        None,
        driver,
        kernel.binding(driver),
        kernel.binding(driver).launcher,
    ]
    unchanged(objects, work, SOME)
    for chain in (podium.hooks.enter, podium.hooks.exit):
        chain.add(hook)
        unchanged(objects, work, SOME)
        chain.add(raising)
        unchanged(objects, work, SOME // 2)
        chain.clear()
    gc.collect()
    assert events[0]() is None
    unchanged(objects, work, SOME)


def test_replays_and_updates(level: str) -> None:
    """LIF-04: a replay keeps nothing, an update lets go of what it replaces, and a graph of all that it has."""
    driver = FakeDriver()
    kernel, array, own = podium.kernel("__global__ void k(float* x, int n) {}"), FakeArray(64), FakeArray(128)
    number, stream = 2**40 // 2**12, podium.Stream(driver=driver)
    with podium.use(driver):
        kernel.load()
        with podium.capture() as graph:
            kernel[1, 1](array, number)
        graph.replay()
        graph.replay()
        (launch,) = graph.launches

        def work() -> None:
            driver.launches.clear()
            graph.replay()
            graph()
            graph.replay(stream=stream)
            with contextlib.suppress(TypeError):
                graph.replay(stream="x")
            launch.update(own, number)
            launch.update(x=array)

        def capture() -> None:
            driver.launches.clear()
            with podium.capture() as made:
                kernel[1, 1](own, number)
            made.replay()
            made.replay()

        objects = [kernel, array, own, number, stream, graph, graph.replay, launch, driver]
        unchanged([*objects, None], work, SOME // 4)
        unchanged(objects, capture, SOME // 4)
        assert len(driver.graphs) == 1


def test_statuses_scratch_and_grids_that_fail(driver: FakeDriver, level: str) -> None:
    """HKS-05: failing launches release everything that they had gathered before they failed."""
    launcher = make_launcher(driver, "*fp32, i32", global_scratch_size=16, profile_scratch_size=16)
    function = load(driver, launcher.signature)
    array, buffer = FakeArray(64), FakeArray(4096)
    buffer.ptr = 4096  # type: ignore[attr-defined]
    state = {"buffer": buffer, "grid": 1, "status": 0}

    def work() -> None:
        driver.next_status = state["status"]  # type: ignore[assignment]
        try:
            with podium.use_allocator(lambda size, alignment, stream: state["buffer"]):
                launcher(state["grid"], 1, 1, 0, function, array, 1)  # type: ignore[arg-type]
        except (LaunchError, LaunchConfigError, podium.errors.ScratchError):  # type: ignore[attr-defined]
            pass

    objects = [launcher, launcher.generated, array, buffer, None, driver]
    for change in ({}, {"buffer": None}, {"grid": -1}, {"grid": 2**40}, {"grid": 0}, {"status": 9}):
        state.update({"buffer": buffer, "grid": 1, "status": 0, **change})  # type: ignore[dict-item]
        unchanged(objects, work, SOME // 2)


def test_buffers_are_released(level: str) -> None:
    """A host array can be resized after a hundred launches: each one gave the buffer back, the failing ones too."""
    driver = host_driver_class()()
    launcher = make_launcher(driver, "*fp32, i32")
    function = load(driver, launcher.signature)
    value = bytearray(64)
    for index in range(100):
        try:
            launcher(1, 1, 1, 0, function, value, "n" if index % 2 else 1)
        except ArgumentError:
            pass
        value.append(1)
    assert len(value) == 164


@pytest.mark.parametrize("watched", [False, True])
def test_memory_stays_flat(driver: FakeDriver, level: str, watched: bool) -> None:
    """Scale: after many launches with varying values Python has no more memory than before them."""
    kernel = podium.kernel("__global__ void k(float* x, int n, double a, float* y) {}")
    binding = kernel.binding(driver)
    arrays = [FakeArray(64 * index, index % 2) for index in range(1, 9)]
    Library = exchange_type()
    if watched:
        podium.hooks.enter.add(lambda event: None)

    def work(times: int) -> None:
        for index in range(times):
            launch = binding.get((index % 7 + 1, 32))
            launch(arrays[index % 8], index, index / 3, None)
            launch(Library(64 * index), index, 0.5, 2**40 + index)

    work(1000)
    gc.collect()
    tracemalloc.start()
    try:
        work(500)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        work(2000)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 40_000  # one leaked object of the smallest kind at each launch would be 64 000


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="this system does not tell the size of a process there"
)
def test_the_process_stays_flat(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scale: a million plain launches leave the process as it was: nothing leaks in C, where tracemalloc sees nothing."""
    monkeypatch.setenv("PODIUM_LAUNCHER", "generated")
    launcher = make_launcher(driver, "i32, fp64")
    launcher.promote()
    call = launcher.generated
    # a function of the C library stands in for the recorder: it finds no number at the start of what it is given
    function = ctypes.cast(ctypes.CDLL(None).atoi, ctypes.c_void_p).value

    def work() -> None:
        for index in range(200_000):
            call(index % 7 + 1, 1, 1, 0, function, index, 0.5)

    work()
    gc.collect()
    before = resident()
    for _ in range(4):
        work()
    gc.collect()
    assert resident() - before < 4 << 20  # sixteen bytes at each launch would be 12 MiB


def test_launchers_and_types_do_not_pile_up(driver: FakeDriver, level: str) -> None:
    """LIF-04: kernels that come and go leave neither launchers nor types nor modules behind."""

    def cycle(count: int) -> None:
        for index in range(count):
            kernel = podium.kernel(
                f"__global__ void k(float* x, int n{index}) {{}}", "k", signature=f"x: *fp32, n{index}: i32"
            )
            launch = kernel.binding(driver).get((1, 1))
            launch(None, 1)
            launch(None, 1, stream=3)
        del kernel, launch
        gc.collect()

    cycle(30)
    objects = gc.get_objects()
    kinds = sum(isinstance(each, type) for each in objects)
    launchers = sum(
        type(each).__name__ in ("Launcher", "FakeLauncher", "Launch", "Kernel", "Binding") for each in objects
    )
    builds, loaded = len(_generated._builds), len(driver.loaded)
    del objects
    cycle(60)
    objects = gc.get_objects()
    assert sum(isinstance(each, type) for each in objects) <= kinds + 2
    assert (
        sum(type(each).__name__ in ("Launcher", "FakeLauncher", "Launch", "Kernel", "Binding") for each in objects)
        == launchers
    )
    assert len(_generated._builds) == builds and len(driver.loaded) == loaded == 0


def test_a_leak_would_be_seen() -> None:
    """The proof that the tests above can fail: one reference kept by each launch is noticed."""
    kept: list[object] = []
    value = object()
    with pytest.raises(AssertionError):
        unchanged([value], lambda: kept.append(value), SOME)
