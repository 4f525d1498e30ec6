"""Scratch memory: sized by the launch, aligned, from the right allocator, and never a null pointer by accident."""

from __future__ import annotations

import gc
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
from fake_launching import Pair, load, make_launcher

import podium
from podium.errors import OutOfResourcesError, ScratchError
from podium.testing import FakeArray, FakeDriver, RecordedLaunch


def addresses(launch: RecordedLaunch, count: int = 1) -> list[int]:
    return [int.from_bytes(each, "little") for each in launch.parameters[-count:]]


@pytest.mark.parametrize(
    ("metadata", "grid", "size"),
    [
        ({}, (1, 1, 1), 100),
        ({}, (3, 1, 1), 300),
        ({}, (3, 5, 7), 10_500),
        ({"num_ctas": 2}, (3, 5, 1), 3000),
        ({"cluster": (2, 1, 1)}, (4, 1, 1), 400),
        ({}, (2147483647, 1, 1), 214748364700),
    ],
)
def test_the_size_is_per_block(metadata: dict[str, Any], grid: tuple[int, int, int], size: int) -> None:
    """SCR-05: scratch memory is the size per block times all blocks, clusters included, without overflow."""
    asked: list[tuple[int, int, int]] = []

    def allocator(size: int, alignment: int, stream: int) -> int:
        asked.append((size, alignment, stream))
        return 4096

    both = Pair("i32", global_scratch_size=100, global_scratch_align=64, **metadata)
    with podium.use_allocator(allocator):
        (launch,) = both.same(1, grid=grid, stream=5)
    assert asked == [(size, 64, 5)] * 2
    assert addresses(launch) == [4096]


def test_no_allocator_is_needed(level: str) -> None:
    """SCR-01: the driver's own allocator serves by default, on the device of the launch."""
    asked: list[tuple[int, int, int, int]] = []

    class Asked(FakeDriver):
        def allocate(self, size: int, alignment: int, device: int, stream: int | None) -> Any:
            asked.append((size, alignment, device, stream))
            return super().allocate(size, alignment, device, stream)

    driver = Asked()
    launcher = make_launcher(driver, "*fp32", global_scratch_size=10, global_scratch_align=128)
    launcher(2, 1, 1, 9, load(driver, launcher.signature), FakeArray(64, 1))
    assert asked == [(20, 128, 1, 9)]
    (address,) = addresses(driver.launches[0])
    assert address and address % 128 == 0


def test_two_kinds_of_scratch() -> None:
    """Global scratch comes before the profiler's; one of size zero is a null pointer that nobody allocates."""
    both = Pair("i32", global_scratch_size=8, profile_scratch_size=16, profile_scratch_align=32)
    taken = iter(range(4096, 1 << 20, 4096))
    with podium.use_allocator(lambda size, alignment, stream: next(taken)):
        outcomes = both.outcomes(7)
    assert [addresses(launches[0], 2) for launches in outcomes] == [[4096, 8192], [12288, 16384]]
    none = Pair("i32", global_scratch_size=0, profile_scratch_size=0)
    with podium.use_allocator(lambda size, alignment, stream: 1 // 0):
        (launch,) = none.same(7)
    assert len(launch.parameters) == 3 and addresses(launch, 2) == [0, 0]
    assert len(Pair("i32").same(7)[0].parameters) == 1


def test_an_empty_grid_allocates_nothing() -> None:
    """GRD-03: nothing is launched, so nothing is allocated."""
    both = Pair("i32", global_scratch_size=8)
    with podium.use_allocator(lambda size, alignment, stream: 1 // 0):
        assert both.same(1, grid=(0, 1, 1)) == []


@pytest.mark.parametrize(
    "buffer",
    [4096, SimpleNamespace(ptr=4096), SimpleNamespace(data_ptr=lambda: 4096), SimpleNamespace(ptr=4096, data_ptr=None)],
)
def test_what_an_allocator_may_return(buffer: Any) -> None:
    """An address, an object with ptr, or an array with data_ptr()."""
    both = Pair("i32", global_scratch_size=8, global_scratch_align=16)
    with podium.use_allocator(lambda size, alignment, stream: buffer):
        assert addresses(both.same(1)[0]) == [4096]


@pytest.mark.parametrize(
    ("buffer", "words"),
    [
        (None, "NoneType, which is no address"),
        ("4096", "str, which is no address"),
        (True, "bool, which is no address"),
        (4096.0, "float, which is no address"),
        (SimpleNamespace(ptr="x"), "which is no address"),
        (SimpleNamespace(data_ptr=lambda: None), "which is no address"),
        (-4096, "which is no address"),
        (1 << 64, "which is no address"),
        (0, "a null pointer"),
        (SimpleNamespace(ptr=0), "a null pointer"),
        (4097, "0x1001, which is not aligned to 16"),
    ],
)
def test_what_it_may_not_return(buffer: Any, words: str) -> None:
    """SCR-05: a launch whose scratch cannot be had is refused with size and alignment, never made with a null pointer."""
    both = Pair("i32", global_scratch_size=8, global_scratch_align=16)
    for launcher in both.launchers.values():
        with (
            podium.use_allocator(lambda size, alignment, stream: buffer),
            pytest.raises(ScratchError, match=words) as caught,
        ):
            launcher(3, 1, 1, 0, both.function, 1)
        assert (caught.value.kernel, caught.value.size, caught.value.alignment) == ("k", 24, 16)
    assert both.driver.launches == []


def test_an_allocator_that_raises(level: str) -> None:
    """What the allocator raises reaches the caller, and nothing is launched."""
    driver = FakeDriver()
    launcher = make_launcher(driver, "i32", global_scratch_size=1 << 20)
    function = load(driver, launcher.signature)
    with podium.use_allocator(lambda size, alignment, stream: 1 // 0), pytest.raises(ZeroDivisionError):
        launcher(1, 1, 1, 0, function, 1)
    with pytest.raises(OutOfResourcesError, match="memory in bytes"):
        launcher(1 << 20, 1, 1, 0, function, 1)
    assert driver.launches == []


def test_the_owner_lives_until_the_launch_is_issued(level: str) -> None:
    """SCR-06: the buffer that an allocator returned is alive while the driver launches, and dropped afterwards."""
    alive: list[bool] = []
    buffers: list[weakref.ref[Any]] = []

    class Buffer:
        ptr = 4096

    class Looking(FakeDriver):
        def _record(self, *args: Any) -> int:
            gc.collect()
            alive.append(buffers[-1]() is not None)
            return super()._record(*args)

    def allocator(size: int, alignment: int, stream: int) -> Buffer:
        buffer = Buffer()
        buffers.append(weakref.ref(buffer))
        return buffer

    driver = Looking()
    launcher = make_launcher(driver, "i32", global_scratch_size=8)
    function = load(driver, launcher.signature)
    with podium.use_allocator(allocator):
        launcher(1, 1, 1, 0, function, 1)
    assert alive == [True]
    gc.collect()
    assert buffers[0]() is None


def constant(address: int) -> Any:
    return lambda size, alignment, stream: address


def test_the_default_is_for_the_process_and_the_scope_for_the_thread(level: str) -> None:
    """SCR-02, SCR-03: threads see the process-wide allocator; a scoped one holds in its block and thread only, nested."""
    driver = FakeDriver()
    launcher = make_launcher(driver, "i32", global_scratch_size=8)
    function = load(driver, launcher.signature)

    def used() -> int:
        launcher(1, 1, 1, 0, function, 1)
        return addresses(driver.launches[-1])[0]

    podium.set_allocator(constant(100))
    assert used() == 100
    with podium.use_allocator(constant(200)):
        assert used() == 200
        results: list[int] = []
        thread = threading.Thread(target=lambda: results.append(used()))
        thread.start()
        thread.join()
        assert results == [100]
        with podium.use_allocator(constant(300)):
            assert used() == 300
        podium.set_allocator(constant(400))
        assert used() == 200
    assert used() == 400
    with pytest.raises(ZeroDivisionError), podium.use_allocator(constant(500)):
        raise ZeroDivisionError
    assert used() == 400
    podium.set_allocator(None)
    assert used() > 4096


def test_an_allocator_is_a_function() -> None:
    """What cannot be called is refused when it is set, not when it is needed."""
    for value in (5, "allocator", object()):
        with pytest.raises(TypeError, match="a function of size, alignment and stream"):
            podium.set_allocator(value)  # type: ignore[arg-type]
        with pytest.raises(TypeError), podium.use_allocator(value):  # type: ignore[arg-type]
            pass


def test_scratch_and_hooks(fake: FakeDriver, level: str) -> None:
    """With hooks, scratch is allocated for the launch alike."""
    launcher = make_launcher(fake, "i32", global_scratch_size=8)
    function = load(fake, launcher.signature)
    podium.hooks.enter.add(lambda event: None)
    with podium.use_allocator(constant(512)):
        launcher(1, 1, 1, 0, function, 1)
    assert addresses(fake.launches[0]) == [512]
