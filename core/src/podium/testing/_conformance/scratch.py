"""Scratch memory: what a compiler asks for beside the arguments."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest

import podium
from podium.backend import Driver
from podium.errors import ScratchError
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Scratch"]

_SIZE, _ALIGNMENT = 48, 64
_SOURCE = """
extern "C" __global__ void work(int* out, int* scratch, int* profile) {
    int* own = scratch + 12 * blockIdx.x;
    for (int i = 0; i < 12; i++) own[i] = blockIdx.x + i;
    int sum = 0;
    for (int i = 0; i < 12; i++) sum += own[i];
    out[blockIdx.x] = sum;
    WHERE
}
"""
# As two words each, so that integers of 64 bits need not be known.
_WHERE = """if (blockIdx.x == 0) {
        *(int**)(out + gridDim.x + gridDim.x % 2) = scratch;
        *(int**)(out + gridDim.x + gridDim.x % 2 + 2) = profile;
    }"""


@contract("Scratch")
class Scratch(Subject):
    """``global_scratch_size`` and ``profile_scratch_size`` of the launcher's metadata."""

    def launch(self, driver: Driver, blocks: int, **metadata: Any) -> tuple[int, int] | None:
        """Launch over some blocks; return the addresses of both scratches as the kernel got them, if they are seen."""
        source = _SOURCE.replace("WHERE", _WHERE if self.capabilities.addresses else "")
        kernel = podium.kernel(source, "work", signature="out: *i32, scratch: *i32, profile: *i32")
        sizes = {"global_scratch_size": _SIZE, "global_scratch_align": _ALIGNMENT, "profile_scratch_size": 0}
        src = SimpleNamespace(signature={"out": "*i32"}, constants={})
        launcher = driver.launcher_cls(src, {"name": "work", "block": 1, **sizes, **metadata}, driver)
        even = blocks + blocks % 2
        out = podium.asarray([0] * (even + 4))
        self.stream = driver.current_stream(driver.current_device())
        launcher(blocks, 1, 1, self.stream, kernel.load(), out)
        podium.synchronize()
        found: tuple[int, int] | None = None
        if self.capabilities.executes:
            assert out.tolist()[:blocks] == [sum(block + i for i in range(_SIZE // 4)) for block in range(blocks)]
            if self.capabilities.addresses:
                found = struct.unpack("=QQ", out.tobytes()[4 * even :])
        if self.capabilities.records:
            passed = self.last(driver).parameters
            assert len(passed) == 3 and passed[0] == struct.pack("=Q", out.ptr)
            found = struct.unpack("=Q", passed[1])[0], struct.unpack("=Q", passed[2])[0]
        return found

    @pytest.mark.needs("observes")
    @pytest.mark.parametrize("blocks", [1, 37])
    def test_the_driver_allocates_it(self, driver: Driver, level: Level, blocks: int) -> None:
        """Without an allocator of the user's the driver provides it: aligned, and for every block.

        Rows SCR-01, SCR-05.
        """
        found = self.launch(driver, blocks)
        if found is not None:
            address, profile = found
            assert address > 0 and address % _ALIGNMENT == 0
            assert profile == 0, "a size of 0 is passed as a null pointer"

    @pytest.mark.needs("observes")
    def test_the_users_allocator_is_asked(self, driver: Driver, level: Level) -> None:
        """An allocator in force is asked for size times blocks, the alignment and the stream, once a launch.

        Rows SCR-03.
        """
        asked: list[tuple[int, int, int]] = []
        kept: list[Any] = []

        def allocator(size: int, alignment: int, stream: int) -> Any:
            asked.append((size, alignment, stream))
            kept.append(driver.allocate(size, alignment, driver.current_device(), stream))
            return kept[-1]

        with podium.use_allocator(allocator):
            found = self.launch(driver, 5)
        assert asked == [(_SIZE * 5, _ALIGNMENT, self.stream)]
        assert found is None or found[0] == kept[0].ptr
        self.launch(driver, 2)
        assert len(asked) == 1

    @pytest.mark.needs("observes")
    def test_an_allocator_for_the_process(self, driver: Driver, level: Level) -> None:
        """`set_allocator` holds in every thread, and None gives it back to the driver.

        Rows SCR-02.
        """
        from threading import Thread

        kept: list[Any] = []

        def allocator(size: int, alignment: int, stream: int) -> int:
            kept.append(driver.allocate(size, alignment, driver.current_device(), stream))
            return int(kept[-1].ptr)

        podium.set_allocator(allocator)
        try:
            thread = Thread(target=self.launch, args=(driver, 3))
            thread.start()
            thread.join()
        finally:
            podium.set_allocator(None)
        self.launch(driver, 3)
        assert len(kept) == 1

    def test_an_allocator_that_cannot_serve(self, driver: Driver, level: Level) -> None:
        """Null, a misaligned address or no address is a ScratchError, and nothing is launched.

        Rows SCR-05.
        """
        before = self.count(driver)
        for wrong in (0, None, 4097, "x", object()):
            with pytest.raises(ScratchError) as caught, podium.use_allocator(lambda *_, wrong=wrong: wrong):
                self.launch(driver, 1)
            assert (caught.value.kernel, caught.value.size) == ("work", _SIZE)
        assert self.count(driver) == before

    @pytest.mark.needs("observes")
    def test_profile_scratch_follows(self, driver: Driver, level: Level) -> None:
        """The profiler's scratch is a memory of its own, after the first."""
        found = self.launch(driver, 2, profile_scratch_size=32, profile_scratch_align=16)
        if found is None:
            return
        address, profile = found
        assert profile > 0 and profile % 16 == 0
        assert profile + 64 <= address or address + 2 * _SIZE <= profile
