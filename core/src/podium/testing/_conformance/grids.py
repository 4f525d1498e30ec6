"""Grids and blocks: every thread runs once, and what no device can do is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import podium
from podium.backend import Driver, LaunchConfig
from podium.errors import LaunchConfigError, OutOfResourcesError
from podium.testing._conformance.contract import contract
from podium.testing._conformance.subject import Level, Subject

__all__ = ["Grids"]

_SHAPES: tuple[tuple[Any, Any], ...] = (
    (1, 1),
    (7, 1),
    (1, 33),
    (5, 64),
    ((3, 5), (8, 4)),
    ((2, 3, 4), (4, 3, 2)),
    ((1, 1, 9), (1, 1, 5)),
    ([4], [3]),
)

_COUNT = """
extern "C" __global__ void count(int* seen, int* where) {
    int width = gridDim.x * blockDim.x, height = gridDim.y * blockDim.y;
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    int i = (z * height + y) * width + x;
    seen[i] += 1;
    where[i] = x + 1000 * y + 1000000 * z;
}
"""
_SHARED = """
extern "C" __global__ void turn(int* x, int words) {
    extern __shared__ int dynamic[];
    __shared__ int fixed[256];
    int i = threadIdx.x, n = blockDim.x;
    for (int word = i; word < words; word += n) dynamic[word] = 7 * word;
    fixed[i] = x[blockIdx.x * n + i];
    __syncthreads();
    int sum = 0;
    for (int word = words - 1 - i; word >= 0; word -= n) sum += dynamic[word] - 7 * word;
    x[blockIdx.x * n + i] = fixed[(i + 1) % n] + sum;
}
"""
_PUT = """
extern "C" __global__ void put(int* x, int n) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i < n) x[i] = i;
}
"""
_FEATURES: dict[str, Callable[[], LaunchConfig]] = {
    "cooperative": lambda: LaunchConfig(1, 1, cooperative=True),
    "dependent": lambda: LaunchConfig(1, 1, dependent=True),
    "cluster": lambda: LaunchConfig(2, 1, cluster=2),
    "podium_no_such_attribute": lambda: LaunchConfig(1, 1, attributes={"podium_no_such_attribute": 1}),
}


def _limited(axes: Any, limits: tuple[int, int, int] = (1 << 31,) * 3) -> tuple[int, int, int]:
    """Return a grid or a block with all three axes, none of them longer than its limit."""
    x, y, z = (*((axes,) if isinstance(axes, int) else axes), 1, 1)[:3]
    return min(x, limits[0]), min(y, limits[1]), min(z, limits[2])


@contract("Arguments")
class Grids(Subject):
    """The shape of a launch."""

    @pytest.mark.needs("observes")
    @pytest.mark.parametrize(("grid", "block"), _SHAPES, ids=str)
    def test_every_thread_runs_once_with_its_own_indices(
        self, driver: Driver, level: Level, grid: Any, block: Any
    ) -> None:
        """In one, two and three dimensions each thread runs exactly once, and knows where it is."""
        import numpy

        device = driver.devices()[driver.current_device()]
        blocks, threads = _limited(grid, device.max_grid), _limited(block, device.max_block)
        if threads[0] * threads[1] * threads[2] > device.max_threads:
            pytest.skip(f"a block has at most {device.max_threads} threads here")
        if blocks + threads != _limited(grid) + _limited(block):
            grid, block = blocks, threads
        x, y, z = (count * size for count, size in zip(blocks, threads))
        kernel = podium.kernel(_COUNT, "count", signature="seen: *i32, where: *i32")
        seen, where = (podium.asarray(numpy.zeros(x * y * z, numpy.int32)) for _ in range(2))
        kernel[grid, block](seen, where)
        if self.capabilities.executes:
            assert (seen.numpy() == 1).all(), "some threads ran not at all, or more than once"
            depth, height, width = numpy.mgrid[0:z, 0:y, 0:x]
            assert (where.numpy() == (width + 1000 * height + 1000000 * depth).reshape(-1)).all()
        if self.capabilities.records:
            launch = self.last(driver)
            assert (launch.grid, launch.block, launch.cluster) == (blocks, threads, (1, 1, 1))
        level.check(kernel)

    def test_an_empty_grid_does_nothing(self, driver: Driver, level: Level) -> None:
        """A grid with a zero on any axis launches nothing, before and after a real launch; arguments are checked.

        Rows GRD-03.
        """
        kernel = self._nothing()
        before = self.count(driver)
        for _ in range(2):
            for grid in (0, (0, 1), (1, 0), (1, 1, 0), (0, 0, 0)):
                kernel[grid, 1](1)
                with pytest.raises(TypeError):
                    kernel[grid, 1]("x")
            assert self.count(driver) == before
            kernel[1, 1](1)
            before = self.count(driver)
        assert driver.synchronize(driver.current_device()) == 0

    def test_a_negative_grid_is_refused(self, driver: Driver, level: Level) -> None:
        """A negative axis is an error that names it.

        Rows GRD-04.
        """
        kernel = self._nothing()
        kernel[1, 1](1)
        before = self.count(driver)
        for axis, grid in enumerate([-1, (1, -2), (1, 1, -(1 << 40))]):
            with pytest.raises(LaunchConfigError, match="negative") as caught:
                kernel[grid, 1](1)
            assert caught.value.axis == f"grid.{'xyz'[axis]}"
        assert self.count(driver) == before

    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_a_grid_over_the_devices_limit_is_refused(self, driver: Driver, level: Level, axis: int) -> None:
        """Each axis is checked against the device's own limit, and the error has axis, value and limit.

        Rows GRD-01.
        """
        limit = driver.devices()[driver.current_device()].max_grid[axis]
        kernel = self._nothing()
        kernel[1, 1](1)
        before = self.count(driver)
        grid = [1, 1, 1]
        for too_large in (limit + 1, limit + (1 << 32), 1 << 70):
            grid[axis] = too_large
            with pytest.raises(LaunchConfigError) as caught:
                kernel[tuple(grid), 1](1)
            assert caught.value.axis == f"grid.{'xyz'[axis]}" and str(limit) in str(caught.value)
        assert self.count(driver) == before

    @pytest.mark.parametrize("axis", [0, 1, 2])
    def test_a_block_over_the_devices_limit_is_refused(self, driver: Driver, level: Level, axis: int) -> None:
        """A block that is too long on an axis, or has too many threads, is an OutOfResourcesError.

        Rows GRD-06.
        """
        device = driver.devices()[driver.current_device()]
        kernel = self._nothing()
        block = [1, 1, 1]
        block[axis] = device.max_block[axis] + 1
        with pytest.raises(OutOfResourcesError) as caught:
            kernel[1, tuple(block)](1)
        assert (caught.value.required, caught.value.limit) == (device.max_block[axis] + 1, device.max_block[axis])
        side = next(n for n in range(1, 1 << 20) if n**3 > device.max_threads)
        with pytest.raises(OutOfResourcesError):
            kernel[1, (side, side, side)](1)
        for wrong in (0, (1, 0), -1, "x", 1.5, (1, 1, 1, 1)):
            with pytest.raises(LaunchConfigError):
                kernel[1, wrong](1)

    @pytest.mark.needs("observes")
    def test_the_largest_block_runs(self, driver: Driver, level: Level) -> None:
        """A block of as many threads as the device states can be launched."""
        import numpy

        device = driver.devices()[driver.current_device()]
        threads = min(device.max_threads, device.max_block[0])
        kernel = podium.kernel(_COUNT, "count", signature="seen: *i32, where: *i32")
        limit = kernel.binding().load(device.index).max_threads
        threads = min(threads, limit or threads)
        seen, where = (podium.asarray(numpy.zeros(threads, numpy.int32)) for _ in range(2))
        kernel[1, threads](seen, where)
        if self.capabilities.executes:
            assert (seen.numpy() == 1).all() and (where.numpy() == numpy.arange(threads)).all()
        if self.capabilities.records:
            assert self.last(driver).block == (threads, 1, 1)

    @pytest.mark.needs("observes", "shared_memory", "barriers")
    def test_static_and_dynamic_shared_memory(self, driver: Driver, level: Level) -> None:
        """A block has the shared memory that the source declares and the bytes that the launch adds.

        Rows GRD-07.
        """
        import numpy

        kernel = podium.kernel(_SHARED, "turn", signature="x: *i32, words: i32")
        most = driver.devices()[driver.current_device()].max_shared - 4096
        sizes = [size for size in (64, 4000, 40_000, most) if size <= most]
        block = self.threads(driver, 96)
        for size in (*sizes, 64):
            values = numpy.arange(3 * block, dtype=numpy.int32)
            x = podium.asarray(values)
            kernel[3, block](x, size // 4, shared=size)
            if self.capabilities.executes:
                assert (x.numpy() == numpy.roll(values.reshape(3, block), -1, axis=1).reshape(-1)).all()
            if self.capabilities.records:
                assert self.last(driver).shared == size
        x = podium.asarray(numpy.arange(block, dtype=numpy.int32))
        kernel[LaunchConfig(1, block, shared=256)](x, 64)
        if self.capabilities.records:
            assert self.last(driver).shared == 256
        if self.capabilities.executes:
            assert (x.numpy() == numpy.roll(numpy.arange(block), -1)).all()

    def test_more_shared_memory_than_there_is(self, driver: Driver, level: Level) -> None:
        """Dynamic shared memory over the device's limit is an error with what is needed and what there is.

        Rows GRD-08.
        """
        kernel = self._nothing()
        limit = driver.devices()[driver.current_device()].max_shared
        kernel[1, 1](1)
        before = self.count(driver)
        for size in (limit + 1, 1 << 40):
            with pytest.raises(OutOfResourcesError) as caught:
                kernel[1, 1](1, shared=size)
            assert (caught.value.required, caught.value.limit) == (size, limit)
        with pytest.raises(LaunchConfigError):
            kernel[1, 1](1, shared=-1)
        assert self.count(driver) == before

    @pytest.mark.parametrize("feature", sorted(_FEATURES))
    def test_features_that_are_not_there_are_refused_by_name(self, driver: Driver, level: Level, feature: str) -> None:
        """A launch feature that the driver does not state is an error that names it; one that it states works.

        Rows GRD-11.
        """
        kernel, config = self._nothing(), _FEATURES[feature]()
        if feature in driver.features:
            kernel[config](1)
            assert driver.synchronize(driver.current_device()) == 0
            return
        before = self.count(driver)
        with pytest.raises(LaunchConfigError, match=feature):
            kernel[config](1)
        assert self.count(driver) == before

    @pytest.mark.needs("observes")
    def test_a_grid_computed_from_the_arguments(self, driver: Driver, level: Level) -> None:
        """A grid may be a function of the arguments by name."""
        import numpy

        kernel = podium.kernel(_PUT, "put", signature="x: *i32, n: i32")
        launch = kernel[lambda named: -(-named["n"] // 4), 4]
        for n in (1, 9, 4):
            x = podium.asarray(numpy.full(12, -1, numpy.int32))
            launch(x, n)
            if self.capabilities.executes:
                assert x.tolist() == [*range(n), *[-1] * (12 - n)]
            if self.capabilities.records:
                assert self.last(driver).grid == (-(-n // 4), 1, 1)

    def _nothing(self) -> podium.Kernel:
        return podium.kernel('extern "C" __global__ void nothing(int x) { }', "nothing", signature="x: i32")
